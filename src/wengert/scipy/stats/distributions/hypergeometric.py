"""The hypergeometric and negative hypergeometric distributions.

    hypergeom nhypergeom

Formulas: N. L. Johnson, A. W. Kemp, S. Kotz, Univariate Discrete Distributions (2005).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...special import betaln
from ..discrete_distribution import Finite
from .common import is_count, log_binomial


class _HyperGeom(Finite):
    """The number of type-1 items in `N` draws without replacement; `n` of `M` are type 1."""

    def valid(self, M: Any, n: Any, N: Any) -> Any:
        are_counts = np.logical_and(is_count(M), np.logical_and(is_count(n), is_count(N)))
        return np.logical_and(are_counts, np.logical_and(n <= M, N <= M))

    def support_of(self, M: Any, n: Any, N: Any) -> Any:
        return np.maximum(N - (M - n), 0.0), np.minimum(n, N)

    def log_density(self, k: Any, M: Any, n: Any, N: Any) -> Any:
        return log_binomial(n, k) + log_binomial(M - n, N - k) - log_binomial(M, N)

    def standard_mean(self, M: Any, n: Any, N: Any) -> Any:
        return N * (n / M)

    def standard_var(self, M: Any, n: Any, N: Any) -> Any:
        share = n / M
        return N * share * (1.0 - share) * ((M - N) / (M - 1.0))


hypergeom = _HyperGeom("hypergeom")


class _NHyperGeom(Finite):
    """The number of type-1 items drawn before `r` of type 2; `n` of `M` are type 1."""

    def valid(self, M: Any, n: Any, r: Any) -> Any:
        valid = np.logical_and(n >= 0, n <= M)
        return np.logical_and(valid, np.logical_and(r >= 0, r <= M - n))

    def support_of(self, M: Any, n: Any, r: Any) -> Any:
        return 0.0, n * 1.0

    def log_density(self, k: Any, M: Any, n: Any, r: Any) -> Any:
        out = -betaln(k + 1.0, r) + betaln(k + r, 1.0) - betaln(n - k + 1.0, M - r - n + 1.0)
        out = out + betaln(M - r - k + 1.0, 1.0) + betaln(n + 1.0, M - n + 1.0)
        return out - betaln(M + 1.0, 1.0)

    def standard_mean(self, M: Any, n: Any, r: Any) -> Any:
        return r * n / (M - n + 1.0)

    def standard_var(self, M: Any, n: Any, r: Any) -> Any:
        rest = M - n + 1.0
        return r * n * (M + 1.0) * (rest - r) / (rest * rest * (rest + 1.0))


nhypergeom = _NHyperGeom("nhypergeom")

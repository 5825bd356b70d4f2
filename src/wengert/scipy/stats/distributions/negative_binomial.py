"""The negative binomial distribution and those derived from it.

    nbinom geom betanbinom

Formulas: N. L. Johnson, A. W. Kemp, S. Kotz, Univariate Discrete Distributions (2005).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.random import functions

from ...special import betainc, betaincc, betaln, entr, xlog1py
from ..discrete_distribution import Discrete
from .common import where_finite


class _NBinom(Discrete):
    """The number of failures before `n` successes, with success probability `p`."""

    def valid(self, n: Any, p: Any) -> Any:
        return np.logical_and(n > 0, np.logical_and(p > 0, p <= 1))

    def log_density(self, k: Any, n: Any, p: Any) -> Any:
        return -np.log(n + k) - betaln(n, k + 1.0) + n * np.log(p) + xlog1py(k, -p)

    def lower(self, k: Any, n: Any, p: Any) -> Any:
        return betainc(n, k + 1.0, p)

    def upper(self, k: Any, n: Any, p: Any) -> Any:
        return betaincc(n, k + 1.0, p)

    def standard_mean(self, n: Any, p: Any) -> Any:
        return n * (1.0 - p) / p

    def standard_var(self, n: Any, p: Any) -> Any:
        return n * (1.0 - p) / (p * p)

    def standard_draw(self, key: Any, shape: Any, n: Any, p: Any) -> Any:
        return functions.negative_binomial(key, n, p, shape)


nbinom = _NBinom("nbinom")


class _Geom(Discrete):
    """The number of trials until the first success, with success probability `p`."""

    ends = (1.0, np.inf)

    def valid(self, p: Any) -> Any:
        return np.logical_and(p > 0, p <= 1)

    def log_density(self, k: Any, p: Any) -> Any:
        return xlog1py(k - 1.0, -p) + np.log(p)

    def lower(self, k: Any, p: Any) -> Any:
        return -np.expm1(xlog1py(k, -p))

    def upper(self, k: Any, p: Any) -> Any:
        return np.exp(xlog1py(k, -p))

    def standard_mean(self, p: Any) -> Any:
        return 1.0 / p

    def standard_var(self, p: Any) -> Any:
        return (1.0 - p) / (p * p)

    def standard_entropy(self, p: Any) -> Any:
        return (entr(p) + entr(1.0 - p)) / p

    def standard_draw(self, key: Any, shape: Any, p: Any) -> Any:
        return functions.geometric(key, p, shape)


geom = _Geom("geom")


class _BetaNBinom(Discrete):
    """The negative binomial distribution whose success probability is beta(a, b) distributed."""

    has_light_tail = False

    def valid(self, n: Any, a: Any, b: Any) -> Any:
        return np.logical_and(n >= 0, np.logical_and(a > 0, b > 0))

    def log_density(self, k: Any, n: Any, a: Any, b: Any) -> Any:
        out = -np.log(n + k) - betaln(n, k + 1.0)
        return out + betaln(a + n, b + k) - betaln(a, b)

    def standard_mean(self, n: Any, a: Any, b: Any) -> Any:
        def mean(n: Any, a: Any, b: Any) -> Any:
            return n * b / (a - 1.0)

        return where_finite(a > 1, mean, n, a, b, fallback=(1.0, 2.0, 1.0))

    def standard_var(self, n: Any, a: Any, b: Any) -> Any:
        def var(n: Any, a: Any, b: Any) -> Any:
            return n * b * (n + a - 1.0) * (a + b - 1.0) / ((a - 2.0) * (a - 1.0) ** 2)

        return where_finite(a > 2, var, n, a, b, fallback=(1.0, 3.0, 1.0))


betanbinom = _BetaNBinom("betanbinom")

"""The F distribution.

    f

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.random import functions

from ...special import betaln, fdtr, fdtrc, fdtri, psi, xlogy
from .common import PositiveSupport


class _F(PositiveSupport):
    """The F distribution with `dfn` and `dfd` degrees of freedom."""

    def valid(self, dfn: Any, dfd: Any) -> Any:
        return np.logical_and(dfn > 0, dfd > 0)

    def log_density(self, x: Any, dfn: Any, dfd: Any) -> Any:
        n, m = 0.5 * dfn, 0.5 * dfd
        ratio = dfn / dfd
        out = n * np.log(ratio) + xlogy(n - 1.0, x) - (n + m) * np.log1p(ratio * x)
        return out - betaln(n, m)

    def lower(self, x: Any, dfn: Any, dfd: Any) -> Any:
        return fdtr(dfn, dfd, x)

    def upper(self, x: Any, dfn: Any, dfd: Any) -> Any:
        return fdtrc(dfn, dfd, x)

    def quantile(self, q: Any, dfn: Any, dfd: Any) -> Any:
        return fdtri(dfn, dfd, q)

    def upper_quantile(self, q: Any, dfn: Any, dfd: Any) -> Any:
        return 1.0 / fdtri(dfd, dfn, q)

    def standard_mean(self, dfn: Any, dfd: Any) -> Any:
        safe = np.where(dfd > 2, dfd, 3.0)
        return np.where(dfd > 2, safe / (safe - 2.0), np.inf) + 0.0 * dfn

    def standard_var(self, dfn: Any, dfd: Any) -> Any:
        safe = np.where(dfd > 4, dfd, 5.0)
        out = 2.0 * safe * safe * (dfn + safe - 2.0) / (dfn * (safe - 2.0) ** 2 * (safe - 4.0))
        return np.where(dfd > 4, out, np.inf)

    def standard_entropy(self, dfn: Any, dfd: Any) -> Any:
        n, m = 0.5 * dfn, 0.5 * dfd
        out = (1.0 - n) * psi(n) - (1.0 + m) * psi(m) + (n + m) * psi(n + m)
        return np.log(dfd) - np.log(dfn) + betaln(n, m) + out

    def standard_draw(self, key: Any, shape: Any, dfn: Any, dfd: Any) -> Any:
        return functions.f(key, dfn, dfd, shape)


f = _F("f")

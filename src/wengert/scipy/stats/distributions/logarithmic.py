"""The logarithmic (log-series) distribution.

    logser

Formulas: N. L. Johnson, A. W. Kemp, S. Kotz, Univariate Discrete Distributions (2005).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...special import hyp2f1, xlogy
from ..discrete_distribution import Discrete


class _LogSer(Discrete):
    """The logarithmic distribution: probabilities proportional to p^k / k for k >= 1."""

    ends = (1.0, np.inf)

    def valid(self, p: Any) -> Any:
        return np.logical_and(p > 0, p < 1)

    def log_density(self, k: Any, p: Any) -> Any:
        return xlogy(k, p) - np.log(k) - np.log(-np.log1p(-p))

    def upper(self, k: Any, p: Any) -> Any:
        # The integral of t^k / (1 - t) from 0 to p, an incomplete beta function of b = 0.
        tail = hyp2f1(1.0, k + 1.0, k + 2.0, p) / (k + 1.0)
        return -np.exp(xlogy(k + 1.0, p)) * tail / np.log1p(-p)

    def standard_mean(self, p: Any) -> Any:
        return -p / ((1.0 - p) * np.log1p(-p))

    def standard_var(self, p: Any) -> Any:
        r = np.log1p(-p)
        return -p * (p + r) / ((1.0 - p) * r) ** 2


logser = _LogSer("logser")

"""The alpha distribution.

    alpha

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...special import log_ndtr, ndtri_exp
from .common import HALF_LOG_2PI, PositiveSupport, log_normal_interval


class _Alpha(PositiveSupport):
    """The reciprocal of a normal variable of mean `a`, truncated to positive values."""

    at_low = False

    def valid(self, a: Any) -> Any:
        return a > 0

    def log_density(self, x: Any, a: Any) -> Any:
        return -2.0 * np.log(x) - log_ndtr(a) - HALF_LOG_2PI - 0.5 * (a - 1.0 / x) ** 2

    def log_lower(self, x: Any, a: Any) -> Any:
        return log_ndtr(a - 1.0 / x) - log_ndtr(a)

    def log_upper(self, x: Any, a: Any) -> Any:
        return log_normal_interval(a - 1.0 / x, a) - log_ndtr(a)

    def quantile(self, q: Any, a: Any) -> Any:
        return 1.0 / (a - ndtri_exp(np.log(q) + log_ndtr(a)))

    def upper_quantile(self, q: Any, a: Any) -> Any:
        return 1.0 / (a - ndtri_exp(np.log1p(-q) + log_ndtr(a)))

    def standard_mean(self, a: Any) -> Any:
        return np.inf + 0.0 * a

    standard_var = standard_mean


alpha = _Alpha("alpha")

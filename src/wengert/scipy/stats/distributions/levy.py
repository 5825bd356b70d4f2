"""The Levy distribution and its reflection.

    levy levy_l

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from wengert.random import functions

from ...special import erf, erfc, erfinv, log_ndtr, ndtri
from .common import EULER, HALF_LOG_2PI, PositiveSupport


class _Levy(PositiveSupport):
    """The Levy distribution: the reciprocal of a squared normal variable."""

    at_low = False

    def log_density(self, x: Any) -> Any:
        return -HALF_LOG_2PI - 1.5 * np.log(x) - 0.5 / x

    def lower(self, x: Any) -> Any:
        return erfc(np.sqrt(0.5 / x))

    def log_lower(self, x: Any) -> Any:
        return log(2.0) + log_ndtr(-1.0 / np.sqrt(x))

    def upper(self, x: Any) -> Any:
        return erf(np.sqrt(0.5 / x))

    def quantile(self, q: Any) -> Any:
        return ndtri(0.5 * q) ** -2.0

    def upper_quantile(self, q: Any) -> Any:
        return 0.5 * erfinv(q) ** -2.0

    def standard_mean(self) -> Any:
        return np.inf

    standard_var = standard_mean

    def standard_entropy(self) -> Any:
        return 0.5 * (1.0 + 3.0 * EULER + log(16.0 * pi))

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.normal(key, shape) ** -2.0


levy = _Levy("levy")


class _LevyL(_Levy):
    """The left-skewed Levy distribution."""

    ends = (-np.inf, 0.0)
    inner = -1.0
    at_high = False

    def log_density(self, x: Any) -> Any:
        return super().log_density(-x)

    def lower(self, x: Any) -> Any:
        return super().upper(-x)

    def log_lower(self, x: Any) -> Any:
        return np.log(super().upper(-x))

    def upper(self, x: Any) -> Any:
        return super().lower(-x)

    def log_upper(self, x: Any) -> Any:
        return super().log_lower(-x)

    def quantile(self, q: Any) -> Any:
        return -super().upper_quantile(q)

    def upper_quantile(self, q: Any) -> Any:
        return -super().quantile(q)

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return -super().standard_draw(key, shape)


levy_l = _LevyL("levy_l")

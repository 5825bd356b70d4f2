"""The Johnson SB and SU distributions.

    johnsonsb johnsonsu

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.random import functions

from ...special import expit, log_ndtr, logit, ndtr, ndtri
from ..continuous_distribution import Continuous
from .common import HALF_LOG_2PI


class _JohnsonSB(Continuous):
    """The Johnson SB distribution: a + b logit(x) is normal."""

    ends = (0.0, 1.0)
    at_low = at_high = False

    def valid(self, a: Any, b: Any) -> Any:
        return np.logical_and(b > 0, a == a)

    def log_density(self, x: Any, a: Any, b: Any) -> Any:
        z = a + b * logit(x)
        return np.log(b) - np.log(x) - np.log1p(-x) - 0.5 * (z * z) - HALF_LOG_2PI

    def lower(self, x: Any, a: Any, b: Any) -> Any:
        return ndtr(a + b * logit(x))

    def upper(self, x: Any, a: Any, b: Any) -> Any:
        return ndtr(-a - b * logit(x))

    def log_lower(self, x: Any, a: Any, b: Any) -> Any:
        return log_ndtr(a + b * logit(x))

    def log_upper(self, x: Any, a: Any, b: Any) -> Any:
        return log_ndtr(-a - b * logit(x))

    def quantile(self, q: Any, a: Any, b: Any) -> Any:
        return expit((ndtri(q) - a) / b)

    def upper_quantile(self, q: Any, a: Any, b: Any) -> Any:
        return expit((-ndtri(q) - a) / b)

    def standard_draw(self, key: Any, shape: Any, a: Any, b: Any) -> Any:
        return expit((functions.normal(key, shape) - a) / b)


johnsonsb = _JohnsonSB("johnsonsb")


class _JohnsonSU(Continuous):
    """The Johnson SU distribution: a + b arcsinh(x) is normal."""

    def valid(self, a: Any, b: Any) -> Any:
        return np.logical_and(b > 0, a == a)

    def log_density(self, x: Any, a: Any, b: Any) -> Any:
        z = a + b * np.arcsinh(x)
        return np.log(b) - np.log(np.hypot(1.0, x)) - 0.5 * (z * z) - HALF_LOG_2PI

    def lower(self, x: Any, a: Any, b: Any) -> Any:
        return ndtr(a + b * np.arcsinh(x))

    def upper(self, x: Any, a: Any, b: Any) -> Any:
        return ndtr(-a - b * np.arcsinh(x))

    def log_lower(self, x: Any, a: Any, b: Any) -> Any:
        return log_ndtr(a + b * np.arcsinh(x))

    def log_upper(self, x: Any, a: Any, b: Any) -> Any:
        return log_ndtr(-a - b * np.arcsinh(x))

    def quantile(self, q: Any, a: Any, b: Any) -> Any:
        return np.sinh((ndtri(q) - a) / b)

    def upper_quantile(self, q: Any, a: Any, b: Any) -> Any:
        return np.sinh((-ndtri(q) - a) / b)

    def standard_mean(self, a: Any, b: Any) -> Any:
        return -np.exp(0.5 / (b * b)) * np.sinh(a / b)

    def standard_var(self, a: Any, b: Any) -> Any:
        square = 1.0 / (b * b)
        return 0.5 * np.expm1(square) * (np.exp(square) * np.cosh(2.0 * a / b) + 1.0)

    def standard_draw(self, key: Any, shape: Any, a: Any, b: Any) -> Any:
        return np.sinh((functions.normal(key, shape) - a) / b)


johnsonsu = _JohnsonSU("johnsonsu")

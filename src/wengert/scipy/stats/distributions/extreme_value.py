"""The generalized extreme value distribution, and those of Gumbel and Gompertz.

    genextreme gumbel_r gumbel_l gompertz

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
genextreme is smooth where its parameter c is 0.
"""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from wengert.random import functions

from ...special import exprel, hyperu
from ..continuous_distribution import Continuous, log1mexp
from .common import EULER, PositiveSupport, log1p_ratio


class _GenExtreme(Continuous):
    """The generalized extreme value distribution; c = 0 gives gumbel_r, as in SciPy."""

    def support_of(self, c: Any) -> Any:
        safe = np.where(c == 0, 1.0, c)
        return np.where(c < 0, 1.0 / safe, -np.inf), np.where(c > 0, 1.0 / safe, np.inf)

    def inside_of(self, c: Any) -> Any:
        return 0.0

    at_low = at_high = False

    def log_density(self, x: Any, c: Any) -> Any:
        power = -log1p_ratio(-c, x)
        return -np.exp(power) + power - np.log1p(-c * x)

    def log_lower(self, x: Any, c: Any) -> Any:
        return -np.exp(-log1p_ratio(-c, x))

    def upper(self, x: Any, c: Any) -> Any:
        return -np.expm1(self.log_lower(x, c))

    def quantile(self, q: Any, c: Any) -> Any:
        y = -np.log(-np.log(q))
        return y * exprel(-c * y)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        y = -np.log(-np.log1p(-q))
        return y * exprel(-c * y)

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        y = functions.gumbel(key, shape)
        return y * exprel(-c * y)


genextreme = _GenExtreme("genextreme")


class _GumbelR(Continuous):
    """The right-skewed Gumbel distribution, of maxima."""

    def log_density(self, x: Any) -> Any:
        return -x - np.exp(-x)

    def log_lower(self, x: Any) -> Any:
        return -np.exp(-x)

    def log_upper(self, x: Any) -> Any:
        return log1mexp(-np.exp(-x))

    def upper(self, x: Any) -> Any:
        return -np.expm1(-np.exp(-x))

    def quantile(self, q: Any) -> Any:
        return -np.log(-np.log(q))

    def upper_quantile(self, q: Any) -> Any:
        return -np.log(-np.log1p(-q))

    def standard_mean(self) -> Any:
        return EULER

    def standard_var(self) -> Any:
        return pi * pi / 6.0

    def standard_entropy(self) -> Any:
        return EULER + 1.0

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.gumbel(key, shape)


gumbel_r = _GumbelR("gumbel_r")


class _GumbelL(_GumbelR):
    """The left-skewed Gumbel distribution, of minima."""

    def log_density(self, x: Any) -> Any:
        return x - np.exp(x)

    def log_lower(self, x: Any) -> Any:
        return log1mexp(-np.exp(x))

    def log_upper(self, x: Any) -> Any:
        return -np.exp(x)

    def lower(self, x: Any) -> Any:
        return -np.expm1(-np.exp(x))

    def upper(self, x: Any) -> Any:
        return np.exp(-np.exp(x))

    def quantile(self, q: Any) -> Any:
        return np.log(-np.log1p(-q))

    def upper_quantile(self, q: Any) -> Any:
        return np.log(-np.log(q))

    def standard_mean(self) -> Any:
        return -EULER

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return -functions.gumbel(key, shape)


gumbel_l = _GumbelL("gumbel_l")


class _Gompertz(PositiveSupport):
    """The Gompertz distribution with parameter `c`."""

    def valid(self, c: Any) -> Any:
        return c > 0

    def log_density(self, x: Any, c: Any) -> Any:
        return np.log(c) + x - c * np.expm1(x)

    def log_upper(self, x: Any, c: Any) -> Any:
        return -c * np.expm1(x)

    def lower(self, x: Any, c: Any) -> Any:
        return -np.expm1(-c * np.expm1(x))

    def quantile(self, q: Any, c: Any) -> Any:
        return np.log1p(-np.log1p(-q) / c)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return np.log1p(-np.log(q) / c)

    def standard_mean(self, c: Any) -> Any:
        return hyperu(1.0, 1.0, c)  # exp(c) E1(c), DLMF 13.6.6

    def standard_entropy(self, c: Any) -> Any:
        return 1.0 - np.log(c) - hyperu(1.0, 1.0, c)

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return np.log1p(functions.exponential(key, shape) / c)


gompertz = _Gompertz("gompertz")

"""Distributions of extremes: generalized, and those of Gumbel, Gompertz and Weibull.

    genextreme gumbel_r gumbel_l gompertz
    weibull_min weibull_max dweibull exponweib invweibull truncweibull_min

genextreme is smooth where its parameter c is 0.
"""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np
from scipy import special

from wengert.random import functions

from ...special import exprel, gammaln, hyperu, xlogy
from ..continuous_distribution import Continuous, log1mexp
from .common import EULER, PositiveSupport, Symmetric, log1p_ratio, where_finite


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


class _WeibullMin(PositiveSupport):
    """The Weibull distribution (of minima) with power `c`."""

    def valid(self, c: Any) -> Any:
        return c > 0

    def log_density(self, x: Any, c: Any) -> Any:
        return np.log(c) + xlogy(c - 1.0, x) - x**c

    def lower(self, x: Any, c: Any) -> Any:
        return -np.expm1(-(x**c))

    def log_upper(self, x: Any, c: Any) -> Any:
        return -(x**c)

    def quantile(self, q: Any, c: Any) -> Any:
        return (-np.log1p(-q)) ** (1.0 / c)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return (-np.log(q)) ** (1.0 / c)

    def standard_mean(self, c: Any) -> Any:
        return special.gamma(1.0 + 1.0 / c)

    def standard_var(self, c: Any) -> Any:
        return special.gamma(1.0 + 2.0 / c) - special.gamma(1.0 + 1.0 / c) ** 2

    def standard_entropy(self, c: Any) -> Any:
        return -EULER / c - np.log(c) + EULER + 1.0

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return functions.weibull_min(key, 1.0, c, shape)


weibull_min = _WeibullMin("weibull_min")


class _WeibullMax(_WeibullMin):
    """The Weibull distribution of maxima: the reflection of weibull_min."""

    ends = (-np.inf, 0.0)
    inner = -1.0

    def log_density(self, x: Any, c: Any) -> Any:
        return super().log_density(-x, c)

    def lower(self, x: Any, c: Any) -> Any:
        return np.exp(-((-x) ** c))

    def log_lower(self, x: Any, c: Any) -> Any:
        return -((-x) ** c)

    def upper(self, x: Any, c: Any) -> Any:
        return -np.expm1(-((-x) ** c))

    def log_upper(self, x: Any, c: Any) -> Any:
        return np.log(self.upper(x, c))

    def quantile(self, q: Any, c: Any) -> Any:
        return -((-np.log(q)) ** (1.0 / c))

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return -((-np.log1p(-q)) ** (1.0 / c))

    def standard_mean(self, c: Any) -> Any:
        return -super().standard_mean(c)

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return -super().standard_draw(key, shape, c)


weibull_max = _WeibullMax("weibull_max")


class _DWeibull(Symmetric):
    """The double Weibull distribution with power `c`."""

    inner = 1.0

    def valid(self, c: Any) -> Any:
        return c > 0

    def log_density(self, x: Any, c: Any) -> Any:
        size = np.abs(x)
        return np.log(0.5 * c) + xlogy(c - 1.0, size) - size**c

    def tail(self, x: Any, c: Any) -> Any:
        return 0.5 * np.exp(-(x**c))

    def of_tail(self, q: Any, c: Any) -> Any:
        return (-np.log(2.0 * q)) ** (1.0 / c)

    def standard_var(self, c: Any) -> Any:
        return np.exp(gammaln(1.0 + 2.0 / c))

    def standard_entropy(self, c: Any) -> Any:
        return EULER * (1.0 - 1.0 / c) + 1.0 - np.log(0.5 * c)


dweibull = _DWeibull("dweibull")


class _ExponWeib(PositiveSupport):
    """The exponentiated Weibull distribution: the cdf of weibull_min(c), to the power a."""

    def valid(self, a: Any, c: Any) -> Any:
        return np.logical_and(a > 0, c > 0)

    def log_density(self, x: Any, a: Any, c: Any) -> Any:
        y = x**c
        out = np.log(a) + np.log(c) + (a - 1.0) * np.log(exprel(-y)) - y
        return out + xlogy(a * c - 1.0, x)

    def log_lower(self, x: Any, a: Any, c: Any) -> Any:
        return a * log1mexp(-(x**c))

    def quantile(self, q: Any, a: Any, c: Any) -> Any:
        return (-log1mexp(np.log(q) / a)) ** (1.0 / c)

    def upper_quantile(self, q: Any, a: Any, c: Any) -> Any:
        return (-log1mexp(np.log1p(-q) / a)) ** (1.0 / c)

    def standard_draw(self, key: Any, shape: Any, a: Any, c: Any) -> Any:
        return (-log1mexp(-functions.exponential(key, shape) / a)) ** (1.0 / c)


exponweib = _ExponWeib("exponweib")


class _InvWeibull(PositiveSupport):
    """The inverse Weibull (Frechet) distribution with power `c`."""

    at_low = False

    def valid(self, c: Any) -> Any:
        return c > 0

    def log_density(self, x: Any, c: Any) -> Any:
        return np.log(c) - (c + 1.0) * np.log(x) - x ** (-c)

    def log_lower(self, x: Any, c: Any) -> Any:
        return -(x ** (-c))

    def quantile(self, q: Any, c: Any) -> Any:
        return (-np.log(q)) ** (-1.0 / c)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return (-np.log1p(-q)) ** (-1.0 / c)

    def standard_mean(self, c: Any) -> Any:
        return where_finite(c > 1, lambda c: np.exp(gammaln(1.0 - 1.0 / c)), c, fallback=(2.0,))

    def standard_var(self, c: Any) -> Any:
        def var(c: Any) -> Any:
            return np.exp(gammaln(1.0 - 2.0 / c)) - np.exp(2.0 * gammaln(1.0 - 1.0 / c))

        return where_finite(c > 2, var, c, fallback=(3.0,))

    def standard_entropy(self, c: Any) -> Any:
        return 1.0 + EULER + EULER / c - np.log(c)

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return functions.exponential(key, shape) ** (-1.0 / c)


invweibull = _InvWeibull("invweibull")


class _TruncWeibullMin(Continuous):
    """The Weibull distribution with power `c` truncated to [a, b]."""

    def valid(self, c: Any, a: Any, b: Any) -> Any:
        return np.logical_and(np.logical_and(a >= 0, b > a), c > 0)

    def support_of(self, c: Any, a: Any, b: Any) -> Any:
        return a, b

    def inside_of(self, c: Any, a: Any, b: Any) -> Any:
        return 0.5 * (a + b)

    def log_density(self, x: Any, c: Any, a: Any, b: Any) -> Any:
        out = np.log(c) + xlogy(c - 1.0, x) - (x**c - a**c)
        return out - log1mexp(a**c - b**c)

    def log_lower(self, x: Any, c: Any, a: Any, b: Any) -> Any:
        return log1mexp(a**c - x**c) - log1mexp(a**c - b**c)

    def log_upper(self, x: Any, c: Any, a: Any, b: Any) -> Any:
        return a**c - x**c + log1mexp(x**c - b**c) - log1mexp(a**c - b**c)

    def quantile(self, q: Any, c: Any, a: Any, b: Any) -> Any:
        return (a**c - np.log1p(q * np.expm1(a**c - b**c))) ** (1.0 / c)

    def upper_quantile(self, q: Any, c: Any, a: Any, b: Any) -> Any:
        return (b**c - np.log1p(q * np.expm1(b**c - a**c))) ** (1.0 / c)

    def standard_draw(self, key: Any, shape: Any, c: Any, a: Any, b: Any) -> Any:
        return self.quantile(functions.uniform(key, shape), c, a, b)


truncweibull_min = _TruncWeibullMin("truncweibull_min")

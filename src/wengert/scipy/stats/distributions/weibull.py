"""The Weibull distributions.

    weibull_min weibull_max dweibull exponweib invweibull truncweibull_min

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from wengert.random import functions

from ...special import exprel, gammaln, xlogy
from ..continuous_distribution import Continuous, log1mexp
from .common import EULER, PositiveSupport, Symmetric, where_finite


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

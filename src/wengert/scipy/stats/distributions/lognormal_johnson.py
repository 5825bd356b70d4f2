"""Distributions of functions of a normal variable.

lognorm gibrat powerlognorm   exponentials
johnsonsb johnsonsu           the distributions of Johnson
fatiguelife                   the fatigue-life (Birnbaum-Saunders) distribution
alpha                         the alpha distribution, of a reciprocal
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wengert.random import functions

from ...special import expit, log_ndtr, logit, ndtr, ndtri, ndtri_exp
from ..continuous_distribution import Continuous
from .common import HALF_LOG_2PI, PositiveSupport, log_normal_interval


class _LogNorm(PositiveSupport):
    """The log-normal distribution: log(x) has standard deviation `s`; `scale` is the median."""

    at_low = False

    def valid(self, s: Any) -> Any:
        return s > 0

    def log_density(self, x: Any, s: Any) -> Any:
        y = np.log(x)
        return -(y * y) / (2.0 * (s * s)) - np.log(s) - y - HALF_LOG_2PI

    def lower(self, x: Any, s: Any) -> Any:
        return ndtr(np.log(x) / s)

    def upper(self, x: Any, s: Any) -> Any:
        return ndtr(-np.log(x) / s)

    def log_lower(self, x: Any, s: Any) -> Any:
        return log_ndtr(np.log(x) / s)

    def log_upper(self, x: Any, s: Any) -> Any:
        return log_ndtr(-np.log(x) / s)

    def quantile(self, q: Any, s: Any) -> Any:
        return np.exp(s * ndtri(q))

    def upper_quantile(self, q: Any, s: Any) -> Any:
        return np.exp(-s * ndtri(q))

    def standard_mean(self, s: Any) -> Any:
        return np.exp(0.5 * (s * s))

    def standard_var(self, s: Any) -> Any:
        return np.exp(s * s) * np.expm1(s * s)

    def standard_entropy(self, s: Any) -> Any:
        return 0.5 + HALF_LOG_2PI + np.log(s)

    def standard_draw(self, key: Any, shape: Any, s: Any) -> Any:
        return functions.lognormal(key, s, shape)


lognorm = _LogNorm("lognorm")


class _Gibrat(PositiveSupport):
    """The Gibrat distribution: log-normal with s = 1."""

    at_low = False

    def log_density(self, x: Any) -> Any:
        return lognorm.log_density(x, 1.0)

    def log_lower(self, x: Any) -> Any:
        return log_ndtr(np.log(x))

    def log_upper(self, x: Any) -> Any:
        return log_ndtr(-np.log(x))

    def lower(self, x: Any) -> Any:
        return ndtr(np.log(x))

    def upper(self, x: Any) -> Any:
        return ndtr(-np.log(x))

    def quantile(self, q: Any) -> Any:
        return np.exp(ndtri(q))

    def upper_quantile(self, q: Any) -> Any:
        return np.exp(-ndtri(q))

    def standard_mean(self) -> Any:
        return np.exp(0.5)

    def standard_var(self) -> Any:
        return math.e * (math.e - 1.0)

    def standard_entropy(self) -> Any:
        return HALF_LOG_2PI + 0.5

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return np.exp(functions.normal(key, shape))


gibrat = _Gibrat("gibrat")


class _PowerLogNorm(PositiveSupport):
    """The power log-normal distribution: the survival function of lognorm(s), to the power c."""

    at_low = False

    def valid(self, c: Any, s: Any) -> Any:
        return np.logical_and(c > 0, s > 0)

    def log_density(self, x: Any, c: Any, s: Any) -> Any:
        z = np.log(x) / s
        out = np.log(c) - np.log(x) - np.log(s) - HALF_LOG_2PI
        return out - 0.5 * (z * z) + (c - 1.0) * log_ndtr(-z)

    def log_upper(self, x: Any, c: Any, s: Any) -> Any:
        return c * log_ndtr(-np.log(x) / s)

    def quantile(self, q: Any, c: Any, s: Any) -> Any:
        return np.exp(-s * ndtri_exp(np.log1p(-q) / c))

    def upper_quantile(self, q: Any, c: Any, s: Any) -> Any:
        return np.exp(-s * ndtri_exp(np.log(q) / c))

    def standard_draw(self, key: Any, shape: Any, c: Any, s: Any) -> Any:
        return np.exp(-s * ndtri_exp(-functions.exponential(key, shape) / c))


powerlognorm = _PowerLogNorm("powerlognorm")


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


class _FatigueLife(PositiveSupport):
    """The fatigue-life (Birnbaum-Saunders) distribution with parameter `c`."""

    at_low = False

    def valid(self, c: Any) -> Any:
        return c > 0

    def _deviation(self, x: Any, c: Any) -> Any:
        return (x - 1.0) / (np.sqrt(x) * c)

    def log_density(self, x: Any, c: Any) -> Any:
        z = self._deviation(x, c)
        out = np.log1p(x) - 1.5 * np.log(x) - np.log(2.0 * c)
        return out - HALF_LOG_2PI - 0.5 * (z * z)

    def lower(self, x: Any, c: Any) -> Any:
        return ndtr(self._deviation(x, c))

    def upper(self, x: Any, c: Any) -> Any:
        return ndtr(-self._deviation(x, c))

    def log_lower(self, x: Any, c: Any) -> Any:
        return log_ndtr(self._deviation(x, c))

    def log_upper(self, x: Any, c: Any) -> Any:
        return log_ndtr(-self._deviation(x, c))

    def _quantile(self, z: Any, c: Any) -> Any:
        return np.exp(2.0 * np.arcsinh(0.5 * c * z))

    def quantile(self, q: Any, c: Any) -> Any:
        return self._quantile(ndtri(q), c)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return self._quantile(-ndtri(q), c)

    def standard_mean(self, c: Any) -> Any:
        return 0.5 * (c * c) + 1.0

    def standard_var(self, c: Any) -> Any:
        return c * c * (1.25 * (c * c) + 1.0)

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return self._quantile(functions.normal(key, shape), c)


fatiguelife = _FatigueLife("fatiguelife")


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

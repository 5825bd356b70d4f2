"""The exponential and Laplace distributions, and their generalizations.

    expon truncexpon exponpow genexpon   laplace laplace_asymmetric loglaplace dlaplace

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from wengert.random import functions

from ...special import exprel, xlogy
from ..continuous_distribution import Continuous, log1mexp
from ..discrete_distribution import Discrete
from ..implicit_quantiles import Implicit
from .common import PositiveSupport, where_finite


class _Expon(PositiveSupport):
    """The exponential distribution with rate 1 / scale."""

    def log_density(self, x: Any) -> Any:
        return -x

    def lower(self, x: Any) -> Any:
        return -np.expm1(-x)

    def log_upper(self, x: Any) -> Any:
        return -x

    def quantile(self, q: Any) -> Any:
        return -np.log1p(-q)

    def upper_quantile(self, q: Any) -> Any:
        return -np.log(q)

    def standard_mean(self) -> Any:
        return 1.0

    standard_var = standard_entropy = standard_mean

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.exponential(key, shape)


expon = _Expon("expon")


class _TruncExpon(Continuous):
    """The exponential distribution truncated to [0, b]."""

    def valid(self, b: Any) -> Any:
        return b > 0

    def support_of(self, b: Any) -> Any:
        return 0.0, b

    def inside_of(self, b: Any) -> Any:
        return 0.5 * b

    def log_density(self, x: Any, b: Any) -> Any:
        return -x - log1mexp(-b)

    def lower(self, x: Any, b: Any) -> Any:
        return np.expm1(-x) / np.expm1(-b)

    def upper(self, x: Any, b: Any) -> Any:
        return np.exp(-x) * np.expm1(x - b) / np.expm1(-b)

    def quantile(self, q: Any, b: Any) -> Any:
        return -np.log1p(q * np.expm1(-b))

    def upper_quantile(self, q: Any, b: Any) -> Any:
        return b - np.log1p(q * np.expm1(b))

    def _rest(self, b: Any) -> Any:
        """b / (exp(b) - 1), which does not overflow."""
        return np.exp(-b) / exprel(-b)

    def standard_mean(self, b: Any) -> Any:
        return 1.0 - self._rest(b)

    def standard_var(self, b: Any) -> Any:
        rest = self._rest(b)
        return 1.0 - rest * (rest + b)

    def standard_entropy(self, b: Any) -> Any:
        return log1mexp(-b) + self.standard_mean(b)

    def standard_draw(self, key: Any, shape: Any, b: Any) -> Any:
        return self.quantile(functions.uniform(key, shape), b)


truncexpon = _TruncExpon("truncexpon")


class _ExponPow(PositiveSupport):
    """The exponential power distribution of R. M. Smith and L. J. Bain, with power `b`."""

    def valid(self, b: Any) -> Any:
        return b > 0

    def log_density(self, x: Any, b: Any) -> Any:
        y = x**b
        return np.log(b) + xlogy(b - 1.0, x) + y - np.expm1(y)

    def log_upper(self, x: Any, b: Any) -> Any:
        return -np.expm1(x**b)

    def lower(self, x: Any, b: Any) -> Any:
        return -np.expm1(-np.expm1(x**b))

    def quantile(self, q: Any, b: Any) -> Any:
        return np.log1p(-np.log1p(-q)) ** (1.0 / b)

    def upper_quantile(self, q: Any, b: Any) -> Any:
        return np.log1p(-np.log(q)) ** (1.0 / b)

    def standard_draw(self, key: Any, shape: Any, b: Any) -> Any:
        return np.log1p(functions.exponential(key, shape)) ** (1.0 / b)


exponpow = _ExponPow("exponpow")


class _GenExpon(PositiveSupport, Implicit):
    """The generalized exponential distribution of H. K. Ryu, with hazard a + b (1 - exp(-c x))."""

    def valid(self, a: Any, b: Any, c: Any) -> Any:
        return np.logical_and(a > 0, np.logical_and(b > 0, c > 0))

    def log_density(self, x: Any, a: Any, b: Any, c: Any) -> Any:
        return np.log(a - b * np.expm1(-c * x)) + self.log_upper(x, a, b, c)

    def log_upper(self, x: Any, a: Any, b: Any, c: Any) -> Any:
        return -(a + b) * x - b * np.expm1(-c * x) / c

    def lower(self, x: Any, a: Any, b: Any, c: Any) -> Any:
        return -np.expm1(self.log_upper(x, a, b, c))


genexpon = _GenExpon("genexpon")


class _Laplace(Continuous):
    """The Laplace distribution."""

    def log_density(self, x: Any) -> Any:
        return -np.abs(x) - log(2.0)

    def lower(self, x: Any) -> Any:
        half = 0.5 * np.exp(np.where(x > 0, -x, x))  # differentiable at 0, unlike |x|
        return np.where(x > 0, 1.0 - half, half)

    def upper(self, x: Any) -> Any:
        return self.lower(-x)

    def log_lower(self, x: Any) -> Any:
        return np.where(x > 0, np.log1p(-0.5 * np.exp(-np.abs(x))), x - log(2.0))

    def log_upper(self, x: Any) -> Any:
        return self.log_lower(-x)

    def quantile(self, q: Any) -> Any:
        low = q < 0.5
        size = np.log(2.0 * np.where(low, q, 1.0 - q))
        return np.where(low, size, -size)

    def upper_quantile(self, q: Any) -> Any:
        return -self.quantile(q)

    def standard_mean(self) -> Any:
        return 0.0

    def standard_var(self) -> Any:
        return 2.0

    def standard_entropy(self) -> Any:
        return log(2.0) + 1.0

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.laplace(key, shape)


laplace = _Laplace("laplace")


class _LaplaceAsymmetric(Continuous):
    """The asymmetric Laplace distribution, with rate `kappa` above 0 and 1 / kappa below."""

    def valid(self, kappa: Any) -> Any:
        return kappa > 0

    def log_density(self, x: Any, kappa: Any) -> Any:
        return np.where(x >= 0, -x * kappa, x / kappa) - np.log(kappa + 1.0 / kappa)

    def lower(self, x: Any, kappa: Any) -> Any:
        return np.where(x >= 0, 1.0 - self._above(x, kappa), self._below(x, kappa))

    def upper(self, x: Any, kappa: Any) -> Any:
        return np.where(x >= 0, self._above(x, kappa), 1.0 - self._below(x, kappa))

    def _above(self, x: Any, kappa: Any) -> Any:
        return np.exp(-kappa * np.where(x >= 0, x, 0.0)) / (1.0 + kappa * kappa)

    def _below(self, x: Any, kappa: Any) -> Any:
        return np.exp(np.where(x >= 0, 0.0, x) / kappa) * (kappa * kappa) / (1.0 + kappa * kappa)

    def quantile(self, q: Any, kappa: Any) -> Any:
        return self._quantile(q, 1.0 - q, kappa)

    def upper_quantile(self, q: Any, kappa: Any) -> Any:
        return self._quantile(1.0 - q, q, kappa)

    def _quantile(self, below: Any, above: Any, kappa: Any) -> Any:
        square = kappa * kappa
        high = above * (1.0 + square) <= 1.0
        right = -np.log(np.where(high, above, 1.0) * (1.0 + square)) / kappa
        left = kappa * np.log(np.where(high, 1.0, below) * (1.0 + square) / square)
        return np.where(high, right, left)

    def standard_mean(self, kappa: Any) -> Any:
        return 1.0 / kappa - kappa

    def standard_var(self, kappa: Any) -> Any:
        return kappa**-2.0 + kappa**2

    def standard_entropy(self, kappa: Any) -> Any:
        return 1.0 + np.log(kappa + 1.0 / kappa)


laplace_asymmetric = _LaplaceAsymmetric("laplace_asymmetric")


class _LogLaplace(PositiveSupport):
    """The log-Laplace distribution: log(x) is Laplace distributed with scale 1 / c."""

    at_low = False

    def valid(self, c: Any) -> Any:
        return c > 0

    def log_density(self, x: Any, c: Any) -> Any:
        y = np.log(x)
        return np.log(0.5 * c) - c * np.abs(y) - y

    def lower(self, x: Any, c: Any) -> Any:
        return laplace.lower(c * np.log(x))

    def upper(self, x: Any, c: Any) -> Any:
        return laplace.lower(-c * np.log(x))

    def quantile(self, q: Any, c: Any) -> Any:
        return np.exp(laplace.quantile(q) / c)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return np.exp(-laplace.quantile(q) / c)

    def standard_mean(self, c: Any) -> Any:
        return where_finite(c > 1, lambda c: c * c / (c * c - 1.0), c, fallback=(2.0,))

    def standard_var(self, c: Any) -> Any:
        def var(c: Any) -> Any:
            return c * c / (c * c - 4.0) - (c * c / (c * c - 1.0)) ** 2

        return where_finite(c > 2, var, c, fallback=(3.0,))

    def standard_entropy(self, c: Any) -> Any:
        return np.log(2.0 / c) + 1.0

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return np.exp(functions.laplace(key, shape) / c)


loglaplace = _LogLaplace("loglaplace")


class _DLaplace(Discrete):
    """The discrete Laplace distribution: probabilities proportional to exp(-a |k|)."""

    ends = (-np.inf, np.inf)
    inner = 0.0

    def inside_of(self, a: Any) -> Any:
        return 0.0

    def valid(self, a: Any) -> Any:
        return a > 0

    def log_density(self, k: Any, a: Any) -> Any:
        return self._log_middle(a) - a * np.abs(k)

    def _log_middle(self, a: Any) -> Any:
        """log(tanh(a / 2)), the log-probability of 0."""
        return log1mexp(-a) - np.log1p(np.exp(-a))

    def lower(self, k: Any, a: Any) -> Any:
        right = k >= 0
        tail = np.exp(-a * np.where(right, k + 1.0, -k)) / (1.0 + np.exp(-a))
        return np.where(right, 1.0 - tail, tail)

    def upper(self, k: Any, a: Any) -> Any:
        right = k >= 0
        tail = np.exp(-a * np.where(right, k + 1.0, -k)) / (1.0 + np.exp(-a))
        return np.where(right, tail, 1.0 - tail)

    def standard_mean(self, a: Any) -> Any:
        return 0.0 * a

    def standard_var(self, a: Any) -> Any:
        return self.standard_std(a) ** 2

    def standard_std(self, a: Any) -> Any:
        return np.sqrt(2.0) * np.exp(-0.5 * a) / -np.expm1(-a)

    def standard_entropy(self, a: Any) -> Any:
        return 2.0 * a * np.exp(-a) / -np.expm1(-2.0 * a) - self._log_middle(a)

    def standard_draw(self, key: Any, shape: Any, a: Any) -> Any:
        first, second = functions.split(key)
        p = -np.expm1(-a)
        return functions.geometric(first, p, shape) - functions.geometric(second, p, shape)


dlaplace = _DLaplace("dlaplace")

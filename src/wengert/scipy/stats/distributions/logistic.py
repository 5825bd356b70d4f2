"""The logistic distribution, its generalizations and folded versions, and the hyperbolic secant's.

    logistic genlogistic halflogistic genhalflogistic hypsecant

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert.random import functions

from ...special import expit, exprel, log_expit, logit, polygamma, psi
from ..continuous_distribution import Continuous
from .common import EULER, PositiveSupport


class _Logistic(Continuous):
    """The logistic distribution."""

    def log_density(self, x: Any) -> Any:
        return -np.logaddexp(0.0, x) - np.logaddexp(0.0, -x)

    lower = staticmethod(expit)
    log_lower = staticmethod(log_expit)
    quantile = staticmethod(logit)

    def upper(self, x: Any) -> Any:
        return expit(-x)

    def log_upper(self, x: Any) -> Any:
        return log_expit(-x)

    def upper_quantile(self, q: Any) -> Any:
        return -logit(q)

    def standard_mean(self) -> Any:
        return 0.0

    def standard_var(self) -> Any:
        return pi * pi / 3.0

    def standard_entropy(self) -> Any:
        return 2.0

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.logistic(key, shape)


logistic = _Logistic("logistic")


class _GenLogistic(Continuous):
    """The generalized logistic distribution: the cdf is expit(x)^c."""

    def valid(self, c: Any) -> Any:
        return c > 0

    def log_density(self, x: Any, c: Any) -> Any:
        return np.log(c) - x - (c + 1.0) * np.logaddexp(0.0, -x)

    def log_lower(self, x: Any, c: Any) -> Any:
        return -c * np.logaddexp(0.0, -x)

    def quantile(self, q: Any, c: Any) -> Any:
        return -np.log(np.expm1(-np.log(q) / c))

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return -np.log(np.expm1(-np.log1p(-q) / c))

    def standard_mean(self, c: Any) -> Any:
        return EULER + psi(c)

    def standard_var(self, c: Any) -> Any:
        return pi * pi / 6.0 + polygamma(1, c)

    def standard_entropy(self, c: Any) -> Any:
        return -np.log(c) + psi(c + 1.0) + EULER + 1.0

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return -np.log(np.expm1(functions.exponential(key, shape) / c))


genlogistic = _GenLogistic("genlogistic")


class _HalfLogistic(PositiveSupport):
    """The absolute value of a logistic variable."""

    def log_density(self, x: Any) -> Any:
        return log(2.0) - x - 2.0 * np.log1p(np.exp(-x))

    def lower(self, x: Any) -> Any:
        return np.tanh(0.5 * x)

    def upper(self, x: Any) -> Any:
        return np.exp(self.log_upper(x))

    def log_upper(self, x: Any) -> Any:
        return log(2.0) + log_expit(-x)

    def quantile(self, q: Any) -> Any:
        return 2.0 * np.arctanh(q)

    def upper_quantile(self, q: Any) -> Any:
        return np.log1p(1.0 - q) - np.log(q)

    def standard_mean(self) -> Any:
        return 2.0 * log(2.0)

    def standard_var(self) -> Any:
        return pi * pi / 3.0 - 4.0 * log(2.0) ** 2

    def standard_entropy(self) -> Any:
        return 2.0 - log(2.0)

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return np.abs(functions.logistic(key, shape))


halflogistic = _HalfLogistic("halflogistic")


class _GenHalfLogistic(Continuous):
    """The generalized half-logistic distribution; its limit at c = 0 is halflogistic."""

    def valid(self, c: Any) -> Any:
        return c > 0

    def support_of(self, c: Any) -> Any:
        return 0.0, 1.0 / np.where(c > 0, c, 1.0)

    def inside_of(self, c: Any) -> Any:
        return 0.5 / np.where(c > 0, c, 1.0)

    at_high = False

    def _power(self, x: Any, c: Any) -> Any:
        """log of (1 - c x)^(1 / c)."""
        return -x * lookup("special.log1prel_of")(-c * x, n=0)

    def log_density(self, x: Any, c: Any) -> Any:
        power = self._power(x, c)
        return log(2.0) - np.log1p(-c * x) + power - 2.0 * np.log1p(np.exp(power))

    def lower(self, x: Any, c: Any) -> Any:
        return np.tanh(-0.5 * self._power(x, c))

    def upper(self, x: Any, c: Any) -> Any:
        return np.exp(self.log_upper(x, c))

    def log_upper(self, x: Any, c: Any) -> Any:
        return log(2.0) + log_expit(self._power(x, c))

    def quantile(self, q: Any, c: Any) -> Any:
        y = 2.0 * np.arctanh(q)
        return y * exprel(-c * y)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        y = np.log1p(1.0 - q) - np.log(q)
        return y * exprel(-c * y)

    def standard_entropy(self, c: Any) -> Any:
        return 2.0 - (2.0 * c + 1.0) * log(2.0)

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        y = np.abs(functions.logistic(key, shape))
        return y * exprel(-c * y)


genhalflogistic = _GenHalfLogistic("genhalflogistic")


class _HypSecant(Continuous):
    """The hyperbolic secant distribution: density sech(x) / pi."""

    def log_density(self, x: Any) -> Any:
        return log(2.0 / pi) - np.logaddexp(x, -x)

    def lower(self, x: Any) -> Any:
        return 2.0 / pi * np.arctan(np.exp(x))

    def upper(self, x: Any) -> Any:
        return 2.0 / pi * np.arctan(np.exp(-x))

    def quantile(self, q: Any) -> Any:
        return np.log(np.tan(0.5 * pi * q))

    def upper_quantile(self, q: Any) -> Any:
        return -np.log(np.tan(0.5 * pi * q))

    def standard_mean(self) -> Any:
        return 0.0

    def standard_var(self) -> Any:
        return 0.25 * pi * pi

    def standard_entropy(self) -> Any:
        return log(2.0 * pi)


hypsecant = _HypSecant("hypsecant")

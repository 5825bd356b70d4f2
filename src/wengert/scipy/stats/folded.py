"""Distributions of positive numbers that are absolute values, or halves of even distributions.

    foldnorm foldcauchy halflogistic genhalflogistic halfgennorm

Each class has the formulas of the standard form; what they are for is said in distribution.py.
Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995),
written so that no tail loses its digits.
"""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert.random import functions

from ..special import (
    erf,
    exprel,
    gammainccinv,
    gammaincinv,
    gammaln,
    log_expit,
    log_ndtr,
    ndtr,
)
from .bounded import log_mass
from .continuous_distribution import Continuous, chosen
from .gamma_family import Positive, below_power, beyond_power
from .implicit_quantiles import Implicit
from .real_line import HALF_LOG_2PI

__all__ = "foldnorm foldcauchy halflogistic genhalflogistic halfgennorm".split()


class _FoldNorm(Positive, Implicit):
    """The absolute value of a normal number of mean `c`."""

    def valid(self, c: Any) -> Any:
        return c >= 0

    def log_density(self, x: Any, c: Any) -> Any:
        return np.logaddexp(-0.5 * (x - c) ** 2, -0.5 * (x + c) ** 2) - HALF_LOG_2PI

    def lower(self, x: Any, c: Any) -> Any:
        return np.exp(log_mass(c - x, c + x))

    def upper(self, x: Any, c: Any) -> Any:
        return ndtr(c - x) + ndtr(-x - c)

    def log_upper(self, x: Any, c: Any) -> Any:
        return np.logaddexp(log_ndtr(c - x), log_ndtr(-x - c))

    def standard_mean(self, c: Any) -> Any:
        return sqrt(2.0 / pi) * np.exp(-0.5 * (c * c)) + c * erf(c * sqrt(0.5))

    def standard_var(self, c: Any) -> Any:
        return c * c + 1.0 - self.standard_mean(c) ** 2

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return np.abs(functions.normal(key, shape) + c)


class _FoldCauchy(Positive):
    """The absolute value of a Cauchy number of median `c`."""

    def valid(self, c: Any) -> Any:
        return c >= 0

    def log_density(self, x: Any, c: Any) -> Any:
        first = -2.0 * np.log(np.hypot(1.0, x - c))
        return np.logaddexp(first, -2.0 * np.log(np.hypot(1.0, x + c))) - log(pi)

    def lower(self, x: Any, c: Any) -> Any:
        return np.arctan2(2.0 * x, 1.0 - (x - c) * (x + c)) / pi

    def upper(self, x: Any, c: Any) -> Any:
        return (np.arctan2(1.0, x - c) + np.arctan2(1.0, x + c)) / pi

    def quantile(self, q: Any, c: Any) -> Any:
        return self._of(np.cos(pi * q), np.sin(pi * q), c)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return self._of(-np.cos(pi * q), np.sin(pi * q), c)

    def _of(self, cos: Any, sin: Any, c: Any) -> Any:
        """The positive x with sin x^2 + 2 cos x = sin (1 + c^2)."""
        square = 1.0 + c * c
        root = np.sqrt(cos * cos + sin * sin * square)
        low = cos > 0
        one = sin * square / np.where(low, cos + root, 1.0)
        return np.where(low, one, (root - cos) / sin)

    def standard_mean(self, c: Any) -> Any:
        return np.inf + 0.0 * c

    standard_var = standard_mean

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return np.abs(functions.cauchy(key, shape) + c)


class _HalfLogistic(Positive):
    """The absolute value of a logistic number."""

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


class _GenHalfLogistic(Continuous):
    """The generalised half-logistic distribution; of c = 0 it would be halflogistic."""

    def valid(self, c: Any) -> Any:
        return c > 0

    def support_of(self, c: Any) -> Any:
        return 0.0, 1.0 / chosen(c > 0, c, 1.0)

    def inside_of(self, c: Any) -> Any:
        return 0.5 / chosen(c > 0, c, 1.0)

    at_high = False

    def _power(self, x: Any, c: Any) -> Any:
        """The logarithm of (1 - c x)^(1 / c)."""
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


class _HalfGenNorm(Positive):
    """The upper half of gennorm, of power `beta`."""

    def valid(self, beta: Any) -> Any:
        return beta > 0

    def log_density(self, x: Any, beta: Any) -> Any:
        return np.log(beta) - gammaln(1.0 / beta) - x**beta

    def lower(self, x: Any, beta: Any) -> Any:
        return below_power(x, beta)

    def upper(self, x: Any, beta: Any) -> Any:
        return beyond_power(x, beta)

    def quantile(self, q: Any, beta: Any) -> Any:
        return gammaincinv(1.0 / beta, q) ** (1.0 / beta)

    def upper_quantile(self, q: Any, beta: Any) -> Any:
        return gammainccinv(1.0 / beta, q) ** (1.0 / beta)

    def standard_mean(self, beta: Any) -> Any:
        return np.exp(gammaln(2.0 / beta) - gammaln(1.0 / beta))

    def standard_var(self, beta: Any) -> Any:
        second = np.exp(gammaln(3.0 / beta) - gammaln(1.0 / beta))
        return second - self.standard_mean(beta) ** 2

    def standard_entropy(self, beta: Any) -> Any:
        return 1.0 / beta - np.log(beta) + gammaln(1.0 / beta)

    def standard_draw(self, key: Any, shape: Any, beta: Any) -> Any:
        return functions.gamma(key, 1.0 / beta, shape) ** (1.0 / beta)


foldnorm = _FoldNorm("foldnorm")
foldcauchy = _FoldCauchy("foldcauchy")
halflogistic = _HalfLogistic("halflogistic")
genhalflogistic = _GenHalfLogistic("genhalflogistic")
halfgennorm = _HalfGenNorm("halfgennorm")

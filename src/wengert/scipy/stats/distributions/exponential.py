"""The exponential distribution and its generalizations.

    expon truncexpon exponpow genexpon

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.random import functions

from ...special import exprel, xlogy
from ..continuous_distribution import Continuous, log1mexp
from ..implicit_quantiles import Implicit
from .common import PositiveSupport


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

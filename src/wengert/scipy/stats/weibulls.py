"""Distributions of positive numbers whose tails are exponentials of a power, or faster.

    invweibull exponweib exponpow gengamma erlang
    gompertz genexpon

Each class has the formulas of the standard form; what they are for is said in distribution.py.
Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995),
written so that no tail loses its digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.random import functions

from ..special import (
    exprel,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    hyperu,
    psi,
    xlogy,
)
from .continuous_distribution import chosen, log1mexp
from .gamma_family import Positive, gamma
from .implicit_quantiles import Implicit
from .powers import where_finite
from .real_line import EULER

__all__ = """
    invweibull exponweib exponpow gengamma erlang
    gompertz genexpon
""".split()


class _InvWeibull(Positive):
    """Frechet's distribution of a largest value, of power `c`."""

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
        return where_finite(c > 1, lambda c: np.exp(gammaln(1.0 - 1.0 / c)), c, beside=(2.0,))

    def standard_var(self, c: Any) -> Any:
        def var(c: Any) -> Any:
            return np.exp(gammaln(1.0 - 2.0 / c)) - np.exp(2.0 * gammaln(1.0 - 1.0 / c))

        return where_finite(c > 2, var, c, beside=(3.0,))

    def standard_entropy(self, c: Any) -> Any:
        return 1.0 + EULER + EULER / c - np.log(c)

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return functions.exponential(key, shape) ** (-1.0 / c)


class _ExponWeib(Positive):
    """The Weibull distribution of power `c`, to a power `a`."""

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


class _ExponPow(Positive):
    """The exponential power distribution of R. M. Smith and L. J. Bain, of power `b`."""

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


class _GenGamma(Positive):
    """A number of the gamma distribution of `a` to the power 1 / c; `c` may be negative."""

    def valid(self, a: Any, c: Any) -> Any:
        return np.logical_and(a > 0, c != 0)

    def log_density(self, x: Any, a: Any, c: Any) -> Any:
        return np.log(np.abs(c)) + xlogy(c * a - 1.0, x) - x**c - gammaln(a)

    def lower(self, x: Any, a: Any, c: Any) -> Any:
        y = x**c
        return chosen(c > 0, gammainc(a, y), gammaincc(a, y))

    def upper(self, x: Any, a: Any, c: Any) -> Any:
        y = x**c
        return chosen(c > 0, gammaincc(a, y), gammainc(a, y))

    def quantile(self, q: Any, a: Any, c: Any) -> Any:
        return chosen(c > 0, gammaincinv(a, q), gammainccinv(a, q)) ** (1.0 / c)

    def upper_quantile(self, q: Any, a: Any, c: Any) -> Any:
        return chosen(c > 0, gammainccinv(a, q), gammaincinv(a, q)) ** (1.0 / c)

    def _moment(self, n: float, a: Any, c: Any) -> Any:
        return np.exp(gammaln(a + n / c) - gammaln(a))

    def standard_mean(self, a: Any, c: Any) -> Any:
        found = a + 1.0 / c > 0
        return where_finite(found, lambda a, c: self._moment(1, a, c), a, c, beside=(1.0, 1.0))

    def standard_var(self, a: Any, c: Any) -> Any:
        def var(a: Any, c: Any) -> Any:
            return self._moment(2, a, c) - self._moment(1, a, c) ** 2

        return where_finite(a + 2.0 / c > 0, var, a, c, beside=(1.0, 1.0))

    def standard_entropy(self, a: Any, c: Any) -> Any:
        return a * (1.0 - psi(a)) + psi(a) / c + gammaln(a) - np.log(np.abs(c))

    def standard_draw(self, key: Any, shape: Any, a: Any, c: Any) -> Any:
        return functions.gamma(key, a, shape) ** (1.0 / c)


class _Gompertz(Positive):
    """Gompertz's distribution of ages, of parameter `c`."""

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


class _GenExpon(Positive, Implicit):
    """The generalised exponential distribution of H. K. Ryu: hazard a + b (1 - exp(-c x))."""

    def valid(self, a: Any, b: Any, c: Any) -> Any:
        return np.logical_and(a > 0, np.logical_and(b > 0, c > 0))

    def log_density(self, x: Any, a: Any, b: Any, c: Any) -> Any:
        return np.log(a - b * np.expm1(-c * x)) + self.log_upper(x, a, b, c)

    def log_upper(self, x: Any, a: Any, b: Any, c: Any) -> Any:
        return -(a + b) * x - b * np.expm1(-c * x) / c

    def lower(self, x: Any, a: Any, b: Any, c: Any) -> Any:
        return -np.expm1(self.log_upper(x, a, b, c))


invweibull = _InvWeibull("invweibull")
exponweib = _ExponWeib("exponweib")
exponpow = _ExponPow("exponpow")
gengamma = _GenGamma("gengamma")
erlang = type(gamma)("erlang")
gompertz = _Gompertz("gompertz")
genexpon = _GenExpon("genexpon")

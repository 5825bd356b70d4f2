"""Formulas that several distributions share.

EULER, HALF_LOG_2PI           constants
log_normal_interval           log of the probability that a normal variate is in an interval
log1p_ratio                   log(1 + c x) / c, smooth at c = 0
gammainc_of_power             regularized incomplete gamma functions of x^beta
where_finite                  moments that are infinite for some parameters
is_count, is_probability      checks of parameters
PositiveSupport, UnitInterval distributions with support (0, inf) and (0, 1)
Symmetric                     distributions that are symmetric about 0
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup

from ...special import betaln, gammainc, gammaincc, gammaln, log_ndtr
from ..continuous_distribution import Continuous, log1mexp

_UNDERFLOW_POWER = 1e-20
_LARGEST_EXPONENT = 9.0  # exp(-exp(9)) is 0, also when multiplied by a power of the argument
EULER = 0.5772156649015328606
HALF_LOG_2PI = 0.5 * log(2.0 * pi)


def log_normal_interval(low: Any, high: Any) -> Any:
    """The log of the probability that a normal variate is between low and high; low < high."""
    is_reflected = low > 0.0  # use the reflected interval, where log_ndtr is accurate
    left, right = np.where(is_reflected, -high, low), np.where(is_reflected, -low, high)
    contains_zero = right > 0.0  # the interval contains 0: subtract both tails from 1
    first, second = log_ndtr(left), log_ndtr(np.where(contains_zero, -right, right))
    inside = np.log1p(-(np.exp(first) + np.exp(second)))
    gap = np.where(contains_zero, -1.0, first - second)
    return np.where(contains_zero, inside, second + log1mexp(gap))


def log1p_ratio(c: Any, x: Any) -> Any:
    """log(1 + c x) / c, which is x where c is 0."""
    return x * lookup("special.log1prel_of")(c * x, n=0)


def is_probability(p: Any) -> Any:
    """True where 0 <= p <= 1."""
    return np.logical_and(p >= 0, p <= 1)


def is_count(n: Any) -> Any:
    """True where n is an integer, at least 0."""
    return np.logical_and(n >= 0, n == np.floor(n))


def log_binomial(n: Any, k: Any) -> Any:
    """The logarithm of the binomial coefficient."""
    return -np.log(n + 1.0) - betaln(n - k + 1.0, k + 1.0)


def gammainc_of_power(x: Any, beta: Any) -> Any:
    """P(1 / beta, x^beta) for x >= 0; near 0 it is x / gamma(1 + 1 / beta).

    Where x^beta is tiny, the derivative of P is a quotient of numbers that underflow; there two
    terms of the series are accurate to rounding, DLMF 8.7.1.
    """
    a, positive = 1.0 / beta, x > 0
    log_power = beta * np.log(np.where(positive, x, 1.0))
    power = np.where(positive, np.exp(np.minimum(log_power, _LARGEST_EXPONENT)), 0.0)
    tiny = power < _UNDERFLOW_POWER
    two_terms = x * np.exp(-gammaln(1.0 + a)) * (1.0 - a / (1.0 + a) * np.where(tiny, power, 0.0))
    return np.where(tiny, two_terms, gammainc(a, np.where(tiny, 1.0, power)))


def gammaincc_of_power(x: Any, beta: Any) -> Any:
    """Q(1 / beta, x^beta) for x >= 0, the complement of `gammainc_of_power`."""
    a, tiny = 1.0 / beta, beta * np.log(np.where(x > 0, x, 1.0)) < -46.0
    tiny = np.logical_or(tiny, x == 0)
    safe = np.where(tiny, 1.0, x)
    power = np.exp(np.minimum(beta * np.log(safe), _LARGEST_EXPONENT))
    return np.where(
        tiny, 1.0 - gammainc_of_power(np.where(tiny, x, 0.0), beta), gammaincc(a, power)
    )


def where_finite(condition: Any, formula: Any, *shapes: Any, fallback: tuple[float, ...]) -> Any:
    """formula(*shapes) where `condition` holds, else inf; there it is evaluated at `fallback`."""
    safe = [np.where(condition, s, b) for s, b in zip(shapes, fallback, strict=True)]
    return np.where(condition, formula(*safe), np.inf)


class UnitInterval(Continuous):
    """A distribution with support (0, 1)."""

    ends = (0.0, 1.0)


class PositiveSupport(Continuous):
    """A distribution with support (0, inf)."""

    ends = (0.0, np.inf)
    inner = 1.0


class Symmetric(Continuous):
    """A distribution whose density is even, defined by its survival function for x > 0.

    A subclass defines `tail(x, ...)`, the probability of more than x > 0, and `of_tail`, its
    inverse.
    """

    def tail(self, x: Any, *shapes: Any) -> Any:
        """The survival function at x > 0."""
        raise NotImplementedError

    def of_tail(self, q: Any, *shapes: Any) -> Any:
        """The inverse of `tail`, for q <= 1/2."""
        raise NotImplementedError

    def lower(self, x: Any, *shapes: Any) -> Any:
        """The cumulative distribution function."""
        low = x < 0.0
        beyond = self.tail(np.where(low, -x, x), *shapes)
        return np.where(low, beyond, 1.0 - beyond)

    def upper(self, x: Any, *shapes: Any) -> Any:
        """The survival function."""
        return self.lower(-x, *shapes)

    def quantile(self, q: Any, *shapes: Any) -> Any:
        """The inverse of `lower`."""
        low = q < 0.5
        size = self.of_tail(np.where(low, q, 1.0 - q), *shapes)
        return np.where(low, -size, size)

    def upper_quantile(self, q: Any, *shapes: Any) -> Any:
        """The inverse of `upper`."""
        return -self.quantile(q, *shapes)

    def standard_mean(self, *shapes: Any) -> Any:
        """The mean."""
        return 0.0 * sum(shapes)

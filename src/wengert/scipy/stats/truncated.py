"""Distributions cut off at both ends, and others whose ends depend on parameters.

    truncexpon truncpareto truncweibull_min trapezoid
    wrapcauchy kappa4 vonmises_line

Each class has the formulas of the standard form; what they are for is said in distribution.py.
Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995);
J. R. M. Hosking, The four-parameter kappa distribution (1994).  Where a formula is 0 / 0 at a
parameter, it is written with (exp(x) - 1) / x and log(1 + x) / x, which are smooth there.
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert.random import functions

from ..special import exprel, xlogy
from .bounded import vonmises
from .continuous_distribution import Continuous, chosen, log1mexp

__all__ = """
    truncexpon truncpareto truncweibull_min trapezoid wrapcauchy kappa4 vonmises_line
""".split()


class _TruncExpon(Continuous):
    """The exponential distribution up to `b`."""

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


class _TruncPareto(Continuous):
    """Pareto's distribution of power `b`, which may be negative, from 1 to `c`."""

    def valid(self, b: Any, c: Any) -> Any:
        return np.logical_and(b != 0, c > 1)

    def support_of(self, b: Any, c: Any) -> Any:
        return 1.0, c

    def inside_of(self, b: Any, c: Any) -> Any:
        return 0.5 * (1.0 + c)

    def _mass(self, x: Any, b: Any) -> Any:
        """(1 - x^-b) / b."""
        y = np.log(x)
        return y * exprel(-b * y)

    def log_density(self, x: Any, b: Any, c: Any) -> Any:
        return -np.log(self._mass(c, b)) - (b + 1.0) * np.log(x)

    def lower(self, x: Any, b: Any, c: Any) -> Any:
        return self._mass(x, b) / self._mass(c, b)

    def upper(self, x: Any, b: Any, c: Any) -> Any:
        return x ** (-b) * self._mass(c / x, b) / self._mass(c, b)

    def quantile(self, q: Any, b: Any, c: Any) -> Any:
        return np.exp(-np.log1p(-b * q * self._mass(c, b)) / b)

    def upper_quantile(self, q: Any, b: Any, c: Any) -> Any:
        return c * np.exp(-np.log1p(b * q * c**b * self._mass(c, b)) / b)

    def _moment(self, n: float, b: Any, c: Any) -> Any:
        return self._mass(c, b - n) / self._mass(c, b)

    def standard_mean(self, b: Any, c: Any) -> Any:
        return self._moment(1.0, b, c)

    def standard_var(self, b: Any, c: Any) -> Any:
        return self._moment(2.0, b, c) - self._moment(1.0, b, c) ** 2

    def standard_entropy(self, b: Any, c: Any) -> Any:
        y = np.log(c)
        logs = (1.0 / exprel(b * y) - 1.0) / -b  # the mean of log x
        return np.log(self._mass(c, b)) + (b + 1.0) * logs

    def standard_draw(self, key: Any, shape: Any, b: Any, c: Any) -> Any:
        return self.quantile(functions.uniform(key, shape), b, c)


class _TruncWeibullMin(Continuous):
    """The Weibull distribution of power `c` from `a` to `b`."""

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


class _Trapezoid(Continuous):
    """The density rises from 0 to `c`, is level up to `d`, and falls up to 1."""

    ends = (0.0, 1.0)

    def valid(self, c: Any, d: Any) -> Any:
        return np.logical_and(np.logical_and(c >= 0, d <= 1), d >= c)

    def _sides(self, x: Any, c: Any, d: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Where x is on the way up and down, the height, and both lengths, which are not 0."""
        height = 2.0 / (d - c + 1.0)
        up, down = x < c, x > d
        return up, down, height, chosen(c > 0, c, 1.0), chosen(d < 1, 1.0 - d, 1.0)

    def log_density(self, x: Any, c: Any, d: Any) -> Any:
        up, down, height, rise, fall = self._sides(x, c, d)
        left = np.log(chosen(up, x, 1.0) / chosen(up, rise, 1.0))
        right = np.log(chosen(down, 1.0 - x, 1.0) / chosen(down, fall, 1.0))
        return np.log(height) + chosen(up, left, chosen(down, right, 0.0))

    def lower(self, x: Any, c: Any, d: Any) -> Any:
        up, down, height, rise, fall = self._sides(x, c, d)
        left, middle = 0.5 * height * x * x / rise, height * (x - 0.5 * c)
        right = 1.0 - 0.5 * height * (1.0 - x) ** 2 / fall
        return chosen(up, left, chosen(down, right, middle))

    def upper(self, x: Any, c: Any, d: Any) -> Any:
        return self.lower(1.0 - x, 1.0 - d, 1.0 - c)

    def quantile(self, q: Any, c: Any, d: Any) -> Any:
        height = 2.0 / (d - c + 1.0)
        up, down = q < 0.5 * height * c, q > 1.0 - 0.5 * height * (1.0 - d)
        left = np.sqrt(chosen(up, 2.0 * q * c / height, 1.0))
        right = 1.0 - np.sqrt(chosen(down, 2.0 * (1.0 - q) * (1.0 - d) / height, 1.0))
        return chosen(up, left, chosen(down, right, q / height + 0.5 * c))

    def upper_quantile(self, q: Any, c: Any, d: Any) -> Any:
        return 1.0 - self.quantile(q, 1.0 - d, 1.0 - c)

    def standard_mean(self, c: Any, d: Any) -> Any:
        return self._moment(1, c, d)

    def standard_var(self, c: Any, d: Any) -> Any:
        return self._moment(2, c, d) - self._moment(1, c, d) ** 2

    def _moment(self, n: int, c: Any, d: Any) -> Any:
        """A moment about 0: the density bends at four places, so it is a difference of four."""
        ahead = sum(d**k for k in range(n + 2))  # (1 - d^(n+2)) / (1 - d)
        return 2.0 * (ahead - c ** (n + 1)) / ((d - c + 1.0) * (n + 1.0) * (n + 2.0))

    def standard_entropy(self, c: Any, d: Any) -> Any:
        return 0.5 * (1.0 - d + c) / (1.0 + d - c) + np.log(0.5 * (1.0 + d - c))

    def standard_draw(self, key: Any, shape: Any, c: Any, d: Any) -> Any:
        return self.quantile(functions.uniform(key, shape), c, d)


class _WrapCauchy(Continuous):
    """The Cauchy distribution wound around a circle, of concentration `c`."""

    ends = (0.0, 2.0 * pi)
    inner = 1.0

    def valid(self, c: Any) -> Any:
        return np.logical_and(c > 0, c < 1)

    def log_density(self, x: Any, c: Any) -> Any:
        square = (1.0 - c) ** 2 + 4.0 * c * np.sin(0.5 * x) ** 2
        return np.log1p(-c) + np.log1p(c) - log(2.0 * pi) - np.log(square)

    def lower(self, x: Any, c: Any) -> Any:
        return np.arctan2((1.0 + c) * np.sin(0.5 * x), (1.0 - c) * np.cos(0.5 * x)) / pi

    def upper(self, x: Any, c: Any) -> Any:
        return np.arctan2((1.0 + c) * np.sin(0.5 * x), -(1.0 - c) * np.cos(0.5 * x)) / pi

    def quantile(self, q: Any, c: Any) -> Any:
        return 2.0 * np.arctan2((1.0 - c) * np.sin(pi * q), (1.0 + c) * np.cos(pi * q))

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return 2.0 * np.arctan2((1.0 - c) * np.sin(pi * q), -(1.0 + c) * np.cos(pi * q))

    def standard_entropy(self, c: Any) -> Any:
        return log(2.0 * pi) + np.log1p(-c) + np.log1p(c)

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return self.quantile(functions.uniform(key, shape), c)


def _log_ratio(c: Any, x: Any) -> Any:
    """log(1 + c x) / c, which is x where c is 0."""
    return x * lookup("special.log1prel_of")(c * x, n=0)


class _Kappa4(Continuous):
    """Hosking's kappa distribution of `h` and `k`; smooth where either is 0."""

    at_low = at_high = False

    def valid(self, h: Any, k: Any) -> Any:
        return np.logical_and(h == h, k == k)

    def support_of(self, h: Any, k: Any) -> Any:
        some_k = chosen(k == 0, 1.0, k)
        y = np.log(chosen(h > 0, h, 1.0))  # below, 1 - h (1 - k x)^(1/k) is negative
        below = y * exprel(-k * y)
        low = chosen(h > 0, below, chosen(k < 0, 1.0 / some_k, -np.inf))
        return low, chosen(k > 0, 1.0 / some_k, np.inf)

    def inside_of(self, h: Any, k: Any) -> Any:
        return self.quantile(0.5, h, k)

    def _parts(self, x: Any, h: Any, k: Any) -> tuple[Any, Any]:
        """The logarithms of (1 - k x)^(1/k) and of the distribution function."""
        inner = -_log_ratio(-k, x)
        return inner, -_log_ratio(-h, np.exp(inner))

    def log_density(self, x: Any, h: Any, k: Any) -> Any:
        inner, whole = self._parts(x, h, k)
        return inner - np.log1p(-k * x) + (1.0 - h) * whole

    def log_lower(self, x: Any, h: Any, k: Any) -> Any:
        return self._parts(x, h, k)[1]

    def quantile(self, q: Any, h: Any, k: Any) -> Any:
        return self._of(-np.log(q), h, k)

    def upper_quantile(self, q: Any, h: Any, k: Any) -> Any:
        return self._of(-np.log1p(-q), h, k)

    def _of(self, size: Any, h: Any, k: Any) -> Any:
        """From -log(q)."""
        y = -np.log(size * exprel(-h * size))
        return y * exprel(-k * y)

    def standard_draw(self, key: Any, shape: Any, h: Any, k: Any) -> Any:
        return self._of(functions.exponential(key, shape), h, k)


class _VonMisesLine(type(vonmises)):  # type: ignore[misc]
    """vonmises from -pi to pi, and not wound around a circle."""

    ends = (-pi, pi)
    inner = 0.0


truncexpon = _TruncExpon("truncexpon")
truncpareto = _TruncPareto("truncpareto")
truncweibull_min = _TruncWeibullMin("truncweibull_min")
trapezoid = _Trapezoid("trapezoid")
wrapcauchy = _WrapCauchy("wrapcauchy")
kappa4 = _Kappa4("kappa4")
vonmises_line = _VonMisesLine("vonmises_line")

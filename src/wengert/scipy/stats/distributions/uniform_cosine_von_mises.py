"""Distributions on an interval or a circle: uniform, piecewise linear, cosine, von Mises.

    uniform loguniform reciprocal randint  triang trapezoid   cosine anglit
    vonmises vonmises_line

loguniform and reciprocal are two names of the same distribution; randint is discrete.
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert.random import functions

from ...special import cosm1, exprel, i0e, i1e
from ..continuous_distribution import Continuous
from ..discrete_distribution import Discrete
from ..implicit_quantiles import Implicit
from .common import UnitInterval


class _Uniform(UnitInterval):
    """The uniform distribution on [loc, loc + scale]."""

    def log_density(self, x: Any) -> Any:
        return 0.0 * x

    def lower(self, x: Any) -> Any:
        return 1.0 * x

    def upper(self, x: Any) -> Any:
        return 1.0 - x

    def quantile(self, q: Any) -> Any:
        return 1.0 * q

    def upper_quantile(self, q: Any) -> Any:
        return 1.0 - q

    def standard_mean(self) -> Any:
        return 0.5

    def standard_var(self) -> Any:
        return 1.0 / 12.0

    def standard_entropy(self) -> Any:
        return 0.0

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.uniform(key, shape)


uniform = _Uniform("uniform")


class _LogUniform(Continuous):
    """The log-uniform (reciprocal) distribution on [a, b]."""

    def valid(self, a: Any, b: Any) -> Any:
        return np.logical_and(a > 0, b > a)

    def support_of(self, a: Any, b: Any) -> Any:
        return a, b

    def inside_of(self, a: Any, b: Any) -> Any:
        return 0.5 * (a + b)

    def _width(self, a: Any, b: Any) -> Any:
        return np.log(b) - np.log(a)

    def log_density(self, x: Any, a: Any, b: Any) -> Any:
        return -np.log(x) - np.log(self._width(a, b))

    def lower(self, x: Any, a: Any, b: Any) -> Any:
        return (np.log(x) - np.log(a)) / self._width(a, b)

    def upper(self, x: Any, a: Any, b: Any) -> Any:
        return (np.log(b) - np.log(x)) / self._width(a, b)

    def quantile(self, q: Any, a: Any, b: Any) -> Any:
        return np.exp(np.log(a) + q * self._width(a, b))

    def upper_quantile(self, q: Any, a: Any, b: Any) -> Any:
        return np.exp(np.log(b) - q * self._width(a, b))

    def standard_mean(self, a: Any, b: Any) -> Any:
        return a * exprel(self._width(a, b))

    def standard_var(self, a: Any, b: Any) -> Any:
        return a * a * exprel(2.0 * self._width(a, b)) - self.standard_mean(a, b) ** 2

    def standard_entropy(self, a: Any, b: Any) -> Any:
        return 0.5 * (np.log(a) + np.log(b)) + np.log(self._width(a, b))

    def standard_draw(self, key: Any, shape: Any, a: Any, b: Any) -> Any:
        return self.quantile(functions.uniform(key, shape), a, b)


loguniform = _LogUniform("loguniform")


reciprocal = _LogUniform("reciprocal")


class _RandInt(Discrete):
    """The uniform distribution of the integers from `low` to `high` - 1."""

    def valid(self, low: Any, high: Any) -> Any:
        return np.logical_and(
            high > low, np.logical_and(low == np.floor(low), high == np.floor(high))
        )

    def support_of(self, low: Any, high: Any) -> Any:
        return low, high - 1.0

    def log_density(self, k: Any, low: Any, high: Any) -> Any:
        return -np.log(high - low) + 0.0 * k

    def lower(self, k: Any, low: Any, high: Any) -> Any:
        return (k - low + 1.0) / (high - low)

    def standard_mean(self, low: Any, high: Any) -> Any:
        return 0.5 * (low + high - 1.0)

    def standard_var(self, low: Any, high: Any) -> Any:
        count = high - low
        return (count * count - 1.0) / 12.0

    def standard_entropy(self, low: Any, high: Any) -> Any:
        return np.log(high - low)


randint = _RandInt("randint")


class _Triang(UnitInterval):
    """The triangular distribution on [0, 1] with mode `c`."""

    def valid(self, c: Any) -> Any:
        return np.logical_and(c >= 0, c <= 1)

    def log_density(self, x: Any, c: Any) -> Any:
        rising = x < c
        up = np.where(rising, x, 0.5) / np.where(rising, c, 1.0)
        top = x == c
        falling = np.logical_not(np.logical_or(rising, top))
        down = np.where(falling, 1.0 - x, 0.5) / np.where(falling, 1.0 - c, 1.0)
        return log(2.0) + np.where(top, 0.0, np.log(np.where(rising, up, down)))

    def lower(self, x: Any, c: Any) -> Any:
        rising = x < c
        up = np.where(rising, x * x, 0.0) / np.where(rising, c, 1.0)
        down = np.where(rising, 0.0, (1.0 - x) ** 2) / np.where(rising, 1.0, 1.0 - c)
        return np.where(rising, up, 1.0 - down)

    def quantile(self, q: Any, c: Any) -> Any:
        rising = q < c
        up = np.sqrt(np.where(rising, c * q, 1.0))
        return np.where(rising, up, 1.0 - np.sqrt(np.where(rising, 1.0, (1.0 - c) * (1.0 - q))))

    def standard_mean(self, c: Any) -> Any:
        return (c + 1.0) / 3.0

    def standard_var(self, c: Any) -> Any:
        return (1.0 - c + c * c) / 18.0

    def standard_entropy(self, c: Any) -> Any:
        return 0.5 - log(2.0) + 0.0 * c

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return functions.triangular(key, 0.0, c, 1.0, shape)


triang = _Triang("triang")


class _Trapezoid(Continuous):
    """The trapezoidal distribution: the density is constant from `c` to `d`."""

    ends = (0.0, 1.0)

    def valid(self, c: Any, d: Any) -> Any:
        return np.logical_and(np.logical_and(c >= 0, d <= 1), d >= c)

    def _sides(self, x: Any, c: Any, d: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Masks of the rising and falling parts, the height, and the nonzero widths of both."""
        height = 2.0 / (d - c + 1.0)
        up, down = x < c, x > d
        return up, down, height, np.where(c > 0, c, 1.0), np.where(d < 1, 1.0 - d, 1.0)

    def log_density(self, x: Any, c: Any, d: Any) -> Any:
        up, down, height, rise, fall = self._sides(x, c, d)
        left = np.log(np.where(up, x, 1.0) / np.where(up, rise, 1.0))
        right = np.log(np.where(down, 1.0 - x, 1.0) / np.where(down, fall, 1.0))
        return np.log(height) + np.where(up, left, np.where(down, right, 0.0))

    def lower(self, x: Any, c: Any, d: Any) -> Any:
        up, down, height, rise, fall = self._sides(x, c, d)
        left, middle = 0.5 * height * x * x / rise, height * (x - 0.5 * c)
        right = 1.0 - 0.5 * height * (1.0 - x) ** 2 / fall
        return np.where(up, left, np.where(down, right, middle))

    def upper(self, x: Any, c: Any, d: Any) -> Any:
        return self.lower(1.0 - x, 1.0 - d, 1.0 - c)

    def quantile(self, q: Any, c: Any, d: Any) -> Any:
        height = 2.0 / (d - c + 1.0)
        up, down = q < 0.5 * height * c, q > 1.0 - 0.5 * height * (1.0 - d)
        left = np.sqrt(np.where(up, 2.0 * q * c / height, 1.0))
        right = 1.0 - np.sqrt(np.where(down, 2.0 * (1.0 - q) * (1.0 - d) / height, 1.0))
        return np.where(up, left, np.where(down, right, q / height + 0.5 * c))

    def upper_quantile(self, q: Any, c: Any, d: Any) -> Any:
        return 1.0 - self.quantile(q, 1.0 - d, 1.0 - c)

    def standard_mean(self, c: Any, d: Any) -> Any:
        return self._moment(1, c, d)

    def standard_var(self, c: Any, d: Any) -> Any:
        return self._moment(2, c, d) - self._moment(1, c, d) ** 2

    def _moment(self, n: int, c: Any, d: Any) -> Any:
        """A moment about 0, summed over the four breakpoints of the density."""
        ahead = sum(d**k for k in range(n + 2))  # (1 - d^(n+2)) / (1 - d)
        return 2.0 * (ahead - c ** (n + 1)) / ((d - c + 1.0) * (n + 1.0) * (n + 2.0))

    def standard_entropy(self, c: Any, d: Any) -> Any:
        return 0.5 * (1.0 - d + c) / (1.0 + d - c) + np.log(0.5 * (1.0 + d - c))

    def standard_draw(self, key: Any, shape: Any, c: Any, d: Any) -> Any:
        return self.quantile(functions.uniform(key, shape), c, d)


trapezoid = _Trapezoid("trapezoid")


_REST_OF_PI = 1.2246467991473532e-16  # pi minus its nearest double


class _Cosine(Implicit):
    """The cosine distribution: density (1 + cos x) / (2 pi) on [-pi, pi]."""

    ends = (-pi, pi)
    inner = 0.0

    def log_density(self, x: Any) -> Any:
        return 2.0 * np.log(np.abs(np.cos(0.5 * x))) - log(pi)

    def lower(self, x: Any) -> Any:
        away = (x + pi) + _REST_OF_PI
        near = away < 0.5
        square = np.where(near, away, 0.0) ** 2
        total: Any = 1.0
        for n in (17, 15, 13, 11, 9, 7, 5):  # y - sin y by its series, without cancellation
            total = 1.0 - square * total / (n * (n - 1.0))
        close = away * square * total / 6.0
        return np.where(near, close, away + np.sin(x)) / (2.0 * pi)

    def upper(self, x: Any) -> Any:
        return self.lower(-x)

    def standard_mean(self) -> Any:
        return 0.0

    def standard_var(self) -> Any:
        return pi * pi / 3.0 - 2.0

    def standard_entropy(self) -> Any:
        return log(4.0 * pi) - 1.0


cosine = _Cosine("cosine")


class _Anglit(Continuous):
    """The anglit distribution: density cos(2 x) on [-pi/4, pi/4]."""

    ends = (-0.25 * pi, 0.25 * pi)
    inner = 0.0

    def log_density(self, x: Any) -> Any:
        return np.log(np.cos(2.0 * x))

    def lower(self, x: Any) -> Any:
        return np.sin(x + 0.25 * pi) ** 2

    def upper(self, x: Any) -> Any:
        return np.cos(x + 0.25 * pi) ** 2

    def quantile(self, q: Any) -> Any:
        return np.arcsin(np.sqrt(q)) - 0.25 * pi

    def upper_quantile(self, q: Any) -> Any:
        return 0.25 * pi - np.arcsin(np.sqrt(q))

    def standard_mean(self) -> Any:
        return 0.0

    def standard_var(self) -> Any:
        return pi * pi / 16.0 - 0.5

    def standard_entropy(self) -> Any:
        return 1.0 - log(2.0)


anglit = _Anglit("anglit")


class _VonMises(Continuous):
    """The von Mises distribution with concentration `kappa`; the density has period 2 pi."""

    def valid(self, kappa: Any) -> Any:
        return kappa >= 0

    def log_density(self, x: Any, kappa: Any) -> Any:
        return kappa * cosm1(x) - log(2.0 * pi) - np.log(i0e(kappa))

    def lower(self, x: Any, kappa: Any) -> Any:
        turns, low, beyond = self._turned(x, kappa)
        return turns + np.where(low, beyond, 1.0 - beyond)

    def upper(self, x: Any, kappa: Any) -> Any:
        turns, low, beyond = self._turned(x, kappa)
        return np.where(low, 1.0 - beyond, beyond) - turns

    def _turned(self, x: Any, kappa: Any) -> tuple[Any, Any, Any]:
        """The number of periods, the sign, and the survival function of the reduced angle."""
        turns = np.rint(x / (2.0 * pi))
        angle = x - 2.0 * pi * turns
        low = angle < 0.0
        size = np.where(low, -angle, angle)  # differentiable at 0, unlike |angle|
        size = np.where(size > pi, pi, size)
        return turns, low, lookup("special.von_mises_beyond")(size, kappa)

    def quantile(self, q: Any, kappa: Any) -> Any:
        return lookup("special.von_mises_of_tail")(np.where(q < 0.5, -q, 1.0 - q), kappa)

    def upper_quantile(self, q: Any, kappa: Any) -> Any:
        return -self.quantile(q, kappa)

    def standard_mean(self, kappa: Any) -> Any:
        return 0.0 * kappa

    def standard_entropy(self, kappa: Any) -> Any:
        ratio = i1e(kappa) / i0e(kappa)
        return kappa * (1.0 - ratio) + log(2.0 * pi) + np.log(i0e(kappa))

    def standard_draw(self, key: Any, shape: Any, kappa: Any) -> Any:
        return functions.von_mises(key, kappa, shape)


vonmises = _VonMises("vonmises")


class _VonMisesLine(type(vonmises)):  # type: ignore[misc]
    """The von Mises distribution on [-pi, pi] instead of the circle."""

    ends = (-pi, pi)
    inner = 0.0


vonmises_line = _VonMisesLine("vonmises_line")

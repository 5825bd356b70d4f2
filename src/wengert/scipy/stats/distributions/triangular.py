"""The triangular and trapezoidal distributions.

    triang trapezoid

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from wengert.random import functions

from ..continuous_distribution import Continuous
from .common import UnitInterval


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

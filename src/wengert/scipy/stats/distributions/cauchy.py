"""The Cauchy distribution and those derived from it.

    cauchy halfcauchy foldcauchy skewcauchy wrapcauchy

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from wengert.random import functions

from ..continuous_distribution import Continuous
from .common import PositiveSupport


class _Cauchy(Continuous):
    """The Cauchy distribution."""

    def log_density(self, x: Any) -> Any:
        return -log(pi) - 2.0 * np.log(np.hypot(1.0, x))

    def lower(self, x: Any) -> Any:
        return np.arctan2(1.0, -x) / pi

    def upper(self, x: Any) -> Any:
        return np.arctan2(1.0, x) / pi

    def quantile(self, q: Any) -> Any:
        return -self.upper_quantile(q)

    def upper_quantile(self, q: Any) -> Any:
        # Measured from the nearer end or the middle: near pi, tan is inaccurate.
        small = np.where(q < 0.5, q, 1.0 - q)
        middle = small > 0.25
        size = 1.0 / np.tan(pi * np.where(middle, 0.25, small))
        inner = np.tan(pi * np.where(middle, 0.5 - q, 0.0))
        return np.where(middle, inner, np.where(q < 0.5, size, -size))

    def standard_mean(self) -> Any:
        return np.nan

    standard_var = standard_mean

    def standard_entropy(self) -> Any:
        return log(4.0 * pi)

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.cauchy(key, shape)


cauchy = _Cauchy("cauchy")


class _HalfCauchy(PositiveSupport):
    """The absolute value of a Cauchy variable."""

    def log_density(self, x: Any) -> Any:
        return log(2.0 / pi) - 2.0 * np.log(np.hypot(1.0, x))

    def lower(self, x: Any) -> Any:
        return 2.0 / pi * np.arctan(x)

    def upper(self, x: Any) -> Any:
        return 2.0 / pi * np.arctan2(1.0, x)

    def quantile(self, q: Any) -> Any:
        return np.tan(0.5 * pi * q)

    def upper_quantile(self, q: Any) -> Any:
        return 1.0 / np.tan(0.5 * pi * q)

    def standard_mean(self) -> Any:
        return np.inf

    standard_var = standard_mean

    def standard_entropy(self) -> Any:
        return log(2.0 * pi)

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return np.abs(functions.cauchy(key, shape))


halfcauchy = _HalfCauchy("halfcauchy")


class _FoldCauchy(PositiveSupport):
    """The absolute value of a Cauchy variable with median `c`."""

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
        return self._quantile(np.cos(pi * q), np.sin(pi * q), c)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return self._quantile(-np.cos(pi * q), np.sin(pi * q), c)

    def _quantile(self, cos: Any, sin: Any, c: Any) -> Any:
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


foldcauchy = _FoldCauchy("foldcauchy")


class _SkewCauchy(Continuous):
    """The skewed Cauchy distribution, with scale 1 - a below and 1 + a above its mode."""

    def valid(self, a: Any) -> Any:
        return np.abs(a) < 1

    def log_density(self, x: Any, a: Any) -> Any:
        width = np.where(x < 0, 1.0 - a, 1.0 + a)
        return -log(pi) - 2.0 * np.log(np.hypot(1.0, x / width))

    def lower(self, x: Any, a: Any) -> Any:
        low, high = np.where(x < 0, x, -1.0), np.where(x < 0, 1.0, x)
        below = (1.0 - a) * np.arctan2(1.0 - a, -low) / pi
        return np.where(x < 0, below, 1.0 - (1.0 + a) * np.arctan2(1.0 + a, high) / pi)

    def upper(self, x: Any, a: Any) -> Any:
        return self.lower(-x, -a)

    def quantile(self, q: Any, a: Any) -> Any:
        middle = 0.5 * (1.0 - a)
        low = q < middle
        below = -(1.0 - a) / np.tan(pi * np.where(low, q, 0.25 * (1.0 - a)) / (1.0 - a))
        above = (1.0 + a) / np.tan(pi * np.where(low, 0.25 * (1.0 + a), 1.0 - q) / (1.0 + a))
        return np.where(low, below, above)

    def upper_quantile(self, q: Any, a: Any) -> Any:
        return -self.quantile(q, -a)


skewcauchy = _SkewCauchy("skewcauchy")


class _WrapCauchy(Continuous):
    """The wrapped Cauchy distribution with concentration `c`."""

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


wrapcauchy = _WrapCauchy("wrapcauchy")

"""The uniform distribution: continuous, logarithmic and discrete.

uniform loguniform reciprocal randint

loguniform and reciprocal are two names of the same distribution; randint is discrete.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.random import functions

from ...special import exprel
from ..continuous_distribution import Continuous
from ..discrete_distribution import Discrete
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

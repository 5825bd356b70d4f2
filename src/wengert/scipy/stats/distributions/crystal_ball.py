"""The Crystal Ball distribution, of particle physics.

crystalball

Formula: as in scipy.stats.crystalball.
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from wengert.random import functions

from ...special import log_ndtr, ndtr, ndtri
from ..continuous_distribution import Continuous, chosen
from .common import HALF_LOG_2PI


class _CrystalBall(Continuous):
    """The Crystal Ball distribution: a normal density with a power-law tail below -beta."""

    def valid(self, beta: Any, m: Any) -> Any:
        return np.logical_and(beta > 0, m > 1)

    def _logs(self, beta: Any, m: Any) -> tuple[Any, Any]:
        """The log of the integral of the power-law tail, and of the whole density."""
        power = np.log(m / beta) - np.log(m - 1.0) - 0.5 * (beta * beta)
        return power, np.logaddexp(power, HALF_LOG_2PI + log_ndtr(beta))

    def _far(self, x: Any, beta: Any, m: Any) -> Any:
        """log(1 - beta (x + beta) / m) for x < -beta."""
        return np.log1p(-beta / m * chosen(x < -beta, x + beta, 0.0))

    def log_density(self, x: Any, beta: Any, m: Any) -> Any:
        low = x < -beta
        tail = -m * self._far(x, beta, m) - 0.5 * (beta * beta)
        normal = -0.5 * chosen(low, 0.0, x) ** 2
        return chosen(low, tail, normal) - self._logs(beta, m)[1]

    def lower(self, x: Any, beta: Any, m: Any) -> Any:
        power, whole = self._logs(beta, m)
        tail = np.exp(power - whole + (1.0 - m) * self._far(x, beta, m))
        inner = chosen(x < -beta, -beta, x)
        normal = np.exp(HALF_LOG_2PI - whole) * (ndtr(inner) - ndtr(-beta))
        return chosen(x < -beta, tail, np.exp(power - whole) + normal)

    def upper(self, x: Any, beta: Any, m: Any) -> Any:
        power, whole = self._logs(beta, m)
        inner = chosen(x < -beta, -beta, x)
        normal = np.exp(HALF_LOG_2PI - whole) * ndtr(-inner)
        tail = -np.expm1(power - whole + (1.0 - m) * self._far(x, beta, m))
        return chosen(x < -beta, tail, normal)

    def quantile(self, q: Any, beta: Any, m: Any) -> Any:
        return self._of(q, 1.0 - q, beta, m)

    def upper_quantile(self, q: Any, beta: Any, m: Any) -> Any:
        return self._of(1.0 - q, q, beta, m)

    def _of(self, below: Any, above: Any, beta: Any, m: Any) -> Any:
        power, whole = self._logs(beta, m)
        low = below < np.exp(power - whole)
        size = np.log(chosen(low, below, 0.5)) - chosen(low, power - whole, log(0.5))
        tail = -beta - m / beta * np.expm1(size / (1.0 - m))
        normal = -ndtri(chosen(low, 0.5, above * np.exp(whole - HALF_LOG_2PI)))
        return chosen(low, tail, normal)

    def standard_draw(self, key: Any, shape: Any, beta: Any, m: Any) -> Any:
        return self.quantile(functions.uniform(key, shape), beta, m)


crystalball = _CrystalBall("crystalball")

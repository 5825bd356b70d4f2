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
from ..continuous_distribution import Continuous
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
        return np.log1p(-beta / m * np.where(x < -beta, x + beta, 0.0))

    def log_density(self, x: Any, beta: Any, m: Any) -> Any:
        low = x < -beta
        tail = -m * self._far(x, beta, m) - 0.5 * (beta * beta)
        normal = -0.5 * np.where(low, 0.0, x) ** 2
        return np.where(low, tail, normal) - self._logs(beta, m)[1]

    def lower(self, x: Any, beta: Any, m: Any) -> Any:
        power, log_total = self._logs(beta, m)
        tail = np.exp(power - log_total + (1.0 - m) * self._far(x, beta, m))
        inner = np.where(x < -beta, -beta, x)
        normal = np.exp(HALF_LOG_2PI - log_total) * (ndtr(inner) - ndtr(-beta))
        return np.where(x < -beta, tail, np.exp(power - log_total) + normal)

    def upper(self, x: Any, beta: Any, m: Any) -> Any:
        power, log_total = self._logs(beta, m)
        inner = np.where(x < -beta, -beta, x)
        normal = np.exp(HALF_LOG_2PI - log_total) * ndtr(-inner)
        tail = -np.expm1(power - log_total + (1.0 - m) * self._far(x, beta, m))
        return np.where(x < -beta, tail, normal)

    def quantile(self, q: Any, beta: Any, m: Any) -> Any:
        return self._quantile(q, 1.0 - q, beta, m)

    def upper_quantile(self, q: Any, beta: Any, m: Any) -> Any:
        return self._quantile(1.0 - q, q, beta, m)

    def _quantile(self, below: Any, above: Any, beta: Any, m: Any) -> Any:
        power, log_total = self._logs(beta, m)
        low = below < np.exp(power - log_total)
        size = np.log(np.where(low, below, 0.5)) - np.where(low, power - log_total, log(0.5))
        tail = -beta - m / beta * np.expm1(size / (1.0 - m))
        normal = -ndtri(np.where(low, 0.5, above * np.exp(log_total - HALF_LOG_2PI)))
        return np.where(low, tail, normal)

    def standard_draw(self, key: Any, shape: Any, beta: Any, m: Any) -> Any:
        return self.quantile(functions.uniform(key, shape), beta, m)


crystalball = _CrystalBall("crystalball")

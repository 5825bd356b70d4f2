"""The Moyal distribution.

moyal

Formula: J. E. Moyal, Theory of ionization fluctuations (1955).
"""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any

import numpy as np

from wengert.random import functions

from ...special import erf, erfc, erfinv, log_ndtr, ndtri
from ..continuous_distribution import Continuous
from .common import EULER, HALF_LOG_2PI


class _Moyal(Continuous):
    """The Moyal distribution: minus the log of a squared normal variable."""

    def log_density(self, x: Any) -> Any:
        return -0.5 * (x + np.exp(-x)) - HALF_LOG_2PI

    def lower(self, x: Any) -> Any:
        return erfc(np.exp(-0.5 * x) * sqrt(0.5))

    def log_lower(self, x: Any) -> Any:
        return log(2.0) + log_ndtr(-np.exp(-0.5 * x))

    def upper(self, x: Any) -> Any:
        return erf(np.exp(-0.5 * x) * sqrt(0.5))

    def quantile(self, q: Any) -> Any:
        return -2.0 * np.log(-ndtri(0.5 * q))

    def upper_quantile(self, q: Any) -> Any:
        return -2.0 * np.log(sqrt(2.0) * erfinv(q))

    def standard_mean(self) -> Any:
        return EULER + log(2.0)

    def standard_var(self) -> Any:
        return 0.5 * pi * pi

    def standard_entropy(self) -> Any:
        return HALF_LOG_2PI + 0.5 * (EULER + log(2.0) + 1.0)

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return -2.0 * np.log(np.abs(functions.normal(key, shape)))


moyal = _Moyal("moyal")

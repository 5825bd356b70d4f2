"""The ARGUS distribution, of particle physics.

argus

Formula: H. Albrecht et al. (ARGUS), Search for hadronic b -> u decays (1990).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.random import functions

from ...special import gammainc, gammaincinv
from ..continuous_distribution import Continuous
from .common import HALF_LOG_2PI


class _Argus(Continuous):
    """The ARGUS distribution of masses, of parameter `chi`."""

    ends = (0.0, 1.0)

    def valid(self, chi: Any) -> Any:
        return chi > 0

    def _mass(self, chi: Any) -> Any:
        return gammainc(1.5, 0.5 * (chi * chi))

    def log_density(self, x: Any, chi: Any) -> Any:
        rest = (1.0 - x) * (1.0 + x)
        out = 3.0 * np.log(chi) - HALF_LOG_2PI - np.log(0.5 * self._mass(chi)) + np.log(x)
        return out + 0.5 * np.log(rest) - 0.5 * (chi * chi) * rest

    def upper(self, x: Any, chi: Any) -> Any:
        rest = (1.0 - x) * (1.0 + x)
        return gammainc(1.5, 0.5 * (chi * chi) * rest) / self._mass(chi)

    def quantile(self, q: Any, chi: Any) -> Any:
        return self.upper_quantile(1.0 - q, chi)

    def upper_quantile(self, q: Any, chi: Any) -> Any:
        rest = 2.0 * gammaincinv(1.5, q * self._mass(chi)) / (chi * chi)
        return np.sqrt(1.0 - rest)

    def standard_draw(self, key: Any, shape: Any, chi: Any) -> Any:
        return self.upper_quantile(functions.uniform(key, shape), chi)


argus = _Argus("argus")

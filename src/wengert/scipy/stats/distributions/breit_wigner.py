"""The relativistic Breit-Wigner distribution; only the density.

rel_breitwigner

Formula: as in scipy.stats.rel_breitwigner.
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from .common import PositiveSupport


class _RelBreitWigner(PositiveSupport):
    """The relativistic Breit-Wigner distribution of a resonance of mass `rho`."""

    def valid(self, rho: Any) -> Any:
        return rho > 0

    def log_density(self, x: Any, rho: Any) -> Any:
        root = np.sqrt(1.0 + 1.0 / (rho * rho))
        scale = 0.5 * log(2.0) + np.log(root) - 0.5 * np.log1p(root) + log(2.0 / pi)
        return scale - np.log1p(((x - rho) * (x + rho) / rho) ** 2)


rel_breitwigner = _RelBreitWigner("rel_breitwigner")

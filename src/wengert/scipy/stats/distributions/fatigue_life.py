"""The fatigue-life (Birnbaum-Saunders) distribution.

    fatiguelife

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.random import functions

from ...special import log_ndtr, ndtr, ndtri
from .common import HALF_LOG_2PI, PositiveSupport


class _FatigueLife(PositiveSupport):
    """The fatigue-life (Birnbaum-Saunders) distribution with parameter `c`."""

    at_low = False

    def valid(self, c: Any) -> Any:
        return c > 0

    def _deviation(self, x: Any, c: Any) -> Any:
        return (x - 1.0) / (np.sqrt(x) * c)

    def log_density(self, x: Any, c: Any) -> Any:
        z = self._deviation(x, c)
        out = np.log1p(x) - 1.5 * np.log(x) - np.log(2.0 * c)
        return out - HALF_LOG_2PI - 0.5 * (z * z)

    def lower(self, x: Any, c: Any) -> Any:
        return ndtr(self._deviation(x, c))

    def upper(self, x: Any, c: Any) -> Any:
        return ndtr(-self._deviation(x, c))

    def log_lower(self, x: Any, c: Any) -> Any:
        return log_ndtr(self._deviation(x, c))

    def log_upper(self, x: Any, c: Any) -> Any:
        return log_ndtr(-self._deviation(x, c))

    def _quantile(self, z: Any, c: Any) -> Any:
        return np.exp(2.0 * np.arcsinh(0.5 * c * z))

    def quantile(self, q: Any, c: Any) -> Any:
        return self._quantile(ndtri(q), c)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return self._quantile(-ndtri(q), c)

    def standard_mean(self, c: Any) -> Any:
        return 0.5 * (c * c) + 1.0

    def standard_var(self, c: Any) -> Any:
        return c * c * (1.25 * (c * c) + 1.0)

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return self._quantile(functions.normal(key, shape), c)


fatiguelife = _FatigueLife("fatiguelife")

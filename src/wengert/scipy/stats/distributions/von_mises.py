"""The von Mises distribution, on the circle and on the line.

    vonmises vonmises_line

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert.random import functions

from ...special import cosm1, i0e, i1e
from ..continuous_distribution import Continuous


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

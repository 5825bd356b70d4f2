"""The hyperbolic secant distribution.

    hypsecant

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from ..continuous_distribution import Continuous


class _HypSecant(Continuous):
    """The hyperbolic secant distribution: density sech(x) / pi."""

    def log_density(self, x: Any) -> Any:
        return log(2.0 / pi) - np.logaddexp(x, -x)

    def lower(self, x: Any) -> Any:
        return 2.0 / pi * np.arctan(np.exp(x))

    def upper(self, x: Any) -> Any:
        return 2.0 / pi * np.arctan(np.exp(-x))

    def quantile(self, q: Any) -> Any:
        return np.log(np.tan(0.5 * pi * q))

    def upper_quantile(self, q: Any) -> Any:
        return -np.log(np.tan(0.5 * pi * q))

    def standard_mean(self) -> Any:
        return 0.0

    def standard_var(self) -> Any:
        return 0.25 * pi * pi

    def standard_entropy(self) -> Any:
        return log(2.0 * pi)


hypsecant = _HypSecant("hypsecant")

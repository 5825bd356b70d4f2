"""The generalized hyperbolic distributions; only densities and moments.

    genhyperbolic norminvgauss geninvgauss

Formulas: O. Barndorff-Nielsen, Hyperbolic distributions and distributions on hyperbolae (1978);
B. Jorgensen, Statistical properties of the generalized inverse Gaussian distribution (1982).
There is no distribution function: SciPy computes it by adaptive quadrature.
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup

from ..continuous_distribution import Continuous
from .common import HALF_LOG_2PI, PositiveSupport


def _log_bessel(order: Any, x: Any) -> Any:
    """log of the modified Bessel function K."""
    return lookup("special.log_kve")(order, x, n=0) - x


def _bessel_ratio(n: int, order: Any, x: Any) -> Any:
    """K of order + n, divided by K of order."""
    return np.exp(_log_bessel(order + n, x) - _log_bessel(order, x))


class _GenHyperbolic(Continuous):
    """The generalized hyperbolic distribution, |b| < a."""

    def valid(self, p: Any, a: Any, b: Any) -> Any:
        return np.logical_and(np.logical_and(a > 0, np.abs(b) < a), p == p)

    def log_density(self, x: Any, p: Any, a: Any, b: Any) -> Any:
        square, size = (a - b) * (a + b), np.hypot(1.0, x)
        root = np.sqrt(square)
        out = 0.5 * p * np.log(square) - HALF_LOG_2PI + (0.5 - p) * np.log(a)
        out = out - _log_bessel(p, root) + b * x + (p - 0.5) * np.log(size)
        return out + _log_bessel(p - 0.5, a * size)

    def _ratio(self, n: int, p: Any, root: Any) -> Any:
        return _bessel_ratio(n, p, root)

    def standard_mean(self, p: Any, a: Any, b: Any) -> Any:
        root = np.sqrt((a - b) * (a + b))
        return b / root * self._ratio(1, p, root)

    def standard_var(self, p: Any, a: Any, b: Any) -> Any:
        root = np.sqrt((a - b) * (a + b))
        first, second = self._ratio(1, p, root), self._ratio(2, p, root)
        return first / root + (b / root) ** 2 * (second - first * first)


genhyperbolic = _GenHyperbolic("genhyperbolic")


class _NormInvGauss(Continuous):
    """The normal inverse Gaussian distribution, |b| < a."""

    def valid(self, a: Any, b: Any) -> Any:
        return np.logical_and(a > 0, np.abs(b) < a)

    def log_density(self, x: Any, a: Any, b: Any) -> Any:
        size = np.hypot(1.0, x)
        out = np.log(a) + np.sqrt((a - b) * (a + b)) + b * x - log(pi)
        return out + _log_bessel(1.0, a * size) - np.log(size)

    def standard_mean(self, a: Any, b: Any) -> Any:
        return b / np.sqrt((a - b) * (a + b))

    def standard_var(self, a: Any, b: Any) -> Any:
        return a * a / ((a - b) * (a + b)) ** 1.5


norminvgauss = _NormInvGauss("norminvgauss")


class _GenInvGauss(PositiveSupport):
    """The generalized inverse Gaussian distribution with power `p` and rate `b`."""

    at_low = False

    def valid(self, p: Any, b: Any) -> Any:
        return np.logical_and(p == p, b > 0)

    def log_density(self, x: Any, p: Any, b: Any) -> Any:
        out = (p - 1.0) * np.log(x) - 0.5 * b * (x + 1.0 / x)
        return out - log(2.0) - _log_bessel(p, b)

    def standard_mean(self, p: Any, b: Any) -> Any:
        return _bessel_ratio(1, p, b)

    def standard_var(self, p: Any, b: Any) -> Any:
        return _bessel_ratio(2, p, b) - self.standard_mean(p, b) ** 2


geninvgauss = _GenInvGauss("geninvgauss")

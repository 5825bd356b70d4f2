"""Distributions of energies and masses in particle physics.

argus             the ARGUS distribution: H. Albrecht et al. (ARGUS), Search for hadronic b -> u
                  decays (1990)
rel_breitwigner   the relativistic Breit-Wigner distribution; only the density
crystalball       the Crystal Ball distribution
moyal             J. E. Moyal, Theory of ionization fluctuations (1955)
"""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any

import numpy as np

from wengert.random import functions

from ...special import erf, erfc, erfinv, gammainc, gammaincinv, log_ndtr, ndtr, ndtri
from ..continuous_distribution import Continuous
from .common import EULER, HALF_LOG_2PI, PositiveSupport


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


class _RelBreitWigner(PositiveSupport):
    """The relativistic Breit-Wigner distribution of a resonance of mass `rho`."""

    def valid(self, rho: Any) -> Any:
        return rho > 0

    def log_density(self, x: Any, rho: Any) -> Any:
        root = np.sqrt(1.0 + 1.0 / (rho * rho))
        scale = 0.5 * log(2.0) + np.log(root) - 0.5 * np.log1p(root) + log(2.0 / pi)
        return scale - np.log1p(((x - rho) * (x + rho) / rho) ** 2)


rel_breitwigner = _RelBreitWigner("rel_breitwigner")


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

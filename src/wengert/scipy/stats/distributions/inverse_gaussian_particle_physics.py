"""The inverse Gaussian distribution and its generalizations; distributions of particle physics.

    invgauss wald recipinvgauss  inverse Gaussian (Wald), and its reciprocal
    levy levy_l                  Levy, and its reflection
    genhyperbolic norminvgauss geninvgauss  only densities and moments: SciPy computes distribution
                                            functions by adaptive quadrature
    argus                        the ARGUS distribution: H. Albrecht et al. (ARGUS), Search for
                                 hadronic b -> u decays (1990)
    rel_breitwigner              the relativistic Breit-Wigner distribution; only the density
    crystalball                  the Crystal Ball distribution
    moyal                        J. E. Moyal, Theory of ionization fluctuations (1955)

Generalizations: O. Barndorff-Nielsen, Hyperbolic distributions and distributions on hyperbolae
(1978); B. Jorgensen, Statistical properties of the generalized inverse Gaussian distribution
(1982).
"""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert.random import functions

from ...special import erf, erfc, erfinv, gammainc, gammaincinv, hyperu, log_ndtr, ndtr, ndtri
from ..continuous_distribution import Continuous
from ..implicit_quantiles import Implicit
from .common import EULER, HALF_LOG_2PI, PositiveSupport


class _InvGauss(PositiveSupport, Implicit):
    """The inverse Gaussian distribution with mean `mu`."""

    at_low = False

    def valid(self, mu: Any) -> Any:
        return mu > 0

    def log_density(self, x: Any, mu: Any) -> Any:
        return -HALF_LOG_2PI - 1.5 * np.log(x) - ((x - mu) / mu) ** 2 / (2.0 * x)

    def _tails(self, x: Any, mu: Any) -> tuple[Any, Any]:
        root = 1.0 / np.sqrt(x)
        return root * (x / mu - 1.0), 2.0 / mu + log_ndtr(-root * (x / mu + 1.0))

    def lower(self, x: Any, mu: Any) -> Any:
        z, rest = self._tails(x, mu)
        return ndtr(z) + np.exp(rest)

    def upper(self, x: Any, mu: Any) -> Any:
        z, rest = self._tails(x, mu)
        return ndtr(-z) - np.exp(rest)

    def log_lower(self, x: Any, mu: Any) -> Any:
        z, rest = self._tails(x, mu)
        return np.logaddexp(log_ndtr(z), rest)

    def log_upper(self, x: Any, mu: Any) -> Any:
        z, rest = self._tails(x, mu)
        first = log_ndtr(-z)
        return first + np.log1p(-np.exp(rest - first))

    def standard_mean(self, mu: Any) -> Any:
        return 1.0 * mu

    def standard_var(self, mu: Any) -> Any:
        return mu**3

    def standard_entropy(self, mu: Any) -> Any:
        # exp(2 / mu) E1(2 / mu) is U(1, 1, 2 / mu), DLMF 13.6.6
        return HALF_LOG_2PI + 0.5 + 1.5 * (np.log(mu) - hyperu(1.0, 1.0, 2.0 / mu))


invgauss = _InvGauss("invgauss")


class _Wald(PositiveSupport, Implicit):
    """The Wald distribution: inverse Gaussian with mean 1."""

    at_low = False

    def log_density(self, x: Any) -> Any:
        return invgauss.log_density(x, 1.0)

    def lower(self, x: Any) -> Any:
        return invgauss.lower(x, 1.0)

    def upper(self, x: Any) -> Any:
        return invgauss.upper(x, 1.0)

    def log_lower(self, x: Any) -> Any:
        return invgauss.log_lower(x, 1.0)

    def log_upper(self, x: Any) -> Any:
        return invgauss.log_upper(x, 1.0)

    def standard_mean(self) -> Any:
        return 1.0

    standard_var = standard_mean


wald = _Wald("wald")


class _RecipInvGauss(PositiveSupport, Implicit):
    """The reciprocal of an inverse Gaussian variable with mean `mu`."""

    at_low = False

    def valid(self, mu: Any) -> Any:
        return mu > 0

    def log_density(self, x: Any, mu: Any) -> Any:
        return -HALF_LOG_2PI - 0.5 * np.log(x) - (1.0 - mu * x) ** 2 / (2.0 * x * (mu * mu))

    def lower(self, x: Any, mu: Any) -> Any:
        return invgauss.upper(1.0 / x, mu)

    def upper(self, x: Any, mu: Any) -> Any:
        return invgauss.lower(1.0 / x, mu)

    def log_lower(self, x: Any, mu: Any) -> Any:
        return invgauss.log_upper(1.0 / x, mu)

    def log_upper(self, x: Any, mu: Any) -> Any:
        return invgauss.log_lower(1.0 / x, mu)

    def standard_mean(self, mu: Any) -> Any:
        return 1.0 / mu + 1.0

    def standard_var(self, mu: Any) -> Any:
        return 1.0 / mu + 2.0


recipinvgauss = _RecipInvGauss("recipinvgauss")


class _Levy(PositiveSupport):
    """The Levy distribution: the reciprocal of a squared normal variable."""

    at_low = False

    def log_density(self, x: Any) -> Any:
        return -HALF_LOG_2PI - 1.5 * np.log(x) - 0.5 / x

    def lower(self, x: Any) -> Any:
        return erfc(np.sqrt(0.5 / x))

    def log_lower(self, x: Any) -> Any:
        return log(2.0) + log_ndtr(-1.0 / np.sqrt(x))

    def upper(self, x: Any) -> Any:
        return erf(np.sqrt(0.5 / x))

    def quantile(self, q: Any) -> Any:
        return ndtri(0.5 * q) ** -2.0

    def upper_quantile(self, q: Any) -> Any:
        return 0.5 * erfinv(q) ** -2.0

    def standard_mean(self) -> Any:
        return np.inf

    standard_var = standard_mean

    def standard_entropy(self) -> Any:
        return 0.5 * (1.0 + 3.0 * EULER + log(16.0 * pi))

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.normal(key, shape) ** -2.0


levy = _Levy("levy")


class _LevyL(_Levy):
    """The left-skewed Levy distribution."""

    ends = (-np.inf, 0.0)
    inner = -1.0
    at_high = False

    def log_density(self, x: Any) -> Any:
        return super().log_density(-x)

    def lower(self, x: Any) -> Any:
        return super().upper(-x)

    def log_lower(self, x: Any) -> Any:
        return np.log(super().upper(-x))

    def upper(self, x: Any) -> Any:
        return super().lower(-x)

    def log_upper(self, x: Any) -> Any:
        return super().log_lower(-x)

    def quantile(self, q: Any) -> Any:
        return -super().upper_quantile(q)

    def upper_quantile(self, q: Any) -> Any:
        return -super().quantile(q)

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return -super().standard_draw(key, shape)


levy_l = _LevyL("levy_l")


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

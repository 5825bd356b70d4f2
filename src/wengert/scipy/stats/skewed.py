"""Distributions on the whole line with two sides that differ, and generalisations of Student's t.

    crystalball jf_skew_t
    norminvgauss genhyperbolic geninvgauss     densities and moments alone; the last of positive
                                               numbers
    gausshyper rel_breitwigner                 densities alone, on 0 to 1 and above 0

Each class has the formulas of the standard form; what they are for is said in distribution.py.
Formulas: M. C. Jones, M. J. Faddy, A skew extension of the t-distribution (2003);
O. Barndorff-Nielsen, Hyperbolic distributions and distributions on hyperbolae (1978);
B. Jorgensen, Statistical properties of the generalized inverse Gaussian distribution (1982).
A distribution function that SciPy takes by an adaptive integral is not here.
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert.random import functions

from ..special import (
    betainc,
    betaincc,
    betainccinv,
    betaincinv,
    betaln,
    hyp2f1,
    log_ndtr,
    ndtr,
    ndtri,
    xlog1py,
    xlogy,
)
from .continuous_distribution import Continuous, chosen
from .gamma_family import Positive
from .real_line import HALF_LOG_2PI

__all__ = """
    crystalball jf_skew_t norminvgauss genhyperbolic geninvgauss gausshyper rel_breitwigner
""".split()


class _CrystalBall(Continuous):
    """A normal distribution that below -beta goes on as a power of -m."""

    def valid(self, beta: Any, m: Any) -> Any:
        return np.logical_and(beta > 0, m > 1)

    def _logs(self, beta: Any, m: Any) -> tuple[Any, Any]:
        """The logarithms of the mass of the power, and of both."""
        power = np.log(m / beta) - np.log(m - 1.0) - 0.5 * (beta * beta)
        return power, np.logaddexp(power, HALF_LOG_2PI + log_ndtr(beta))

    def _far(self, x: Any, beta: Any, m: Any) -> Any:
        """log(1 - beta (x + beta) / m), of x below -beta."""
        return np.log1p(-beta / m * chosen(x < -beta, x + beta, 0.0))

    def log_density(self, x: Any, beta: Any, m: Any) -> Any:
        low = x < -beta
        tail = -m * self._far(x, beta, m) - 0.5 * (beta * beta)
        normal = -0.5 * chosen(low, 0.0, x) ** 2
        return chosen(low, tail, normal) - self._logs(beta, m)[1]

    def lower(self, x: Any, beta: Any, m: Any) -> Any:
        power, whole = self._logs(beta, m)
        tail = np.exp(power - whole + (1.0 - m) * self._far(x, beta, m))
        inner = chosen(x < -beta, -beta, x)
        normal = np.exp(HALF_LOG_2PI - whole) * (ndtr(inner) - ndtr(-beta))
        return chosen(x < -beta, tail, np.exp(power - whole) + normal)

    def upper(self, x: Any, beta: Any, m: Any) -> Any:
        power, whole = self._logs(beta, m)
        inner = chosen(x < -beta, -beta, x)
        normal = np.exp(HALF_LOG_2PI - whole) * ndtr(-inner)
        tail = -np.expm1(power - whole + (1.0 - m) * self._far(x, beta, m))
        return chosen(x < -beta, tail, normal)

    def quantile(self, q: Any, beta: Any, m: Any) -> Any:
        return self._of(q, 1.0 - q, beta, m)

    def upper_quantile(self, q: Any, beta: Any, m: Any) -> Any:
        return self._of(1.0 - q, q, beta, m)

    def _of(self, below: Any, above: Any, beta: Any, m: Any) -> Any:
        power, whole = self._logs(beta, m)
        low = below < np.exp(power - whole)
        size = np.log(chosen(low, below, 0.5)) - chosen(low, power - whole, log(0.5))
        tail = -beta - m / beta * np.expm1(size / (1.0 - m))
        normal = -ndtri(chosen(low, 0.5, above * np.exp(whole - HALF_LOG_2PI)))
        return chosen(low, tail, normal)

    def standard_draw(self, key: Any, shape: Any, beta: Any, m: Any) -> Any:
        return self.quantile(functions.uniform(key, shape), beta, m)


class _JFSkewT(Continuous):
    """Jones and Faddy's skewed t distribution; of a = b Student's of 2 a degrees of freedom."""

    def valid(self, a: Any, b: Any) -> Any:
        return np.logical_and(a > 0, b > 0)

    def _shares(self, x: Any, a: Any, b: Any) -> tuple[Any, Any]:
        """(1 + x / r) / 2 and what is missing of 1, where r^2 = a + b + x^2."""
        whole = a + b
        root = np.sqrt(whole + x * x)
        # Not abs(x), whose slope at 0 is 0: the sides meet there with the slope of each.
        small = 0.5 * whole / (root * (root + chosen(x < 0, -x, x)))
        return chosen(x < 0, small, 1.0 - small), chosen(x < 0, 1.0 - small, small)

    def log_density(self, x: Any, a: Any, b: Any) -> Any:
        first, second = self._shares(x, a, b)
        out = (a + 0.5) * np.log(2.0 * first) + (b + 0.5) * np.log(2.0 * second)
        return out - (a + b - 1.0) * log(2.0) - betaln(a, b) - 0.5 * np.log(a + b)

    def lower(self, x: Any, a: Any, b: Any) -> Any:
        first, second = self._shares(x, a, b)
        near = x < 0
        left = betainc(a, b, chosen(near, first, 0.5))
        return chosen(near, left, betaincc(b, a, chosen(near, 0.5, second)))

    def upper(self, x: Any, a: Any, b: Any) -> Any:
        return self.lower(-x, b, a)

    def quantile(self, q: Any, a: Any, b: Any) -> Any:
        return self._of(betaincinv(a, b, q), betainccinv(b, a, q), a + b)

    def upper_quantile(self, q: Any, a: Any, b: Any) -> Any:
        return self._of(betainccinv(a, b, q), betaincinv(b, a, q), a + b)

    def _of(self, first: Any, second: Any, whole: Any) -> Any:
        return 0.5 * (first - second) * np.sqrt(whole / (first * second))

    def standard_draw(self, key: Any, shape: Any, a: Any, b: Any) -> Any:
        one, other = functions.split(key)
        first, second = functions.gamma(one, a, shape), functions.gamma(other, b, shape)
        return 0.5 * (first - second) * np.sqrt((a + b) / (first * second))


def _log_bessel(order: Any, x: Any) -> Any:
    """log K of an order."""
    return lookup("special.log_kve")(order, x, n=0) - x


def _bessel_ratio(n: int, order: Any, x: Any) -> Any:
    """K of an order that is n more, divided by K."""
    return np.exp(_log_bessel(order + n, x) - _log_bessel(order, x))


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


class _GenHyperbolic(Continuous):
    """The generalised hyperbolic distribution, |b| < a."""

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


class _GenInvGauss(Positive):
    """The generalised inverse Gaussian distribution of power `p` and rate `b`."""

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


class _GaussHyper(Continuous):
    """Armero and Bayarri's distribution: beta's density divided by (1 + z x)^c."""

    ends = (0.0, 1.0)

    def valid(self, a: Any, b: Any, c: Any, z: Any) -> Any:
        some = np.logical_and(a > 0, b > 0)
        return np.logical_and(some, np.logical_and(c == c, z > -1))

    def log_density(self, x: Any, a: Any, b: Any, c: Any, z: Any) -> Any:
        out = xlogy(a - 1.0, x) + xlog1py(b - 1.0, -x) - c * np.log1p(z * x)
        return out - betaln(a, b) - np.log(hyp2f1(c, a, a + b, -z))

    def standard_mean(self, a: Any, b: Any, c: Any, z: Any) -> Any:
        return self._moment(1.0, a, b, c, z)

    def standard_var(self, a: Any, b: Any, c: Any, z: Any) -> Any:
        return self._moment(2.0, a, b, c, z) - self._moment(1.0, a, b, c, z) ** 2

    def _moment(self, n: float, a: Any, b: Any, c: Any, z: Any) -> Any:
        scale = np.exp(betaln(a + n, b) - betaln(a, b))
        return scale * hyp2f1(c, a + n, a + b + n, -z) / hyp2f1(c, a, a + b, -z)


class _RelBreitWigner(Positive):
    """Breit and Wigner's distribution of energies of a resonance of mass `rho`."""

    def valid(self, rho: Any) -> Any:
        return rho > 0

    def log_density(self, x: Any, rho: Any) -> Any:
        root = np.sqrt(1.0 + 1.0 / (rho * rho))
        scale = 0.5 * log(2.0) + np.log(root) - 0.5 * np.log1p(root) + log(2.0 / pi)
        return scale - np.log1p(((x - rho) * (x + rho) / rho) ** 2)


crystalball = _CrystalBall("crystalball")
jf_skew_t = _JFSkewT("jf_skew_t")
norminvgauss = _NormInvGauss("norminvgauss")
genhyperbolic = _GenHyperbolic("genhyperbolic")
geninvgauss = _GenInvGauss("geninvgauss")
gausshyper = _GaussHyper("gausshyper")
rel_breitwigner = _RelBreitWigner("rel_breitwigner")

"""The inverse Gaussian distribution, its limit and its generalizations.

    invgauss wald recipinvgauss              inverse Gaussian (Wald), and its reciprocal
    levy levy_l                              Levy, and its reflection
    genhyperbolic norminvgauss geninvgauss   only densities and moments: SciPy computes distribution
                                             functions by adaptive quadrature

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
O. Barndorff-Nielsen, Hyperbolic distributions and distributions on hyperbolae (1978);
B. Jorgensen, Statistical properties of the generalized inverse Gaussian distribution (1982).
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert.random import functions

from ...special import erf, erfc, erfinv, hyperu, log_ndtr, ndtr, ndtri
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

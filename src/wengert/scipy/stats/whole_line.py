"""Further distributions on the whole line.

    gennorm dgamma dweibull genlogistic hypsecant johnsonsu moyal powernorm loggamma
    laplace_asymmetric skewcauchy

Each class has the formulas of the standard form; what they are for is said in distribution.py.
Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995),
written so that no tail loses its digits.  skewed.py has those with two different sides.
"""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any

import numpy as np

from wengert.random import functions

from ..special import (
    erf,
    erfc,
    erfinv,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    log_ndtr,
    ndtr,
    ndtri,
    ndtri_exp,
    polygamma,
    psi,
    xlogy,
)
from .continuous_distribution import Continuous, chosen
from .gamma_family import beyond_power
from .real_line import EULER, HALF_LOG_2PI

__all__ = """
    gennorm dgamma dweibull genlogistic hypsecant johnsonsu moyal powernorm loggamma
    laplace_asymmetric skewcauchy
""".split()


class _Even(Continuous):
    """A distribution whose density is even, by the tail beyond a positive number.

    An entry states `tail(x, ...)`, the probability of more than x > 0, and `of_tail`, its inverse.
    """

    def tail(self, x: Any, *shapes: Any) -> Any:
        """The probability of more than a positive number."""
        raise NotImplementedError

    def of_tail(self, q: Any, *shapes: Any) -> Any:
        """The positive number beyond which the probability is q, up to 1/2."""
        raise NotImplementedError

    def lower(self, x: Any, *shapes: Any) -> Any:
        """The probability of less."""
        low = x < 0.0
        beyond = self.tail(chosen(low, -x, x), *shapes)
        return chosen(low, beyond, 1.0 - beyond)

    def upper(self, x: Any, *shapes: Any) -> Any:
        """The probability of more."""
        return self.lower(-x, *shapes)

    def quantile(self, q: Any, *shapes: Any) -> Any:
        """The inverse of `lower`."""
        low = q < 0.5
        size = self.of_tail(chosen(low, q, 1.0 - q), *shapes)
        return chosen(low, -size, size)

    def upper_quantile(self, q: Any, *shapes: Any) -> Any:
        """The inverse of `upper`."""
        return -self.quantile(q, *shapes)

    def standard_mean(self, *shapes: Any) -> Any:
        """The middle."""
        return 0.0 * sum(shapes)


class _GenNorm(_Even):
    """The density is proportional to exp(-|x|^beta): between Laplace, normal and uniform."""

    def valid(self, beta: Any) -> Any:
        return beta > 0

    def log_density(self, x: Any, beta: Any) -> Any:
        # Where the power is smooth at 0 it is bent there, which abs, of slope 0, would hide.
        size = chosen(beta > 1.0, chosen(x < 0.0, -x, x), np.abs(x))
        return np.log(0.5 * beta) - gammaln(1.0 / beta) - size**beta

    def tail(self, x: Any, beta: Any) -> Any:
        return 0.5 * beyond_power(x, beta)

    def of_tail(self, q: Any, beta: Any) -> Any:
        return gammainccinv(1.0 / beta, 2.0 * q) ** (1.0 / beta)

    def standard_var(self, beta: Any) -> Any:
        return np.exp(gammaln(3.0 / beta) - gammaln(1.0 / beta))

    def standard_entropy(self, beta: Any) -> Any:
        return 1.0 / beta - np.log(0.5 * beta) + gammaln(1.0 / beta)


class _DGamma(_Even):
    """The gamma distribution of `a` on both sides."""

    inner = 1.0

    def valid(self, a: Any) -> Any:
        return a > 0

    def log_density(self, x: Any, a: Any) -> Any:
        size = np.abs(x)
        return xlogy(a - 1.0, size) - size - log(2.0) - gammaln(a)

    def tail(self, x: Any, a: Any) -> Any:
        return 0.5 * gammaincc(a, x)

    def of_tail(self, q: Any, a: Any) -> Any:
        return gammainccinv(a, 2.0 * q)

    def standard_var(self, a: Any) -> Any:
        return a * (a + 1.0)

    def standard_entropy(self, a: Any) -> Any:
        return log(2.0) + a + gammaln(a) + (1.0 - a) * psi(a)


class _DWeibull(_Even):
    """The Weibull distribution of power `c` on both sides."""

    inner = 1.0

    def valid(self, c: Any) -> Any:
        return c > 0

    def log_density(self, x: Any, c: Any) -> Any:
        size = np.abs(x)
        return np.log(0.5 * c) + xlogy(c - 1.0, size) - size**c

    def tail(self, x: Any, c: Any) -> Any:
        return 0.5 * np.exp(-(x**c))

    def of_tail(self, q: Any, c: Any) -> Any:
        return (-np.log(2.0 * q)) ** (1.0 / c)

    def standard_var(self, c: Any) -> Any:
        return np.exp(gammaln(1.0 + 2.0 / c))

    def standard_entropy(self, c: Any) -> Any:
        return EULER * (1.0 - 1.0 / c) + 1.0 - np.log(0.5 * c)


class _GenLogistic(Continuous):
    """The logistic distribution to a power `c`."""

    def valid(self, c: Any) -> Any:
        return c > 0

    def log_density(self, x: Any, c: Any) -> Any:
        return np.log(c) - x - (c + 1.0) * np.logaddexp(0.0, -x)

    def log_lower(self, x: Any, c: Any) -> Any:
        return -c * np.logaddexp(0.0, -x)

    def quantile(self, q: Any, c: Any) -> Any:
        return -np.log(np.expm1(-np.log(q) / c))

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return -np.log(np.expm1(-np.log1p(-q) / c))

    def standard_mean(self, c: Any) -> Any:
        return EULER + psi(c)

    def standard_var(self, c: Any) -> Any:
        return pi * pi / 6.0 + polygamma(1, c)

    def standard_entropy(self, c: Any) -> Any:
        return -np.log(c) + psi(c + 1.0) + EULER + 1.0

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return -np.log(np.expm1(functions.exponential(key, shape) / c))


class _HypSecant(Continuous):
    """The density is the hyperbolic secant over pi."""

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


class _JohnsonSU(Continuous):
    """Numbers x for which a + b arsinh(x) is normal."""

    def valid(self, a: Any, b: Any) -> Any:
        return np.logical_and(b > 0, a == a)

    def log_density(self, x: Any, a: Any, b: Any) -> Any:
        z = a + b * np.arcsinh(x)
        return np.log(b) - np.log(np.hypot(1.0, x)) - 0.5 * (z * z) - HALF_LOG_2PI

    def lower(self, x: Any, a: Any, b: Any) -> Any:
        return ndtr(a + b * np.arcsinh(x))

    def upper(self, x: Any, a: Any, b: Any) -> Any:
        return ndtr(-a - b * np.arcsinh(x))

    def log_lower(self, x: Any, a: Any, b: Any) -> Any:
        return log_ndtr(a + b * np.arcsinh(x))

    def log_upper(self, x: Any, a: Any, b: Any) -> Any:
        return log_ndtr(-a - b * np.arcsinh(x))

    def quantile(self, q: Any, a: Any, b: Any) -> Any:
        return np.sinh((ndtri(q) - a) / b)

    def upper_quantile(self, q: Any, a: Any, b: Any) -> Any:
        return np.sinh((-ndtri(q) - a) / b)

    def standard_mean(self, a: Any, b: Any) -> Any:
        return -np.exp(0.5 / (b * b)) * np.sinh(a / b)

    def standard_var(self, a: Any, b: Any) -> Any:
        square = 1.0 / (b * b)
        return 0.5 * np.expm1(square) * (np.exp(square) * np.cosh(2.0 * a / b) + 1.0)

    def standard_draw(self, key: Any, shape: Any, a: Any, b: Any) -> Any:
        return np.sinh((functions.normal(key, shape) - a) / b)


class _Moyal(Continuous):
    """Moyal's distribution of energies: minus the logarithm of the square of a normal number."""

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


class _PowerNorm(Continuous):
    """The normal distribution, of which the probability of more is taken to the power `c`."""

    def valid(self, c: Any) -> Any:
        return c > 0

    def log_density(self, x: Any, c: Any) -> Any:
        return np.log(c) - 0.5 * (x * x) - HALF_LOG_2PI + (c - 1.0) * log_ndtr(-x)

    def log_upper(self, x: Any, c: Any) -> Any:
        return c * log_ndtr(-x)

    def quantile(self, q: Any, c: Any) -> Any:
        return -ndtri_exp(np.log1p(-q) / c)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return -ndtri_exp(np.log(q) / c)

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return -ndtri_exp(-functions.exponential(key, shape) / c)


class _LogGamma(Continuous):
    """The logarithm of a number of the gamma distribution of parameter `c`."""

    def valid(self, c: Any) -> Any:
        return c > 0

    def log_density(self, x: Any, c: Any) -> Any:
        return c * x - np.exp(x) - gammaln(c)

    def lower(self, x: Any, c: Any) -> Any:
        return gammainc(c, np.exp(x))

    def upper(self, x: Any, c: Any) -> Any:
        return gammaincc(c, np.exp(x))

    def quantile(self, q: Any, c: Any) -> Any:
        return self._log(gammaincinv(c, q), np.log(q), c)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return self._log(gammainccinv(c, q), np.log1p(-q), c)

    def _log(self, x: Any, log_q: Any, c: Any) -> Any:
        """log(x); where x is so small that P(c, x) is x^c / gamma(c + 1), by that."""
        tiny = x < 1e-250
        return chosen(tiny, (log_q + gammaln(c + 1.0)) / c, np.log(chosen(tiny, 1.0, x)))

    def standard_mean(self, c: Any) -> Any:
        return psi(c)

    def standard_var(self, c: Any) -> Any:
        return polygamma(1, c)

    def standard_entropy(self, c: Any) -> Any:
        return gammaln(c) - c * psi(c) + c

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        first, second = functions.split(key)
        boosted = np.log(functions.gamma(first, c + 1.0, shape))
        return boosted - functions.exponential(second, shape) / c


class _LaplaceAsymmetric(Continuous):
    """An exponential distribution of rate `kappa` above 0, of rate 1 / kappa below."""

    def valid(self, kappa: Any) -> Any:
        return kappa > 0

    def log_density(self, x: Any, kappa: Any) -> Any:
        return chosen(x >= 0, -x * kappa, x / kappa) - np.log(kappa + 1.0 / kappa)

    def lower(self, x: Any, kappa: Any) -> Any:
        return chosen(x >= 0, 1.0 - self._above(x, kappa), self._below(x, kappa))

    def upper(self, x: Any, kappa: Any) -> Any:
        return chosen(x >= 0, self._above(x, kappa), 1.0 - self._below(x, kappa))

    def _above(self, x: Any, kappa: Any) -> Any:
        return np.exp(-kappa * chosen(x >= 0, x, 0.0)) / (1.0 + kappa * kappa)

    def _below(self, x: Any, kappa: Any) -> Any:
        return np.exp(chosen(x >= 0, 0.0, x) / kappa) * (kappa * kappa) / (1.0 + kappa * kappa)

    def quantile(self, q: Any, kappa: Any) -> Any:
        return self._of(q, 1.0 - q, kappa)

    def upper_quantile(self, q: Any, kappa: Any) -> Any:
        return self._of(1.0 - q, q, kappa)

    def _of(self, below: Any, above: Any, kappa: Any) -> Any:
        square = kappa * kappa
        high = above * (1.0 + square) <= 1.0
        right = -np.log(chosen(high, above, 1.0) * (1.0 + square)) / kappa
        left = kappa * np.log(chosen(high, 1.0, below) * (1.0 + square) / square)
        return chosen(high, right, left)

    def standard_mean(self, kappa: Any) -> Any:
        return 1.0 / kappa - kappa

    def standard_var(self, kappa: Any) -> Any:
        return kappa**-2.0 + kappa**2

    def standard_entropy(self, kappa: Any) -> Any:
        return 1.0 + np.log(kappa + 1.0 / kappa)


class _SkewCauchy(Continuous):
    """The Cauchy distribution with widths 1 - a below and 1 + a above its mode."""

    def valid(self, a: Any) -> Any:
        return np.abs(a) < 1

    def log_density(self, x: Any, a: Any) -> Any:
        width = chosen(x < 0, 1.0 - a, 1.0 + a)
        return -log(pi) - 2.0 * np.log(np.hypot(1.0, x / width))

    def lower(self, x: Any, a: Any) -> Any:
        low, high = chosen(x < 0, x, -1.0), chosen(x < 0, 1.0, x)
        below = (1.0 - a) * np.arctan2(1.0 - a, -low) / pi
        return chosen(x < 0, below, 1.0 - (1.0 + a) * np.arctan2(1.0 + a, high) / pi)

    def upper(self, x: Any, a: Any) -> Any:
        return self.lower(-x, -a)

    def quantile(self, q: Any, a: Any) -> Any:
        middle = 0.5 * (1.0 - a)
        low = q < middle
        below = -(1.0 - a) / np.tan(pi * chosen(low, q, 0.25 * (1.0 - a)) / (1.0 - a))
        above = (1.0 + a) / np.tan(pi * chosen(low, 0.25 * (1.0 + a), 1.0 - q) / (1.0 + a))
        return chosen(low, below, above)

    def upper_quantile(self, q: Any, a: Any) -> Any:
        return -self.quantile(q, -a)


gennorm = _GenNorm("gennorm")
dgamma = _DGamma("dgamma")
dweibull = _DWeibull("dweibull")
genlogistic = _GenLogistic("genlogistic")
hypsecant = _HypSecant("hypsecant")
johnsonsu = _JohnsonSU("johnsonsu")
moyal = _Moyal("moyal")
powernorm = _PowerNorm("powernorm")
loggamma = _LogGamma("loggamma")
laplace_asymmetric = _LaplaceAsymmetric("laplace_asymmetric")
skewcauchy = _SkewCauchy("skewcauchy")

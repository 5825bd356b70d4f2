"""The Burr, kappa and logistic distributions, and the hyperbolic secant's.

    burr burr12 fisk mielke  kappa3 kappa4
    logistic genlogistic halflogistic genhalflogistic hypsecant

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995);
I. W. Burr, Cumulative frequency functions (1942); J. R. M. Hosking, The four-parameter
kappa distribution (1994).  For Burr's, powers are computed as exponentials of logarithms, and
log(1 + x^c) with `logaddexp`, which does not overflow.
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np
from scipy import special

from wengert._engine.core.op import lookup
from wengert.random import functions

from ...special import expit, exprel, log_expit, logit, polygamma, psi, xlogy
from ..continuous_distribution import Continuous, log_expm1
from .common import EULER, PositiveSupport, log1p_ratio, where_finite


def log1p_power(log_power: Any) -> Any:
    """log(1 + x^c), computed from c log x."""
    return np.logaddexp(0.0, log_power)


class _Burr(PositiveSupport):
    """The Burr (type III) distribution with powers `c` and `d`."""

    def valid(self, c: Any, d: Any) -> Any:
        return np.logical_and(c > 0, d > 0)

    def log_density(self, x: Any, c: Any, d: Any) -> Any:
        out = np.log(c) + np.log(d) + xlogy(c * d - 1.0, x)
        return out - (d + 1.0) * log1p_power(c * np.log(x))

    def log_lower(self, x: Any, c: Any, d: Any) -> Any:
        return -d * log1p_power(-c * np.log(x))

    def quantile(self, q: Any, c: Any, d: Any) -> Any:
        return np.exp(-log_expm1(-np.log(q) / d) / c)

    def upper_quantile(self, q: Any, c: Any, d: Any) -> Any:
        return np.exp(-log_expm1(-np.log1p(-q) / d) / c)

    def _moment(self, n: float, c: Any, d: Any) -> Any:
        return d * special.beta(d + n / c, 1.0 - n / c)

    def standard_mean(self, c: Any, d: Any) -> Any:
        return where_finite(c > 1, lambda c, d: self._moment(1, c, d), c, d, fallback=(2.0, 1.0))

    def standard_var(self, c: Any, d: Any) -> Any:
        def var(c: Any, d: Any) -> Any:
            return self._moment(2, c, d) - self._moment(1, c, d) ** 2

        return where_finite(c > 2, var, c, d, fallback=(3.0, 1.0))

    def standard_entropy(self, c: Any, d: Any) -> Any:
        out = -np.log(c) - np.log(d) - (c * d - 1.0) / c * (psi(d) + EULER)
        return out + (d + 1.0) * (psi(d + 1.0) + EULER)

    def standard_draw(self, key: Any, shape: Any, c: Any, d: Any) -> Any:
        return np.exp(-log_expm1(functions.exponential(key, shape) / d) / c)


burr = _Burr("burr")


class _Burr12(PositiveSupport):
    """The Burr (type XII), or Singh-Maddala, distribution with powers `c` and `d`."""

    def valid(self, c: Any, d: Any) -> Any:
        return np.logical_and(c > 0, d > 0)

    def log_density(self, x: Any, c: Any, d: Any) -> Any:
        out = np.log(c) + np.log(d) + xlogy(c - 1.0, x)
        return out - (d + 1.0) * log1p_power(c * np.log(x))

    def log_upper(self, x: Any, c: Any, d: Any) -> Any:
        return -d * log1p_power(c * np.log(x))

    def quantile(self, q: Any, c: Any, d: Any) -> Any:
        return np.exp(log_expm1(-np.log1p(-q) / d) / c)

    def upper_quantile(self, q: Any, c: Any, d: Any) -> Any:
        return np.exp(log_expm1(-np.log(q) / d) / c)

    def _moment(self, n: float, c: Any, d: Any) -> Any:
        return d * special.beta(1.0 + n / c, d - n / c)

    def standard_mean(self, c: Any, d: Any) -> Any:
        return where_finite(
            c * d > 1, lambda c, d: self._moment(1, c, d), c, d, fallback=(2.0, 2.0)
        )

    def standard_var(self, c: Any, d: Any) -> Any:
        def var(c: Any, d: Any) -> Any:
            return self._moment(2, c, d) - self._moment(1, c, d) ** 2

        return where_finite(c * d > 2, var, c, d, fallback=(3.0, 3.0))

    def standard_entropy(self, c: Any, d: Any) -> Any:
        return -np.log(c) - np.log(d) + (c - 1.0) / c * (psi(d) + EULER) + (d + 1.0) / d

    def standard_draw(self, key: Any, shape: Any, c: Any, d: Any) -> Any:
        return np.exp(log_expm1(functions.exponential(key, shape) / d) / c)


burr12 = _Burr12("burr12")


class _Fisk(PositiveSupport):
    """The Fisk, or log-logistic, distribution with power `c`."""

    def valid(self, c: Any) -> Any:
        return c > 0

    def log_density(self, x: Any, c: Any) -> Any:
        return burr.log_density(x, c, 1.0)

    def log_lower(self, x: Any, c: Any) -> Any:
        return burr.log_lower(x, c, 1.0)

    def log_upper(self, x: Any, c: Any) -> Any:
        return -log1p_power(c * np.log(x))

    def quantile(self, q: Any, c: Any) -> Any:
        return np.exp((np.log(q) - np.log1p(-q)) / c)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return np.exp((np.log1p(-q) - np.log(q)) / c)

    def standard_mean(self, c: Any) -> Any:
        return burr.standard_mean(c, 1.0)

    def standard_var(self, c: Any) -> Any:
        return burr.standard_var(c, 1.0)

    def standard_entropy(self, c: Any) -> Any:
        return 2.0 - np.log(c)

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return np.exp(functions.logistic(key, shape) / c)


fisk = _Fisk("fisk")


class _Mielke(PositiveSupport):
    """The Mielke beta-kappa distribution: Burr type III with c = s and d = k / s."""

    def valid(self, k: Any, s: Any) -> Any:
        return np.logical_and(k > 0, s > 0)

    def log_density(self, x: Any, k: Any, s: Any) -> Any:
        return burr.log_density(x, s, k / s)

    def log_lower(self, x: Any, k: Any, s: Any) -> Any:
        return burr.log_lower(x, s, k / s)

    def quantile(self, q: Any, k: Any, s: Any) -> Any:
        return burr.quantile(q, s, k / s)

    def upper_quantile(self, q: Any, k: Any, s: Any) -> Any:
        return burr.upper_quantile(q, s, k / s)

    def standard_mean(self, k: Any, s: Any) -> Any:
        return burr.standard_mean(s, k / s)

    def standard_var(self, k: Any, s: Any) -> Any:
        return burr.standard_var(s, k / s)

    def standard_entropy(self, k: Any, s: Any) -> Any:
        return burr.standard_entropy(s, k / s)

    def standard_draw(self, key: Any, shape: Any, k: Any, s: Any) -> Any:
        return burr.standard_draw(key, shape, s, k / s)


mielke = _Mielke("mielke")


class _Kappa3(PositiveSupport):
    """Mielke's one-parameter kappa distribution."""

    def valid(self, a: Any) -> Any:
        return a > 0

    def log_density(self, x: Any, a: Any) -> Any:
        positive = x > 0
        point = np.where(positive, x, 1.0)
        inside = np.log(a) + (a + 1.0) * (self.log_lower(point, a) - np.log(point))
        start = np.log(a) - (a + 1.0) / a * np.logaddexp(np.log(a), a * np.log(x))
        return np.where(positive, inside, start)

    def log_lower(self, x: Any, a: Any) -> Any:
        return -log1p_power(np.log(a) - a * np.log(x)) / a

    def quantile(self, q: Any, a: Any) -> Any:
        return np.exp((np.log(a) - np.log(np.expm1(-a * np.log(q)))) / a)

    def upper_quantile(self, q: Any, a: Any) -> Any:
        return np.exp((np.log(a) - np.log(np.expm1(-a * np.log1p(-q)))) / a)

    def standard_draw(self, key: Any, shape: Any, a: Any) -> Any:
        return np.exp((np.log(a) - np.log(np.expm1(a * functions.exponential(key, shape)))) / a)


kappa3 = _Kappa3("kappa3")


class _Kappa4(Continuous):
    """Hosking's four-parameter kappa distribution; smooth where `h` or `k` is 0."""

    at_low = at_high = False

    def valid(self, h: Any, k: Any) -> Any:
        return np.logical_and(h == h, k == k)

    def support_of(self, h: Any, k: Any) -> Any:
        some_k = np.where(k == 0, 1.0, k)
        y = np.log(np.where(h > 0, h, 1.0))  # below, 1 - h (1 - k x)^(1/k) is negative
        below = y * exprel(-k * y)
        low = np.where(h > 0, below, np.where(k < 0, 1.0 / some_k, -np.inf))
        return low, np.where(k > 0, 1.0 / some_k, np.inf)

    def inside_of(self, h: Any, k: Any) -> Any:
        return self.quantile(0.5, h, k)

    def _parts(self, x: Any, h: Any, k: Any) -> tuple[Any, Any]:
        """The logarithms of (1 - k x)^(1/k) and of the cdf."""
        inner = -log1p_ratio(-k, x)
        return inner, -log1p_ratio(-h, np.exp(inner))

    def log_density(self, x: Any, h: Any, k: Any) -> Any:
        inner, log_cdf = self._parts(x, h, k)
        return inner - np.log1p(-k * x) + (1.0 - h) * log_cdf

    def log_lower(self, x: Any, h: Any, k: Any) -> Any:
        return self._parts(x, h, k)[1]

    def quantile(self, q: Any, h: Any, k: Any) -> Any:
        return self._quantile(-np.log(q), h, k)

    def upper_quantile(self, q: Any, h: Any, k: Any) -> Any:
        return self._quantile(-np.log1p(-q), h, k)

    def _quantile(self, size: Any, h: Any, k: Any) -> Any:
        """The quantile as a function of -log(q)."""
        y = -np.log(size * exprel(-h * size))
        return y * exprel(-k * y)

    def standard_draw(self, key: Any, shape: Any, h: Any, k: Any) -> Any:
        return self._quantile(functions.exponential(key, shape), h, k)


kappa4 = _Kappa4("kappa4")


class _Logistic(Continuous):
    """The logistic distribution."""

    def log_density(self, x: Any) -> Any:
        return -np.logaddexp(0.0, x) - np.logaddexp(0.0, -x)

    lower = staticmethod(expit)
    log_lower = staticmethod(log_expit)
    quantile = staticmethod(logit)

    def upper(self, x: Any) -> Any:
        return expit(-x)

    def log_upper(self, x: Any) -> Any:
        return log_expit(-x)

    def upper_quantile(self, q: Any) -> Any:
        return -logit(q)

    def standard_mean(self) -> Any:
        return 0.0

    def standard_var(self) -> Any:
        return pi * pi / 3.0

    def standard_entropy(self) -> Any:
        return 2.0

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.logistic(key, shape)


logistic = _Logistic("logistic")


class _GenLogistic(Continuous):
    """The generalized logistic distribution: the cdf is expit(x)^c."""

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


genlogistic = _GenLogistic("genlogistic")


class _HalfLogistic(PositiveSupport):
    """The absolute value of a logistic variable."""

    def log_density(self, x: Any) -> Any:
        return log(2.0) - x - 2.0 * np.log1p(np.exp(-x))

    def lower(self, x: Any) -> Any:
        return np.tanh(0.5 * x)

    def upper(self, x: Any) -> Any:
        return np.exp(self.log_upper(x))

    def log_upper(self, x: Any) -> Any:
        return log(2.0) + log_expit(-x)

    def quantile(self, q: Any) -> Any:
        return 2.0 * np.arctanh(q)

    def upper_quantile(self, q: Any) -> Any:
        return np.log1p(1.0 - q) - np.log(q)

    def standard_mean(self) -> Any:
        return 2.0 * log(2.0)

    def standard_var(self) -> Any:
        return pi * pi / 3.0 - 4.0 * log(2.0) ** 2

    def standard_entropy(self) -> Any:
        return 2.0 - log(2.0)

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return np.abs(functions.logistic(key, shape))


halflogistic = _HalfLogistic("halflogistic")


class _GenHalfLogistic(Continuous):
    """The generalized half-logistic distribution; its limit at c = 0 is halflogistic."""

    def valid(self, c: Any) -> Any:
        return c > 0

    def support_of(self, c: Any) -> Any:
        return 0.0, 1.0 / np.where(c > 0, c, 1.0)

    def inside_of(self, c: Any) -> Any:
        return 0.5 / np.where(c > 0, c, 1.0)

    at_high = False

    def _power(self, x: Any, c: Any) -> Any:
        """log of (1 - c x)^(1 / c)."""
        return -x * lookup("special.log1prel_of")(-c * x, n=0)

    def log_density(self, x: Any, c: Any) -> Any:
        power = self._power(x, c)
        return log(2.0) - np.log1p(-c * x) + power - 2.0 * np.log1p(np.exp(power))

    def lower(self, x: Any, c: Any) -> Any:
        return np.tanh(-0.5 * self._power(x, c))

    def upper(self, x: Any, c: Any) -> Any:
        return np.exp(self.log_upper(x, c))

    def log_upper(self, x: Any, c: Any) -> Any:
        return log(2.0) + log_expit(self._power(x, c))

    def quantile(self, q: Any, c: Any) -> Any:
        y = 2.0 * np.arctanh(q)
        return y * exprel(-c * y)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        y = np.log1p(1.0 - q) - np.log(q)
        return y * exprel(-c * y)

    def standard_entropy(self, c: Any) -> Any:
        return 2.0 - (2.0 * c + 1.0) * log(2.0)

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        y = np.abs(functions.logistic(key, shape))
        return y * exprel(-c * y)


genhalflogistic = _GenHalfLogistic("genhalflogistic")


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

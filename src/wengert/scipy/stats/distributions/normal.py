"""The normal distribution and those derived from it.

    norm truncnorm halfnorm foldnorm skewnorm exponnorm powernorm gennorm halfgennorm

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
"""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any

import numpy as np

from wengert.random import functions

from ...special import (
    erf,
    erfc,
    gammainccinv,
    gammaincinv,
    gammaln,
    log_ndtr,
    ndtr,
    ndtri,
    ndtri_exp,
    owens_t,
)
from ..continuous_distribution import Continuous
from ..implicit_quantiles import Implicit
from .common import (
    HALF_LOG_2PI,
    PositiveSupport,
    Symmetric,
    gammainc_of_power,
    gammaincc_of_power,
    log_normal_interval,
)


class _Norm(Continuous):
    """The normal distribution; `loc` is the mean, `scale` the standard deviation."""

    def log_density(self, x: Any) -> Any:
        return -0.5 * (x * x) - HALF_LOG_2PI

    lower = staticmethod(ndtr)
    log_lower = staticmethod(log_ndtr)
    quantile = staticmethod(ndtri)

    def upper(self, x: Any) -> Any:
        return ndtr(-x)

    def log_upper(self, x: Any) -> Any:
        return log_ndtr(-x)

    def upper_quantile(self, q: Any) -> Any:
        return -ndtri(q)

    def standard_mean(self) -> Any:
        return 0.0

    def standard_var(self) -> Any:
        return 1.0

    def standard_entropy(self) -> Any:
        return HALF_LOG_2PI + 0.5

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.normal(key, shape)


norm = _Norm("norm")


class _TruncNorm(Continuous):
    """The normal distribution truncated to [a, b], in standard deviations from `loc`."""

    def valid(self, a: Any, b: Any) -> Any:
        return a < b

    def support_of(self, a: Any, b: Any) -> Any:
        return a, b

    def inside_of(self, a: Any, b: Any) -> Any:
        finite = np.isfinite(a), np.isfinite(b)
        middle = 0.5 * (np.where(finite[0], a, 0.0) + np.where(finite[1], b, 0.0))
        return np.where(
            finite[0], np.where(finite[1], middle, a + 1.0), np.where(finite[1], b - 1.0, 0.0)
        )

    def log_density(self, x: Any, a: Any, b: Any) -> Any:
        return -0.5 * (x * x) - HALF_LOG_2PI - log_normal_interval(a, b)

    def log_lower(self, x: Any, a: Any, b: Any) -> Any:
        return log_normal_interval(a, x) - log_normal_interval(a, b)

    def log_upper(self, x: Any, a: Any, b: Any) -> Any:
        return log_normal_interval(x, b) - log_normal_interval(a, b)

    def quantile(self, q: Any, a: Any, b: Any) -> Any:
        return self._between(np.log(q), np.log1p(-q), a, b)

    def upper_quantile(self, q: Any, a: Any, b: Any) -> Any:
        return self._between(np.log1p(-q), np.log(q), a, b)

    def _between(self, log_q: Any, log_rest: Any, a: Any, b: Any) -> Any:
        is_reflected = a > 0.0
        low, high = np.where(is_reflected, -b, a), np.where(is_reflected, -a, b)
        to_high, to_low = (
            np.where(is_reflected, log_rest, log_q),
            np.where(is_reflected, log_q, log_rest),
        )
        out = ndtri_exp(np.logaddexp(to_low + log_ndtr(low), to_high + log_ndtr(high)))
        return np.where(is_reflected, -out, out)

    def standard_mean(self, a: Any, b: Any) -> Any:
        first, second = self._edges(a, b)
        return first - second

    def standard_var(self, a: Any, b: Any) -> Any:
        first, second = self._edges(a, b)
        low = np.where(np.isfinite(a), a, 0.0) * first
        high = np.where(np.isfinite(b), b, 0.0) * second
        return 1.0 + low - high - (first - second) ** 2

    def standard_entropy(self, a: Any, b: Any) -> Any:
        first, second = self._edges(a, b)
        low = np.where(np.isfinite(a), a, 0.0) * first
        high = np.where(np.isfinite(b), b, 0.0) * second
        return HALF_LOG_2PI + 0.5 + log_normal_interval(a, b) + 0.5 * (low - high)

    def _edges(self, a: Any, b: Any) -> tuple[Any, Any]:
        """The densities at both ends of the support."""
        mass = log_normal_interval(a, b) + HALF_LOG_2PI
        return np.exp(-0.5 * (a * a) - mass), np.exp(-0.5 * (b * b) - mass)

    def standard_draw(self, key: Any, shape: Any, a: Any, b: Any) -> Any:
        return functions.truncated_normal(key, a, b, shape)


truncnorm = _TruncNorm("truncnorm")


class _HalfNorm(PositiveSupport):
    """The absolute value of a normal variable."""

    def log_density(self, x: Any) -> Any:
        return 0.5 * log(2.0 / pi) - 0.5 * (x * x)

    def lower(self, x: Any) -> Any:
        return erf(x * sqrt(0.5))

    def upper(self, x: Any) -> Any:
        return erfc(x * sqrt(0.5))

    def log_upper(self, x: Any) -> Any:
        return log(2.0) + log_ndtr(-x)

    def quantile(self, q: Any) -> Any:
        return ndtri(0.5 * (1.0 + q))

    def upper_quantile(self, q: Any) -> Any:
        return -ndtri(0.5 * q)

    def standard_mean(self) -> Any:
        return sqrt(2.0 / pi)

    def standard_var(self) -> Any:
        return 1.0 - 2.0 / pi

    def standard_entropy(self) -> Any:
        return 0.5 * log(pi / 2.0) + 0.5

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.halfnormal(key, shape)


halfnorm = _HalfNorm("halfnorm")


class _FoldNorm(PositiveSupport, Implicit):
    """The absolute value of a normal variable with mean `c`."""

    def valid(self, c: Any) -> Any:
        return c >= 0

    def log_density(self, x: Any, c: Any) -> Any:
        return np.logaddexp(-0.5 * (x - c) ** 2, -0.5 * (x + c) ** 2) - HALF_LOG_2PI

    def lower(self, x: Any, c: Any) -> Any:
        return np.exp(log_normal_interval(c - x, c + x))

    def upper(self, x: Any, c: Any) -> Any:
        return ndtr(c - x) + ndtr(-x - c)

    def log_upper(self, x: Any, c: Any) -> Any:
        return np.logaddexp(log_ndtr(c - x), log_ndtr(-x - c))

    def standard_mean(self, c: Any) -> Any:
        return sqrt(2.0 / pi) * np.exp(-0.5 * (c * c)) + c * erf(c * sqrt(0.5))

    def standard_var(self, c: Any) -> Any:
        return c * c + 1.0 - self.standard_mean(c) ** 2

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return np.abs(functions.normal(key, shape) + c)


foldnorm = _FoldNorm("foldnorm")


class _SkewNorm(Implicit):
    """The skew-normal distribution with skewness parameter `a`."""

    def log_density(self, x: Any, a: Any) -> Any:
        return log(2.0) - HALF_LOG_2PI - 0.5 * (x * x) + log_ndtr(a * x)

    def lower(self, x: Any, a: Any) -> Any:
        return ndtr(x) - 2.0 * owens_t(x, a)

    def upper(self, x: Any, a: Any) -> Any:
        return ndtr(-x) + 2.0 * owens_t(x, a)

    def standard_mean(self, a: Any) -> Any:
        return sqrt(2.0 / pi) * a / np.hypot(1.0, a)

    def standard_var(self, a: Any) -> Any:
        return 1.0 - self.standard_mean(a) ** 2

    def standard_draw(self, key: Any, shape: Any, a: Any) -> Any:
        first, second = functions.split(key)
        u, v = functions.normal(first, shape), functions.normal(second, shape)
        return (a * np.abs(u) + v) / np.hypot(1.0, a)


skewnorm = _SkewNorm("skewnorm")


class _ExponNorm(Implicit):
    """The sum of a normal variable and an exponential one with mean `K`."""

    def valid(self, K: Any) -> Any:
        return K > 0

    def _log_tail(self, x: Any, K: Any) -> Any:
        rate = 1.0 / K
        return rate * (0.5 * rate - x) + log_ndtr(x - rate)

    def log_density(self, x: Any, K: Any) -> Any:
        return self._log_tail(x, K) - np.log(K)

    def lower(self, x: Any, K: Any) -> Any:
        return ndtr(x) - np.exp(self._log_tail(x, K))

    def upper(self, x: Any, K: Any) -> Any:
        return ndtr(-x) + np.exp(self._log_tail(x, K))

    def standard_mean(self, K: Any) -> Any:
        return 1.0 * K

    def standard_var(self, K: Any) -> Any:
        return 1.0 + K * K

    def standard_draw(self, key: Any, shape: Any, K: Any) -> Any:
        first, second = functions.split(key)
        return functions.normal(first, shape) + K * functions.exponential(second, shape)


exponnorm = _ExponNorm("exponnorm")


class _PowerNorm(Continuous):
    """The power-normal distribution: the survival function is that of norm, to the power c."""

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


powernorm = _PowerNorm("powernorm")


class _GenNorm(Symmetric):
    """The generalized normal distribution: density proportional to exp(-|x|^beta)."""

    def valid(self, beta: Any) -> Any:
        return beta > 0

    def log_density(self, x: Any, beta: Any) -> Any:
        # abs(x) has the derivative 0 at 0, which would hide higher derivatives of the power.
        size = np.where(beta > 1.0, np.where(x < 0.0, -x, x), np.abs(x))
        return np.log(0.5 * beta) - gammaln(1.0 / beta) - size**beta

    def tail(self, x: Any, beta: Any) -> Any:
        return 0.5 * gammaincc_of_power(x, beta)

    def of_tail(self, q: Any, beta: Any) -> Any:
        return gammainccinv(1.0 / beta, 2.0 * q) ** (1.0 / beta)

    def standard_var(self, beta: Any) -> Any:
        return np.exp(gammaln(3.0 / beta) - gammaln(1.0 / beta))

    def standard_entropy(self, beta: Any) -> Any:
        return 1.0 / beta - np.log(0.5 * beta) + gammaln(1.0 / beta)


gennorm = _GenNorm("gennorm")


class _HalfGenNorm(PositiveSupport):
    """The half generalized normal distribution with power `beta`."""

    def valid(self, beta: Any) -> Any:
        return beta > 0

    def log_density(self, x: Any, beta: Any) -> Any:
        return np.log(beta) - gammaln(1.0 / beta) - x**beta

    def lower(self, x: Any, beta: Any) -> Any:
        return gammainc_of_power(x, beta)

    def upper(self, x: Any, beta: Any) -> Any:
        return gammaincc_of_power(x, beta)

    def quantile(self, q: Any, beta: Any) -> Any:
        return gammaincinv(1.0 / beta, q) ** (1.0 / beta)

    def upper_quantile(self, q: Any, beta: Any) -> Any:
        return gammainccinv(1.0 / beta, q) ** (1.0 / beta)

    def standard_mean(self, beta: Any) -> Any:
        return np.exp(gammaln(2.0 / beta) - gammaln(1.0 / beta))

    def standard_var(self, beta: Any) -> Any:
        second = np.exp(gammaln(3.0 / beta) - gammaln(1.0 / beta))
        return second - self.standard_mean(beta) ** 2

    def standard_entropy(self, beta: Any) -> Any:
        return 1.0 / beta - np.log(beta) + gammaln(1.0 / beta)

    def standard_draw(self, key: Any, shape: Any, beta: Any) -> Any:
        return functions.gamma(key, 1.0 / beta, shape) ** (1.0 / beta)


halfgennorm = _HalfGenNorm("halfgennorm")

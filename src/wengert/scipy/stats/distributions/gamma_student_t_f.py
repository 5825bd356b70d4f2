"""The gamma distribution and those derived from it, Student's t and F distributions.

    gamma erlang invgamma dgamma gengamma loggamma
    t jf_skew_t f

jf_skew_t is that of M. C. Jones, M. J. Faddy, A skew extension of the t-distribution (2003).
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from wengert.random import functions

from ...special import (
    betainc,
    betaincc,
    betainccinv,
    betaincinv,
    betaln,
    fdtr,
    fdtrc,
    fdtri,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    ndtr,
    polygamma,
    psi,
    stdtr,
    stdtrit,
    xlogy,
)
from ..continuous_distribution import Continuous
from .common import HALF_LOG_2PI, PositiveSupport, Symmetric, where_finite


class _Gamma(PositiveSupport):
    """The gamma distribution with shape `a`."""

    def valid(self, a: Any) -> Any:
        return a > 0

    def log_density(self, x: Any, a: Any) -> Any:
        return xlogy(a - 1.0, x) - x - gammaln(a)

    def lower(self, x: Any, a: Any) -> Any:
        return gammainc(a, x)

    def upper(self, x: Any, a: Any) -> Any:
        return gammaincc(a, x)

    def quantile(self, q: Any, a: Any) -> Any:
        return gammaincinv(a, q)

    def upper_quantile(self, q: Any, a: Any) -> Any:
        return gammainccinv(a, q)

    def standard_mean(self, a: Any) -> Any:
        return 1.0 * a

    standard_var = standard_mean

    def standard_entropy(self, a: Any) -> Any:
        return a + gammaln(a) + (1.0 - a) * psi(a)

    def standard_draw(self, key: Any, shape: Any, a: Any) -> Any:
        return functions.gamma(key, a, shape)


gamma = _Gamma("gamma")


erlang = type(gamma)("erlang")


class _InvGamma(PositiveSupport):
    """The inverse gamma distribution with shape `a`."""

    at_low = False

    def valid(self, a: Any) -> Any:
        return a > 0

    def log_density(self, x: Any, a: Any) -> Any:
        return -(a + 1.0) * np.log(x) - gammaln(a) - 1.0 / x

    def lower(self, x: Any, a: Any) -> Any:
        return gammaincc(a, 1.0 / x)

    def upper(self, x: Any, a: Any) -> Any:
        return gammainc(a, 1.0 / x)

    def quantile(self, q: Any, a: Any) -> Any:
        return 1.0 / gammainccinv(a, q)

    def upper_quantile(self, q: Any, a: Any) -> Any:
        return 1.0 / gammaincinv(a, q)

    def standard_mean(self, a: Any) -> Any:
        return np.where(a > 1, 1.0 / (np.where(a > 1, a, 2.0) - 1.0), np.inf)

    def standard_var(self, a: Any) -> Any:
        safe = np.where(a > 2, a, 3.0)
        return np.where(a > 2, 1.0 / ((safe - 1.0) ** 2 * (safe - 2.0)), np.inf)

    def standard_entropy(self, a: Any) -> Any:
        return a - (a + 1.0) * psi(a) + gammaln(a)

    def standard_draw(self, key: Any, shape: Any, a: Any) -> Any:
        return functions.inverse_gamma(key, a, shape)


invgamma = _InvGamma("invgamma")


class _DGamma(Symmetric):
    """The double gamma distribution with shape `a`."""

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


dgamma = _DGamma("dgamma")


class _GenGamma(PositiveSupport):
    """The generalized gamma distribution: gamma(a)^(1/c); `c` may be negative."""

    def valid(self, a: Any, c: Any) -> Any:
        return np.logical_and(a > 0, c != 0)

    def log_density(self, x: Any, a: Any, c: Any) -> Any:
        return np.log(np.abs(c)) + xlogy(c * a - 1.0, x) - x**c - gammaln(a)

    def lower(self, x: Any, a: Any, c: Any) -> Any:
        y = x**c
        return np.where(c > 0, gammainc(a, y), gammaincc(a, y))

    def upper(self, x: Any, a: Any, c: Any) -> Any:
        y = x**c
        return np.where(c > 0, gammaincc(a, y), gammainc(a, y))

    def quantile(self, q: Any, a: Any, c: Any) -> Any:
        return np.where(c > 0, gammaincinv(a, q), gammainccinv(a, q)) ** (1.0 / c)

    def upper_quantile(self, q: Any, a: Any, c: Any) -> Any:
        return np.where(c > 0, gammainccinv(a, q), gammaincinv(a, q)) ** (1.0 / c)

    def _moment(self, n: float, a: Any, c: Any) -> Any:
        return np.exp(gammaln(a + n / c) - gammaln(a))

    def standard_mean(self, a: Any, c: Any) -> Any:
        found = a + 1.0 / c > 0
        return where_finite(found, lambda a, c: self._moment(1, a, c), a, c, fallback=(1.0, 1.0))

    def standard_var(self, a: Any, c: Any) -> Any:
        def var(a: Any, c: Any) -> Any:
            return self._moment(2, a, c) - self._moment(1, a, c) ** 2

        return where_finite(a + 2.0 / c > 0, var, a, c, fallback=(1.0, 1.0))

    def standard_entropy(self, a: Any, c: Any) -> Any:
        return a * (1.0 - psi(a)) + psi(a) / c + gammaln(a) - np.log(np.abs(c))

    def standard_draw(self, key: Any, shape: Any, a: Any, c: Any) -> Any:
        return functions.gamma(key, a, shape) ** (1.0 / c)


gengamma = _GenGamma("gengamma")


class _LogGamma(Continuous):
    """The logarithm of a gamma variable with shape `c`."""

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
        """The inverse of P(c, exp(x)) = q; for small q from P(c, x) = x^c / gamma(c + 1)."""
        tiny = x < 1e-250
        return np.where(tiny, (log_q + gammaln(c + 1.0)) / c, np.log(np.where(tiny, 1.0, x)))

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


loggamma = _LogGamma("loggamma")


class _T(Continuous):
    """Student's t distribution with `df` degrees of freedom; df = inf gives norm."""

    def valid(self, df: Any) -> Any:
        return df > 0

    def log_density(self, x: Any, df: Any) -> Any:
        finite = np.isfinite(df)
        safe = np.where(finite, df, 1.0)
        tail = -0.5 * (safe + 1.0) * np.log1p(x * x / safe)
        out = tail - betaln(0.5 * safe, 0.5) - 0.5 * np.log(safe)
        return np.where(finite, out, -0.5 * (x * x) - HALF_LOG_2PI)

    def lower(self, x: Any, df: Any) -> Any:
        finite = np.isfinite(df)
        return np.where(finite, stdtr(np.where(finite, df, 1.0), x), ndtr(x))

    def upper(self, x: Any, df: Any) -> Any:
        return self.lower(-x, df)

    def quantile(self, q: Any, df: Any) -> Any:
        return stdtrit(df, q)

    def upper_quantile(self, q: Any, df: Any) -> Any:
        return -stdtrit(df, q)

    def standard_mean(self, df: Any) -> Any:
        return np.where(df > 1, 0.0, np.inf)

    def standard_var(self, df: Any) -> Any:
        finite = np.logical_and(df > 2, np.isfinite(df))
        safe = np.where(finite, df, 3.0)
        out = np.where(finite, safe / (safe - 2.0), np.where(df > 2, 1.0, np.inf))
        return np.where(df > 1, out, np.nan)

    def standard_entropy(self, df: Any) -> Any:
        half = 0.5 * (df + 1.0)
        return half * (psi(half) - psi(0.5 * df)) + 0.5 * np.log(df) + betaln(0.5 * df, 0.5)

    def standard_draw(self, key: Any, shape: Any, df: Any) -> Any:
        return functions.t(key, df, shape)


t = _T("t")


class _JFSkewT(Continuous):
    """The skew t distribution of Jones and Faddy; a = b gives t with 2 a degrees of freedom."""

    def valid(self, a: Any, b: Any) -> Any:
        return np.logical_and(a > 0, b > 0)

    def _shares(self, x: Any, a: Any, b: Any) -> tuple[Any, Any]:
        """(1 + x / r) / 2 and (1 - x / r) / 2, where r^2 = a + b + x^2."""
        total = a + b
        root = np.sqrt(total + x * x)
        # Not abs(x), whose derivative at 0 is 0: both branches have the right derivative there.
        small = 0.5 * total / (root * (root + np.where(x < 0, -x, x)))
        return np.where(x < 0, small, 1.0 - small), np.where(x < 0, 1.0 - small, small)

    def log_density(self, x: Any, a: Any, b: Any) -> Any:
        first, second = self._shares(x, a, b)
        out = (a + 0.5) * np.log(2.0 * first) + (b + 0.5) * np.log(2.0 * second)
        return out - (a + b - 1.0) * log(2.0) - betaln(a, b) - 0.5 * np.log(a + b)

    def lower(self, x: Any, a: Any, b: Any) -> Any:
        first, second = self._shares(x, a, b)
        near = x < 0
        left = betainc(a, b, np.where(near, first, 0.5))
        return np.where(near, left, betaincc(b, a, np.where(near, 0.5, second)))

    def upper(self, x: Any, a: Any, b: Any) -> Any:
        return self.lower(-x, b, a)

    def quantile(self, q: Any, a: Any, b: Any) -> Any:
        return self._quantile(betaincinv(a, b, q), betainccinv(b, a, q), a + b)

    def upper_quantile(self, q: Any, a: Any, b: Any) -> Any:
        return self._quantile(betainccinv(a, b, q), betaincinv(b, a, q), a + b)

    def _quantile(self, first: Any, second: Any, total: Any) -> Any:
        return 0.5 * (first - second) * np.sqrt(total / (first * second))

    def standard_draw(self, key: Any, shape: Any, a: Any, b: Any) -> Any:
        one, other = functions.split(key)
        first, second = functions.gamma(one, a, shape), functions.gamma(other, b, shape)
        return 0.5 * (first - second) * np.sqrt((a + b) / (first * second))


jf_skew_t = _JFSkewT("jf_skew_t")


class _F(PositiveSupport):
    """The F distribution with `dfn` and `dfd` degrees of freedom."""

    def valid(self, dfn: Any, dfd: Any) -> Any:
        return np.logical_and(dfn > 0, dfd > 0)

    def log_density(self, x: Any, dfn: Any, dfd: Any) -> Any:
        n, m = 0.5 * dfn, 0.5 * dfd
        ratio = dfn / dfd
        out = n * np.log(ratio) + xlogy(n - 1.0, x) - (n + m) * np.log1p(ratio * x)
        return out - betaln(n, m)

    def lower(self, x: Any, dfn: Any, dfd: Any) -> Any:
        return fdtr(dfn, dfd, x)

    def upper(self, x: Any, dfn: Any, dfd: Any) -> Any:
        return fdtrc(dfn, dfd, x)

    def quantile(self, q: Any, dfn: Any, dfd: Any) -> Any:
        return fdtri(dfn, dfd, q)

    def upper_quantile(self, q: Any, dfn: Any, dfd: Any) -> Any:
        return 1.0 / fdtri(dfd, dfn, q)

    def standard_mean(self, dfn: Any, dfd: Any) -> Any:
        safe = np.where(dfd > 2, dfd, 3.0)
        return np.where(dfd > 2, safe / (safe - 2.0), np.inf) + 0.0 * dfn

    def standard_var(self, dfn: Any, dfd: Any) -> Any:
        safe = np.where(dfd > 4, dfd, 5.0)
        out = 2.0 * safe * safe * (dfn + safe - 2.0) / (dfn * (safe - 2.0) ** 2 * (safe - 4.0))
        return np.where(dfd > 4, out, np.inf)

    def standard_entropy(self, dfn: Any, dfd: Any) -> Any:
        n, m = 0.5 * dfn, 0.5 * dfd
        out = (1.0 - n) * psi(n) - (1.0 + m) * psi(m) + (n + m) * psi(n + m)
        return np.log(dfd) - np.log(dfn) + betaln(n, m) + out

    def standard_draw(self, key: Any, shape: Any, dfn: Any, dfd: Any) -> Any:
        return functions.f(key, dfn, dfd, shape)


f = _F("f")

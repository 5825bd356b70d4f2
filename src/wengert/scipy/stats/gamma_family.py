"""Distributions of the gamma function.

    expon, gamma, invgamma, chi2, chi, f.
    below_power, beyond_power    what gennorm and halfgennorm share

Each class has the formulas of the standard form; what they are for is said in distribution.py.
Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995),
written so that no tail loses its digits.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np

from wengert.random import functions

from ..special import (
    betaln,
    fdtr,
    fdtrc,
    fdtri,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    poch,
    psi,
    xlogy,
)
from .continuous_distribution import Continuous, chosen, root_or_zero

__all__ = "expon gamma invgamma chi2 chi f".split()


_TINY = 1e-20
_LARGEST = 9.0  # exp(-exp(9)) is 0, whatever power stands before it


def below_power(x: Any, beta: Any) -> Any:
    """P(1 / beta, x^beta) for x >= 0, which is x / gamma(1 + 1 / beta) but for a power of x.

    Where x^beta is tiny the slope of P is a quotient of numbers that underflow; there two terms of
    the series are all digits, DLMF 8.7.1.
    """
    a, positive = 1.0 / beta, x > 0
    log_power = beta * np.log(chosen(positive, x, 1.0))
    power = chosen(positive, np.exp(np.minimum(log_power, _LARGEST)), 0.0)
    tiny = power < _TINY
    few = x * np.exp(-gammaln(1.0 + a)) * (1.0 - a / (1.0 + a) * chosen(tiny, power, 0.0))
    return chosen(tiny, few, gammainc(a, chosen(tiny, 1.0, power)))


def beyond_power(x: Any, beta: Any) -> Any:
    """Q(1 / beta, x^beta) for x >= 0: the rest of `below_power`."""
    a, tiny = 1.0 / beta, beta * np.log(chosen(x > 0, x, 1.0)) < -46.0
    tiny = np.logical_or(tiny, x == 0)
    some = chosen(tiny, 1.0, x)
    power = np.exp(np.minimum(beta * np.log(some), _LARGEST))
    return chosen(tiny, 1.0 - below_power(chosen(tiny, x, 0.0), beta), gammaincc(a, power))


class Positive(Continuous):
    """One of positive numbers."""

    ends = (0.0, np.inf)
    inner = 1.0


class _Expon(Positive):
    """The exponential distribution of rate 1 / scale."""

    def log_density(self, x: Any) -> Any:
        return -x

    def lower(self, x: Any) -> Any:
        return -np.expm1(-x)

    def log_upper(self, x: Any) -> Any:
        return -x

    def quantile(self, q: Any) -> Any:
        return -np.log1p(-q)

    def upper_quantile(self, q: Any) -> Any:
        return -np.log(q)

    def standard_mean(self) -> Any:
        return 1.0

    standard_var = standard_entropy = standard_mean

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.exponential(key, shape)


class _Gamma(Positive):
    """The gamma distribution of parameter `a`."""

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


class _InvGamma(Positive):
    """One divided by a number of the gamma distribution of parameter `a`."""

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
        return chosen(a > 1, 1.0 / (chosen(a > 1, a, 2.0) - 1.0), np.inf)

    def standard_var(self, a: Any) -> Any:
        some = chosen(a > 2, a, 3.0)
        return chosen(a > 2, 1.0 / ((some - 1.0) ** 2 * (some - 2.0)), np.inf)

    def standard_entropy(self, a: Any) -> Any:
        return a - (a + 1.0) * psi(a) + gammaln(a)

    def standard_draw(self, key: Any, shape: Any, a: Any) -> Any:
        return functions.inverse_gamma(key, a, shape)


class _Chi2(Positive):
    """The sum of the squares of `df` normal numbers."""

    def valid(self, df: Any) -> Any:
        return df > 0

    def log_density(self, x: Any, df: Any) -> Any:
        half = 0.5 * df
        return xlogy(half - 1.0, x) - 0.5 * x - gammaln(half) - log(2.0) * half

    def lower(self, x: Any, df: Any) -> Any:
        return gammainc(0.5 * df, 0.5 * x)

    def upper(self, x: Any, df: Any) -> Any:
        return gammaincc(0.5 * df, 0.5 * x)

    def quantile(self, q: Any, df: Any) -> Any:
        return 2.0 * gammaincinv(0.5 * df, q)

    def upper_quantile(self, q: Any, df: Any) -> Any:
        return 2.0 * gammainccinv(0.5 * df, q)

    def standard_mean(self, df: Any) -> Any:
        return 1.0 * df

    def standard_var(self, df: Any) -> Any:
        return 2.0 * df

    def standard_entropy(self, df: Any) -> Any:
        half = 0.5 * df
        return half + log(2.0) + gammaln(half) + (1.0 - half) * psi(half)

    def standard_draw(self, key: Any, shape: Any, df: Any) -> Any:
        return functions.chisquare(key, df, shape)


class _Chi(Positive):
    """The length of a vector of `df` normal numbers."""

    def valid(self, df: Any) -> Any:
        return df > 0

    def log_density(self, x: Any, df: Any) -> Any:
        half = 0.5 * df
        return log(2.0) * (1.0 - half) - gammaln(half) + xlogy(df - 1.0, x) - 0.5 * (x * x)

    def lower(self, x: Any, df: Any) -> Any:
        return gammainc(0.5 * df, 0.5 * (x * x))

    def upper(self, x: Any, df: Any) -> Any:
        return gammaincc(0.5 * df, 0.5 * (x * x))

    def quantile(self, q: Any, df: Any) -> Any:
        return sqrt(2.0) * root_or_zero(gammaincinv(0.5 * df, q))

    def upper_quantile(self, q: Any, df: Any) -> Any:
        return sqrt(2.0) * root_or_zero(gammainccinv(0.5 * df, q))

    def standard_mean(self, df: Any) -> Any:
        return sqrt(2.0) * poch(0.5 * df, 0.5)

    def standard_var(self, df: Any) -> Any:
        return df - self.standard_mean(df) ** 2

    def standard_entropy(self, df: Any) -> Any:
        half = 0.5 * df
        return gammaln(half) + 0.5 * (df - log(2.0) - (df - 1.0) * psi(half))

    def standard_draw(self, key: Any, shape: Any, df: Any) -> Any:
        return functions.chi(key, df, shape)


class _F(Positive):
    """The ratio of two means of squares, of `dfn` and `dfd` normal numbers."""

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
        some = chosen(dfd > 2, dfd, 3.0)
        return chosen(dfd > 2, some / (some - 2.0), np.inf) + 0.0 * dfn

    def standard_var(self, dfn: Any, dfd: Any) -> Any:
        some = chosen(dfd > 4, dfd, 5.0)
        out = 2.0 * some * some * (dfn + some - 2.0) / (dfn * (some - 2.0) ** 2 * (some - 4.0))
        return chosen(dfd > 4, out, np.inf)

    def standard_entropy(self, dfn: Any, dfd: Any) -> Any:
        n, m = 0.5 * dfn, 0.5 * dfd
        out = (1.0 - n) * psi(n) - (1.0 + m) * psi(m) + (n + m) * psi(n + m)
        return np.log(dfd) - np.log(dfn) + betaln(n, m) + out

    def standard_draw(self, key: Any, shape: Any, dfn: Any, dfd: Any) -> Any:
        return functions.f(key, dfn, dfd, shape)


expon = _Expon("expon")
gamma = _Gamma("gamma")
invgamma = _InvGamma("invgamma")
chi2 = _Chi2("chi2")
chi = _Chi("chi")
f = _F("f")

"""The gamma distribution and those derived from it.

    gamma erlang invgamma dgamma gengamma loggamma

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from wengert.random import functions

from ...special import (
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    polygamma,
    psi,
    xlogy,
)
from ..continuous_distribution import Continuous
from .common import PositiveSupport, Symmetric, where_finite


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

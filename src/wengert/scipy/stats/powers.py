"""Distributions of positive numbers whose tails are powers.

    fisk burr burr12 lomax mielke kappa3 betaprime loglaplace

Each class has the formulas of the standard form; what they are for is said in distribution.py.
Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995),
and I. W. Burr, Cumulative frequency functions (1942), written so that no tail loses its digits:
powers are exponentials of logarithms, and 1 + x^c is `logaddexp`, which does not overflow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from wengert.random import functions

from ..special import betainc, betaincc, betainccinv, betaincinv, betaln, psi, xlogy
from .continuous_distribution import chosen, log_expm1
from .gamma_family import Positive
from .real_line import EULER, laplace

__all__ = "fisk burr burr12 lomax mielke kappa3 betaprime loglaplace".split()


def where_finite(condition: Any, formula: Any, *shapes: Any, beside: tuple[float, ...]) -> Any:
    """A moment where it exists, computed at other parameters where it does not; there inf."""
    some = [chosen(condition, s, b) for s, b in zip(shapes, beside, strict=True)]
    return chosen(condition, formula(*some), np.inf)


def _above_one(log_power: Any) -> Any:
    """log(1 + x^c), from c log x."""
    return np.logaddexp(0.0, log_power)


class _Burr(Positive):
    """Burr's distribution of type III, of powers `c` and `d`."""

    def valid(self, c: Any, d: Any) -> Any:
        return np.logical_and(c > 0, d > 0)

    def log_density(self, x: Any, c: Any, d: Any) -> Any:
        out = np.log(c) + np.log(d) + xlogy(c * d - 1.0, x)
        return out - (d + 1.0) * _above_one(c * np.log(x))

    def log_lower(self, x: Any, c: Any, d: Any) -> Any:
        return -d * _above_one(-c * np.log(x))

    def quantile(self, q: Any, c: Any, d: Any) -> Any:
        return np.exp(-log_expm1(-np.log(q) / d) / c)

    def upper_quantile(self, q: Any, c: Any, d: Any) -> Any:
        return np.exp(-log_expm1(-np.log1p(-q) / d) / c)

    def _moment(self, n: float, c: Any, d: Any) -> Any:
        return d * special.beta(d + n / c, 1.0 - n / c)

    def standard_mean(self, c: Any, d: Any) -> Any:
        return where_finite(c > 1, lambda c, d: self._moment(1, c, d), c, d, beside=(2.0, 1.0))

    def standard_var(self, c: Any, d: Any) -> Any:
        def var(c: Any, d: Any) -> Any:
            return self._moment(2, c, d) - self._moment(1, c, d) ** 2

        return where_finite(c > 2, var, c, d, beside=(3.0, 1.0))

    def standard_entropy(self, c: Any, d: Any) -> Any:
        out = -np.log(c) - np.log(d) - (c * d - 1.0) / c * (psi(d) + EULER)
        return out + (d + 1.0) * (psi(d + 1.0) + EULER)

    def standard_draw(self, key: Any, shape: Any, c: Any, d: Any) -> Any:
        return np.exp(-log_expm1(functions.exponential(key, shape) / d) / c)


burr = _Burr("burr")


class _Burr12(Positive):
    """Burr's distribution of type XII, of powers `c` and `d`: Singh and Maddala's."""

    def valid(self, c: Any, d: Any) -> Any:
        return np.logical_and(c > 0, d > 0)

    def log_density(self, x: Any, c: Any, d: Any) -> Any:
        out = np.log(c) + np.log(d) + xlogy(c - 1.0, x)
        return out - (d + 1.0) * _above_one(c * np.log(x))

    def log_upper(self, x: Any, c: Any, d: Any) -> Any:
        return -d * _above_one(c * np.log(x))

    def quantile(self, q: Any, c: Any, d: Any) -> Any:
        return np.exp(log_expm1(-np.log1p(-q) / d) / c)

    def upper_quantile(self, q: Any, c: Any, d: Any) -> Any:
        return np.exp(log_expm1(-np.log(q) / d) / c)

    def _moment(self, n: float, c: Any, d: Any) -> Any:
        return d * special.beta(1.0 + n / c, d - n / c)

    def standard_mean(self, c: Any, d: Any) -> Any:
        return where_finite(c * d > 1, lambda c, d: self._moment(1, c, d), c, d, beside=(2.0, 2.0))

    def standard_var(self, c: Any, d: Any) -> Any:
        def var(c: Any, d: Any) -> Any:
            return self._moment(2, c, d) - self._moment(1, c, d) ** 2

        return where_finite(c * d > 2, var, c, d, beside=(3.0, 3.0))

    def standard_entropy(self, c: Any, d: Any) -> Any:
        return -np.log(c) - np.log(d) + (c - 1.0) / c * (psi(d) + EULER) + (d + 1.0) / d

    def standard_draw(self, key: Any, shape: Any, c: Any, d: Any) -> Any:
        return np.exp(log_expm1(functions.exponential(key, shape) / d) / c)


class _Fisk(Positive):
    """The log-logistic distribution of power `c`."""

    def valid(self, c: Any) -> Any:
        return c > 0

    def log_density(self, x: Any, c: Any) -> Any:
        return burr.log_density(x, c, 1.0)

    def log_lower(self, x: Any, c: Any) -> Any:
        return burr.log_lower(x, c, 1.0)

    def log_upper(self, x: Any, c: Any) -> Any:
        return -_above_one(c * np.log(x))

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


class _Lomax(Positive):
    """Pareto's distribution from 0 on, of power `c`."""

    def valid(self, c: Any) -> Any:
        return c > 0

    def log_density(self, x: Any, c: Any) -> Any:
        return np.log(c) - (c + 1.0) * np.log1p(x)

    def log_upper(self, x: Any, c: Any) -> Any:
        return -c * np.log1p(x)

    def lower(self, x: Any, c: Any) -> Any:
        return -np.expm1(-c * np.log1p(x))

    def quantile(self, q: Any, c: Any) -> Any:
        return np.expm1(-np.log1p(-q) / c)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return np.expm1(-np.log(q) / c)

    def standard_mean(self, c: Any) -> Any:
        return where_finite(c > 1, lambda c: 1.0 / (c - 1.0), c, beside=(2.0,))

    def standard_var(self, c: Any) -> Any:
        def var(c: Any) -> Any:
            return c / ((c - 1.0) ** 2 * (c - 2.0))

        return where_finite(c > 2, var, c, beside=(3.0,))

    def standard_entropy(self, c: Any) -> Any:
        return 1.0 + 1.0 / c - np.log(c)

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return np.expm1(functions.exponential(key, shape) / c)


class _Mielke(Positive):
    """Mielke's distribution: Burr's of type III with c = s and d = k / s."""

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


class _Kappa3(Positive):
    """Mielke's kappa distribution of one parameter `a`."""

    def valid(self, a: Any) -> Any:
        return a > 0

    def log_density(self, x: Any, a: Any) -> Any:
        positive = x > 0
        point = chosen(positive, x, 1.0)
        inside = np.log(a) + (a + 1.0) * (self.log_lower(point, a) - np.log(point))
        start = np.log(a) - (a + 1.0) / a * np.logaddexp(np.log(a), a * np.log(x))
        return chosen(positive, inside, start)

    def log_lower(self, x: Any, a: Any) -> Any:
        return -_above_one(np.log(a) - a * np.log(x)) / a

    def quantile(self, q: Any, a: Any) -> Any:
        return np.exp((np.log(a) - np.log(np.expm1(-a * np.log(q)))) / a)

    def upper_quantile(self, q: Any, a: Any) -> Any:
        return np.exp((np.log(a) - np.log(np.expm1(-a * np.log1p(-q)))) / a)

    def standard_draw(self, key: Any, shape: Any, a: Any) -> Any:
        return np.exp((np.log(a) - np.log(np.expm1(a * functions.exponential(key, shape)))) / a)


class _BetaPrime(Positive):
    """The ratio p / (1 - p), where p has the beta distribution of `a` and `b`."""

    def valid(self, a: Any, b: Any) -> Any:
        return np.logical_and(a > 0, b > 0)

    def log_density(self, x: Any, a: Any, b: Any) -> Any:
        return xlogy(a - 1.0, x) - (a + b) * np.log1p(x) - betaln(a, b)

    def _shares(self, x: Any) -> tuple[Any, Any, Any]:
        large = x > 1.0
        return (large, chosen(large, 0.5, x / (1.0 + x)), chosen(large, 1.0 / (1.0 + x), 0.5))

    def lower(self, x: Any, a: Any, b: Any) -> Any:
        large, share, rest = self._shares(x)
        return chosen(large, betaincc(b, a, rest), betainc(a, b, share))

    def upper(self, x: Any, a: Any, b: Any) -> Any:
        large, share, rest = self._shares(x)
        return chosen(large, betainc(b, a, rest), betaincc(a, b, share))

    def _ratio(self, share: Any, rest: Any) -> Any:
        large = share > 0.5
        other = chosen(large, rest, 0.5)
        own = chosen(large, 0.5, share)
        return chosen(large, (1.0 - other) / other, own / (1.0 - own))

    def quantile(self, q: Any, a: Any, b: Any) -> Any:
        return self._ratio(betaincinv(a, b, q), betainccinv(b, a, q))

    def upper_quantile(self, q: Any, a: Any, b: Any) -> Any:
        return self._ratio(betainccinv(a, b, q), betaincinv(b, a, q))

    def standard_mean(self, a: Any, b: Any) -> Any:
        return where_finite(b > 1, lambda a, b: a / (b - 1.0), a, b, beside=(1.0, 2.0))

    def standard_var(self, a: Any, b: Any) -> Any:
        def var(a: Any, b: Any) -> Any:
            return a * (a + b - 1.0) / ((b - 2.0) * (b - 1.0) ** 2)

        return where_finite(b > 2, var, a, b, beside=(1.0, 3.0))

    def standard_entropy(self, a: Any, b: Any) -> Any:
        out = betaln(a, b) - (a - 1.0) * (psi(a) - psi(b))
        return out + (a + b) * (psi(a + b) - psi(b))

    def standard_draw(self, key: Any, shape: Any, a: Any, b: Any) -> Any:
        first, second = functions.split(key)
        return functions.gamma(first, a, shape) / functions.gamma(second, b, shape)


class _LogLaplace(Positive):
    """Numbers whose logarithm has the Laplace distribution of scale 1 / c."""

    at_low = False

    def valid(self, c: Any) -> Any:
        return c > 0

    def log_density(self, x: Any, c: Any) -> Any:
        y = np.log(x)
        return np.log(0.5 * c) - c * np.abs(y) - y

    def lower(self, x: Any, c: Any) -> Any:
        return laplace.lower(c * np.log(x))

    def upper(self, x: Any, c: Any) -> Any:
        return laplace.lower(-c * np.log(x))

    def quantile(self, q: Any, c: Any) -> Any:
        return np.exp(laplace.quantile(q) / c)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return np.exp(-laplace.quantile(q) / c)

    def standard_mean(self, c: Any) -> Any:
        return where_finite(c > 1, lambda c: c * c / (c * c - 1.0), c, beside=(2.0,))

    def standard_var(self, c: Any) -> Any:
        def var(c: Any) -> Any:
            return c * c / (c * c - 4.0) - (c * c / (c * c - 1.0)) ** 2

        return where_finite(c > 2, var, c, beside=(3.0,))

    def standard_entropy(self, c: Any) -> Any:
        return np.log(2.0 / c) + 1.0

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return np.exp(functions.laplace(key, shape) / c)


fisk = _Fisk("fisk")
burr12 = _Burr12("burr12")
lomax = _Lomax("lomax")
mielke = _Mielke("mielke")
kappa3 = _Kappa3("kappa3")
betaprime = _BetaPrime("betaprime")
loglaplace = _LogLaplace("loglaplace")

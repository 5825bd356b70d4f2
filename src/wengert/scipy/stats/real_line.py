"""Distributions on the whole line.

    norm, t, cauchy, laplace, logistic, gumbel_r,
    gumbel_l, skewnorm, exponnorm.

Each class has the formulas of the standard form; what they are for is said in distribution.py.
Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995),
written so that no tail loses its digits.
"""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any

import numpy as np

from wengert.random import functions

from ..special import (
    betaln,
    expit,
    log_expit,
    log_ndtr,
    logit,
    ndtr,
    ndtri,
    owens_t,
    psi,
    stdtr,
    stdtrit,
)
from .continuous_distribution import Continuous, chosen, log1mexp
from .implicit_quantiles import Implicit

__all__ = "norm t cauchy laplace logistic gumbel_r gumbel_l skewnorm exponnorm".split()

EULER = 0.5772156649015328606
HALF_LOG_2PI = 0.5 * log(2.0 * pi)


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


class _T(Continuous):
    """Student's t distribution of `df` degrees of freedom; of infinitely many the normal one."""

    def valid(self, df: Any) -> Any:
        return df > 0

    def log_density(self, x: Any, df: Any) -> Any:
        finite = np.isfinite(df)
        some = chosen(finite, df, 1.0)
        tail = -0.5 * (some + 1.0) * np.log1p(x * x / some)
        out = tail - betaln(0.5 * some, 0.5) - 0.5 * np.log(some)
        return chosen(finite, out, -0.5 * (x * x) - HALF_LOG_2PI)

    def lower(self, x: Any, df: Any) -> Any:
        finite = np.isfinite(df)
        return chosen(finite, stdtr(chosen(finite, df, 1.0), x), ndtr(x))

    def upper(self, x: Any, df: Any) -> Any:
        return self.lower(-x, df)

    def quantile(self, q: Any, df: Any) -> Any:
        return stdtrit(df, q)

    def upper_quantile(self, q: Any, df: Any) -> Any:
        return -stdtrit(df, q)

    def standard_mean(self, df: Any) -> Any:
        return chosen(df > 1, 0.0, np.inf)

    def standard_var(self, df: Any) -> Any:
        finite = np.logical_and(df > 2, np.isfinite(df))
        some = chosen(finite, df, 3.0)
        out = chosen(finite, some / (some - 2.0), chosen(df > 2, 1.0, np.inf))
        return chosen(df > 1, out, np.nan)

    def standard_entropy(self, df: Any) -> Any:
        half = 0.5 * (df + 1.0)
        return half * (psi(half) - psi(0.5 * df)) + 0.5 * np.log(df) + betaln(0.5 * df, 0.5)

    def standard_draw(self, key: Any, shape: Any, df: Any) -> Any:
        return functions.t(key, df, shape)


class _Cauchy(Continuous):
    """The Cauchy distribution, which has no mean."""

    def log_density(self, x: Any) -> Any:
        return -log(pi) - 2.0 * np.log(np.hypot(1.0, x))

    def lower(self, x: Any) -> Any:
        return np.arctan2(1.0, -x) / pi

    def upper(self, x: Any) -> Any:
        return np.arctan2(1.0, x) / pi

    def quantile(self, q: Any) -> Any:
        return -self.upper_quantile(q)

    def upper_quantile(self, q: Any) -> Any:
        # By the nearer end, or by the middle: the cotangent of an angle near pi loses its digits.
        small = chosen(q < 0.5, q, 1.0 - q)
        middle = small > 0.25
        size = 1.0 / np.tan(pi * chosen(middle, 0.25, small))
        inner = np.tan(pi * chosen(middle, 0.5 - q, 0.0))
        return chosen(middle, inner, chosen(q < 0.5, size, -size))

    def standard_mean(self) -> Any:
        return np.nan

    standard_var = standard_mean

    def standard_entropy(self) -> Any:
        return log(4.0 * pi)

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.cauchy(key, shape)


class _Laplace(Continuous):
    """The Laplace distribution: an exponential one on both sides."""

    def log_density(self, x: Any) -> Any:
        return -np.abs(x) - log(2.0)

    def lower(self, x: Any) -> Any:
        half = 0.5 * np.exp(chosen(x > 0, -x, x))  # smooth at 0, which |x| is not
        return chosen(x > 0, 1.0 - half, half)

    def upper(self, x: Any) -> Any:
        return self.lower(-x)

    def log_lower(self, x: Any) -> Any:
        return chosen(x > 0, np.log1p(-0.5 * np.exp(-np.abs(x))), x - log(2.0))

    def log_upper(self, x: Any) -> Any:
        return self.log_lower(-x)

    def quantile(self, q: Any) -> Any:
        low = q < 0.5
        size = np.log(2.0 * chosen(low, q, 1.0 - q))
        return chosen(low, size, -size)

    def upper_quantile(self, q: Any) -> Any:
        return -self.quantile(q)

    def standard_mean(self) -> Any:
        return 0.0

    def standard_var(self) -> Any:
        return 2.0

    def standard_entropy(self) -> Any:
        return log(2.0) + 1.0

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.laplace(key, shape)


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


class _GumbelR(Continuous):
    """The Gumbel distribution of a largest value."""

    def log_density(self, x: Any) -> Any:
        return -x - np.exp(-x)

    def log_lower(self, x: Any) -> Any:
        return -np.exp(-x)

    def log_upper(self, x: Any) -> Any:
        return log1mexp(-np.exp(-x))

    def upper(self, x: Any) -> Any:
        return -np.expm1(-np.exp(-x))

    def quantile(self, q: Any) -> Any:
        return -np.log(-np.log(q))

    def upper_quantile(self, q: Any) -> Any:
        return -np.log(-np.log1p(-q))

    def standard_mean(self) -> Any:
        return EULER

    def standard_var(self) -> Any:
        return pi * pi / 6.0

    def standard_entropy(self) -> Any:
        return EULER + 1.0

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.gumbel(key, shape)


class _GumbelL(_GumbelR):
    """The Gumbel distribution of a smallest value."""

    def log_density(self, x: Any) -> Any:
        return x - np.exp(x)

    def log_lower(self, x: Any) -> Any:
        return log1mexp(-np.exp(x))

    def log_upper(self, x: Any) -> Any:
        return -np.exp(x)

    def lower(self, x: Any) -> Any:
        return -np.expm1(-np.exp(x))

    def upper(self, x: Any) -> Any:
        return np.exp(-np.exp(x))

    def quantile(self, q: Any) -> Any:
        return np.log(-np.log1p(-q))

    def upper_quantile(self, q: Any) -> Any:
        return np.log(-np.log(q))

    def standard_mean(self) -> Any:
        return -EULER

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return -functions.gumbel(key, shape)


class _SkewNorm(Implicit):
    """The skew-normal distribution of parameter `a`; of 0 the normal one."""

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


class _ExponNorm(Implicit):
    """A normal number and `K` times an exponential one, added."""

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


norm = _Norm("norm")
t = _T("t")
cauchy = _Cauchy("cauchy")
laplace = _Laplace("laplace")
logistic = _Logistic("logistic")
gumbel_r = _GumbelR("gumbel_r")
gumbel_l = _GumbelL("gumbel_l")
skewnorm = _SkewNorm("skewnorm")
exponnorm = _ExponNorm("exponnorm")

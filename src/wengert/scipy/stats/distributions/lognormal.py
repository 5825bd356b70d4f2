"""The log-normal distribution and those derived from it.

    lognorm gibrat powerlognorm

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wengert.random import functions

from ...special import log_ndtr, ndtr, ndtri, ndtri_exp
from .common import HALF_LOG_2PI, PositiveSupport


class _LogNorm(PositiveSupport):
    """The log-normal distribution: log(x) has standard deviation `s`; `scale` is the median."""

    at_low = False

    def valid(self, s: Any) -> Any:
        return s > 0

    def log_density(self, x: Any, s: Any) -> Any:
        y = np.log(x)
        return -(y * y) / (2.0 * (s * s)) - np.log(s) - y - HALF_LOG_2PI

    def lower(self, x: Any, s: Any) -> Any:
        return ndtr(np.log(x) / s)

    def upper(self, x: Any, s: Any) -> Any:
        return ndtr(-np.log(x) / s)

    def log_lower(self, x: Any, s: Any) -> Any:
        return log_ndtr(np.log(x) / s)

    def log_upper(self, x: Any, s: Any) -> Any:
        return log_ndtr(-np.log(x) / s)

    def quantile(self, q: Any, s: Any) -> Any:
        return np.exp(s * ndtri(q))

    def upper_quantile(self, q: Any, s: Any) -> Any:
        return np.exp(-s * ndtri(q))

    def standard_mean(self, s: Any) -> Any:
        return np.exp(0.5 * (s * s))

    def standard_var(self, s: Any) -> Any:
        return np.exp(s * s) * np.expm1(s * s)

    def standard_entropy(self, s: Any) -> Any:
        return 0.5 + HALF_LOG_2PI + np.log(s)

    def standard_draw(self, key: Any, shape: Any, s: Any) -> Any:
        return functions.lognormal(key, s, shape)


lognorm = _LogNorm("lognorm")


class _Gibrat(PositiveSupport):
    """The Gibrat distribution: log-normal with s = 1."""

    at_low = False

    def log_density(self, x: Any) -> Any:
        return lognorm.log_density(x, 1.0)

    def log_lower(self, x: Any) -> Any:
        return log_ndtr(np.log(x))

    def log_upper(self, x: Any) -> Any:
        return log_ndtr(-np.log(x))

    def lower(self, x: Any) -> Any:
        return ndtr(np.log(x))

    def upper(self, x: Any) -> Any:
        return ndtr(-np.log(x))

    def quantile(self, q: Any) -> Any:
        return np.exp(ndtri(q))

    def upper_quantile(self, q: Any) -> Any:
        return np.exp(-ndtri(q))

    def standard_mean(self) -> Any:
        return np.exp(0.5)

    def standard_var(self) -> Any:
        return math.e * (math.e - 1.0)

    def standard_entropy(self) -> Any:
        return HALF_LOG_2PI + 0.5

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return np.exp(functions.normal(key, shape))


gibrat = _Gibrat("gibrat")


class _PowerLogNorm(PositiveSupport):
    """The power log-normal distribution: the survival function of lognorm(s), to the power c."""

    at_low = False

    def valid(self, c: Any, s: Any) -> Any:
        return np.logical_and(c > 0, s > 0)

    def log_density(self, x: Any, c: Any, s: Any) -> Any:
        z = np.log(x) / s
        out = np.log(c) - np.log(x) - np.log(s) - HALF_LOG_2PI
        return out - 0.5 * (z * z) + (c - 1.0) * log_ndtr(-z)

    def log_upper(self, x: Any, c: Any, s: Any) -> Any:
        return c * log_ndtr(-np.log(x) / s)

    def quantile(self, q: Any, c: Any, s: Any) -> Any:
        return np.exp(-s * ndtri_exp(np.log1p(-q) / c))

    def upper_quantile(self, q: Any, c: Any, s: Any) -> Any:
        return np.exp(-s * ndtri_exp(np.log(q) / c))

    def standard_draw(self, key: Any, shape: Any, c: Any, s: Any) -> Any:
        return np.exp(-s * ndtri_exp(-functions.exponential(key, shape) / c))


powerlognorm = _PowerLogNorm("powerlognorm")

"""The Burr distributions.

    burr burr12 fisk mielke

Formulas: I. W. Burr, Cumulative frequency functions (1942); powers are computed as exponentials
of logarithms, and log(1 + x^c) with `logaddexp`, which does not overflow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from wengert.random import functions

from ...special import psi, xlogy
from ..continuous_distribution import log_expm1
from .common import EULER, PositiveSupport, where_finite


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

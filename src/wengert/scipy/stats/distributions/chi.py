"""The chi and chi-square distributions, the latter also noncentral; norms of normal vectors.

    chi chi2 ncx2   rayleigh rice maxwell nakagami

The noncentral distribution is a sum of Poisson weights times incomplete gamma functions, as in
N. L. Johnson, On an extension of the connexion between Poisson and chi-square distributions (1959).
"""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert.random import functions

from ...special import (
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    hyp0f1,
    i0e,
    i1e,
    ive,
    poch,
    psi,
    xlogy,
)
from ..continuous_distribution import sqrt_or_zero
from ..implicit_quantiles import Implicit
from .common import EULER, HALF_LOG_2PI, PositiveSupport


class _Chi(PositiveSupport):
    """The chi distribution: the norm of `df` independent normal variables."""

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
        return sqrt(2.0) * sqrt_or_zero(gammaincinv(0.5 * df, q))

    def upper_quantile(self, q: Any, df: Any) -> Any:
        return sqrt(2.0) * sqrt_or_zero(gammainccinv(0.5 * df, q))

    def standard_mean(self, df: Any) -> Any:
        return sqrt(2.0) * poch(0.5 * df, 0.5)

    def standard_var(self, df: Any) -> Any:
        return df - self.standard_mean(df) ** 2

    def standard_entropy(self, df: Any) -> Any:
        half = 0.5 * df
        return gammaln(half) + 0.5 * (df - log(2.0) - (df - 1.0) * psi(half))

    def standard_draw(self, key: Any, shape: Any, df: Any) -> Any:
        return functions.chi(key, df, shape)


chi = _Chi("chi")


class _Chi2(PositiveSupport):
    """The chi-square distribution: the sum of squares of `df` independent normal variables."""

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


chi2 = _Chi2("chi2")


def noncentral_gammainc(a: Any, x: Any, c: Any) -> Any:
    """The sum over k of Poisson(c) weights times P(a + k, x)."""
    return lookup("special.noncentral_gamma")(a, x, c, n=0)


def noncentral_gammaincc(a: Any, x: Any, c: Any) -> Any:
    """The sum over k of Poisson(c) weights times Q(a + k, x)."""
    return lookup("special.noncentral_gammac")(a, x, c)


class _NonCentralChi2(PositiveSupport, Implicit):
    """The noncentral chi-square distribution; `nc` is the sum of the squared means."""

    at_low = False

    def valid(self, df: Any, nc: Any) -> Any:
        return np.logical_and(np.logical_and(df > 0, np.isfinite(df)), nc >= 0)

    def log_density(self, x: Any, df: Any, nc: Any) -> Any:
        # The series, smooth at nc = 0, unless it underflows: then the first term
        # times 0F1, if that does not overflow, else the equivalent Bessel function,
        # DLMF 10.39.9.
        a, y, c = 0.5 * df, 0.5 * x, 0.5 * nc
        first = xlogy(a - 1.0, y) - y - c - gammaln(a)
        width = np.sqrt(a * a + nc * x)
        growth = width - a - a * np.log(0.5 * (width / a + 1.0))  # log of 0F1, approximately
        near, small = first + growth > -300.0, growth < 600.0
        density = lookup("special.noncentral_density")
        safe = [np.where(near, p, q) for p, q in ((a, 1.0), (y, 1.0), (c, 1.0))]
        by_sum = np.log(density(*safe, n=0, m=0))
        use_series = np.logical_and(small, np.logical_not(near))
        by_series = first + np.log(
            hyp0f1(np.where(use_series, a, 1.0), np.where(use_series, c * y, 1.0))
        )
        far = np.logical_not(np.logical_or(near, small))
        by_bessel = self._far(*(np.where(far, p, 1.0) for p in (x, df, nc)))
        return np.where(near, by_sum, np.where(use_series, by_series, by_bessel)) - log(2.0)

    def _far(self, x: Any, df: Any, nc: Any) -> Any:
        first, second = np.sqrt(x), np.sqrt(nc)
        order = 0.5 * df - 1.0
        out = 0.5 * xlogy(order, x / nc) - 0.5 * (first - second) ** 2
        return out + np.log(ive(order, first * second))

    def lower(self, x: Any, df: Any, nc: Any) -> Any:
        return noncentral_gammainc(0.5 * df, 0.5 * x, 0.5 * nc)

    def upper(self, x: Any, df: Any, nc: Any) -> Any:
        return noncentral_gammaincc(0.5 * df, 0.5 * x, 0.5 * nc)

    def standard_mean(self, df: Any, nc: Any) -> Any:
        return df + nc

    def standard_var(self, df: Any, nc: Any) -> Any:
        return 2.0 * (df + 2.0 * nc)


ncx2 = _NonCentralChi2("ncx2")


class _Rayleigh(PositiveSupport):
    """The Rayleigh distribution: the norm of two independent normal variables."""

    at_low = False

    def log_density(self, x: Any) -> Any:
        return np.log(x) - 0.5 * (x * x)

    def lower(self, x: Any) -> Any:
        return -np.expm1(-0.5 * (x * x))

    def log_upper(self, x: Any) -> Any:
        return -0.5 * (x * x)

    def quantile(self, q: Any) -> Any:
        return np.sqrt(-2.0 * np.log1p(-q))

    def upper_quantile(self, q: Any) -> Any:
        return np.sqrt(-2.0 * np.log(q))

    def standard_mean(self) -> Any:
        return sqrt(0.5 * pi)

    def standard_var(self) -> Any:
        return 2.0 - 0.5 * pi

    def standard_entropy(self) -> Any:
        return 0.5 * EULER + 1.0 - 0.5 * log(2.0)

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.rayleigh(key, 1.0, shape)


rayleigh = _Rayleigh("rayleigh")


class _Rice(PositiveSupport, Implicit):
    """The Rice distribution: the norm of a 2-d normal variable whose mean has norm `b`."""

    at_low = False

    def valid(self, b: Any) -> Any:
        return b >= 0

    def log_density(self, x: Any, b: Any) -> Any:
        return np.log(x) - 0.5 * (x - b) ** 2 + np.log(i0e(x * b))

    def lower(self, x: Any, b: Any) -> Any:
        return noncentral_gammainc(1.0, 0.5 * (x * x), 0.5 * (b * b))

    def upper(self, x: Any, b: Any) -> Any:
        return noncentral_gammaincc(1.0, 0.5 * (x * x), 0.5 * (b * b))

    def standard_mean(self, b: Any) -> Any:
        quarter = 0.25 * (b * b)
        scaled = (1.0 + 2.0 * quarter) * i0e(quarter) + 2.0 * quarter * i1e(quarter)
        return sqrt(0.5 * pi) * scaled

    def standard_var(self, b: Any) -> Any:
        return 2.0 + b * b - self.standard_mean(b) ** 2

    def standard_draw(self, key: Any, shape: Any, b: Any) -> Any:
        first, second = functions.split(key)
        return np.hypot(functions.normal(first, shape) + b, functions.normal(second, shape))


rice = _Rice("rice")


class _Maxwell(PositiveSupport):
    """The Maxwell distribution: chi with three degrees of freedom."""

    def log_density(self, x: Any) -> Any:
        return chi.log_density(x, 3.0)

    def lower(self, x: Any) -> Any:
        return chi.lower(x, 3.0)

    def upper(self, x: Any) -> Any:
        return chi.upper(x, 3.0)

    def quantile(self, q: Any) -> Any:
        return chi.quantile(q, 3.0)

    def upper_quantile(self, q: Any) -> Any:
        return chi.upper_quantile(q, 3.0)

    def standard_mean(self) -> Any:
        return 2.0 * sqrt(2.0 / pi)

    def standard_var(self) -> Any:
        return 3.0 - 8.0 / pi

    def standard_entropy(self) -> Any:
        return EULER + HALF_LOG_2PI - 0.5

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.chi(key, 3.0, shape)


maxwell = _Maxwell("maxwell")


class _Nakagami(PositiveSupport):
    """The Nakagami distribution with parameter `nu`."""

    def valid(self, nu: Any) -> Any:
        return nu > 0

    def log_density(self, x: Any, nu: Any) -> Any:
        out = log(2.0) + xlogy(nu, nu) - gammaln(nu)
        return out + xlogy(2.0 * nu - 1.0, x) - nu * (x * x)

    def lower(self, x: Any, nu: Any) -> Any:
        return gammainc(nu, nu * (x * x))

    def upper(self, x: Any, nu: Any) -> Any:
        return gammaincc(nu, nu * (x * x))

    def quantile(self, q: Any, nu: Any) -> Any:
        return sqrt_or_zero(gammaincinv(nu, q)) / np.sqrt(nu)

    def upper_quantile(self, q: Any, nu: Any) -> Any:
        return sqrt_or_zero(gammainccinv(nu, q)) / np.sqrt(nu)

    def standard_mean(self, nu: Any) -> Any:
        return poch(nu, 0.5) / np.sqrt(nu)

    def standard_var(self, nu: Any) -> Any:
        return 1.0 - self.standard_mean(nu) ** 2

    def standard_entropy(self, nu: Any) -> Any:
        out = nu + gammaln(nu) + (0.5 - nu) * psi(nu)
        return out - log(2.0) - 0.5 * np.log(nu)

    def standard_draw(self, key: Any, shape: Any, nu: Any) -> Any:
        return np.sqrt(functions.gamma(key, nu, shape) / nu)


nakagami = _Nakagami("nakagami")

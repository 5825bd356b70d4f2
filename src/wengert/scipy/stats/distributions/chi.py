"""The chi and chi-square distributions, the latter also noncentral.

    chi chi2 ncx2

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
The noncentral distribution is a sum of Poisson weights times incomplete gamma functions, as in
N. L. Johnson, On an extension of the connexion between Poisson and chi-square distributions (1959).
"""

from __future__ import annotations

from math import log, sqrt
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
    ive,
    poch,
    psi,
    xlogy,
)
from ..continuous_distribution import sqrt_or_zero
from ..implicit_quantiles import Implicit
from .common import PositiveSupport


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

"""Distributions of squares about a point that is not the mean.

    ncx2       noncentral chi-square
    rice       the length of a vector of two normal numbers of another mean
    skellam    the difference of two numbers of Poisson's distribution

Each class has the formulas of the standard form; what they are for is said in distribution.py.
All are sums of Poisson's weights times incomplete gamma functions (special/noncentral.py):
N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions 2 (1995), 29;
N. L. Johnson, On an extension of the connexion between Poisson and chi-square distributions (1959).
"""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert.random import functions

from ..special import gammaln, hyp0f1, i0e, i1e, ive, xlogy
from .continuous_distribution import chosen
from .discrete_distribution import Discrete
from .gamma_family import Positive
from .implicit_quantiles import Implicit

__all__ = "ncx2 rice skellam".split()


def _below(a: Any, x: Any, c: Any) -> Any:
    return lookup("special.noncentral_gamma")(a, x, c, n=0)


def _beyond(a: Any, x: Any, c: Any) -> Any:
    return lookup("special.noncentral_gammac")(a, x, c)


class _NonCentralChi2(Positive, Implicit):
    """The sum of the squares of `df` normal numbers, whose means have squares that add up to nc."""

    at_low = False

    def valid(self, df: Any, nc: Any) -> Any:
        return np.logical_and(np.logical_and(df > 0, np.isfinite(df)), nc >= 0)

    def log_density(self, x: Any, df: Any, nc: Any) -> Any:
        # The sum, which is smooth where nc is 0, unless it underflows: then as the first term
        # times 0F1, if that does not overflow, else by the Bessel function that both are,
        # DLMF 10.39.9.
        a, y, c = 0.5 * df, 0.5 * x, 0.5 * nc
        first = xlogy(a - 1.0, y) - y - c - gammaln(a)
        width = np.sqrt(a * a + nc * x)
        growth = width - a - a * np.log(0.5 * (width / a + 1.0))  # of 0F1 about
        near, small = first + growth > -300.0, growth < 600.0
        density = lookup("special.noncentral_density")
        some = [chosen(near, p, q) for p, q in ((a, 1.0), (y, 1.0), (c, 1.0))]
        by_sum = np.log(density(*some, n=0, m=0))
        beside = np.logical_and(small, np.logical_not(near))
        by_series = first + np.log(hyp0f1(chosen(beside, a, 1.0), chosen(beside, c * y, 1.0)))
        far = np.logical_not(np.logical_or(near, small))
        by_bessel = self._far(*(chosen(far, p, 1.0) for p in (x, df, nc)))
        return chosen(near, by_sum, chosen(beside, by_series, by_bessel)) - log(2.0)

    def _far(self, x: Any, df: Any, nc: Any) -> Any:
        first, second = np.sqrt(x), np.sqrt(nc)
        order = 0.5 * df - 1.0
        out = 0.5 * xlogy(order, x / nc) - 0.5 * (first - second) ** 2
        return out + np.log(ive(order, first * second))

    def lower(self, x: Any, df: Any, nc: Any) -> Any:
        return _below(0.5 * df, 0.5 * x, 0.5 * nc)

    def upper(self, x: Any, df: Any, nc: Any) -> Any:
        return _beyond(0.5 * df, 0.5 * x, 0.5 * nc)

    def standard_mean(self, df: Any, nc: Any) -> Any:
        return df + nc

    def standard_var(self, df: Any, nc: Any) -> Any:
        return 2.0 * (df + 2.0 * nc)


class _Rice(Positive, Implicit):
    """The distance from the origin of a normal point of the plane, whose mean is `b` away."""

    at_low = False

    def valid(self, b: Any) -> Any:
        return b >= 0

    def log_density(self, x: Any, b: Any) -> Any:
        return np.log(x) - 0.5 * (x - b) ** 2 + np.log(i0e(x * b))

    def lower(self, x: Any, b: Any) -> Any:
        return _below(1.0, 0.5 * (x * x), 0.5 * (b * b))

    def upper(self, x: Any, b: Any) -> Any:
        return _beyond(1.0, 0.5 * (x * x), 0.5 * (b * b))

    def standard_mean(self, b: Any) -> Any:
        quarter = 0.25 * (b * b)
        scaled = (1.0 + 2.0 * quarter) * i0e(quarter) + 2.0 * quarter * i1e(quarter)
        return sqrt(0.5 * pi) * scaled

    def standard_var(self, b: Any) -> Any:
        return 2.0 + b * b - self.standard_mean(b) ** 2

    def standard_draw(self, key: Any, shape: Any, b: Any) -> Any:
        first, second = functions.split(key)
        return np.hypot(functions.normal(first, shape) + b, functions.normal(second, shape))


class _Skellam(Discrete):
    """The difference of two numbers of Poisson's distribution, of rates mu1 and mu2."""

    ends = (-np.inf, np.inf)
    inner = 0.0

    def inside_of(self, mu1: Any, mu2: Any) -> Any:
        return 0.0

    def valid(self, mu1: Any, mu2: Any) -> Any:
        return np.logical_and(mu1 > 0, mu2 > 0)

    def log_density(self, k: Any, mu1: Any, mu2: Any) -> Any:
        first, second = np.sqrt(mu1), np.sqrt(mu2)
        out = 0.5 * k * (np.log(mu1) - np.log(mu2)) - (first - second) ** 2
        return out + np.log(ive(np.abs(k), 2.0 * first * second))

    def lower(self, k: Any, mu1: Any, mu2: Any) -> Any:
        low = k < 0
        left = _below(chosen(low, -k, 1.0), mu2, mu1)
        return chosen(low, left, _beyond(chosen(low, 1.0, k + 1.0), mu1, mu2))

    def upper(self, k: Any, mu1: Any, mu2: Any) -> Any:
        low = k < 0
        left = _beyond(chosen(low, -k, 1.0), mu2, mu1)
        return chosen(low, left, _below(chosen(low, 1.0, k + 1.0), mu1, mu2))

    def standard_mean(self, mu1: Any, mu2: Any) -> Any:
        return mu1 - mu2

    def standard_var(self, mu1: Any, mu2: Any) -> Any:
        return mu1 + mu2

    def standard_draw(self, key: Any, shape: Any, mu1: Any, mu2: Any) -> Any:
        first, second = functions.split(key)
        return functions.poisson(first, mu1, shape) - functions.poisson(second, mu2, shape)


ncx2 = _NonCentralChi2("ncx2")
rice = _Rice("rice")
skellam = _Skellam("skellam")

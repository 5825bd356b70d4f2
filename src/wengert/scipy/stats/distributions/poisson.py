"""The Poisson distribution, and the Skellam distribution of a difference of two.

    poisson skellam

Formulas: N. L. Johnson, A. W. Kemp, S. Kotz, Univariate Discrete Distributions (2005).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.random import functions

from ...special import gammainc, gammaincc, gammaln, ive, xlogy
from ..discrete_distribution import Discrete
from .chi import noncentral_gammainc, noncentral_gammaincc


class _Poisson(Discrete):
    """The Poisson distribution with mean `mu`."""

    def valid(self, mu: Any) -> Any:
        return mu >= 0

    def log_density(self, k: Any, mu: Any) -> Any:
        return xlogy(k, mu) - gammaln(k + 1.0) - mu

    def lower(self, k: Any, mu: Any) -> Any:
        return gammaincc(k + 1.0, mu)

    def upper(self, k: Any, mu: Any) -> Any:
        return gammainc(k + 1.0, mu)

    def standard_mean(self, mu: Any) -> Any:
        return 1.0 * mu

    standard_var = standard_mean

    def standard_draw(self, key: Any, shape: Any, mu: Any) -> Any:
        return functions.poisson(key, mu, shape)


poisson = _Poisson("poisson")


class _Skellam(Discrete):
    """The difference of two Poisson variables, with means mu1 and mu2."""

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
        left = noncentral_gammainc(np.where(low, -k, 1.0), mu2, mu1)
        return np.where(low, left, noncentral_gammaincc(np.where(low, 1.0, k + 1.0), mu1, mu2))

    def upper(self, k: Any, mu1: Any, mu2: Any) -> Any:
        low = k < 0
        left = noncentral_gammaincc(np.where(low, -k, 1.0), mu2, mu1)
        return np.where(low, left, noncentral_gammainc(np.where(low, 1.0, k + 1.0), mu1, mu2))

    def standard_mean(self, mu1: Any, mu2: Any) -> Any:
        return mu1 - mu2

    def standard_var(self, mu1: Any, mu2: Any) -> Any:
        return mu1 + mu2

    def standard_draw(self, key: Any, shape: Any, mu1: Any, mu2: Any) -> Any:
        first, second = functions.split(key)
        return functions.poisson(first, mu1, shape) - functions.poisson(second, mu2, shape)


skellam = _Skellam("skellam")

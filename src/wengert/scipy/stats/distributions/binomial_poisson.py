"""Counts: of successes, of failures before them, and of events.

    bernoulli binom betabinom     successes in trials, with known and with random probability
    geom nbinom betanbinom        failures before some successes
    hypergeom nhypergeom          the same without replacement
    poisson skellam               events, and the difference of two numbers of events

Formulas: N. L. Johnson, A. W. Kemp, S. Kotz, Univariate Discrete Distributions (2005).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.random import functions

from ...special import (
    betainc,
    betaincc,
    betaln,
    entr,
    gammainc,
    gammaincc,
    gammaln,
    ive,
    xlog1py,
    xlogy,
)
from ..discrete_distribution import Discrete, Finite
from .chi import noncentral_gammainc, noncentral_gammaincc
from .common import is_count, is_probability, log_binomial, where_finite


class _Bernoulli(Discrete):
    """The Bernoulli distribution: 1 with probability `p`, else 0."""

    ends = (0.0, 1.0)

    def valid(self, p: Any) -> Any:
        return is_probability(p)

    def log_density(self, k: Any, p: Any) -> Any:
        return xlogy(k, p) + xlog1py(1.0 - k, -p)

    def lower(self, k: Any, p: Any) -> Any:
        return 1.0 - p + 0.0 * k

    def upper(self, k: Any, p: Any) -> Any:
        return p + 0.0 * k

    def standard_mean(self, p: Any) -> Any:
        return 1.0 * p

    def standard_var(self, p: Any) -> Any:
        return p * (1.0 - p)

    def standard_entropy(self, p: Any) -> Any:
        return entr(p) + entr(1.0 - p)

    def standard_draw(self, key: Any, shape: Any, p: Any) -> Any:
        return functions.bernoulli(key, p, shape).astype(np.int64)


bernoulli = _Bernoulli("bernoulli")


class _Binom(Discrete):
    """The number of successes in `n` independent trials with success probability `p`."""

    def valid(self, n: Any, p: Any) -> Any:
        return np.logical_and(is_count(n), is_probability(p))

    def support_of(self, n: Any, p: Any) -> Any:
        return 0.0, n

    def log_density(self, k: Any, n: Any, p: Any) -> Any:
        return log_binomial(n, k) + xlogy(k, p) + xlog1py(n - k, -p)

    def lower(self, k: Any, n: Any, p: Any) -> Any:
        return betaincc(k + 1.0, n - k, p)

    def upper(self, k: Any, n: Any, p: Any) -> Any:
        return betainc(k + 1.0, n - k, p)

    def standard_mean(self, n: Any, p: Any) -> Any:
        return n * p

    def standard_var(self, n: Any, p: Any) -> Any:
        return n * p * (1.0 - p)

    def standard_draw(self, key: Any, shape: Any, n: Any, p: Any) -> Any:
        return functions.binomial(key, n, p, shape)


binom = _Binom("binom")


class _BetaBinom(Finite):
    """The binomial distribution whose success probability is beta(a, b) distributed."""

    def valid(self, n: Any, a: Any, b: Any) -> Any:
        return np.logical_and(is_count(n), np.logical_and(a > 0, b > 0))

    def support_of(self, n: Any, a: Any, b: Any) -> Any:
        return 0.0, n

    def log_density(self, k: Any, n: Any, a: Any, b: Any) -> Any:
        return log_binomial(n, k) + betaln(k + a, n - k + b) - betaln(a, b)

    def standard_mean(self, n: Any, a: Any, b: Any) -> Any:
        return n * a / (a + b)

    def standard_var(self, n: Any, a: Any, b: Any) -> Any:
        total = a + b
        return n * (total + n) * a * b / (total * total * (total + 1.0))

    def standard_draw(self, key: Any, shape: Any, n: Any, a: Any, b: Any) -> Any:
        first, second = functions.split(key)
        return functions.binomial(second, n, functions.beta(first, a, b, shape), shape)


betabinom = _BetaBinom("betabinom")


class _NBinom(Discrete):
    """The number of failures before `n` successes, with success probability `p`."""

    def valid(self, n: Any, p: Any) -> Any:
        return np.logical_and(n > 0, np.logical_and(p > 0, p <= 1))

    def log_density(self, k: Any, n: Any, p: Any) -> Any:
        return -np.log(n + k) - betaln(n, k + 1.0) + n * np.log(p) + xlog1py(k, -p)

    def lower(self, k: Any, n: Any, p: Any) -> Any:
        return betainc(n, k + 1.0, p)

    def upper(self, k: Any, n: Any, p: Any) -> Any:
        return betaincc(n, k + 1.0, p)

    def standard_mean(self, n: Any, p: Any) -> Any:
        return n * (1.0 - p) / p

    def standard_var(self, n: Any, p: Any) -> Any:
        return n * (1.0 - p) / (p * p)

    def standard_draw(self, key: Any, shape: Any, n: Any, p: Any) -> Any:
        return functions.negative_binomial(key, n, p, shape)


nbinom = _NBinom("nbinom")


class _Geom(Discrete):
    """The number of trials until the first success, with success probability `p`."""

    ends = (1.0, np.inf)

    def valid(self, p: Any) -> Any:
        return np.logical_and(p > 0, p <= 1)

    def log_density(self, k: Any, p: Any) -> Any:
        return xlog1py(k - 1.0, -p) + np.log(p)

    def lower(self, k: Any, p: Any) -> Any:
        return -np.expm1(xlog1py(k, -p))

    def upper(self, k: Any, p: Any) -> Any:
        return np.exp(xlog1py(k, -p))

    def standard_mean(self, p: Any) -> Any:
        return 1.0 / p

    def standard_var(self, p: Any) -> Any:
        return (1.0 - p) / (p * p)

    def standard_entropy(self, p: Any) -> Any:
        return (entr(p) + entr(1.0 - p)) / p

    def standard_draw(self, key: Any, shape: Any, p: Any) -> Any:
        return functions.geometric(key, p, shape)


geom = _Geom("geom")


class _BetaNBinom(Discrete):
    """The negative binomial distribution whose success probability is beta(a, b) distributed."""

    has_light_tail = False

    def valid(self, n: Any, a: Any, b: Any) -> Any:
        return np.logical_and(n >= 0, np.logical_and(a > 0, b > 0))

    def log_density(self, k: Any, n: Any, a: Any, b: Any) -> Any:
        out = -np.log(n + k) - betaln(n, k + 1.0)
        return out + betaln(a + n, b + k) - betaln(a, b)

    def standard_mean(self, n: Any, a: Any, b: Any) -> Any:
        def mean(n: Any, a: Any, b: Any) -> Any:
            return n * b / (a - 1.0)

        return where_finite(a > 1, mean, n, a, b, fallback=(1.0, 2.0, 1.0))

    def standard_var(self, n: Any, a: Any, b: Any) -> Any:
        def var(n: Any, a: Any, b: Any) -> Any:
            return n * b * (n + a - 1.0) * (a + b - 1.0) / ((a - 2.0) * (a - 1.0) ** 2)

        return where_finite(a > 2, var, n, a, b, fallback=(1.0, 3.0, 1.0))


betanbinom = _BetaNBinom("betanbinom")


class _HyperGeom(Finite):
    """The number of type-1 items in `N` draws without replacement; `n` of `M` are type 1."""

    def valid(self, M: Any, n: Any, N: Any) -> Any:
        are_counts = np.logical_and(is_count(M), np.logical_and(is_count(n), is_count(N)))
        return np.logical_and(are_counts, np.logical_and(n <= M, N <= M))

    def support_of(self, M: Any, n: Any, N: Any) -> Any:
        return np.maximum(N - (M - n), 0.0), np.minimum(n, N)

    def log_density(self, k: Any, M: Any, n: Any, N: Any) -> Any:
        return log_binomial(n, k) + log_binomial(M - n, N - k) - log_binomial(M, N)

    def standard_mean(self, M: Any, n: Any, N: Any) -> Any:
        return N * (n / M)

    def standard_var(self, M: Any, n: Any, N: Any) -> Any:
        share = n / M
        return N * share * (1.0 - share) * ((M - N) / (M - 1.0))


hypergeom = _HyperGeom("hypergeom")


class _NHyperGeom(Finite):
    """The number of type-1 items drawn before `r` of type 2; `n` of `M` are type 1."""

    def valid(self, M: Any, n: Any, r: Any) -> Any:
        valid = np.logical_and(n >= 0, n <= M)
        return np.logical_and(valid, np.logical_and(r >= 0, r <= M - n))

    def support_of(self, M: Any, n: Any, r: Any) -> Any:
        return 0.0, n * 1.0

    def log_density(self, k: Any, M: Any, n: Any, r: Any) -> Any:
        out = -betaln(k + 1.0, r) + betaln(k + r, 1.0) - betaln(n - k + 1.0, M - r - n + 1.0)
        out = out + betaln(M - r - k + 1.0, 1.0) + betaln(n + 1.0, M - n + 1.0)
        return out - betaln(M + 1.0, 1.0)

    def standard_mean(self, M: Any, n: Any, r: Any) -> Any:
        return r * n / (M - n + 1.0)

    def standard_var(self, M: Any, n: Any, r: Any) -> Any:
        rest = M - n + 1.0
        return r * n * (M + 1.0) * (rest - r) / (rest * rest * (rest + 1.0))


nhypergeom = _NHyperGeom("nhypergeom")


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

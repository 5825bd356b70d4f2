"""Distributions of whole numbers.

    bernoulli, binom, nbinom, poisson, geom, hypergeom, betabinom,
    zipf, dlaplace, randint, logser.

Each class has the formulas of the standard form; what they are for is said in distribution.py.
Binomial coefficients are written as beta functions, which lose no digits where factorials are
large: N. L. Johnson, A. W. Kemp, S. Kotz, Univariate Discrete Distributions (2005).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert.random import functions

from ..special import (
    betainc,
    betaincc,
    betaln,
    entr,
    gammainc,
    gammaincc,
    gammaln,
    hyp2f1,
    xlog1py,
    xlogy,
)
from .continuous_distribution import chosen, log1mexp, root_or_zero
from .discrete_distribution import Discrete, Finite

__all__ = """
    bernoulli binom nbinom poisson geom hypergeom betabinom zipf dlaplace randint logser
""".split()


def _probability(p: Any) -> Any:
    return np.logical_and(p >= 0, p <= 1)


def _whole(n: Any) -> Any:
    return np.logical_and(n >= 0, n == np.floor(n))


def _log_choose(n: Any, k: Any) -> Any:
    """The logarithm of the binomial coefficient."""
    return -np.log(n + 1.0) - betaln(n - k + 1.0, k + 1.0)


class _Bernoulli(Discrete):
    """1 with the probability `p`, else 0."""

    ends = (0.0, 1.0)

    def valid(self, p: Any) -> Any:
        return _probability(p)

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


class _Binom(Discrete):
    """How many of `n` attempts succeed, each with the probability `p`."""

    def valid(self, n: Any, p: Any) -> Any:
        return np.logical_and(_whole(n), _probability(p))

    def support_of(self, n: Any, p: Any) -> Any:
        return 0.0, n

    def log_density(self, k: Any, n: Any, p: Any) -> Any:
        return _log_choose(n, k) + xlogy(k, p) + xlog1py(n - k, -p)

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


class _NBinom(Discrete):
    """How many attempts fail before `n` have succeeded, each with the probability `p`."""

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


class _Poisson(Discrete):
    """How often something happens at the rate `mu`."""

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


class _Geom(Discrete):
    """How many attempts of the probability `p` it takes until one succeeds."""

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


class _HyperGeom(Finite):
    """How many of `n` marked ones are among `N` taken from `M`, without putting back."""

    def valid(self, M: Any, n: Any, N: Any) -> Any:
        whole = np.logical_and(_whole(M), np.logical_and(_whole(n), _whole(N)))
        return np.logical_and(whole, np.logical_and(n <= M, N <= M))

    def support_of(self, M: Any, n: Any, N: Any) -> Any:
        return np.maximum(N - (M - n), 0.0), np.minimum(n, N)

    def log_density(self, k: Any, M: Any, n: Any, N: Any) -> Any:
        return _log_choose(n, k) + _log_choose(M - n, N - k) - _log_choose(M, N)

    def standard_mean(self, M: Any, n: Any, N: Any) -> Any:
        return N * (n / M)

    def standard_var(self, M: Any, n: Any, N: Any) -> Any:
        share = n / M
        return N * share * (1.0 - share) * ((M - N) / (M - 1.0))


class _BetaBinom(Finite):
    """binom, whose probability of success is drawn from the beta distribution of `a` and `b`."""

    def valid(self, n: Any, a: Any, b: Any) -> Any:
        return np.logical_and(_whole(n), np.logical_and(a > 0, b > 0))

    def support_of(self, n: Any, a: Any, b: Any) -> Any:
        return 0.0, n

    def log_density(self, k: Any, n: Any, a: Any, b: Any) -> Any:
        return _log_choose(n, k) + betaln(k + a, n - k + b) - betaln(a, b)

    def standard_mean(self, n: Any, a: Any, b: Any) -> Any:
        return n * a / (a + b)

    def standard_var(self, n: Any, a: Any, b: Any) -> Any:
        total = a + b
        return n * (total + n) * a * b / (total * total * (total + 1.0))

    def standard_draw(self, key: Any, shape: Any, n: Any, a: Any, b: Any) -> Any:
        first, second = functions.split(key)
        return functions.binomial(second, n, functions.beta(first, a, b, shape), shape)


def _sum_of_powers(a: Any, first: Any) -> Any:
    """The sum of k^-a from k = first on, Hurwitz' zeta function."""
    return lookup("special.zeta.hurwitz")(a, first)


class _Zipf(Discrete):
    """Whole numbers from 1 on with probabilities proportional to k^-a."""

    ends = (1.0, np.inf)

    def valid(self, a: Any) -> Any:
        return a > 1

    def log_density(self, k: Any, a: Any) -> Any:
        return -np.log(_sum_of_powers(a, 1.0)) - a * np.log(k)

    def upper(self, k: Any, a: Any) -> Any:
        return _sum_of_powers(a, k + 1.0) / _sum_of_powers(a, 1.0)

    def standard_mean(self, a: Any) -> Any:
        some = chosen(a > 2, a, 3.0)
        return chosen(a > 2, _sum_of_powers(some - 1.0, 1.0) / _sum_of_powers(some, 1.0), np.inf)

    def standard_var(self, a: Any) -> Any:
        # About 1, which nearly all are for a large a: no digits are lost.
        some = chosen(a > 3, a, 4.0)
        zero, one, two = (_sum_of_powers(some - n, 2.0) for n in (0.0, 1.0, 2.0))
        whole = 1.0 + zero
        found = (two - 2.0 * one + zero) / whole - ((one - zero) / whole) ** 2
        return chosen(a > 3, found, np.inf)

    def standard_std(self, a: Any) -> Any:
        return root_or_zero(self.standard_var(a))

    def standard_entropy(self, a: Any) -> Any:
        whole = _sum_of_powers(a, 1.0)
        return np.log(whole) - a * lookup("special.hurwitz_order")(a, 1.0, n=1) / whole


class _DLaplace(Discrete):
    """Whole numbers with probabilities proportional to exp(-a |k|)."""

    ends = (-np.inf, np.inf)
    inner = 0.0

    def inside_of(self, a: Any) -> Any:
        return 0.0

    def valid(self, a: Any) -> Any:
        return a > 0

    def log_density(self, k: Any, a: Any) -> Any:
        return self._log_middle(a) - a * np.abs(k)

    def _log_middle(self, a: Any) -> Any:
        """The logarithm of tanh(a / 2), the probability of 0."""
        return log1mexp(-a) - np.log1p(np.exp(-a))

    def lower(self, k: Any, a: Any) -> Any:
        right = k >= 0
        tail = np.exp(-a * chosen(right, k + 1.0, -k)) / (1.0 + np.exp(-a))
        return chosen(right, 1.0 - tail, tail)

    def upper(self, k: Any, a: Any) -> Any:
        right = k >= 0
        tail = np.exp(-a * chosen(right, k + 1.0, -k)) / (1.0 + np.exp(-a))
        return chosen(right, tail, 1.0 - tail)

    def standard_mean(self, a: Any) -> Any:
        return 0.0 * a

    def standard_var(self, a: Any) -> Any:
        return self.standard_std(a) ** 2

    def standard_std(self, a: Any) -> Any:
        return np.sqrt(2.0) * np.exp(-0.5 * a) / -np.expm1(-a)

    def standard_entropy(self, a: Any) -> Any:
        return 2.0 * a * np.exp(-a) / -np.expm1(-2.0 * a) - self._log_middle(a)

    def standard_draw(self, key: Any, shape: Any, a: Any) -> Any:
        first, second = functions.split(key)
        p = -np.expm1(-a)
        return functions.geometric(first, p, shape) - functions.geometric(second, p, shape)


class _RandInt(Discrete):
    """Whole numbers from `low` to before `high`, each equally likely."""

    def valid(self, low: Any, high: Any) -> Any:
        return np.logical_and(
            high > low, np.logical_and(low == np.floor(low), high == np.floor(high))
        )

    def support_of(self, low: Any, high: Any) -> Any:
        return low, high - 1.0

    def log_density(self, k: Any, low: Any, high: Any) -> Any:
        return -np.log(high - low) + 0.0 * k

    def lower(self, k: Any, low: Any, high: Any) -> Any:
        return (k - low + 1.0) / (high - low)

    def standard_mean(self, low: Any, high: Any) -> Any:
        return 0.5 * (low + high - 1.0)

    def standard_var(self, low: Any, high: Any) -> Any:
        count = high - low
        return (count * count - 1.0) / 12.0

    def standard_entropy(self, low: Any, high: Any) -> Any:
        return np.log(high - low)


class _LogSer(Discrete):
    """Whole numbers from 1 on with probabilities proportional to p^k / k."""

    ends = (1.0, np.inf)

    def valid(self, p: Any) -> Any:
        return np.logical_and(p > 0, p < 1)

    def log_density(self, k: Any, p: Any) -> Any:
        return xlogy(k, p) - np.log(k) - np.log(-np.log1p(-p))

    def upper(self, k: Any, p: Any) -> Any:
        # The integral of t^k / (1 - t) from 0 to p, an incomplete beta function of b = 0.
        tail = hyp2f1(1.0, k + 1.0, k + 2.0, p) / (k + 1.0)
        return -np.exp(xlogy(k + 1.0, p)) * tail / np.log1p(-p)

    def standard_mean(self, p: Any) -> Any:
        return -p / ((1.0 - p) * np.log1p(-p))

    def standard_var(self, p: Any) -> Any:
        r = np.log1p(-p)
        return -p * (p + r) / ((1.0 - p) * r) ** 2


bernoulli = _Bernoulli("bernoulli")
binom = _Binom("binom")
nbinom = _NBinom("nbinom")
poisson = _Poisson("poisson")
geom = _Geom("geom")
hypergeom = _HyperGeom("hypergeom")
betabinom = _BetaBinom("betabinom")
zipf = _Zipf("zipf")
dlaplace = _DLaplace("dlaplace")
randint = _RandInt("randint")
logser = _LogSer("logser")

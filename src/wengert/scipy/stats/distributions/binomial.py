"""The binomial distribution and those derived from it.

    bernoulli binom betabinom

Formulas: N. L. Johnson, A. W. Kemp, S. Kotz, Univariate Discrete Distributions (2005).
Binomial coefficients are computed from betaln, which is accurate where factorials are large.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.random import functions

from ...special import betainc, betaincc, betaln, entr, xlog1py, xlogy
from ..discrete_distribution import Discrete, Finite
from .common import is_count, is_probability, log_binomial


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

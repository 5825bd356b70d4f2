"""Discrete distributions whose probabilities decay as a power, exponentially, or as both.

    zipf zipfian yulesimon   planck boltzmann   logser

Formulas: N. L. Johnson, A. W. Kemp, S. Kotz, Univariate Discrete Distributions (2005).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert.random.functions import exponential, geometric, split

from ...special import betaln, hyp2f1, logsumexp, xlogy
from ..continuous_distribution import exp_of, log1mexp, sqrt_or_zero
from ..discrete_distribution import Discrete, Finite, integers
from .common import where_finite


def _sum_of_powers(a: Any, first: Any) -> Any:
    """The Hurwitz zeta function: the sum of k^-a over k >= first."""
    return lookup("special.zeta.hurwitz")(a, first)


class _Zipf(Discrete):
    """The Zipf (zeta) distribution: probabilities proportional to k^-a for k >= 1."""

    ends = (1.0, np.inf)

    def valid(self, a: Any) -> Any:
        return a > 1

    def log_density(self, k: Any, a: Any) -> Any:
        return -np.log(_sum_of_powers(a, 1.0)) - a * np.log(k)

    def upper(self, k: Any, a: Any) -> Any:
        return _sum_of_powers(a, k + 1.0) / _sum_of_powers(a, 1.0)

    def standard_mean(self, a: Any) -> Any:
        safe = np.where(a > 2, a, 3.0)
        return np.where(a > 2, _sum_of_powers(safe - 1.0, 1.0) / _sum_of_powers(safe, 1.0), np.inf)

    def standard_var(self, a: Any) -> Any:
        # Mean about 1, the most probable value for large a, to avoid cancellation.
        safe = np.where(a > 3, a, 4.0)
        zero, one, two = (_sum_of_powers(safe - n, 2.0) for n in (0.0, 1.0, 2.0))
        total = 1.0 + zero
        out = (two - 2.0 * one + zero) / total - ((one - zero) / total) ** 2
        return np.where(a > 3, out, np.inf)

    def standard_std(self, a: Any) -> Any:
        return sqrt_or_zero(self.standard_var(a))

    def standard_entropy(self, a: Any) -> Any:
        total = _sum_of_powers(a, 1.0)
        return np.log(total) - a * lookup("special.hurwitz_order")(a, 1.0, n=1) / total


zipf = _Zipf("zipf")


class _Zipfian(Finite):
    """The Zipfian distribution: probabilities proportional to k^-a for 1 <= k <= n."""

    def valid(self, a: Any, n: Any) -> Any:
        return np.logical_and(a >= 0, np.logical_and(n > 0, n == np.floor(n)))

    def support_of(self, a: Any, n: Any) -> Any:
        return 1.0, n

    def log_density(self, k: Any, a: Any, n: Any) -> Any:
        return -a * np.log(k) - self._log_sum(0.0, a, n)

    def _log_sum(self, power: float, a: Any, n: Any) -> Any:
        """The log of the sum of k^(power - a) over k <= n."""
        known = self.known_value(n)
        k = integers(1.0, np.max(known), a, n)
        return logsumexp(np.where(k <= known, (power - a) * np.log(k), -np.inf), axis=0)

    def standard_mean(self, a: Any, n: Any) -> Any:
        return np.exp(self._log_sum(1.0, a, n) - self._log_sum(0.0, a, n))

    def standard_var(self, a: Any, n: Any) -> Any:
        # Mean about 1, the most probable value for large a, to avoid cancellation.
        known = self.known_value(n)
        k = integers(1.0, np.max(known), a, n)
        share = np.where(k <= known, exp_of(self.log_density(k, a, n)), 0.0)
        first = np.sum((k - 1.0) * share, axis=0)
        return np.sum((k - 1.0) ** 2 * share, axis=0) - first * first

    def standard_std(self, a: Any, n: Any) -> Any:
        return sqrt_or_zero(self.standard_var(a, n))


zipfian = _Zipfian("zipfian")


class _YuleSimon(Discrete):
    """The Yule-Simon distribution with parameter alpha."""

    ends = (1.0, np.inf)
    has_light_tail = False

    def valid(self, alpha: Any) -> Any:
        return alpha > 0

    def log_density(self, k: Any, alpha: Any) -> Any:
        return np.log(alpha) + betaln(k, alpha + 1.0)

    def upper(self, k: Any, alpha: Any) -> Any:
        return k * np.exp(betaln(k, alpha + 1.0))

    def standard_mean(self, alpha: Any) -> Any:
        return where_finite(alpha > 1, lambda a: a / (a - 1.0), alpha, fallback=(2.0,))

    def standard_var(self, alpha: Any) -> Any:
        def var(a: Any) -> Any:
            return a * a / ((a - 2.0) * (a - 1.0) ** 2)

        return where_finite(alpha > 2, var, alpha, fallback=(3.0,))

    def standard_draw(self, key: Any, shape: Any, alpha: Any) -> Any:
        first, second = split(key)
        return geometric(second, np.exp(-exponential(first, shape) / alpha), shape)


yulesimon = _YuleSimon("yulesimon")


def _reciprocal(x: Any) -> Any:
    """1 / (exp(x) - 1), which does not overflow."""
    return np.exp(-x) / -np.expm1(-x)


class _Planck(Discrete):
    """The Planck distribution: probabilities proportional to exp(-lambda k) for k >= 0."""

    def valid(self, lambda_: Any) -> Any:
        return lambda_ > 0

    def log_density(self, k: Any, lambda_: Any) -> Any:
        return log1mexp(-lambda_) - lambda_ * k

    def lower(self, k: Any, lambda_: Any) -> Any:
        return -np.expm1(-lambda_ * (k + 1.0))

    def log_upper(self, k: Any, lambda_: Any) -> Any:
        return -lambda_ * (k + 1.0)

    def standard_mean(self, lambda_: Any) -> Any:
        return _reciprocal(lambda_)

    def standard_var(self, lambda_: Any) -> Any:
        return self.standard_std(lambda_) ** 2

    def standard_std(self, lambda_: Any) -> Any:
        return np.exp(-0.5 * lambda_) / -np.expm1(-lambda_)

    def standard_entropy(self, lambda_: Any) -> Any:
        return lambda_ * _reciprocal(lambda_) - log1mexp(-lambda_)

    def standard_draw(self, key: Any, shape: Any, lambda_: Any) -> Any:
        return geometric(key, -np.expm1(-lambda_), shape) - 1


planck = _Planck("planck")


class _Boltzmann(Discrete):
    """The Boltzmann distribution: planck truncated to k < N."""

    def valid(self, lambda_: Any, N: Any) -> Any:
        return np.logical_and(lambda_ > 0, N > 0)

    def support_of(self, lambda_: Any, N: Any) -> Any:
        return 0.0, N - 1.0

    def log_density(self, k: Any, lambda_: Any, N: Any) -> Any:
        return log1mexp(-lambda_) - log1mexp(-lambda_ * N) - lambda_ * k

    def lower(self, k: Any, lambda_: Any, N: Any) -> Any:
        return np.expm1(-lambda_ * (k + 1.0)) / np.expm1(-lambda_ * N)

    def upper(self, k: Any, lambda_: Any, N: Any) -> Any:
        beyond = np.expm1(-lambda_ * (N - k - 1.0))
        return np.exp(-lambda_ * (k + 1.0)) * beyond / np.expm1(-lambda_ * N)

    def standard_mean(self, lambda_: Any, N: Any) -> Any:
        return _reciprocal(lambda_) - N * _reciprocal(lambda_ * N)

    def standard_var(self, lambda_: Any, N: Any) -> Any:
        exponent = lambda_ * N
        first = np.exp(-lambda_) / np.expm1(-lambda_) ** 2
        return first - N * N * np.exp(-exponent) / np.expm1(-exponent) ** 2


boltzmann = _Boltzmann("boltzmann")


class _LogSer(Discrete):
    """The logarithmic distribution: probabilities proportional to p^k / k for k >= 1."""

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


logser = _LogSer("logser")

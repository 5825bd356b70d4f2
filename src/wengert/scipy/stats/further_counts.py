"""Further distributions of whole numbers.

    planck boltzmann yulesimon zipfian betanbinom nhypergeom

Each class has the formulas of the standard form; what they are for is said in distribution.py.
Formulas: N. L. Johnson, A. W. Kemp, S. Kotz, Univariate Discrete Distributions (2005); with
exp(x) - 1 and log(1 + x) where others lose their digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.random.functions import exponential, geometric, split

from ..special import betaln, logsumexp
from .continuous_distribution import chosen, exp_of, log1mexp, root_or_zero
from .discrete_distribution import Discrete, Finite, numbers
from .powers import where_finite

__all__ = "planck boltzmann yulesimon zipfian betanbinom nhypergeom".split()


def _reciprocal(x: Any) -> Any:
    """1 / (exp(x) - 1), which does not overflow."""
    return np.exp(-x) / -np.expm1(-x)


class _Planck(Discrete):
    """Whole numbers from 0 on with probabilities proportional to exp(-lambda k)."""

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


class _Boltzmann(Discrete):
    """planck, of the numbers before N alone."""

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
        whole = lambda_ * N
        first = np.exp(-lambda_) / np.expm1(-lambda_) ** 2
        return first - N * N * np.exp(-whole) / np.expm1(-whole) ** 2


class _YuleSimon(Discrete):
    """Whole numbers from 1 on whose tail is a power alpha."""

    ends = (1.0, np.inf)
    light = False

    def valid(self, alpha: Any) -> Any:
        return alpha > 0

    def log_density(self, k: Any, alpha: Any) -> Any:
        return np.log(alpha) + betaln(k, alpha + 1.0)

    def upper(self, k: Any, alpha: Any) -> Any:
        return k * np.exp(betaln(k, alpha + 1.0))

    def standard_mean(self, alpha: Any) -> Any:
        return where_finite(alpha > 1, lambda a: a / (a - 1.0), alpha, beside=(2.0,))

    def standard_var(self, alpha: Any) -> Any:
        def var(a: Any) -> Any:
            return a * a / ((a - 2.0) * (a - 1.0) ** 2)

        return where_finite(alpha > 2, var, alpha, beside=(3.0,))

    def standard_draw(self, key: Any, shape: Any, alpha: Any) -> Any:
        first, second = split(key)
        return geometric(second, np.exp(-exponential(first, shape) / alpha), shape)


class _Zipfian(Finite):
    """Whole numbers from 1 to n with probabilities proportional to k^-a."""

    def valid(self, a: Any, n: Any) -> Any:
        return np.logical_and(a >= 0, np.logical_and(n > 0, n == np.floor(n)))

    def support_of(self, a: Any, n: Any) -> Any:
        return 1.0, n

    def log_density(self, k: Any, a: Any, n: Any) -> Any:
        return -a * np.log(k) - self._log_sum(0.0, a, n)

    def _log_sum(self, power: float, a: Any, n: Any) -> Any:
        """The logarithm of the sum of k^(power - a) up to n."""
        known = self.known(n)
        k = numbers(1.0, np.max(known), a, n)
        return logsumexp(chosen(k <= known, (power - a) * np.log(k), -np.inf), axis=0)

    def standard_mean(self, a: Any, n: Any) -> Any:
        return np.exp(self._log_sum(1.0, a, n) - self._log_sum(0.0, a, n))

    def standard_var(self, a: Any, n: Any) -> Any:
        # About 1, which nearly all are for a large a: no digits are lost.
        known = self.known(n)
        k = numbers(1.0, np.max(known), a, n)
        share = chosen(k <= known, exp_of(self.log_density(k, a, n)), 0.0)
        first = np.sum((k - 1.0) * share, axis=0)
        return np.sum((k - 1.0) ** 2 * share, axis=0) - first * first

    def standard_std(self, a: Any, n: Any) -> Any:
        return root_or_zero(self.standard_var(a, n))


class _BetaNBinom(Discrete):
    """nbinom, whose probability of success is drawn from the beta distribution of `a` and `b`."""

    light = False

    def valid(self, n: Any, a: Any, b: Any) -> Any:
        return np.logical_and(n >= 0, np.logical_and(a > 0, b > 0))

    def log_density(self, k: Any, n: Any, a: Any, b: Any) -> Any:
        out = -np.log(n + k) - betaln(n, k + 1.0)
        return out + betaln(a + n, b + k) - betaln(a, b)

    def standard_mean(self, n: Any, a: Any, b: Any) -> Any:
        def mean(n: Any, a: Any, b: Any) -> Any:
            return n * b / (a - 1.0)

        return where_finite(a > 1, mean, n, a, b, beside=(1.0, 2.0, 1.0))

    def standard_var(self, n: Any, a: Any, b: Any) -> Any:
        def var(n: Any, a: Any, b: Any) -> Any:
            return n * b * (n + a - 1.0) * (a + b - 1.0) / ((a - 2.0) * (a - 1.0) ** 2)

        return where_finite(a > 2, var, n, a, b, beside=(1.0, 3.0, 1.0))


class _NHyperGeom(Finite):
    """How many of `n` marked ones come, of M, before `r` that are not marked."""

    def valid(self, M: Any, n: Any, r: Any) -> Any:
        some = np.logical_and(n >= 0, n <= M)
        return np.logical_and(some, np.logical_and(r >= 0, r <= M - n))

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


planck = _Planck("planck")
boltzmann = _Boltzmann("boltzmann")
yulesimon = _YuleSimon("yulesimon")
zipfian = _Zipfian("zipfian")
betanbinom = _BetaNBinom("betanbinom")
nhypergeom = _NHyperGeom("nhypergeom")

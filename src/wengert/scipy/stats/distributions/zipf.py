"""The Zipf distribution, its finite version, and the Yule-Simon distribution.

    zipf zipfian yulesimon

Formulas: N. L. Johnson, A. W. Kemp, S. Kotz, Univariate Discrete Distributions (2005).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert.random.functions import exponential, geometric, split

from ...special import betaln, logsumexp
from ..continuous_distribution import exp_of, sqrt_or_zero
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

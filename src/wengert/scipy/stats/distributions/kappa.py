"""The kappa distributions.

    kappa3 kappa4

Formulas: J. R. M. Hosking, The four-parameter kappa distribution (1994).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.random import functions

from ...special import exprel
from ..continuous_distribution import Continuous
from .burr import log1p_power
from .common import PositiveSupport, log1p_ratio


class _Kappa3(PositiveSupport):
    """Mielke's one-parameter kappa distribution."""

    def valid(self, a: Any) -> Any:
        return a > 0

    def log_density(self, x: Any, a: Any) -> Any:
        positive = x > 0
        point = np.where(positive, x, 1.0)
        inside = np.log(a) + (a + 1.0) * (self.log_lower(point, a) - np.log(point))
        start = np.log(a) - (a + 1.0) / a * np.logaddexp(np.log(a), a * np.log(x))
        return np.where(positive, inside, start)

    def log_lower(self, x: Any, a: Any) -> Any:
        return -log1p_power(np.log(a) - a * np.log(x)) / a

    def quantile(self, q: Any, a: Any) -> Any:
        return np.exp((np.log(a) - np.log(np.expm1(-a * np.log(q)))) / a)

    def upper_quantile(self, q: Any, a: Any) -> Any:
        return np.exp((np.log(a) - np.log(np.expm1(-a * np.log1p(-q)))) / a)

    def standard_draw(self, key: Any, shape: Any, a: Any) -> Any:
        return np.exp((np.log(a) - np.log(np.expm1(a * functions.exponential(key, shape)))) / a)


kappa3 = _Kappa3("kappa3")


class _Kappa4(Continuous):
    """Hosking's four-parameter kappa distribution; smooth where `h` or `k` is 0."""

    at_low = at_high = False

    def valid(self, h: Any, k: Any) -> Any:
        return np.logical_and(h == h, k == k)

    def support_of(self, h: Any, k: Any) -> Any:
        some_k = np.where(k == 0, 1.0, k)
        y = np.log(np.where(h > 0, h, 1.0))  # below, 1 - h (1 - k x)^(1/k) is negative
        below = y * exprel(-k * y)
        low = np.where(h > 0, below, np.where(k < 0, 1.0 / some_k, -np.inf))
        return low, np.where(k > 0, 1.0 / some_k, np.inf)

    def inside_of(self, h: Any, k: Any) -> Any:
        return self.quantile(0.5, h, k)

    def _parts(self, x: Any, h: Any, k: Any) -> tuple[Any, Any]:
        """The logarithms of (1 - k x)^(1/k) and of the cdf."""
        inner = -log1p_ratio(-k, x)
        return inner, -log1p_ratio(-h, np.exp(inner))

    def log_density(self, x: Any, h: Any, k: Any) -> Any:
        inner, log_cdf = self._parts(x, h, k)
        return inner - np.log1p(-k * x) + (1.0 - h) * log_cdf

    def log_lower(self, x: Any, h: Any, k: Any) -> Any:
        return self._parts(x, h, k)[1]

    def quantile(self, q: Any, h: Any, k: Any) -> Any:
        return self._quantile(-np.log(q), h, k)

    def upper_quantile(self, q: Any, h: Any, k: Any) -> Any:
        return self._quantile(-np.log1p(-q), h, k)

    def _quantile(self, size: Any, h: Any, k: Any) -> Any:
        """The quantile as a function of -log(q)."""
        y = -np.log(size * exprel(-h * size))
        return y * exprel(-k * y)

    def standard_draw(self, key: Any, shape: Any, h: Any, k: Any) -> Any:
        return self._quantile(functions.exponential(key, shape), h, k)


kappa4 = _Kappa4("kappa4")

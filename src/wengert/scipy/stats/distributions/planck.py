"""The Planck and Boltzmann (discrete exponential) distributions.

    planck boltzmann

Formulas: N. L. Johnson, A. W. Kemp, S. Kotz, Univariate Discrete Distributions (2005).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.random.functions import geometric

from ..continuous_distribution import log1mexp
from ..discrete_distribution import Discrete


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

"""The cosine and anglit distributions.

    cosine anglit

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from ..continuous_distribution import Continuous
from ..implicit_quantiles import Implicit

_REST_OF_PI = 1.2246467991473532e-16  # pi minus its nearest double


class _Cosine(Implicit):
    """The cosine distribution: density (1 + cos x) / (2 pi) on [-pi, pi]."""

    ends = (-pi, pi)
    inner = 0.0

    def log_density(self, x: Any) -> Any:
        return 2.0 * np.log(np.abs(np.cos(0.5 * x))) - log(pi)

    def lower(self, x: Any) -> Any:
        away = (x + pi) + _REST_OF_PI
        near = away < 0.5
        square = np.where(near, away, 0.0) ** 2
        total: Any = 1.0
        for n in (17, 15, 13, 11, 9, 7, 5):  # y - sin y by its series, without cancellation
            total = 1.0 - square * total / (n * (n - 1.0))
        close = away * square * total / 6.0
        return np.where(near, close, away + np.sin(x)) / (2.0 * pi)

    def upper(self, x: Any) -> Any:
        return self.lower(-x)

    def standard_mean(self) -> Any:
        return 0.0

    def standard_var(self) -> Any:
        return pi * pi / 3.0 - 2.0

    def standard_entropy(self) -> Any:
        return log(4.0 * pi) - 1.0


cosine = _Cosine("cosine")


class _Anglit(Continuous):
    """The anglit distribution: density cos(2 x) on [-pi/4, pi/4]."""

    ends = (-0.25 * pi, 0.25 * pi)
    inner = 0.0

    def log_density(self, x: Any) -> Any:
        return np.log(np.cos(2.0 * x))

    def lower(self, x: Any) -> Any:
        return np.sin(x + 0.25 * pi) ** 2

    def upper(self, x: Any) -> Any:
        return np.cos(x + 0.25 * pi) ** 2

    def quantile(self, q: Any) -> Any:
        return np.arcsin(np.sqrt(q)) - 0.25 * pi

    def upper_quantile(self, q: Any) -> Any:
        return 0.25 * pi - np.arcsin(np.sqrt(q))

    def standard_mean(self) -> Any:
        return 0.0

    def standard_var(self) -> Any:
        return pi * pi / 16.0 - 0.5

    def standard_entropy(self) -> Any:
        return 1.0 - log(2.0)


anglit = _Anglit("anglit")

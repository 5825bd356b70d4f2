"""The Bradford distribution.

    bradford

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.random import functions

from ..continuous_distribution import Continuous


class _Bradford(Continuous):
    """The Bradford distribution: its density is proportional to 1 / (1 + c x)."""

    ends = (0.0, 1.0)

    def valid(self, c: Any) -> Any:
        return c > 0

    def log_density(self, x: Any, c: Any) -> Any:
        return np.log(c) - np.log(np.log1p(c)) - np.log1p(c * x)

    def lower(self, x: Any, c: Any) -> Any:
        return np.log1p(c * x) / np.log1p(c)

    def upper(self, x: Any, c: Any) -> Any:
        return np.log1p(c * (1.0 - x) / (1.0 + c * x)) / np.log1p(c)

    def quantile(self, q: Any, c: Any) -> Any:
        return np.expm1(q * np.log1p(c)) / c

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return self.quantile(1.0 - q, c)

    def standard_mean(self, c: Any) -> Any:
        return 1.0 / np.log1p(c) - 1.0 / c

    def standard_var(self, c: Any) -> Any:
        k = np.log1p(c)
        return ((c + 2.0) * k - 2.0 * c) / (2.0 * c * (k * k))

    def standard_entropy(self, c: Any) -> Any:
        k = np.log1p(c)
        return 0.5 * k - np.log(c / k)

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return self.quantile(functions.uniform(key, shape), c)


bradford = _Bradford("bradford")

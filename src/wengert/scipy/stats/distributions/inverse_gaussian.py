"""The inverse Gaussian (Wald) distribution and its reciprocal.

    invgauss wald recipinvgauss

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...special import hyperu, log_ndtr, ndtr
from ..implicit_quantiles import Implicit
from .common import HALF_LOG_2PI, PositiveSupport


class _InvGauss(PositiveSupport, Implicit):
    """The inverse Gaussian distribution with mean `mu`."""

    at_low = False

    def valid(self, mu: Any) -> Any:
        return mu > 0

    def log_density(self, x: Any, mu: Any) -> Any:
        return -HALF_LOG_2PI - 1.5 * np.log(x) - ((x - mu) / mu) ** 2 / (2.0 * x)

    def _tails(self, x: Any, mu: Any) -> tuple[Any, Any]:
        root = 1.0 / np.sqrt(x)
        return root * (x / mu - 1.0), 2.0 / mu + log_ndtr(-root * (x / mu + 1.0))

    def lower(self, x: Any, mu: Any) -> Any:
        z, rest = self._tails(x, mu)
        return ndtr(z) + np.exp(rest)

    def upper(self, x: Any, mu: Any) -> Any:
        z, rest = self._tails(x, mu)
        return ndtr(-z) - np.exp(rest)

    def log_lower(self, x: Any, mu: Any) -> Any:
        z, rest = self._tails(x, mu)
        return np.logaddexp(log_ndtr(z), rest)

    def log_upper(self, x: Any, mu: Any) -> Any:
        z, rest = self._tails(x, mu)
        first = log_ndtr(-z)
        return first + np.log1p(-np.exp(rest - first))

    def standard_mean(self, mu: Any) -> Any:
        return 1.0 * mu

    def standard_var(self, mu: Any) -> Any:
        return mu**3

    def standard_entropy(self, mu: Any) -> Any:
        # exp(2 / mu) E1(2 / mu) is U(1, 1, 2 / mu), DLMF 13.6.6
        return HALF_LOG_2PI + 0.5 + 1.5 * (np.log(mu) - hyperu(1.0, 1.0, 2.0 / mu))


invgauss = _InvGauss("invgauss")


class _Wald(PositiveSupport, Implicit):
    """The Wald distribution: inverse Gaussian with mean 1."""

    at_low = False

    def log_density(self, x: Any) -> Any:
        return invgauss.log_density(x, 1.0)

    def lower(self, x: Any) -> Any:
        return invgauss.lower(x, 1.0)

    def upper(self, x: Any) -> Any:
        return invgauss.upper(x, 1.0)

    def log_lower(self, x: Any) -> Any:
        return invgauss.log_lower(x, 1.0)

    def log_upper(self, x: Any) -> Any:
        return invgauss.log_upper(x, 1.0)

    def standard_mean(self) -> Any:
        return 1.0

    standard_var = standard_mean


wald = _Wald("wald")


class _RecipInvGauss(PositiveSupport, Implicit):
    """The reciprocal of an inverse Gaussian variable with mean `mu`."""

    at_low = False

    def valid(self, mu: Any) -> Any:
        return mu > 0

    def log_density(self, x: Any, mu: Any) -> Any:
        return -HALF_LOG_2PI - 0.5 * np.log(x) - (1.0 - mu * x) ** 2 / (2.0 * x * (mu * mu))

    def lower(self, x: Any, mu: Any) -> Any:
        return invgauss.upper(1.0 / x, mu)

    def upper(self, x: Any, mu: Any) -> Any:
        return invgauss.lower(1.0 / x, mu)

    def log_lower(self, x: Any, mu: Any) -> Any:
        return invgauss.log_upper(1.0 / x, mu)

    def log_upper(self, x: Any, mu: Any) -> Any:
        return invgauss.log_lower(1.0 / x, mu)

    def standard_mean(self, mu: Any) -> Any:
        return 1.0 / mu + 1.0

    def standard_var(self, mu: Any) -> Any:
        return 1.0 / mu + 2.0


recipinvgauss = _RecipInvGauss("recipinvgauss")

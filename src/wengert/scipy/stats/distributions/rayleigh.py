"""The Rayleigh, Rice, Maxwell and Nakagami distributions: norms of normal vectors.

    rayleigh rice maxwell nakagami

Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).
"""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any

import numpy as np

from wengert.random import functions

from ...special import (
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    i0e,
    i1e,
    poch,
    psi,
    xlogy,
)
from ..continuous_distribution import sqrt_or_zero
from ..implicit_quantiles import Implicit
from .chi import chi, noncentral_gammainc, noncentral_gammaincc
from .common import EULER, HALF_LOG_2PI, PositiveSupport


class _Rayleigh(PositiveSupport):
    """The Rayleigh distribution: the norm of two independent normal variables."""

    at_low = False

    def log_density(self, x: Any) -> Any:
        return np.log(x) - 0.5 * (x * x)

    def lower(self, x: Any) -> Any:
        return -np.expm1(-0.5 * (x * x))

    def log_upper(self, x: Any) -> Any:
        return -0.5 * (x * x)

    def quantile(self, q: Any) -> Any:
        return np.sqrt(-2.0 * np.log1p(-q))

    def upper_quantile(self, q: Any) -> Any:
        return np.sqrt(-2.0 * np.log(q))

    def standard_mean(self) -> Any:
        return sqrt(0.5 * pi)

    def standard_var(self) -> Any:
        return 2.0 - 0.5 * pi

    def standard_entropy(self) -> Any:
        return 0.5 * EULER + 1.0 - 0.5 * log(2.0)

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.rayleigh(key, 1.0, shape)


rayleigh = _Rayleigh("rayleigh")


class _Rice(PositiveSupport, Implicit):
    """The Rice distribution: the norm of a 2-d normal variable whose mean has norm `b`."""

    at_low = False

    def valid(self, b: Any) -> Any:
        return b >= 0

    def log_density(self, x: Any, b: Any) -> Any:
        return np.log(x) - 0.5 * (x - b) ** 2 + np.log(i0e(x * b))

    def lower(self, x: Any, b: Any) -> Any:
        return noncentral_gammainc(1.0, 0.5 * (x * x), 0.5 * (b * b))

    def upper(self, x: Any, b: Any) -> Any:
        return noncentral_gammaincc(1.0, 0.5 * (x * x), 0.5 * (b * b))

    def standard_mean(self, b: Any) -> Any:
        quarter = 0.25 * (b * b)
        scaled = (1.0 + 2.0 * quarter) * i0e(quarter) + 2.0 * quarter * i1e(quarter)
        return sqrt(0.5 * pi) * scaled

    def standard_var(self, b: Any) -> Any:
        return 2.0 + b * b - self.standard_mean(b) ** 2

    def standard_draw(self, key: Any, shape: Any, b: Any) -> Any:
        first, second = functions.split(key)
        return np.hypot(functions.normal(first, shape) + b, functions.normal(second, shape))


rice = _Rice("rice")


class _Maxwell(PositiveSupport):
    """The Maxwell distribution: chi with three degrees of freedom."""

    def log_density(self, x: Any) -> Any:
        return chi.log_density(x, 3.0)

    def lower(self, x: Any) -> Any:
        return chi.lower(x, 3.0)

    def upper(self, x: Any) -> Any:
        return chi.upper(x, 3.0)

    def quantile(self, q: Any) -> Any:
        return chi.quantile(q, 3.0)

    def upper_quantile(self, q: Any) -> Any:
        return chi.upper_quantile(q, 3.0)

    def standard_mean(self) -> Any:
        return 2.0 * sqrt(2.0 / pi)

    def standard_var(self) -> Any:
        return 3.0 - 8.0 / pi

    def standard_entropy(self) -> Any:
        return EULER + HALF_LOG_2PI - 0.5

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.chi(key, 3.0, shape)


maxwell = _Maxwell("maxwell")


class _Nakagami(PositiveSupport):
    """The Nakagami distribution with parameter `nu`."""

    def valid(self, nu: Any) -> Any:
        return nu > 0

    def log_density(self, x: Any, nu: Any) -> Any:
        out = log(2.0) + xlogy(nu, nu) - gammaln(nu)
        return out + xlogy(2.0 * nu - 1.0, x) - nu * (x * x)

    def lower(self, x: Any, nu: Any) -> Any:
        return gammainc(nu, nu * (x * x))

    def upper(self, x: Any, nu: Any) -> Any:
        return gammaincc(nu, nu * (x * x))

    def quantile(self, q: Any, nu: Any) -> Any:
        return sqrt_or_zero(gammaincinv(nu, q)) / np.sqrt(nu)

    def upper_quantile(self, q: Any, nu: Any) -> Any:
        return sqrt_or_zero(gammainccinv(nu, q)) / np.sqrt(nu)

    def standard_mean(self, nu: Any) -> Any:
        return poch(nu, 0.5) / np.sqrt(nu)

    def standard_var(self, nu: Any) -> Any:
        return 1.0 - self.standard_mean(nu) ** 2

    def standard_entropy(self, nu: Any) -> Any:
        out = nu + gammaln(nu) + (0.5 - nu) * psi(nu)
        return out - log(2.0) - 0.5 * np.log(nu)

    def standard_draw(self, key: Any, shape: Any, nu: Any) -> Any:
        return np.sqrt(functions.gamma(key, nu, shape) / nu)


nakagami = _Nakagami("nakagami")

"""Distributions of positive numbers that normal ones are behind.

    maxwell nakagami levy levy_l fatiguelife
    recipinvgauss wald gibrat powerlognorm alpha

Each class has the formulas of the standard form; what they are for is said in distribution.py.
Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995),
written so that no tail loses its digits.
"""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any

import numpy as np

from wengert.random import functions

from ..special import (
    erf,
    erfc,
    erfinv,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    log_ndtr,
    ndtr,
    ndtri,
    ndtri_exp,
    poch,
    psi,
    xlogy,
)
from .bounded import log_mass
from .continuous_distribution import root_or_zero
from .gamma_family import Positive, chi
from .half_line import invgauss, lognorm
from .implicit_quantiles import Implicit
from .real_line import EULER, HALF_LOG_2PI

__all__ = """
    maxwell nakagami levy levy_l fatiguelife
    recipinvgauss wald gibrat powerlognorm alpha
""".split()


class _Maxwell(Positive):
    """Maxwell's distribution of speeds: chi of three degrees of freedom."""

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


class _Nakagami(Positive):
    """Nakagami's distribution of amplitudes, of parameter `nu`."""

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
        return root_or_zero(gammaincinv(nu, q)) / np.sqrt(nu)

    def upper_quantile(self, q: Any, nu: Any) -> Any:
        return root_or_zero(gammainccinv(nu, q)) / np.sqrt(nu)

    def standard_mean(self, nu: Any) -> Any:
        return poch(nu, 0.5) / np.sqrt(nu)

    def standard_var(self, nu: Any) -> Any:
        return 1.0 - self.standard_mean(nu) ** 2

    def standard_entropy(self, nu: Any) -> Any:
        out = nu + gammaln(nu) + (0.5 - nu) * psi(nu)
        return out - log(2.0) - 0.5 * np.log(nu)

    def standard_draw(self, key: Any, shape: Any, nu: Any) -> Any:
        return np.sqrt(functions.gamma(key, nu, shape) / nu)


class _Levy(Positive):
    """Levy's distribution: one divided by the square of a normal number."""

    at_low = False

    def log_density(self, x: Any) -> Any:
        return -HALF_LOG_2PI - 1.5 * np.log(x) - 0.5 / x

    def lower(self, x: Any) -> Any:
        return erfc(np.sqrt(0.5 / x))

    def log_lower(self, x: Any) -> Any:
        return log(2.0) + log_ndtr(-1.0 / np.sqrt(x))

    def upper(self, x: Any) -> Any:
        return erf(np.sqrt(0.5 / x))

    def quantile(self, q: Any) -> Any:
        return ndtri(0.5 * q) ** -2.0

    def upper_quantile(self, q: Any) -> Any:
        return 0.5 * erfinv(q) ** -2.0

    def standard_mean(self) -> Any:
        return np.inf

    standard_var = standard_mean

    def standard_entropy(self) -> Any:
        return 0.5 * (1.0 + 3.0 * EULER + log(16.0 * pi))

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.normal(key, shape) ** -2.0


class _LevyL(_Levy):
    """Levy's distribution of negative numbers."""

    ends = (-np.inf, 0.0)
    inner = -1.0
    at_high = False

    def log_density(self, x: Any) -> Any:
        return super().log_density(-x)

    def lower(self, x: Any) -> Any:
        return super().upper(-x)

    def log_lower(self, x: Any) -> Any:
        return np.log(super().upper(-x))

    def upper(self, x: Any) -> Any:
        return super().lower(-x)

    def log_upper(self, x: Any) -> Any:
        return super().log_lower(-x)

    def quantile(self, q: Any) -> Any:
        return -super().upper_quantile(q)

    def upper_quantile(self, q: Any) -> Any:
        return -super().quantile(q)

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return -super().standard_draw(key, shape)


class _FatigueLife(Positive):
    """Birnbaum and Saunders' distribution of lifetimes, of parameter `c`."""

    at_low = False

    def valid(self, c: Any) -> Any:
        return c > 0

    def _deviation(self, x: Any, c: Any) -> Any:
        return (x - 1.0) / (np.sqrt(x) * c)

    def log_density(self, x: Any, c: Any) -> Any:
        z = self._deviation(x, c)
        out = np.log1p(x) - 1.5 * np.log(x) - np.log(2.0 * c)
        return out - HALF_LOG_2PI - 0.5 * (z * z)

    def lower(self, x: Any, c: Any) -> Any:
        return ndtr(self._deviation(x, c))

    def upper(self, x: Any, c: Any) -> Any:
        return ndtr(-self._deviation(x, c))

    def log_lower(self, x: Any, c: Any) -> Any:
        return log_ndtr(self._deviation(x, c))

    def log_upper(self, x: Any, c: Any) -> Any:
        return log_ndtr(-self._deviation(x, c))

    def _of(self, z: Any, c: Any) -> Any:
        return np.exp(2.0 * np.arcsinh(0.5 * c * z))

    def quantile(self, q: Any, c: Any) -> Any:
        return self._of(ndtri(q), c)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return self._of(-ndtri(q), c)

    def standard_mean(self, c: Any) -> Any:
        return 0.5 * (c * c) + 1.0

    def standard_var(self, c: Any) -> Any:
        return c * c * (1.25 * (c * c) + 1.0)

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return self._of(functions.normal(key, shape), c)


class _RecipInvGauss(Positive, Implicit):
    """One divided by a number of the inverse Gaussian distribution of mean `mu`."""

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


class _Wald(Positive, Implicit):
    """The inverse Gaussian distribution of mean 1."""

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


class _Gibrat(Positive):
    """Numbers whose logarithm is normal of deviation 1."""

    at_low = False

    def log_density(self, x: Any) -> Any:
        return lognorm.log_density(x, 1.0)

    def log_lower(self, x: Any) -> Any:
        return log_ndtr(np.log(x))

    def log_upper(self, x: Any) -> Any:
        return log_ndtr(-np.log(x))

    def lower(self, x: Any) -> Any:
        return ndtr(np.log(x))

    def upper(self, x: Any) -> Any:
        return ndtr(-np.log(x))

    def quantile(self, q: Any) -> Any:
        return np.exp(ndtri(q))

    def upper_quantile(self, q: Any) -> Any:
        return np.exp(-ndtri(q))

    def standard_mean(self) -> Any:
        return np.exp(0.5)

    def standard_var(self) -> Any:
        return np.e * (np.e - 1.0)

    def standard_entropy(self) -> Any:
        return HALF_LOG_2PI + 0.5

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return np.exp(functions.normal(key, shape))


class _PowerLogNorm(Positive):
    """lognorm of deviation `s`, of which the probability of more is taken to the power `c`."""

    at_low = False

    def valid(self, c: Any, s: Any) -> Any:
        return np.logical_and(c > 0, s > 0)

    def log_density(self, x: Any, c: Any, s: Any) -> Any:
        z = np.log(x) / s
        out = np.log(c) - np.log(x) - np.log(s) - HALF_LOG_2PI
        return out - 0.5 * (z * z) + (c - 1.0) * log_ndtr(-z)

    def log_upper(self, x: Any, c: Any, s: Any) -> Any:
        return c * log_ndtr(-np.log(x) / s)

    def quantile(self, q: Any, c: Any, s: Any) -> Any:
        return np.exp(-s * ndtri_exp(np.log1p(-q) / c))

    def upper_quantile(self, q: Any, c: Any, s: Any) -> Any:
        return np.exp(-s * ndtri_exp(np.log(q) / c))

    def standard_draw(self, key: Any, shape: Any, c: Any, s: Any) -> Any:
        return np.exp(-s * ndtri_exp(-functions.exponential(key, shape) / c))


class _Alpha(Positive):
    """One divided by a normal number of mean `a`, of those that are positive."""

    at_low = False

    def valid(self, a: Any) -> Any:
        return a > 0

    def log_density(self, x: Any, a: Any) -> Any:
        return -2.0 * np.log(x) - log_ndtr(a) - HALF_LOG_2PI - 0.5 * (a - 1.0 / x) ** 2

    def log_lower(self, x: Any, a: Any) -> Any:
        return log_ndtr(a - 1.0 / x) - log_ndtr(a)

    def log_upper(self, x: Any, a: Any) -> Any:
        return log_mass(a - 1.0 / x, a) - log_ndtr(a)

    def quantile(self, q: Any, a: Any) -> Any:
        return 1.0 / (a - ndtri_exp(np.log(q) + log_ndtr(a)))

    def upper_quantile(self, q: Any, a: Any) -> Any:
        return 1.0 / (a - ndtri_exp(np.log1p(-q) + log_ndtr(a)))

    def standard_mean(self, a: Any) -> Any:
        return np.inf + 0.0 * a

    standard_var = standard_mean


maxwell = _Maxwell("maxwell")
nakagami = _Nakagami("nakagami")
levy = _Levy("levy")
levy_l = _LevyL("levy_l")
fatiguelife = _FatigueLife("fatiguelife")
recipinvgauss = _RecipInvGauss("recipinvgauss")
wald = _Wald("wald")
gibrat = _Gibrat("gibrat")
powerlognorm = _PowerLogNorm("powerlognorm")
alpha = _Alpha("alpha")

"""Distributions of positive numbers.

    lognorm, weibull_min, weibull_max (of negative ones), pareto, rayleigh, halfnorm,
    halfcauchy, invgauss.

Each class has the formulas of the standard form; what they are for is said in distribution.py.
Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995),
written so that no tail loses its digits.  Where the density at 0 is 0, nothing is evaluated there.
"""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any

import numpy as np
from scipy import special

from wengert.random import functions

from ..special import erf, erfc, hyperu, log_ndtr, ndtr, ndtri, xlogy
from .continuous_distribution import Continuous, chosen
from .gamma_family import Positive
from .implicit_quantiles import Implicit
from .real_line import EULER, HALF_LOG_2PI

__all__ = "lognorm weibull_min weibull_max pareto rayleigh halfnorm halfcauchy invgauss".split()


class _LogNorm(Positive):
    """Numbers whose logarithm is normal with deviation `s`; `scale` is their median."""

    at_low = False

    def valid(self, s: Any) -> Any:
        return s > 0

    def log_density(self, x: Any, s: Any) -> Any:
        y = np.log(x)
        return -(y * y) / (2.0 * (s * s)) - np.log(s) - y - HALF_LOG_2PI

    def lower(self, x: Any, s: Any) -> Any:
        return ndtr(np.log(x) / s)

    def upper(self, x: Any, s: Any) -> Any:
        return ndtr(-np.log(x) / s)

    def log_lower(self, x: Any, s: Any) -> Any:
        return log_ndtr(np.log(x) / s)

    def log_upper(self, x: Any, s: Any) -> Any:
        return log_ndtr(-np.log(x) / s)

    def quantile(self, q: Any, s: Any) -> Any:
        return np.exp(s * ndtri(q))

    def upper_quantile(self, q: Any, s: Any) -> Any:
        return np.exp(-s * ndtri(q))

    def standard_mean(self, s: Any) -> Any:
        return np.exp(0.5 * (s * s))

    def standard_var(self, s: Any) -> Any:
        return np.exp(s * s) * np.expm1(s * s)

    def standard_entropy(self, s: Any) -> Any:
        return 0.5 + HALF_LOG_2PI + np.log(s)

    def standard_draw(self, key: Any, shape: Any, s: Any) -> Any:
        return functions.lognormal(key, s, shape)


class _WeibullMin(Positive):
    """The Weibull distribution of a smallest value, of power `c`."""

    def valid(self, c: Any) -> Any:
        return c > 0

    def log_density(self, x: Any, c: Any) -> Any:
        return np.log(c) + xlogy(c - 1.0, x) - x**c

    def lower(self, x: Any, c: Any) -> Any:
        return -np.expm1(-(x**c))

    def log_upper(self, x: Any, c: Any) -> Any:
        return -(x**c)

    def quantile(self, q: Any, c: Any) -> Any:
        return (-np.log1p(-q)) ** (1.0 / c)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return (-np.log(q)) ** (1.0 / c)

    def standard_mean(self, c: Any) -> Any:
        return special.gamma(1.0 + 1.0 / c)

    def standard_var(self, c: Any) -> Any:
        return special.gamma(1.0 + 2.0 / c) - special.gamma(1.0 + 1.0 / c) ** 2

    def standard_entropy(self, c: Any) -> Any:
        return -EULER / c - np.log(c) + EULER + 1.0

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return functions.weibull_min(key, 1.0, c, shape)


class _WeibullMax(_WeibullMin):
    """The Weibull distribution of a largest value: negative numbers."""

    ends = (-np.inf, 0.0)
    inner = -1.0

    def log_density(self, x: Any, c: Any) -> Any:
        return super().log_density(-x, c)

    def lower(self, x: Any, c: Any) -> Any:
        return np.exp(-((-x) ** c))

    def log_lower(self, x: Any, c: Any) -> Any:
        return -((-x) ** c)

    def upper(self, x: Any, c: Any) -> Any:
        return -np.expm1(-((-x) ** c))

    def log_upper(self, x: Any, c: Any) -> Any:
        return np.log(self.upper(x, c))

    def quantile(self, q: Any, c: Any) -> Any:
        return -((-np.log(q)) ** (1.0 / c))

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return -((-np.log1p(-q)) ** (1.0 / c))

    def standard_mean(self, c: Any) -> Any:
        return -super().standard_mean(c)

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return -super().standard_draw(key, shape, c)


class _Pareto(Continuous):
    """The Pareto distribution of power `b`, from 1 on."""

    ends = (1.0, np.inf)
    inner = 2.0

    def valid(self, b: Any) -> Any:
        return b > 0

    def log_density(self, x: Any, b: Any) -> Any:
        return np.log(b) - (b + 1.0) * np.log(x)

    def lower(self, x: Any, b: Any) -> Any:
        return -np.expm1(-b * np.log(x))

    def log_upper(self, x: Any, b: Any) -> Any:
        return -b * np.log(x)

    def upper(self, x: Any, b: Any) -> Any:
        return x ** (-b)

    def quantile(self, q: Any, b: Any) -> Any:
        return np.exp(-np.log1p(-q) / b)

    def upper_quantile(self, q: Any, b: Any) -> Any:
        return q ** (-1.0 / b)

    def standard_mean(self, b: Any) -> Any:
        some = chosen(b > 1, b, 2.0)
        return chosen(b > 1, some / (some - 1.0), np.inf)

    def standard_var(self, b: Any) -> Any:
        some = chosen(b > 2, b, 3.0)
        return chosen(b > 2, some / ((some - 2.0) * (some - 1.0) ** 2), np.inf)

    def standard_entropy(self, b: Any) -> Any:
        return 1.0 + 1.0 / b - np.log(b)

    def standard_draw(self, key: Any, shape: Any, b: Any) -> Any:
        return functions.pareto(key, b, shape)


class _Rayleigh(Positive):
    """The Rayleigh distribution: the length of a vector of two normal numbers."""

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


class _HalfNorm(Positive):
    """The absolute value of a normal number."""

    def log_density(self, x: Any) -> Any:
        return 0.5 * log(2.0 / pi) - 0.5 * (x * x)

    def lower(self, x: Any) -> Any:
        return erf(x * sqrt(0.5))

    def upper(self, x: Any) -> Any:
        return erfc(x * sqrt(0.5))

    def log_upper(self, x: Any) -> Any:
        return log(2.0) + log_ndtr(-x)

    def quantile(self, q: Any) -> Any:
        return ndtri(0.5 * (1.0 + q))

    def upper_quantile(self, q: Any) -> Any:
        return -ndtri(0.5 * q)

    def standard_mean(self) -> Any:
        return sqrt(2.0 / pi)

    def standard_var(self) -> Any:
        return 1.0 - 2.0 / pi

    def standard_entropy(self) -> Any:
        return 0.5 * log(pi / 2.0) + 0.5

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.halfnormal(key, shape)


class _HalfCauchy(Positive):
    """The absolute value of a Cauchy number."""

    def log_density(self, x: Any) -> Any:
        return log(2.0 / pi) - 2.0 * np.log(np.hypot(1.0, x))

    def lower(self, x: Any) -> Any:
        return 2.0 / pi * np.arctan(x)

    def upper(self, x: Any) -> Any:
        return 2.0 / pi * np.arctan2(1.0, x)

    def quantile(self, q: Any) -> Any:
        return np.tan(0.5 * pi * q)

    def upper_quantile(self, q: Any) -> Any:
        return 1.0 / np.tan(0.5 * pi * q)

    def standard_mean(self) -> Any:
        return np.inf

    standard_var = standard_mean

    def standard_entropy(self) -> Any:
        return log(2.0 * pi)

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return np.abs(functions.cauchy(key, shape))


class _InvGauss(Positive, Implicit):
    """The inverse Gaussian distribution of mean `mu`."""

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


lognorm = _LogNorm("lognorm")
weibull_min = _WeibullMin("weibull_min")
weibull_max = _WeibullMax("weibull_max")
pareto = _Pareto("pareto")
rayleigh = _Rayleigh("rayleigh")
halfnorm = _HalfNorm("halfnorm")
halfcauchy = _HalfCauchy("halfcauchy")
invgauss = _InvGauss("invgauss")

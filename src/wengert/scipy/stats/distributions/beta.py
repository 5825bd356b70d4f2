"""The beta distribution, its special cases and generalizations.

    beta powerlaw rdist arcsine semicircular betaprime gausshyper

C. Armero, M. J. Bayarri, Prior assessments for prediction in queues (1994), for gausshyper, which
has only a density.
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from wengert.random import functions

from ...special import (
    betainc,
    betaincc,
    betainccinv,
    betaincinv,
    betaln,
    hyp2f1,
    psi,
    xlog1py,
    xlogy,
)
from ..continuous_distribution import Continuous
from .common import PositiveSupport, UnitInterval, where_finite


class _Beta(UnitInterval):
    """The beta distribution with parameters `a` and `b`."""

    def valid(self, a: Any, b: Any) -> Any:
        return np.logical_and(a > 0, b > 0)

    def log_density(self, x: Any, a: Any, b: Any) -> Any:
        return xlog1py(b - 1.0, -x) + xlogy(a - 1.0, x) - betaln(a, b)

    def lower(self, x: Any, a: Any, b: Any) -> Any:
        return betainc(a, b, x)

    def upper(self, x: Any, a: Any, b: Any) -> Any:
        return betaincc(a, b, x)

    def quantile(self, q: Any, a: Any, b: Any) -> Any:
        return betaincinv(a, b, q)

    def upper_quantile(self, q: Any, a: Any, b: Any) -> Any:
        return betainccinv(a, b, q)

    def standard_mean(self, a: Any, b: Any) -> Any:
        return a / (a + b)

    def standard_var(self, a: Any, b: Any) -> Any:
        return a * b / ((a + b) ** 2 * (a + b + 1.0))

    def standard_entropy(self, a: Any, b: Any) -> Any:
        out = betaln(a, b) - (a - 1.0) * psi(a) - (b - 1.0) * psi(b)
        return out + (a + b - 2.0) * psi(a + b)

    def standard_draw(self, key: Any, shape: Any, a: Any, b: Any) -> Any:
        return functions.beta(key, a, b, shape)


beta = _Beta("beta")


class _PowerLaw(UnitInterval):
    """The power-function distribution: density a x^(a - 1) on [0, 1]."""

    def valid(self, a: Any) -> Any:
        return a > 0

    def log_density(self, x: Any, a: Any) -> Any:
        pole = np.logical_and(x == 0, a < 1)  # SciPy excludes this point from the support
        return np.where(pole, -np.inf, np.log(a) + xlogy(a - 1.0, np.where(pole, 0.5, x)))

    def log_lower(self, x: Any, a: Any) -> Any:
        return a * np.log(x)

    def lower(self, x: Any, a: Any) -> Any:
        return x**a

    def upper(self, x: Any, a: Any) -> Any:
        return -np.expm1(a * np.log(x))

    def quantile(self, q: Any, a: Any) -> Any:
        return q ** (1.0 / a)

    def upper_quantile(self, q: Any, a: Any) -> Any:
        return np.exp(np.log1p(-q) / a)

    def standard_mean(self, a: Any) -> Any:
        return a / (a + 1.0)

    def standard_var(self, a: Any) -> Any:
        return a / ((a + 2.0) * (a + 1.0) ** 2)

    def standard_entropy(self, a: Any) -> Any:
        return 1.0 - 1.0 / a - np.log(a)

    def standard_draw(self, key: Any, shape: Any, a: Any) -> Any:
        return np.exp(-functions.exponential(key, shape) / a)


powerlaw = _PowerLaw("powerlaw")


class _RDist(Continuous):
    """A coordinate of a uniform point on the unit sphere in c + 1 dimensions."""

    ends = (-1.0, 1.0)
    inner = 0.0

    def valid(self, c: Any) -> Any:
        return c > 0

    def log_density(self, x: Any, c: Any) -> Any:
        power = 0.5 * c - 1.0
        return xlogy(power, 1.0 - x) + xlog1py(power, x) - betaln(0.5 * c, 0.5)

    def lower(self, x: Any, c: Any) -> Any:
        return betainc(0.5 * c, 0.5 * c, 0.5 * (x + 1.0))

    def upper(self, x: Any, c: Any) -> Any:
        return betaincc(0.5 * c, 0.5 * c, 0.5 * (x + 1.0))

    def quantile(self, q: Any, c: Any) -> Any:
        return 2.0 * betaincinv(0.5 * c, 0.5 * c, q) - 1.0

    def upper_quantile(self, q: Any, c: Any) -> Any:
        return 2.0 * betainccinv(0.5 * c, 0.5 * c, q) - 1.0

    def standard_mean(self, c: Any) -> Any:
        return 0.0 * c

    def standard_var(self, c: Any) -> Any:
        return 1.0 / (c + 1.0)

    def standard_entropy(self, c: Any) -> Any:
        return log(2.0) + beta.standard_entropy(0.5 * c, 0.5 * c)

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return 2.0 * functions.beta(key, 0.5 * c, 0.5 * c, shape) - 1.0


rdist = _RDist("rdist")


class _Arcsine(Continuous):
    """The arcsine distribution: beta with a = b = 1/2."""

    ends = (0.0, 1.0)

    def log_density(self, x: Any) -> Any:
        return -log(pi) - 0.5 * (np.log(x) + np.log1p(-x))

    def lower(self, x: Any) -> Any:
        return 2.0 / pi * np.arcsin(np.sqrt(x))

    def upper(self, x: Any) -> Any:
        return 2.0 / pi * np.arccos(np.sqrt(x))

    def quantile(self, q: Any) -> Any:
        return np.sin(0.5 * pi * q) ** 2

    def upper_quantile(self, q: Any) -> Any:
        return np.cos(0.5 * pi * q) ** 2

    def standard_mean(self) -> Any:
        return 0.5

    def standard_var(self) -> Any:
        return 0.125

    def standard_entropy(self) -> Any:
        return log(0.25 * pi)


arcsine = _Arcsine("arcsine")


class _SemiCircular(Continuous):
    """Wigner's semicircle distribution: rdist with c = 3."""

    ends = (-1.0, 1.0)
    inner = 0.0

    def log_density(self, x: Any) -> Any:
        return rdist.log_density(x, 3.0)

    def lower(self, x: Any) -> Any:
        return rdist.lower(x, 3.0)

    def upper(self, x: Any) -> Any:
        return rdist.upper(x, 3.0)

    def quantile(self, q: Any) -> Any:
        return rdist.quantile(q, 3.0)

    def upper_quantile(self, q: Any) -> Any:
        return rdist.upper_quantile(q, 3.0)

    def standard_mean(self) -> Any:
        return 0.0

    def standard_var(self) -> Any:
        return 0.25

    def standard_entropy(self) -> Any:
        return log(pi) - 0.5

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return rdist.standard_draw(key, shape, 3.0)


semicircular = _SemiCircular("semicircular")


class _BetaPrime(PositiveSupport):
    """The odds p / (1 - p), where p has the beta distribution with parameters `a` and `b`."""

    def valid(self, a: Any, b: Any) -> Any:
        return np.logical_and(a > 0, b > 0)

    def log_density(self, x: Any, a: Any, b: Any) -> Any:
        return xlogy(a - 1.0, x) - (a + b) * np.log1p(x) - betaln(a, b)

    def _shares(self, x: Any) -> tuple[Any, Any, Any]:
        large = x > 1.0
        return (large, np.where(large, 0.5, x / (1.0 + x)), np.where(large, 1.0 / (1.0 + x), 0.5))

    def lower(self, x: Any, a: Any, b: Any) -> Any:
        large, share, rest = self._shares(x)
        return np.where(large, betaincc(b, a, rest), betainc(a, b, share))

    def upper(self, x: Any, a: Any, b: Any) -> Any:
        large, share, rest = self._shares(x)
        return np.where(large, betainc(b, a, rest), betaincc(a, b, share))

    def _ratio(self, share: Any, rest: Any) -> Any:
        large = share > 0.5
        other = np.where(large, rest, 0.5)
        own = np.where(large, 0.5, share)
        return np.where(large, (1.0 - other) / other, own / (1.0 - own))

    def quantile(self, q: Any, a: Any, b: Any) -> Any:
        return self._ratio(betaincinv(a, b, q), betainccinv(b, a, q))

    def upper_quantile(self, q: Any, a: Any, b: Any) -> Any:
        return self._ratio(betainccinv(a, b, q), betaincinv(b, a, q))

    def standard_mean(self, a: Any, b: Any) -> Any:
        return where_finite(b > 1, lambda a, b: a / (b - 1.0), a, b, fallback=(1.0, 2.0))

    def standard_var(self, a: Any, b: Any) -> Any:
        def var(a: Any, b: Any) -> Any:
            return a * (a + b - 1.0) / ((b - 2.0) * (b - 1.0) ** 2)

        return where_finite(b > 2, var, a, b, fallback=(1.0, 3.0))

    def standard_entropy(self, a: Any, b: Any) -> Any:
        out = betaln(a, b) - (a - 1.0) * (psi(a) - psi(b))
        return out + (a + b) * (psi(a + b) - psi(b))

    def standard_draw(self, key: Any, shape: Any, a: Any, b: Any) -> Any:
        first, second = functions.split(key)
        return functions.gamma(first, a, shape) / functions.gamma(second, b, shape)


betaprime = _BetaPrime("betaprime")


class _GaussHyper(Continuous):
    """The Gauss hypergeometric distribution: the beta density times (1 + z x)^-c."""

    ends = (0.0, 1.0)

    def valid(self, a: Any, b: Any, c: Any, z: Any) -> Any:
        valid = np.logical_and(a > 0, b > 0)
        return np.logical_and(valid, np.logical_and(c == c, z > -1))

    def log_density(self, x: Any, a: Any, b: Any, c: Any, z: Any) -> Any:
        out = xlogy(a - 1.0, x) + xlog1py(b - 1.0, -x) - c * np.log1p(z * x)
        return out - betaln(a, b) - np.log(hyp2f1(c, a, a + b, -z))

    def standard_mean(self, a: Any, b: Any, c: Any, z: Any) -> Any:
        return self._moment(1.0, a, b, c, z)

    def standard_var(self, a: Any, b: Any, c: Any, z: Any) -> Any:
        return self._moment(2.0, a, b, c, z) - self._moment(1.0, a, b, c, z) ** 2

    def _moment(self, n: float, a: Any, b: Any, c: Any, z: Any) -> Any:
        scale = np.exp(betaln(a + n, b) - betaln(a, b))
        return scale * hyp2f1(c, a + n, a + b + n, -z) / hyp2f1(c, a, a + b, -z)


gausshyper = _GaussHyper("gausshyper")

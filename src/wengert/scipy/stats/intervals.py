"""Further distributions whose support has ends.

    anglit arcsine argus bradford cosine johnsonsb loguniform reciprocal rdist semicircular

Each class has the formulas of the standard form; what they are for is said in distribution.py.
Formulas: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995),
written so that no tail loses its digits.  Those whose ends are parameters are in truncated.py.
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from wengert.random import functions

from ..special import (
    betainc,
    betaincc,
    betainccinv,
    betaincinv,
    betaln,
    expit,
    exprel,
    gammainc,
    gammaincinv,
    log_ndtr,
    logit,
    ndtr,
    ndtri,
    xlog1py,
    xlogy,
)
from .bounded import beta
from .continuous_distribution import Continuous, chosen
from .implicit_quantiles import Implicit
from .real_line import HALF_LOG_2PI

__all__ = """
    anglit arcsine argus bradford cosine johnsonsb loguniform reciprocal rdist semicircular
""".split()


_REST_OF_PI = 1.2246467991473532e-16  # what pi is more than the floating-point number


class _Anglit(Continuous):
    """The density is cos(2 x) from -pi/4 to pi/4."""

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


class _Arcsine(Continuous):
    """The beta distribution of a = b = 1/2."""

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


class _Argus(Continuous):
    """The ARGUS distribution of masses, of parameter `chi`."""

    ends = (0.0, 1.0)

    def valid(self, chi: Any) -> Any:
        return chi > 0

    def _mass(self, chi: Any) -> Any:
        return gammainc(1.5, 0.5 * (chi * chi))

    def log_density(self, x: Any, chi: Any) -> Any:
        rest = (1.0 - x) * (1.0 + x)
        out = 3.0 * np.log(chi) - HALF_LOG_2PI - np.log(0.5 * self._mass(chi)) + np.log(x)
        return out + 0.5 * np.log(rest) - 0.5 * (chi * chi) * rest

    def upper(self, x: Any, chi: Any) -> Any:
        rest = (1.0 - x) * (1.0 + x)
        return gammainc(1.5, 0.5 * (chi * chi) * rest) / self._mass(chi)

    def quantile(self, q: Any, chi: Any) -> Any:
        return self.upper_quantile(1.0 - q, chi)

    def upper_quantile(self, q: Any, chi: Any) -> Any:
        rest = 2.0 * gammaincinv(1.5, q * self._mass(chi)) / (chi * chi)
        return np.sqrt(1.0 - rest)

    def standard_draw(self, key: Any, shape: Any, chi: Any) -> Any:
        return self.upper_quantile(functions.uniform(key, shape), chi)


class _Bradford(Continuous):
    """The density is proportional to 1 / (1 + c x)."""

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


class _Cosine(Implicit):
    """The density is (1 + cos x) / (2 pi) from -pi to pi."""

    ends = (-pi, pi)
    inner = 0.0

    def log_density(self, x: Any) -> Any:
        return 2.0 * np.log(np.abs(np.cos(0.5 * x))) - log(pi)

    def lower(self, x: Any) -> Any:
        away = (x + pi) + _REST_OF_PI
        near = away < 0.5
        square = chosen(near, away, 0.0) ** 2
        total: Any = 1.0
        for n in (17, 15, 13, 11, 9, 7, 5):  # y - sin y, without what cancels
            total = 1.0 - square * total / (n * (n - 1.0))
        close = away * square * total / 6.0
        return chosen(near, close, away + np.sin(x)) / (2.0 * pi)

    def upper(self, x: Any) -> Any:
        return self.lower(-x)

    def standard_mean(self) -> Any:
        return 0.0

    def standard_var(self) -> Any:
        return pi * pi / 3.0 - 2.0

    def standard_entropy(self) -> Any:
        return log(4.0 * pi) - 1.0


class _JohnsonSB(Continuous):
    """Numbers x for which a + b logit(x) is normal."""

    ends = (0.0, 1.0)
    at_low = at_high = False

    def valid(self, a: Any, b: Any) -> Any:
        return np.logical_and(b > 0, a == a)

    def log_density(self, x: Any, a: Any, b: Any) -> Any:
        z = a + b * logit(x)
        return np.log(b) - np.log(x) - np.log1p(-x) - 0.5 * (z * z) - HALF_LOG_2PI

    def lower(self, x: Any, a: Any, b: Any) -> Any:
        return ndtr(a + b * logit(x))

    def upper(self, x: Any, a: Any, b: Any) -> Any:
        return ndtr(-a - b * logit(x))

    def log_lower(self, x: Any, a: Any, b: Any) -> Any:
        return log_ndtr(a + b * logit(x))

    def log_upper(self, x: Any, a: Any, b: Any) -> Any:
        return log_ndtr(-a - b * logit(x))

    def quantile(self, q: Any, a: Any, b: Any) -> Any:
        return expit((ndtri(q) - a) / b)

    def upper_quantile(self, q: Any, a: Any, b: Any) -> Any:
        return expit((-ndtri(q) - a) / b)

    def standard_draw(self, key: Any, shape: Any, a: Any, b: Any) -> Any:
        return expit((functions.normal(key, shape) - a) / b)


class _LogUniform(Continuous):
    """Numbers from `a` to `b` whose logarithm is uniform."""

    def valid(self, a: Any, b: Any) -> Any:
        return np.logical_and(a > 0, b > a)

    def support_of(self, a: Any, b: Any) -> Any:
        return a, b

    def inside_of(self, a: Any, b: Any) -> Any:
        return 0.5 * (a + b)

    def _width(self, a: Any, b: Any) -> Any:
        return np.log(b) - np.log(a)

    def log_density(self, x: Any, a: Any, b: Any) -> Any:
        return -np.log(x) - np.log(self._width(a, b))

    def lower(self, x: Any, a: Any, b: Any) -> Any:
        return (np.log(x) - np.log(a)) / self._width(a, b)

    def upper(self, x: Any, a: Any, b: Any) -> Any:
        return (np.log(b) - np.log(x)) / self._width(a, b)

    def quantile(self, q: Any, a: Any, b: Any) -> Any:
        return np.exp(np.log(a) + q * self._width(a, b))

    def upper_quantile(self, q: Any, a: Any, b: Any) -> Any:
        return np.exp(np.log(b) - q * self._width(a, b))

    def standard_mean(self, a: Any, b: Any) -> Any:
        return a * exprel(self._width(a, b))

    def standard_var(self, a: Any, b: Any) -> Any:
        return a * a * exprel(2.0 * self._width(a, b)) - self.standard_mean(a, b) ** 2

    def standard_entropy(self, a: Any, b: Any) -> Any:
        return 0.5 * (np.log(a) + np.log(b)) + np.log(self._width(a, b))

    def standard_draw(self, key: Any, shape: Any, a: Any, b: Any) -> Any:
        return self.quantile(functions.uniform(key, shape), a, b)


class _RDist(Continuous):
    """An entry of a unit vector of c + 1 numbers; of c = 3 semicircular."""

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


class _SemiCircular(Continuous):
    """Wigner's semicircle: rdist of c = 3."""

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


anglit = _Anglit("anglit")
arcsine = _Arcsine("arcsine")
argus = _Argus("argus")
bradford = _Bradford("bradford")
cosine = _Cosine("cosine")
johnsonsb = _JohnsonSB("johnsonsb")
loguniform = _LogUniform("loguniform")
reciprocal = _LogUniform("reciprocal")
semicircular = _SemiCircular("semicircular")

"""Distributions whose support has ends.

    uniform, beta, truncnorm, triang, powerlaw, vonmises,
    genextreme, genpareto (whose ends depend on a parameter).

Each class has the formulas of the standard form; what they are for is said in distribution.py.
genextreme and genpareto are smooth where their parameter is 0: log(1 + c x) / c is an operation of
its own (special/relatives.py).
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert.random import functions

from ..special import (
    betainc,
    betaincc,
    betainccinv,
    betaincinv,
    betaln,
    cosm1,
    exprel,
    i0e,
    i1e,
    log_ndtr,
    ndtri_exp,
    psi,
    xlog1py,
    xlogy,
)
from .continuous_distribution import Continuous, chosen, log1mexp
from .real_line import HALF_LOG_2PI

__all__ = "uniform beta truncnorm triang powerlaw vonmises genextreme genpareto".split()


class _Unit(Continuous):
    """One of numbers from 0 to 1."""

    ends = (0.0, 1.0)


class _Uniform(_Unit):
    """Numbers from loc to loc + scale, each equally likely."""

    def log_density(self, x: Any) -> Any:
        return 0.0 * x

    def lower(self, x: Any) -> Any:
        return 1.0 * x

    def upper(self, x: Any) -> Any:
        return 1.0 - x

    def quantile(self, q: Any) -> Any:
        return 1.0 * q

    def upper_quantile(self, q: Any) -> Any:
        return 1.0 - q

    def standard_mean(self) -> Any:
        return 0.5

    def standard_var(self) -> Any:
        return 1.0 / 12.0

    def standard_entropy(self) -> Any:
        return 0.0

    def standard_draw(self, key: Any, shape: Any) -> Any:
        return functions.uniform(key, shape)


class _Beta(_Unit):
    """The beta distribution of parameters `a` and `b`."""

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


def log_mass(low: Any, high: Any) -> Any:
    """The logarithm of the probability that a normal number is between two, low < high."""
    turned = low > 0.0  # then seen from the other side, where logarithms have all digits
    left, right = chosen(turned, -high, low), chosen(turned, -low, high)
    apart = right > 0.0  # the smaller of both is on the left: what is missing of 1 is small
    first, second = log_ndtr(left), log_ndtr(chosen(apart, -right, right))
    inside = np.log1p(-(np.exp(first) + np.exp(second)))
    gap = chosen(apart, -1.0, first - second)
    return chosen(apart, inside, second + log1mexp(gap))


class _TruncNorm(Continuous):
    """A normal number between `a` and `b`, in deviations from the mean `loc`."""

    def valid(self, a: Any, b: Any) -> Any:
        return a < b

    def support_of(self, a: Any, b: Any) -> Any:
        return a, b

    def inside_of(self, a: Any, b: Any) -> Any:
        some = np.isfinite(a), np.isfinite(b)
        middle = 0.5 * (chosen(some[0], a, 0.0) + chosen(some[1], b, 0.0))
        return chosen(some[0], chosen(some[1], middle, a + 1.0), chosen(some[1], b - 1.0, 0.0))

    def log_density(self, x: Any, a: Any, b: Any) -> Any:
        return -0.5 * (x * x) - HALF_LOG_2PI - log_mass(a, b)

    def log_lower(self, x: Any, a: Any, b: Any) -> Any:
        return log_mass(a, x) - log_mass(a, b)

    def log_upper(self, x: Any, a: Any, b: Any) -> Any:
        return log_mass(x, b) - log_mass(a, b)

    def quantile(self, q: Any, a: Any, b: Any) -> Any:
        return self._between(np.log(q), np.log1p(-q), a, b)

    def upper_quantile(self, q: Any, a: Any, b: Any) -> Any:
        return self._between(np.log1p(-q), np.log(q), a, b)

    def _between(self, log_q: Any, log_rest: Any, a: Any, b: Any) -> Any:
        turned = a > 0.0
        low, high = chosen(turned, -b, a), chosen(turned, -a, b)
        to_high, to_low = chosen(turned, log_rest, log_q), chosen(turned, log_q, log_rest)
        found = ndtri_exp(np.logaddexp(to_low + log_ndtr(low), to_high + log_ndtr(high)))
        return chosen(turned, -found, found)

    def standard_mean(self, a: Any, b: Any) -> Any:
        first, second = self._edges(a, b)
        return first - second

    def standard_var(self, a: Any, b: Any) -> Any:
        first, second = self._edges(a, b)
        low = chosen(np.isfinite(a), a, 0.0) * first
        high = chosen(np.isfinite(b), b, 0.0) * second
        return 1.0 + low - high - (first - second) ** 2

    def standard_entropy(self, a: Any, b: Any) -> Any:
        first, second = self._edges(a, b)
        low = chosen(np.isfinite(a), a, 0.0) * first
        high = chosen(np.isfinite(b), b, 0.0) * second
        return HALF_LOG_2PI + 0.5 + log_mass(a, b) + 0.5 * (low - high)

    def _edges(self, a: Any, b: Any) -> tuple[Any, Any]:
        """The densities at both ends."""
        mass = log_mass(a, b) + HALF_LOG_2PI
        return np.exp(-0.5 * (a * a) - mass), np.exp(-0.5 * (b * b) - mass)

    def standard_draw(self, key: Any, shape: Any, a: Any, b: Any) -> Any:
        return functions.truncated_normal(key, a, b, shape)


class _Triang(_Unit):
    """Numbers from 0 to 1 whose density rises to `c` and falls, both in a line."""

    def valid(self, c: Any) -> Any:
        return np.logical_and(c >= 0, c <= 1)

    def log_density(self, x: Any, c: Any) -> Any:
        rising = x < c
        up = chosen(rising, x, 0.5) / chosen(rising, c, 1.0)
        top = x == c
        falling = np.logical_not(np.logical_or(rising, top))
        down = chosen(falling, 1.0 - x, 0.5) / chosen(falling, 1.0 - c, 1.0)
        return log(2.0) + chosen(top, 0.0, np.log(chosen(rising, up, down)))

    def lower(self, x: Any, c: Any) -> Any:
        rising = x < c
        up = chosen(rising, x * x, 0.0) / chosen(rising, c, 1.0)
        down = chosen(rising, 0.0, (1.0 - x) ** 2) / chosen(rising, 1.0, 1.0 - c)
        return chosen(rising, up, 1.0 - down)

    def quantile(self, q: Any, c: Any) -> Any:
        rising = q < c
        up = np.sqrt(chosen(rising, c * q, 1.0))
        return chosen(rising, up, 1.0 - np.sqrt(chosen(rising, 1.0, (1.0 - c) * (1.0 - q))))

    def standard_mean(self, c: Any) -> Any:
        return (c + 1.0) / 3.0

    def standard_var(self, c: Any) -> Any:
        return (1.0 - c + c * c) / 18.0

    def standard_entropy(self, c: Any) -> Any:
        return 0.5 - log(2.0) + 0.0 * c

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        return functions.triangular(key, 0.0, c, 1.0, shape)


class _PowerLaw(_Unit):
    """Numbers from 0 to 1 with the density a x^(a - 1)."""

    def valid(self, a: Any) -> Any:
        return a > 0

    def log_density(self, x: Any, a: Any) -> Any:
        pole = np.logical_and(x == 0, a < 1)  # which SciPy leaves out of the support
        return chosen(pole, -np.inf, np.log(a) + xlogy(a - 1.0, chosen(pole, 0.5, x)))

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


class _VonMises(Continuous):
    """An angle of concentration `kappa`; the density has the period 2 pi, as in SciPy."""

    def valid(self, kappa: Any) -> Any:
        return kappa >= 0

    def log_density(self, x: Any, kappa: Any) -> Any:
        return kappa * cosm1(x) - log(2.0 * pi) - np.log(i0e(kappa))

    def lower(self, x: Any, kappa: Any) -> Any:
        turns, low, beyond = self._turned(x, kappa)
        return turns + chosen(low, beyond, 1.0 - beyond)

    def upper(self, x: Any, kappa: Any) -> Any:
        turns, low, beyond = self._turned(x, kappa)
        return chosen(low, 1.0 - beyond, beyond) - turns

    def _turned(self, x: Any, kappa: Any) -> tuple[Any, Any, Any]:
        """How many turns away, on which side, and the probability beyond the angle there."""
        turns = np.rint(x / (2.0 * pi))
        angle = x - 2.0 * pi * turns
        low = angle < 0.0
        size = chosen(low, -angle, angle)  # with a slope at 0, which |angle| has not
        size = chosen(size > pi, pi, size)
        return turns, low, lookup("special.von_mises_beyond")(size, kappa)

    def quantile(self, q: Any, kappa: Any) -> Any:
        return lookup("special.von_mises_of_tail")(chosen(q < 0.5, -q, 1.0 - q), kappa)

    def upper_quantile(self, q: Any, kappa: Any) -> Any:
        return -self.quantile(q, kappa)

    def standard_mean(self, kappa: Any) -> Any:
        return 0.0 * kappa

    def standard_entropy(self, kappa: Any) -> Any:
        ratio = i1e(kappa) / i0e(kappa)
        return kappa * (1.0 - ratio) + log(2.0 * pi) + np.log(i0e(kappa))

    def standard_draw(self, key: Any, shape: Any, kappa: Any) -> Any:
        return functions.von_mises(key, kappa, shape)


def _log_ratio(c: Any, x: Any) -> Any:
    """log(1 + c x) / c, which is x where c is 0."""
    return x * lookup("special.log1prel_of")(c * x, n=0)


class _GenExtreme(Continuous):
    """The generalised distribution of a largest value; of c = 0 it is gumbel_r, as in SciPy."""

    def support_of(self, c: Any) -> Any:
        some = chosen(c == 0, 1.0, c)
        return chosen(c < 0, 1.0 / some, -np.inf), chosen(c > 0, 1.0 / some, np.inf)

    def inside_of(self, c: Any) -> Any:
        return 0.0

    at_low = at_high = False

    def log_density(self, x: Any, c: Any) -> Any:
        power = -_log_ratio(-c, x)
        return -np.exp(power) + power - np.log1p(-c * x)

    def log_lower(self, x: Any, c: Any) -> Any:
        return -np.exp(-_log_ratio(-c, x))

    def upper(self, x: Any, c: Any) -> Any:
        return -np.expm1(self.log_lower(x, c))

    def quantile(self, q: Any, c: Any) -> Any:
        y = -np.log(-np.log(q))
        return y * exprel(-c * y)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        y = -np.log(-np.log1p(-q))
        return y * exprel(-c * y)

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        y = functions.gumbel(key, shape)
        return y * exprel(-c * y)


class _GenPareto(Continuous):
    """The generalised Pareto distribution; of c = 0 it is expon."""

    def support_of(self, c: Any) -> Any:
        return 0.0, chosen(c < 0, -1.0 / chosen(c < 0, c, -1.0), np.inf)

    def inside_of(self, c: Any) -> Any:
        return chosen(c < 0, -0.5 / chosen(c < 0, c, -1.0), 1.0)

    at_high = False

    def log_density(self, x: Any, c: Any) -> Any:
        return -(c + 1.0) * _log_ratio(c, x)

    def log_upper(self, x: Any, c: Any) -> Any:
        return -_log_ratio(c, x)

    def lower(self, x: Any, c: Any) -> Any:
        return -np.expm1(-_log_ratio(c, x))

    def quantile(self, q: Any, c: Any) -> Any:
        y = -np.log1p(-q)
        return y * exprel(c * y)

    def upper_quantile(self, q: Any, c: Any) -> Any:
        y = -np.log(q)
        return y * exprel(c * y)

    def standard_mean(self, c: Any) -> Any:
        return chosen(c < 1, 1.0 / (1.0 - chosen(c < 1, c, 0.0)), np.inf)

    def standard_var(self, c: Any) -> Any:
        some = chosen(c < 0.5, c, 0.0)
        return chosen(c < 0.5, 1.0 / ((1.0 - some) ** 2 * (1.0 - 2.0 * some)), np.inf)

    def standard_entropy(self, c: Any) -> Any:
        return 1.0 + c

    def standard_draw(self, key: Any, shape: Any, c: Any) -> Any:
        y = functions.exponential(key, shape)
        return y * exprel(c * y)


uniform = _Uniform("uniform")
beta = _Beta("beta")
truncnorm = _TruncNorm("truncnorm")
triang = _Triang("triang")
powerlaw = _PowerLaw("powerlaw")
vonmises = _VonMises("vonmises")
genextreme = _GenExtreme("genextreme")
genpareto = _GenPareto("genpareto")

"""Incomplete beta functions differentiated with respect to their parameters, on plain arrays.

    lower     derivatives with respect to a and b of I_x(a, b), one at least
    density   derivatives with respect to a, b and x of  x^(a-1) (1-x)^(b-1) / B(a, b)

I is the integral of the density from 0 to x (DLMF 8.17.2).  In w = logit(t) - log(a / b) it
is an exponential of a concave function with its top at 0, and a derivative with respect to a or b
multiplies it by a polynomial in log t and log(1 - t).  The integral is taken over the side of x
that the top is not on.  For a < 1, 1 / gamma(a) is a / gamma(a + 1), as psi would grow beyond
bounds; so for b.
"""

from __future__ import annotations

from math import comb, factorial, pi
from typing import Any

import numpy as np
from scipy import special

from .power_series import exponential, log_gamma, log_minus_psi, product, rest, zeros
from .quadrature import edge, integrals

__all__: list[str] = []

_ONE = 40.0  # exp(-40) is negligible compared to 1


class Parameters:
    """Quantities that depend on a and b only.

    Attributes
    ----------
    height : ndarray
        The density at its top, in w; for a < 1 divided by a, for b < 1 by b.
    near_a, near_b : ndarray
        The derivative with respect to a (b) of the logarithm of the density, without log(t / top)
        (log of 1 - t).
    logs : dict
        The other coefficients of its series, by the powers of the steps.
    """

    def __init__(self, a: Any, b: Any, j: int, k: int) -> None:
        self.a, self.b = a, b
        s, up_a, up_b = a + b, np.where(a < 1, a + 1, a), np.where(b < 1, b + 1, b)
        self.height = _height(a, b)
        log_s = log_minus_psi(s)
        self.near_a = np.where(a < 1, np.log(a) - special.psi(up_a), log_minus_psi(a)) - log_s
        self.near_b = np.where(b < 1, np.log(b) - special.psi(up_b), log_minus_psi(b)) - log_s
        self.logs: dict[tuple[int, int], Any] = {}
        of_sum, of_a, of_b = log_gamma(s, j + k), log_gamma(up_a, j), log_gamma(up_b, k)
        for p in range(j + 1):
            for q in range(k + 1):
                if p + q >= 2:
                    value = comb(p + q, p) * of_sum[p + q - 1]
                    value = value - (of_a[p - 1] if q == 0 else 0.0)
                    self.logs[p, q] = value - (of_b[q - 1] if p == 0 else 0.0)

    def weights(self, j: int, k: int, log_a: Any, log_b: Any, i: Any = None) -> Any:
        """The series that steps of a and b multiply the density by."""

        def of(x: Any) -> Any:
            return x if i is None else x[i, None]

        c = zeros(j, k, log_a)
        for (p, q), value in self.logs.items():
            c[p, q] = of(value)
        if j:
            c[1, 0] = log_a + of(self.near_a)
        if k:
            c[0, 1] = log_b + of(self.near_b)
        e = exponential(c)
        a, b = of(self.a), of(self.b)
        e = product(e, np.where(a < 1, a, 1.0), np.where(a < 1, 1.0, 0.0), 0)
        return product(e, np.where(b < 1, b, 1.0), np.where(b < 1, 1.0, 0.0), 1)


def _height(a: Any, b: Any) -> Any:
    """(a/s)^a (b/s)^b / B(a, b), for s = a + b, divided by a and b where these are below 1."""
    s = a + b
    exponent = rest(s) - _kept(a) - _kept(b)
    # What Stirling's formula gives: sqrt(a b / (2 pi s)), of which a small one keeps its own.
    return (
        np.exp(exponent)
        * np.sqrt(np.where(a < 1, 1.0, a) * np.where(b < 1, 1.0, b) / s)
        * np.where(a < 1, 1.0, 1.0 / np.sqrt(2 * pi))
        * np.where(b < 1, 1.0, 1.0 / np.sqrt(2 * pi))
        * np.sqrt(2 * pi)
    )


def _kept(a: Any) -> Any:
    """The rest of log gamma(a); for a < 1 of log gamma(a + 1), with all that is not a log a - a."""
    small = np.where(a < 1, a, 1.0)
    low = special.gammaln(small + 1.0) - small * np.log(small) + small
    return np.where(a < 1, low, rest(np.maximum(a, 1.0)))


def _logs(a: Any, b: Any, w: Any) -> tuple[Any, Any]:
    """log(t / top) and log((1 - t) / (1 - top)), where logit(t) = log(a / b) + w."""
    p, q = a / (a + b), b / (a + b)
    # Each is a logarithm of 1 + something; where that something is close to -1 it is w and another.
    up = np.log1p(p * np.expm1(np.minimum(w, 700.0))) + np.maximum(w - 700.0, 0.0)
    down = np.log1p(q * np.expm1(-np.maximum(w, -700.0))) + np.maximum(-w - 700.0, 0.0)
    log_a = np.where((w < 0) | (q < 0.5), -down, w - up)
    log_b = np.where((w > 0) | (p < 0.5), -up, -w - down)
    return log_a, log_b


def _place(a: Any, b: Any, x: Any) -> Any:
    """The value of w at x."""
    ratio = (x * b - (1.0 - x) * a) / ((1.0 - x) * a)
    close = np.abs(ratio) < 0.5
    far = np.log(x) - np.log1p(-x) - np.log(a) + np.log(b)
    return np.where(close, np.log1p(np.where(close, ratio, 0.0)), far)


def lower(j: int, k: int, a: Any, b: Any, x: Any) -> Any:
    """The derivative, j times by a and k times by b, of I_x(a, b); 0 < x < 1 and j + k > 0."""
    end = _place(a, b, x)
    left = end < 0.0
    outward = np.where(left, -1.0, 1.0)

    def level(a: Any, b: Any, w: Any) -> Any:
        log_a, log_b = _logs(a, b, w)
        return a * log_a + b * log_b

    top = level(a, b, end)
    with np.errstate(over="ignore"):
        size = np.sqrt(1.0 / (1.0 + a) + 1.0 / (1.0 + b))
        reach = edge(lambda d: level(a, b, end + outward * d) - top, size)
        known = Parameters(a, b, j, k)

        def f(w: Any, i: Any) -> Any:
            log_a, log_b = _logs(a[i, None], b[i, None], w)
            weight = known.weights(j, k, log_a, log_b, i)[j, k]
            return np.exp(a[i, None] * log_a + b[i, None] * log_b - top[i, None]) * weight

        low, high = np.where(left, end - reach, end), np.where(left, end, end + reach)
        # Where t or 1 - t is 1 but for rounding, the density falls as slowly as a or b is small.
        even = np.log(b) - np.log(a)  # t = 1/2
        first = np.where(a < 0.25, np.clip(even - _ONE, low, high), low)
        last = np.where(b < 0.25, np.clip(even + _ONE, low, high), high)
        total = integrals(f, first, last, (last - first) / 1.5)
        total += integrals(f, low, first, a * (first - low) / 1.5)
        total += integrals(f, last, high, b * (high - last) / 1.5)
    return -outward * factorial(j) * factorial(k) * known.height * np.exp(top) * total


def density(j: int, k: int, m: int, a: Any, b: Any, x: Any) -> Any:
    """The derivative j, k, m times by a, b, x of x^(a-1) (1-x)^(b-1) / B(a, b), 0 <= x <= 1."""
    inner = np.clip(x, 5e-324, 1.0 - 2.0**-53)
    log_a, log_b = _logs(a, b, _place(a, b, inner))
    known = Parameters(a, b, j, k)
    power = a * log_a + b * log_b
    total = np.zeros_like(a)
    falling = [known.weights(j, k, log_a, log_b)]
    for i in range(m):
        falling.append(product(falling[-1], a - 1.0 - i, 1.0, 0))
    for i in range(m + 1):  # i times by the power of x, m - i times by that of 1 - x
        term = falling[i]
        for p in range(m - i):
            term = product(term, b - 1.0 - p, 1.0, 1)
        coefficient = comb(m, i) * (-1.0) ** (m - i) * term[j, k]
        size = np.exp(power - (i + 1) * np.log(inner) - (m - i + 1) * np.log1p(-inner))
        found = np.where(coefficient == 0.0, 0.0, coefficient * size)
        found = np.where(x == 0.0, _limit(a - 1.0 - i, j, found), found)
        total = total + np.where(x == 1.0, _limit(b - 1.0 - (m - i), k, found), found)
    return factorial(j) * factorial(k) * known.height * total


def _limit(power: Any, order: int, found: Any) -> Any:
    """At an end of the interval, of which a term has this power, times a logarithm to an order."""
    level = found if order == 0 else np.sign(found) * np.inf
    infinite = np.where(found == 0.0, 0.0, np.sign(found) * np.inf)
    return np.where(power > 0.0, 0.0, np.where(power == 0.0, level, infinite))

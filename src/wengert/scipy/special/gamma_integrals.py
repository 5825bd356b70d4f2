"""Incomplete gamma functions differentiated with respect to their parameter, on plain arrays.

    lower     the n-th derivative with respect to a of P(a, x), n > 0
    density   the derivatives with respect to a and x of  x^(a-1) exp(-x) / gamma(a)

P is the integral of the density from 0 to x (DLMF 8.2.4), in w = log(t / a) an exponential of a
concave function; a derivative with respect to a multiplies it by a polynomial in w, the series of
exp(h (log t - psi(a)) - h^2 psi'(a) / 2 - ...).  The integral is taken over the side of x that the
polynomial's first zero, exp(psi(a)), is not on: there nothing cancels.  For a < 1, 1 / gamma(a) is
a / gamma(a + 1), as psi would grow beyond bounds.
"""

from __future__ import annotations

from math import comb, factorial, pi, prod
from typing import Any

import numpy as np
from scipy import special

from .power_series import exponential, log_gamma, log_minus_psi, product, rest, zeros
from .quadrature import FALL, edge, integrals

__all__: list[str] = []

_ONE = 40.0  # exp(-40) is nothing beside 1


def _fall(w: Any) -> Any:
    """W - (exp(w) - 1), with all digits where w is small."""
    small = np.abs(w) < 0.3
    v = np.where(small, w, 0.0)
    total: Any = 1.0 / factorial(16)
    for k in range(15, 1, -1):
        total = total * v + 1.0 / factorial(k)
    return np.where(small, -total * v * v, w - np.expm1(np.where(small, 0.0, w)))


def _height(a: Any) -> Any:
    """a^a exp(-a) / gamma(a), and / gamma(a + 1) for a < 1."""
    small = a < 1.0
    b = np.where(small, a, 1.0)
    low = np.exp(b * np.log(b) - b - special.gammaln(b + 1.0))
    c = np.where(small, 1.0, a)
    return np.where(small, low, np.sqrt(c / (2.0 * pi)) * np.exp(-rest(c)))


def _series(n: int, a: Any) -> tuple[Any, list[Any]]:
    """The series in a step of a: of log(t) - ..., but for log(t / a); and what follows."""
    shifted = np.where(a < 1.0, a + 1.0, a)
    near = np.where(a < 1.0, np.log(a) - special.psi(shifted), log_minus_psi(np.maximum(a, 1.0)))
    return near, [-c for c in log_gamma(shifted, n)]


def _weights(n: int, a: Any, w: Any, prepared: Any) -> Any:
    """The coefficients up to h^n that a step of a multiplies the density by."""
    near, logs = prepared
    c = zeros(n, 0, a, w)
    if n:
        c[1, 0] = w + near
    for k in range(2, n + 1):
        c[k, 0] = logs[k - 1]
    e = exponential(c)
    small = a < 1.0
    return product(e, np.where(small, a, 1.0), np.where(small, 1.0, 0.0), 0)[:, 0]


def lower(n: int, a: Any, x: Any) -> Any:
    """The n-th derivative with respect to a of P(a, x), for a > 0 and 0 < x < inf."""
    end = np.where(np.abs(x - a) < 0.5 * a, np.log1p((x - a) / a), np.log(x) - np.log(a))
    left = end < -log_minus_psi(a)
    # The integrand is largest at its own peak w = 0, or at the end of the side.
    peak = np.where(left, np.minimum(end, 0.0), np.maximum(end, 0.0))
    top = a * _fall(peak)
    away = np.abs(end - peak)

    def exponent(d: Any, sign: Any) -> Any:
        return a * _fall(peak + sign * d) - top

    with np.errstate(over="ignore"):
        outward = np.where(left, -1.0, 1.0)
        reach = edge(lambda d: exponent(d, outward), 1.0 / np.sqrt(1.0 + a))
        inner = edge(
            lambda d: np.where(d < away, exponent(d, -outward), -2.0 * FALL), 1e-3 + 0.0 * a
        )
        inner = np.minimum(inner, away)
        near, logs = _series(n, a)

        def f(w: Any, i: Any) -> Any:
            column = a[i, None]
            prepared = near[i, None], [c[i, None] for c in logs]
            weight = _weights(n, column, w, prepared)[n]
            return np.exp(column * _fall(w) - top[i, None]) * weight

        low = np.where(left, peak - reach, peak - inner)
        high = np.where(left, peak + inner, peak + reach)
        # Where exp(-t) is 1 but for rounding, the density falls as slowly as a is small.
        first = np.where(a < 0.25, np.clip(-_ONE - np.log(a), low, high), low)
        total = integrals(f, first, high, (high - first) / 1.5)
        total += integrals(f, low, first, a * (first - low) / 1.5)
    return np.where(left, 1.0, -1.0) * factorial(n) * _height(a) * np.exp(top) * total


def density(n: int, m: int, a: Any, x: Any) -> Any:
    """The derivative, n times by a and m times by x, of x^(a-1) exp(-x) / gamma(a), 0 <= x < inf.

    By x it is a sum over j of comb(m, j) (-1)^(m-j) (a-1)...(a-j) x^-j times itself.
    """
    at = np.maximum(x, 5e-324)
    w = np.where(np.abs(at - a) < 0.5 * a, np.log1p((at - a) / a), np.log(at) - np.log(a))
    weights = _weights(n, a, w, _series(n, a))
    power = a * _fall(w)
    scale = _height(a)
    total = np.zeros_like(a)
    factor = weights[:, None].copy()
    for j in range(m + 1):
        coefficient = factor[n, 0]
        # x^-1-j exp(a log x): in one exponential, which neither overflows nor underflows early
        size = np.exp(power - (j + 1) * np.log(at)) * scale
        term = np.where(coefficient == 0.0, 0.0, coefficient * size)
        term = np.where(x == 0.0, _at_zero(n, a, j, coefficient), term)
        total = total + comb(m, j) * (-1.0) ** (m - j) * term
        factor = product(factor, a - 1.0 - j, 1.0, 0)
    return factorial(n) * total


def _at_zero(n: int, a: Any, j: int, coefficient: Any) -> Any:
    """The limit of a term at x = 0, where it is (a-1)...(a-j) x^(a-1-j) / gamma(a)."""
    power = a - 1.0 - j
    if n == 0:
        level = special.gamma(np.where(power == 0.0, a, 1.0))
        whole = prod([a - 1.0 - i for i in range(j)], start=np.ones_like(a))
        flat = np.where(whole == 0.0, 0.0, np.sign(whole) * np.inf)
        return np.where(power > 0.0, 0.0, np.where(power == 0.0, whole / level, flat))
    return np.where(power > 0.0, 0.0, np.sign(coefficient) * np.inf)

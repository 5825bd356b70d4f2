"""Derivatives of incomplete gamma functions with respect to the parameter, on plain arrays.

    lower     the n-th derivative of P(a, x) with respect to a, n > 0
    density   derivatives of x^(a-1) exp(-x) / gamma(a) with respect to a and x

P is the integral of the density from 0 to x (DLMF 8.2.4).  In w = log(t / a) the density is the
exponential of a concave function; a derivative with respect to a multiplies it by a polynomial in w
from the series of exp(h (log t - psi(a)) - h^2 psi'(a) / 2 - ...).  The integral is taken from x to
the end that is not beyond exp(psi(a)), the first zero of the polynomial, to avoid cancellation.
For a < 1, 1 / gamma(a) is computed as a / gamma(a + 1), as psi(a) is unbounded near 0.
"""

from __future__ import annotations

from math import comb, factorial, pi, prod
from typing import Any

import numpy as np
from scipy import special

from .power_series import exponential, log_gamma, log_minus_psi, product, stirling_remainder, zeros
from .quadrature import FALL, edge, integrals

__all__: list[str] = []

_NEGLIGIBLE_FALL = 40.0  # exp(-40) is negligible compared to 1


def _exponent(w: Any) -> Any:
    """Compute w - (exp(w) - 1), accurately for small w too."""
    small = np.abs(w) < 0.3
    v = np.where(small, w, 0.0)
    total: Any = 1.0 / factorial(16)
    for k in range(15, 1, -1):
        total = total * v + 1.0 / factorial(k)
    return np.where(small, -total * v * v, w - np.expm1(np.where(small, 0.0, w)))


def _height(a: Any) -> Any:
    """a^a exp(-a) / gamma(a), or a^a exp(-a) / gamma(a + 1) if a < 1."""
    small = a < 1.0
    b = np.where(small, a, 1.0)
    low = np.exp(b * np.log(b) - b - special.gammaln(b + 1.0))
    c = np.where(small, 1.0, a)
    return np.where(small, low, np.sqrt(c / (2.0 * pi)) * np.exp(-stirling_remainder(c)))


def _exponent_series(n: int, a: Any) -> tuple[Any, list[Any]]:
    """The series of the exponent in a step of a: the first coefficient without w, the others."""
    shifted = np.where(a < 1.0, a + 1.0, a)
    first = np.where(a < 1.0, np.log(a) - special.psi(shifted), log_minus_psi(np.maximum(a, 1.0)))
    return first, [-c for c in log_gamma(shifted, n)]


def _weights(n: int, a: Any, w: Any, series: Any) -> Any:
    """The coefficients up to h^n of the series by which a step h of a multiplies the density."""
    first, others = series
    c = zeros(n, 0, a, w)
    if n:
        c[1, 0] = w + first
    for k in range(2, n + 1):
        c[k, 0] = others[k - 1]
    e = exponential(c)
    small = a < 1.0
    return product(e, np.where(small, a, 1.0), np.where(small, 1.0, 0.0), 0)[:, 0]


def lower(n: int, a: Any, x: Any) -> Any:
    """The n-th derivative with respect to a of P(a, x), for a > 0 and 0 < x < inf."""
    end = np.where(np.abs(x - a) < 0.5 * a, np.log1p((x - a) / a), np.log(x) - np.log(a))
    left = end < -log_minus_psi(a)
    # The maximum of the integrand: at w = 0, or at the end if the interval does not contain 0.
    peak = np.where(left, np.minimum(end, 0.0), np.maximum(end, 0.0))
    top = a * _exponent(peak)
    away = np.abs(end - peak)

    def exponent(d: Any, sign: Any) -> Any:
        return a * _exponent(peak + sign * d) - top

    with np.errstate(over="ignore"):
        outward = np.where(left, -1.0, 1.0)
        reach = edge(lambda d: exponent(d, outward), 1.0 / np.sqrt(1.0 + a))
        inner = edge(
            lambda d: np.where(d < away, exponent(d, -outward), -2.0 * FALL), 1e-3 + 0.0 * a
        )
        inner = np.minimum(inner, away)
        first_coefficient, others = _exponent_series(n, a)

        def f(w: Any, i: Any) -> Any:
            column = a[i, None]
            series = first_coefficient[i, None], [c[i, None] for c in others]
            weight = _weights(n, column, w, series)[n]
            return np.exp(column * _exponent(w) - top[i, None]) * weight

        low = np.where(left, peak - reach, peak - inner)
        high = np.where(left, peak + inner, peak + reach)
        # Where exp(-t) rounds to 1, the density decays like exp(-a |w|): slowly for small a.
        first = np.where(a < 0.25, np.clip(-_NEGLIGIBLE_FALL - np.log(a), low, high), low)
        total = integrals(f, first, high, (high - first) / 1.5)
        total += integrals(f, low, first, a * (first - low) / 1.5)
    return np.where(left, 1.0, -1.0) * factorial(n) * _height(a) * np.exp(top) * total


def density(n: int, m: int, a: Any, x: Any) -> Any:
    """The derivative of x^(a-1) exp(-x) / gamma(a) of orders n in a and m in x, for 0 <= x < inf.

    The m-th derivative with respect to x is the density times the sum over j of
    comb(m, j) (-1)^(m-j) (a-1)...(a-j) x^-j.
    """
    at = np.maximum(x, 5e-324)
    w = np.where(np.abs(at - a) < 0.5 * a, np.log1p((at - a) / a), np.log(at) - np.log(a))
    weights = _weights(n, a, w, _exponent_series(n, a))
    power = a * _exponent(w)
    scale = _height(a)
    total = np.zeros_like(a)
    factor = weights[:, None].copy()
    for j in range(m + 1):
        coefficient = factor[n, 0]
        # x^-1-j exp(a log x) as one exponential, so that no factor overflows or underflows; its
        # root is taken twice, so that a subnormal result is rounded once
        root = np.exp(0.5 * (power - (j + 1) * np.log(at)))
        size = root * scale * root
        term = np.where(coefficient == 0.0, 0.0, coefficient * size)
        term = np.where(x == 0.0, _at_zero(n, a, j, coefficient), term)
        total = total + comb(m, j) * (-1.0) ** (m - j) * term
        factor = product(factor, a - 1.0 - j, 1.0, 0)
    return factorial(n) * total


def _at_zero(n: int, a: Any, j: int, coefficient: Any) -> Any:
    """The limit of a term at x = 0, where it is (a-1)...(a-j) x^(a-1-j) / gamma(a)."""
    power = a - 1.0 - j
    if n == 0:
        gamma = special.gamma(np.where(power == 0.0, a, 1.0))
        falling = prod([a - 1.0 - i for i in range(j)], start=np.ones_like(a))
        pole = np.where(falling == 0.0, 0.0, np.sign(falling) * np.inf)
        return np.where(power > 0.0, 0.0, np.where(power == 0.0, falling / gamma, pole))
    return np.where(power > 0.0, 0.0, np.sign(coefficient) * np.inf)

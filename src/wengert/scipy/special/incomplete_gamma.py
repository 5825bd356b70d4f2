"""Incomplete gamma functions and their inverses, differentiable in both arguments: DLMF 8.2.

    gammainc gammaincc          P(a, x) and Q(a, x) = 1 - P(a, x)
    gammaincinv gammainccinv    their inverses, solved for x
    gammainc_order              derivatives of P(a, x) with respect to a
    gamma_density               x^(a-1) exp(-x) / gamma(a), and its derivatives
    lower                       the n-th derivative of P(a, x) with respect to a, n > 0
    density                     derivatives of x^(a-1) exp(-x) / gamma(a) with respect to a and x

Relative accuracy: 1e-12, also in the far tails, for a from 1e-8 to 1e6 and any order.

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

from .register import OracleExpression, family, sampled_function
from .series_and_quadrature import (
    FALL,
    edge,
    exponential,
    integrals,
    log_gamma,
    log_minus_psi,
    product,
    stirling_remainder,
    zeros,
)

__all__ = ["gammainc", "gammaincc", "gammaincinv", "gammainccinv"]


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


@family(
    native=True,
    oracle=OracleExpression("a x", "diff(lambda a: gammainc(a, 0, x, regularized=True), a, n)"),
)
def gammainc_order(a: Any, x: Any, *, n: int) -> Any:
    """The derivative of order n >= 1 of P(a, x) with respect to a."""
    out = np.where((a >= 0) & (x >= 0), 0.0, np.nan)
    inside = (a >= 0) & np.isfinite(a) & (x > 0) & np.isfinite(x)
    if inside.any():
        # At a = 0 it is the limit from above: -E1(x) for n = 1.
        out[inside] = lower(n, np.maximum(a[inside], 1e-300), x[inside])
    return out


@family(
    native=True,
    oracle=OracleExpression(
        "a x",
        "diff(lambda a, x: x**(a - 1) * exp(-x) / gamma(a), (a, x), (n, m))",
    ),
)
def gamma_density(a: Any, x: Any, *, n: int, m: int) -> Any:
    """The derivative of x^(a-1) exp(-x) / gamma(a) of orders n in a and m in x."""
    out = np.where((a >= 0) & (x >= 0), 0.0, np.nan)
    inside = (a >= 0) & np.isfinite(a) & (x >= 0) & np.isfinite(x)
    if inside.any():
        out[inside] = density(n, m, np.maximum(a[inside], 1e-300), x[inside])
    return out


gammainc_order.partials(
    lambda t, out, a, x, n: t * gammainc_order(a, x, n=n + 1),
    lambda t, out, a, x, n: t * gamma_density(a, x, n=n, m=0),
)
gamma_density.partials(
    lambda t, out, a, x, n, m: t * gamma_density(a, x, n=n + 1, m=m),
    lambda t, out, a, x, n, m: t * gamma_density(a, x, n=n, m=m + 1),
)


@gammainc_order.examples
def _orders(rng: Any) -> Any:
    yield (rng.uniform(0.3, 4.0, size=(2, 1)), rng.uniform(0.3, 5.0, size=1)), {"n": 1}


@gamma_density.examples
def _densities(rng: Any) -> Any:
    yield (rng.uniform(0.3, 4.0, size=(2, 1)), rng.uniform(0.3, 5.0, size=1)), {"n": 1, "m": 1}


_SHAPE = (0.3, 4.0)

gammainc = sampled_function(
    "gammainc",
    "a x",
    "The integral of t^(a-1) exp(-t) / gamma(a) from 0 to x, P of DLMF 8.2.4.",
    "gammainc(a, 0, x, regularized=True)",
    [_SHAPE, (0.2, 5.0)],
)
gammaincc = sampled_function(
    "gammaincc",
    "a x",
    "The integral of t^(a-1) exp(-t) / gamma(a) from x to infinity, Q of DLMF 8.2.4.",
    "gammainc(a, x, inf, regularized=True)",
    [_SHAPE, (0.2, 5.0)],
)
gammainc.partials(
    lambda t, out, a, x: t * gammainc_order(a, x, n=1),
    lambda t, out, a, x: t * gamma_density(a, x, n=0, m=0),
)
gammaincc.partials(
    lambda t, out, a, x: -t * gammainc_order(a, x, n=1),
    lambda t, out, a, x: -t * gamma_density(a, x, n=0, m=0),
)


def _inverse_by_a(t: Any, out: Any, a: Any, y: Any) -> Any:
    """The partial of the inverse with respect to a; 0 at x = 0."""
    partial = -t * gammainc_order(a, out, n=1) / gamma_density(a, out, n=0, m=0)
    return np.where(out == 0.0, 0.0, partial)


gammaincinv = sampled_function(
    "gammaincinv",
    "a y",
    "The x at which P(a, x) is y.",
    lambda a, y: special.gammainccinv(a, 1.0 - y),
    [_SHAPE, (0.1, 0.9)],
)
gammainccinv = sampled_function(
    "gammainccinv",
    "a y",
    "The x at which Q(a, x) is y.",
    lambda a, y: special.gammaincinv(a, 1.0 - y),
    [_SHAPE, (0.1, 0.9)],
)
gammaincinv.partials(_inverse_by_a, lambda t, out, a, y: t / gamma_density(a, out, n=0, m=0))
gammainccinv.partials(_inverse_by_a, lambda t, out, a, y: -t / gamma_density(a, out, n=0, m=0))

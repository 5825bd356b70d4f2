"""Incomplete beta functions and their inverses, differentiable in all arguments: DLMF 8.17.

    betainc betaincc          I_x(a, b) and 1 - I_x(a, b)
    betaincinv betainccinv    their inverses, solved for x
    betainc_orders            derivatives of I_x(a, b) with respect to a and b
    beta_density              x^(a-1) (1-x)^(b-1) / B(a, b), and its derivatives
    lower                     derivatives of I_x(a, b) with respect to a and b, of total order at
                              least 1
    density                   derivatives of x^(a-1) (1-x)^(b-1) / B(a, b) with respect to a, b and
                              x

Relative accuracy: 1e-12, also in the far tails, for a and b from 1e-6 to 1e5 and any order.

I_x(a, b) is the integral of the density from 0 to x (DLMF 8.17.2).  In the variable
w = logit(t) - log(a / b) the density is the exponential of a concave function with its maximum at
w = 0; a derivative with respect to a or b multiplies it by a polynomial in log t and log(1 - t).
The integral is taken from x to that end which is not beyond the maximum.  For a < 1,
1 / gamma(a) is computed as a / gamma(a + 1), as psi(a) is unbounded near 0; likewise for b.
"""

from __future__ import annotations

from math import comb, factorial, pi
from typing import Any

import numpy as np
from scipy import special

from .register import OracleExpression, family, sampled_function
from .series_and_quadrature import (
    edge,
    exponential,
    integrals,
    log_gamma,
    log_minus_psi,
    product,
    stirling_remainder,
    zeros,
)

__all__ = ["betainc", "betaincc", "betaincinv", "betainccinv"]


_NEGLIGIBLE_FALL = 40.0  # exp(-40) is negligible compared to 1


class Parameters:
    """Quantities that depend on a and b only.

    Attributes
    ----------
    height : ndarray
        The maximum of the density as a function of w; divided by a if a < 1, and by b if b < 1.
    near_a, near_b : ndarray
        The derivative of the logarithm of the density with respect to a (b), except for its term
        log(t / t_max) (log((1 - t) / (1 - t_max))).
    logs : dict
        The other coefficients of the series of that logarithm in steps of a and b, by powers.
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
        """The series by which steps of a and b multiply the density."""

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
    """(a/s)^a (b/s)^b / B(a, b) with s = a + b; divided by a if a < 1, and by b if b < 1."""
    s = a + b
    exponent = stirling_remainder(s) - _log_gamma_remainder(a) - _log_gamma_remainder(b)
    # exponent is relative to Stirling's formula, which gives sqrt(a b / (2 pi s)).
    return (
        np.exp(exponent)
        * np.sqrt(np.where(a < 1, 1.0, a) * np.where(b < 1, 1.0, b) / s)
        * np.where(a < 1, 1.0, 1.0 / np.sqrt(2 * pi))
        * np.where(b < 1, 1.0, 1.0 / np.sqrt(2 * pi))
        * np.sqrt(2 * pi)
    )


def _log_gamma_remainder(a: Any) -> Any:
    """Stirling's remainder of log gamma(a), or log gamma(a + 1) - a log a + a if a < 1."""
    small = np.where(a < 1, a, 1.0)
    low = special.gammaln(small + 1.0) - small * np.log(small) + small
    return np.where(a < 1, low, stirling_remainder(np.maximum(a, 1.0)))


def _logs(a: Any, b: Any, w: Any) -> tuple[Any, Any]:
    """log(t / t_max) and log((1 - t) / (1 - t_max)), where logit(t) = log(a / b) + w."""
    p, q = a / (a + b), b / (a + b)
    # Each is log1p(y), or w plus the other one where y is close to -1.
    up = np.log1p(p * np.expm1(np.minimum(w, 700.0))) + np.maximum(w - 700.0, 0.0)
    down = np.log1p(q * np.expm1(-np.maximum(w, -700.0))) + np.maximum(-w - 700.0, 0.0)
    log_a = np.where((w < 0) | (q < 0.5), -down, w - up)
    log_b = np.where((w > 0) | (p < 0.5), -up, -w - down)
    return log_a, log_b


def _w_of(a: Any, b: Any, x: Any) -> Any:
    """The value of w at x."""
    ratio = (x * b - (1.0 - x) * a) / ((1.0 - x) * a)
    is_near = np.abs(ratio) < 0.5
    far = np.log(x) - np.log1p(-x) - np.log(a) + np.log(b)
    return np.where(is_near, np.log1p(np.where(is_near, ratio, 0.0)), far)


def lower(j: int, k: int, a: Any, b: Any, x: Any) -> Any:
    """The derivative of I_x(a, b) of order j in a and k in b, for 0 < x < 1 and j + k > 0."""
    end = _w_of(a, b, x)
    left = end < 0.0
    outward = np.where(left, -1.0, 1.0)

    def level(a: Any, b: Any, w: Any) -> Any:
        log_a, log_b = _logs(a, b, w)
        return a * log_a + b * log_b

    top = level(a, b, end)
    with np.errstate(over="ignore"):
        size = np.sqrt(1.0 / (1.0 + a) + 1.0 / (1.0 + b))
        reach = edge(lambda d: level(a, b, end + outward * d) - top, size)
        parameters = Parameters(a, b, j, k)

        def f(w: Any, i: Any) -> Any:
            log_a, log_b = _logs(a[i, None], b[i, None], w)
            weight = parameters.weights(j, k, log_a, log_b, i)[j, k]
            return np.exp(a[i, None] * log_a + b[i, None] * log_b - top[i, None]) * weight

        low, high = np.where(left, end - reach, end), np.where(left, end, end + reach)
        # Where t or 1 - t rounds to 1, the density decays like exp(-a |w|) or exp(-b |w|): slowly
        # for small a or b.
        even = np.log(b) - np.log(a)  # w at t = 1/2
        first = np.where(a < 0.25, np.clip(even - _NEGLIGIBLE_FALL, low, high), low)
        last = np.where(b < 0.25, np.clip(even + _NEGLIGIBLE_FALL, low, high), high)
        total = integrals(f, first, last, (last - first) / 1.5)
        total += integrals(f, low, first, a * (first - low) / 1.5)
        total += integrals(f, last, high, b * (high - last) / 1.5)
    return -outward * factorial(j) * factorial(k) * parameters.height * np.exp(top) * total


def density_orders(j: int, k: int, m: int, a: Any, b: Any, x: Any) -> Any:
    """The derivative of x^(a-1) (1-x)^(b-1) / B(a, b) of orders j, k, m in a, b, x; 0 <= x <= 1."""
    inner = np.clip(x, 5e-324, 1.0 - 2.0**-53)
    log_a, log_b = _logs(a, b, _w_of(a, b, inner))
    parameters = Parameters(a, b, j, k)
    power = a * log_a + b * log_b
    total = np.zeros_like(a)
    weights = [parameters.weights(j, k, log_a, log_b)]
    for i in range(m):
        weights.append(product(weights[-1], a - 1.0 - i, 1.0, 0))
    for i in range(m + 1):  # Leibniz: i derivatives of the power of x, m - i of that of 1 - x
        term = weights[i]
        for p in range(m - i):
            term = product(term, b - 1.0 - p, 1.0, 1)
        coefficient = comb(m, i) * (-1.0) ** (m - i) * term[j, k]
        size = np.exp(power - (i + 1) * np.log(inner) - (m - i + 1) * np.log1p(-inner))
        found = np.where(coefficient == 0.0, 0.0, coefficient * size)
        found = np.where(x == 0.0, _limit(a - 1.0 - i, j, found), found)
        total = total + np.where(x == 1.0, _limit(b - 1.0 - (m - i), k, found), found)
    return factorial(j) * factorial(k) * parameters.height * total


def _limit(power: Any, order: int, found: Any) -> Any:
    """The limit at x = 0 of a term x^power log(x)^order, whose value nearby is `found`."""
    of_log = found if order == 0 else np.sign(found) * np.inf
    of_pole = np.where(found == 0.0, 0.0, np.sign(found) * np.inf)
    return np.where(power > 0.0, 0.0, np.where(power == 0.0, of_log, of_pole))


def _is_valid(a: Any, b: Any, x: Any) -> Any:
    return (a >= 0) & (b >= 0) & (a + b > 0) & np.isfinite(a + b) & (x >= 0) & (x <= 1)


@family(
    native=True,
    oracle=OracleExpression(
        "a b x", "diff(lambda a, b: betainc(a, b, 0, x, regularized=True), (a, b), (j, k))"
    ),
)
def betainc_orders(a: Any, b: Any, x: Any, *, j: int, k: int) -> Any:
    """The derivative of I_x(a, b) of orders j in a and k in b, j + k > 0."""
    valid = _is_valid(a, b, x)
    out = np.where(valid, 0.0, np.nan)
    inner = valid & (x > 0) & (x < 1)
    if inner.any():
        a, b = np.maximum(a[inner], 1e-300), np.maximum(b[inner], 1e-300)
        out[inner] = lower(j, k, a, b, x[inner])
    return out


@family(
    native=True,
    oracle=OracleExpression(
        "a b x",
        "diff(lambda a, b, x: x**(a - 1) * (1 - x)**(b - 1) / beta(a, b), (a, b, x), (j, k, m))",
    ),
)
def beta_density(a: Any, b: Any, x: Any, *, j: int, k: int, m: int) -> Any:
    """The derivative of x^(a-1) (1-x)^(b-1) / B(a, b) of orders j, k, m in a, b, x."""
    valid = _is_valid(a, b, x)
    out = np.where(valid, 0.0, np.nan)
    if valid.any():
        a, b = np.maximum(a[valid], 1e-300), np.maximum(b[valid], 1e-300)
        out[valid] = density_orders(j, k, m, a, b, x[valid])
    return out


betainc_orders.partials(
    lambda t, out, a, b, x, j, k: t * betainc_orders(a, b, x, j=j + 1, k=k),
    lambda t, out, a, b, x, j, k: t * betainc_orders(a, b, x, j=j, k=k + 1),
    lambda t, out, a, b, x, j, k: t * beta_density(a, b, x, j=j, k=k, m=0),
)
beta_density.partials(
    lambda t, out, a, b, x, j, k, m: t * beta_density(a, b, x, j=j + 1, k=k, m=m),
    lambda t, out, a, b, x, j, k, m: t * beta_density(a, b, x, j=j, k=k + 1, m=m),
    lambda t, out, a, b, x, j, k, m: t * beta_density(a, b, x, j=j, k=k, m=m + 1),
)


def _operands(rng: Any) -> Any:
    return rng.uniform(0.4, 3.0, size=(2, 1)), rng.uniform(0.4, 3.0), rng.uniform(0.2, 0.8, size=1)


@betainc_orders.examples
def _orders(rng: Any) -> Any:
    yield _operands(rng), {"j": 1, "k": 0}


@beta_density.examples
def _densities(rng: Any) -> Any:
    yield _operands(rng), {"j": 1, "k": 0, "m": 1}


_BOUNDS = [(0.4, 3.0), (0.4, 3.0), (0.2, 0.8)]

betainc = sampled_function(
    "betainc",
    "a b x",
    "The integral of t^(a-1) (1-t)^(b-1) / B(a, b) from 0 to x, I of DLMF 8.17.2.",
    "betainc(a, b, 0, x, regularized=True)",
    _BOUNDS,
)
betaincc = sampled_function(
    "betaincc",
    "a b x",
    "The integral of t^(a-1) (1-t)^(b-1) / B(a, b) from x to 1, DLMF 8.17.4.",
    "betainc(a, b, x, 1, regularized=True)",
    _BOUNDS,
)
betainc.partials(
    lambda t, out, a, b, x: t * betainc_orders(a, b, x, j=1, k=0),
    lambda t, out, a, b, x: t * betainc_orders(a, b, x, j=0, k=1),
    lambda t, out, a, b, x: t * beta_density(a, b, x, j=0, k=0, m=0),
)
betaincc.partials(
    lambda t, out, a, b, x: -t * betainc_orders(a, b, x, j=1, k=0),
    lambda t, out, a, b, x: -t * betainc_orders(a, b, x, j=0, k=1),
    lambda t, out, a, b, x: -t * beta_density(a, b, x, j=0, k=0, m=0),
)


def _inverse_partial(t: Any, out: Any, a: Any, b: Any, j: int, k: int) -> Any:
    """The partial of the inverse with respect to a or b; 0 at x = 0 and x = 1."""
    density = beta_density(a, b, out, j=0, k=0, m=0)
    return np.where(
        (out == 0.0) | (out == 1.0), 0.0, -t * betainc_orders(a, b, out, j=j, k=k) / density
    )


betaincinv = sampled_function(
    "betaincinv",
    "a b y",
    "The x at which I_x(a, b) is y.",
    lambda a, b, y: special.betainccinv(a, b, 1.0 - y),
    _BOUNDS,
)
betainccinv = sampled_function(
    "betainccinv",
    "a b y",
    "The x at which 1 - I_x(a, b) is y.",
    lambda a, b, y: special.betaincinv(a, b, 1.0 - y),
    _BOUNDS,
)
betaincinv.partials(
    lambda t, out, a, b, y: _inverse_partial(t, out, a, b, 1, 0),
    lambda t, out, a, b, y: _inverse_partial(t, out, a, b, 0, 1),
    lambda t, out, a, b, y: t / beta_density(a, b, out, j=0, k=0, m=0),
)
betainccinv.partials(
    lambda t, out, a, b, y: _inverse_partial(t, out, a, b, 1, 0),
    lambda t, out, a, b, y: _inverse_partial(t, out, a, b, 0, 1),
    lambda t, out, a, b, y: -t / beta_density(a, b, out, j=0, k=0, m=0),
)

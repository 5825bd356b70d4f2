"""Derivatives of Tricomi's function U with respect to its parameters, on plain arrays: DLMF 13.4.4.

    derivatives    of U(a, b, x), of orders j, k, m in a, b, x

For a > 0, U(a, b, x) is the integral of exp(-x t) t^(a-1) (1+t)^(b-a-1) / gamma(a) over t > 0; in
log t the integrand has one maximum.  Derivatives with respect to a and b multiply the integrand by
polynomials in log t and log(1 + t).  Small and negative a are reached from a >= 1 by the recurrence
DLMF 13.3.7.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
from scipy import special

from .power_series import exponential, log_gamma, product, zeros
from .quadrature import edge, integrals
from .traced_loops import fail_where, repeat

__all__: list[str] = []

_MAX_STEPS = 5000  # of the recurrence


def derivatives(j: int, k: int, m: int, a: Any, b: Any, x: Any) -> Any:
    """The derivative of U(a, b, x) of orders j, k, m in a, b, x, for x > 0."""
    # The m-th derivative in x is (-1)^m (a)_m U(a + m, b + m, x), DLMF 13.3.22.
    found = _series(j, k, a + m, b + m, x)
    for i in range(m):
        found = -product(found, a + i, 1.0, 0)
    return factorial(j) * factorial(k) * found[j, k]


def _series(j: int, k: int, a: Any, b: Any, x: Any) -> Any:
    """The series of U in steps of a and b."""
    steps = np.where(a < 1.0, np.ceil(1.0 - a), 0.0)
    fail_where(steps > _MAX_STEPS, lambda: "the first parameter of hyperu is below -5000")
    here, above = _integral(j, k, a + steps, b, x), _integral(j, k, a + steps + 1.0, b, x)
    size = (j + 1) * (k + 1)

    def series(coefficients: Any) -> Any:
        out = zeros(j, k, a)
        for i, c in enumerate(coefficients):
            out[divmod(i, k + 1)] = c
        return out

    def step(_: Any, left: Any, *state: Any) -> Any:
        here, above = series(state[:size]), series(state[size:])
        p = a + left
        # U(a-1) = (2a - b + x) U(a) - a (a - b + 1) U(a+1)
        first = product(here, 2.0 * p - b + x, 2.0, 0)
        if k:
            first[:, 1:] -= here[:, :-1]
        second = product(product(above, p - b + 1.0, 1.0, 0), p, 1.0, 0)
        if k:
            second[:, 1:] -= product(above, p, 1.0, 0)[:, :-1]
        below = first - second
        return left - 1.0, *_coefficients(below), *_coefficients(here)

    state = steps, *_coefficients(here), *_coefficients(above)
    found = repeat(step, state, _MAX_STEPS, lambda left, *_: left > 0.0)
    return series(found[1 : size + 1])


def _coefficients(c: Any) -> list[Any]:
    """The coefficients of a series as a flat list."""
    return [c[j, k] for j in range(c.shape[0]) for k in range(c.shape[1])]


def _integral(j: int, k: int, a: Any, b: Any, x: Any) -> Any:
    """The series of U in steps of a and b, for a >= 1, by quadrature."""
    c = b - a - 1.0
    # The maximum is at the root of x u^2 + (x - a - c) u = a.
    half = 0.5 * (x - a - c)
    root = np.hypot(half, np.sqrt(a * x))
    top = np.where(half < 0, (root - half) / x, a / (root + half))
    peak = np.log(top)

    def exponent(s: Any, a: Any, c: Any, x: Any) -> Any:
        return a * s + c * np.logaddexp(0.0, s) - x * np.exp(s)

    height = exponent(peak, a, c, x)
    with np.errstate(over="ignore"):
        right = edge(lambda d: exponent(peak + d, a, c, x) - height, np.full_like(a, 0.01))
        left = edge(lambda d: exponent(peak - d, a, c, x) - height, np.full_like(a, 0.01))
    logs = log_gamma(a, j)
    out = zeros(j, k, a)
    for p in range(j + 1):
        for q in range(k + 1):

            def f(s: Any, i: Any, p: int = p, q: int = q) -> Any:
                column = a[i, None], c[i, None], x[i, None]
                far = np.logaddexp(0.0, s)
                series = zeros(p, q, s)
                if p:
                    series[1, 0] = s - far - logs[0][i, None]
                for n in range(2, p + 1):
                    series[n, 0] = -logs[n - 1][i, None]
                if q:
                    series[0, 1] = far
                weight = exponential(series)[p, q]
                return np.exp(exponent(s, *column) - height[i, None]) * weight

            low, high = peak - left, peak + right
            found = integrals(f, low, peak, left / 1.2) + integrals(f, peak, high, right / 1.2)
            out[p, q] = found
    return out * np.exp(height - special.gammaln(a))

"""Quotients with removable singularities at 0, and all their derivatives.

    exprel_of      (e^x - 1) / x     the integral over s from 0 to 1 of s^n e^(x s)
    log1prel_of    log(1 + x) / x    of (-1)^n n! s^n / (1 + x s)^(n + 1)
    sinc_of        sin(x) / x        of s^n cos(x s + n pi / 2)
    sinhc_of       sinh(x) / x       of s^n cosh(x s), or sinh for odd n

n is the order of the derivative, whose value is the integral on the right.  Near 0 it is computed
from its power series; elsewhere from the derivatives of g(x) = x f(x), by

    x f^(n) = g^(n) - n f^(n-1)

The quotients occur in Box-Cox transforms and in exponential and trigonometric integrals (DLMF 6.2,
25.12).
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np

from .derivative_families import family
from .register import OracleExpression

__all__: list[str] = []


def _falling_factorial(n: int, k: int) -> int:
    return factorial(n) // factorial(n - k)


def _quotient(n: int, x: Any, derivatives: Any) -> Any:
    """f^(n) for f(x) = g(x) / x; `derivatives(k)` is g^(k) at x."""
    total = np.zeros_like(x)
    for k in range(n + 1):
        total = total + (-1.0) ** k * _falling_factorial(n, k) * derivatives(n - k) / x ** (k + 1)
    return total


@family(native=True, oracle=OracleExpression("x", "quad(lambda s: s**n * exp(x * s), [0, 1])"))
def exprel_of(x: Any, *, n: int) -> Any:
    """The derivative of order n of (e^x - 1) / x."""
    radius = 8.0 + n
    size = np.abs(x)
    near, below = size <= radius, x < 0
    a = np.where(near, size, 1.0)
    total, up, down = np.zeros_like(a), np.ones_like(a), 1.0 / (n + 1) * np.ones_like(a)
    for k in range(round(40 + 5.0 * n)):  # in both series all terms are positive
        total = total + np.where(below, down, up / (n + 1 + k))
        up, down = up * (a / (k + 1)), down * (a / (n + 2 + k))
    total = np.where(below, np.exp(-a) * total, total)
    y = np.where(near, radius, x)
    return np.where(near, total, _quotient(n, y, lambda k: np.exp(y) if k else np.expm1(y)))


exprel_of.partials(lambda t, out, x, *, n: t * exprel_of(x, n=n + 1))


@family(
    native=True,
    oracle=OracleExpression(
        "x", "(-1)**n * factorial(n) * quad(lambda s: s**n / (1 + x*s)**(n+1), [0, 1])"
    ),
)
def log1prel_of(x: Any, *, n: int) -> Any:
    """The derivative of order n of log(1 + x) / x, x > -1.

    With q = x / (1 + x) it is (-1)^n n! / x^(n+1) times the sum of q^j / j over all j > n.
    """
    q = x / (1.0 + x)
    near = np.abs(q) <= 0.5
    p, total = np.where(near, q, 0.0), np.zeros_like(q)
    for j in range(56, -1, -1):
        total = total * p + 1.0 / (n + 1 + j)
    close = total / (1.0 + np.where(near, x, 0.0)) ** (n + 1)
    y, r = np.where(near, 1.0, x), np.where(near, 0.5, q)
    far = np.log1p(y) - sum(r**j / j for j in range(1, n + 1))
    return (-1.0) ** n * factorial(n) * np.where(near, close, far / y ** (n + 1))


log1prel_of.partials(lambda t, out, x, *, n: t * log1prel_of(x, n=n + 1))


def _series(n: int, x: Any, sign: int, terms: int) -> Any:
    """The sum of sign^j x^(2j - n) / ((2j - n)! (2j + 1)) over 2j >= n."""
    odd, first = n % 2, (n + n % 2) // 2
    square, total = x * x, np.zeros_like(x)
    for i in range(terms, -1, -1):
        factor = float(sign) ** (first + i) / (2 * (first + i) + 1)
        total = total + factor / factorial(2 * i + odd)
        total = total * square if i else total
    return total * x if odd else total


@family(
    native=True,
    oracle=OracleExpression("x", "quad(lambda s: s**n * cos(x * s + n * pi / 2), [0, 1])"),
)
def sinc_of(x: Any, *, n: int) -> Any:
    """The derivative of order n of sin(x) / x."""
    radius = 1.0 + 0.5 * n
    near = np.abs(x) <= radius
    y = np.where(near, radius, x)
    far = _quotient(n, y, lambda k: _sin_derivative(y, k))
    return np.where(near, _series(n, np.where(near, x, 0.0), -1, 14 + 2 * n), far)


def _sin_derivative(x: Any, k: int) -> Any:
    """The k-th derivative of sin: sin(x + k pi / 2)."""
    return (np.cos(x) if k % 2 else np.sin(x)) * (-1.0) ** (k // 2)


sinc_of.partials(lambda t, out, x, *, n: t * sinc_of(x, n=n + 1))


@family(
    native=True,
    oracle=OracleExpression(
        "x", "quad(lambda s: s**n * (sinh(x*s) if n % 2 else cosh(x*s)), [0, 1])"
    ),
)
def sinhc_of(x: Any, *, n: int) -> Any:
    """The derivative of order n of sinh(x) / x."""
    radius = 3.0 + n
    near = np.abs(x) <= radius
    y = np.where(near, radius, x)
    far = _quotient(n, y, lambda k: np.cosh(y) if k % 2 else np.sinh(y))
    return np.where(near, _series(n, np.where(near, x, 0.0), 1, 18 + 2 * n), far)


sinhc_of.partials(lambda t, out, x, *, n: t * sinhc_of(x, n=n + 1))


@exprel_of.examples
def _(rng: np.random.Generator) -> Any:
    for n in (0, 1, 3):
        yield (rng.normal(size=4) * 3.0,), {"n": n}
    yield (np.array([-30.0, 1e-9, 25.0]),), {"n": 2}


@log1prel_of.examples
def _(rng: np.random.Generator) -> Any:
    for n in (0, 1, 3):
        yield (rng.uniform(-0.9, 4.0, size=4),), {"n": n}
    yield (np.array([-0.99, 1e-9, 1e6]),), {"n": 1}


def _both_signs(rng: np.random.Generator) -> Any:
    for n in (0, 1, 2, 5):
        yield (rng.normal(size=4) * 3.0,), {"n": n}
    yield (np.array([-9.0, 1e-9, 12.0]),), {"n": 3}


sinc_of.examples(_both_signs)
sinhc_of.examples(_both_signs)

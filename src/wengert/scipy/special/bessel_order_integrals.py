"""Bessel functions differentiated in their order, any number of times, on plain arrays.

J + i Y is the integral of exp(x sinh t - v t) along a path that ends where it vanishes (DLMF
10.9.18).  A derivative with respect to the order v puts a factor -t under the integral sign.  The
path goes through the saddle point, so that nothing large cancels:

    -infinity  ->  mu  ->  mu + i pi  ->  i pi + infinity       mu = arccosh(v/x), 0 where v < x

    hankel   J + i Y, for x > 0 and any order
    turn     cos(pi v) and sin(pi v)
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from math import comb, pi
from typing import Any

import numpy as np

from .quadrature import FALL, edge, integrals
from .traced_loops import refuse, repeat

_LARGEST_ARGUMENT = 1.0e5  # beyond, the oscillating integral would take seconds an element


def turn(v: Any) -> tuple[Any, Any]:
    """cos(pi v) and sin(pi v), exactly 0 and 1 where they are."""
    whole = np.rint(v)
    part = pi * (v - whole)
    sign = 1.0 - 2.0 * np.mod(whole, 2.0)
    return sign * np.where(np.abs(v - whole) == 0.5, 0.0, np.cos(part)), sign * np.sin(part)


def _panels(length: Any) -> Any:
    return np.maximum(8.0, length / 1.5)


def hankel(n: int, v: Any, x: Any) -> Any:
    """The n-th derivative with respect to v of H1 = J + i Y, for x > 0 (1-d arrays, float64)."""
    total = _hankel(n, np.abs(v), x)
    negative = v < 0
    if negative.any():
        total[negative] = _mirrored(n, total[negative], -v[negative], x[negative])
    return total


def _mirrored(n: int, kept: Any, a: Any, x: Any) -> Any:
    """The same for -a: by DLMF 10.4.6 it is exp(i pi a) times H1 of a."""
    cos, sin = turn(a)
    total = np.zeros_like(a, dtype=complex)
    for k in range(n + 1):
        factor = comb(n, k) * (-1.0) ** k * pi ** (n - k)
        h = kept if k == n else _hankel(k, a, x)
        # (-i)**(n - k) (cos + i sin) h, by parts, so that a zero stays one.
        real, imag = cos * h.real - sin * h.imag, cos * h.imag + sin * h.real
        for _ in range((n - k) % 4):
            real, imag = imag, -real
        total = total + factor * (real + 1j * imag)
    return total


def _hankel(n: int, v: Any, x: Any) -> Any:
    """The same for orders that are not negative."""
    far = (x > 30.0) & (x > 1.5 * v * v)
    out = np.empty_like(v, dtype=complex)
    if far.any():
        out[far] = _hankel_far(n, v[far], x[far])
    near = ~far
    if near.any():
        out[near] = _hankel_near(n, v[near], x[near])
    return out


def _hankel_far(n: int, v: Any, x: Any) -> Any:
    """Hankel's expansion, DLMF 10.17.5, as a power series in a step of the order."""
    size = n + 1
    square = [4.0 * v * v, 8.0 * v, np.full_like(v, 4.0)]  # of 4 (v + h)^2
    none = np.zeros_like(v, dtype=complex)
    start = [none + 1.0] + [none] * n

    def step(k: Any, *state: Any) -> Any:
        term, total = state[:size], state[size:]
        factor = 1j / (8.0 * (k + 1.0) * x)
        new = []
        for j in range(size):
            here = (square[0] - (2.0 * k + 1.0) ** 2) * term[j]
            for i in range(1, min(j, 2) + 1):
                here = here + square[i] * term[j - i]
            new.append(here * factor)
        # It diverges in the end: an element stops where its terms begin to grow.
        grows = _largest(new) > _largest(term)
        new = [np.where(grows, 0.0, c) for c in new]
        return *new, *[a + b for a, b in zip(total, new, strict=True)]

    def going(*state: Any) -> Any:
        return _largest(state[:size]) > 1e-18 * np.abs(state[size])

    total = repeat(step, (*start, *start), 39, going)[size:]
    # exp(i (x - pi v / 2 - pi / 4)); its derivative with respect to v is - i pi / 2 times it.
    cos, sin = turn(0.5 * v + 0.25)
    wave = np.sqrt(2.0 / (pi * x)) * (np.cos(x) + 1j * np.sin(x)) * (cos - 1j * sin)
    out = none
    factorial = 1.0
    for k in range(size):  # the coefficient of h**n
        rate = (-0.5j * pi) ** (n - k)
        for j in range(1, n - k + 1):
            rate /= j
        out = out + total[k] * rate
    for j in range(2, n + 1):
        factorial *= j
    return out * wave * factorial


def _largest(terms: Sequence[Any]) -> Any:
    """The largest of their sizes."""
    return functools.reduce(np.maximum, [np.abs(c) for c in terms])


def _hankel_near(n: int, v: Any, x: Any) -> Any:
    """By the path through the saddle point."""
    beyond = v > x
    ratio = np.where(beyond, v / x, 1.0)
    # arccosh without losing digits where it is close to zero
    excess = np.where(beyond, (v - x) / x, 0.0)
    mu = np.where(beyond, np.log1p(excess + np.sqrt(excess * (ratio + 1.0))), 0.0)
    sine = np.sqrt(excess * (ratio + 1.0))  # sinh(mu)
    height = x * sine - v * mu

    # The real line from -infinity to mu, turned round: exp(v s - x sinh s) from -mu on.
    def real_exponent(s: Any, i: Any) -> Any:
        return v[i, None] * s - x[i, None] * np.sinh(s)

    everything = np.arange(len(v))
    top = -height  # at s = mu, where v > x; else 0 at s = 0

    def beyond_top(d: Any) -> Any:
        return real_exponent((mu + d)[:, None], everything)[:, 0] - top

    def below_top(d: Any) -> Any:
        return real_exponent((mu - np.minimum(d, 2 * mu))[:, None], everything)[:, 0] - top

    with np.errstate(over="ignore"):
        right = edge(beyond_top, np.full_like(v, 0.1))
        fallen = below_top(2.0 * mu) < -FALL
        left = np.where(
            fallen, edge(lambda d: np.where(fallen, below_top(d), -1e9), 0.01 + 0.0 * mu), 2 * mu
        )

        def on_line(s: Any, i: Any) -> Any:
            return np.exp(real_exponent(s, i) - top[i, None]) * s**n

        line = integrals(on_line, mu, mu + right, _panels(right))
        line += integrals(on_line, mu - left, mu, _panels(left))
    line *= np.exp(top)
    rest = _upward(n, v, x, mu, sine, height) + _outward(n, v, x, mu, height)
    total = np.empty_like(v, dtype=complex)  # over i, in parts: Y may be infinite where J is zero
    total.real, total.imag = rest.imag / pi, -(line + rest.real) / pi
    return total


def _upward(n: int, v: Any, x: Any, mu: Any, sine: Any, height: Any) -> Any:
    """From mu to mu + i pi."""
    cosine = np.maximum(x, v)  # x cosh(mu)
    steep = x * sine
    with np.errstate(divide="ignore"):
        end = np.where(steep > 0.5 * FALL, np.arccos(np.clip(1.0 - FALL / steep, -1, 1)), pi)
    turns = np.where(v > x, v * end**3 / 6.0, (x + v) * end)
    refuse(
        turns > 8.0 * _LARGEST_ARGUMENT,
        lambda: (
            "the derivative of a Bessel function by its order is not computed at order and argument"
            f" as large as {float(v[np.argmax(turns)])!r}, {float(x[np.argmax(turns)])!r}"
        ),
    )

    def f(theta: Any, i: Any) -> Any:
        up = steep[i, None] * (-2.0 * np.sin(0.5 * theta) ** 2)
        phase = cosine[i, None] * np.sin(theta) - v[i, None] * theta
        return np.exp(up + 1j * phase) * (-(mu[i, None] + 1j * theta)) ** n

    found = integrals(f, np.zeros_like(v), end, np.maximum(8.0, turns / 6.0), complex)
    return 1j * np.exp(height) * found


def _outward(n: int, v: Any, x: Any, mu: Any, height: Any) -> Any:
    """From mu + i pi to infinity; exp(-x sinh s - v s - i pi v)."""
    cos, sin = turn(v)
    zero = -x * np.sinh(mu) - v * mu

    def exponent(s: Any, i: Any) -> Any:
        return -x[i, None] * np.sinh(s) - v[i, None] * s - zero[i, None]

    everything = np.arange(len(v))
    with np.errstate(over="ignore"):
        right = edge(lambda d: exponent((mu + d)[:, None], everything)[:, 0], np.full_like(v, 1e-3))

        def f(s: Any, i: Any) -> Any:
            return np.exp(exponent(s, i)) * (-(s + 1j * pi)) ** n

        found = integrals(f, mu, mu + right, _panels(right), complex)
    with np.errstate(under="ignore"):
        found = found * np.exp(zero)
    return (cos * found.real + sin * found.imag) + 1j * (cos * found.imag - sin * found.real)

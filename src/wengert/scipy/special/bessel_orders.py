"""Derivatives of Bessel functions with respect to the order: DLMF 10.15, 10.38.

    hankel                n-th derivatives of J + i Y, for x > 0 and any order
    cospi_and_sinpi       cos(pi v) and sin(pi v)
    scaled_i, scaled_k    exp(-x) and exp(x) times the n-th derivatives of I and K
    log_and_factor_of_k   the latter as a logarithm and a factor
    jv_order, yv_order    n-th derivatives of J and Y with respect to v
    ive_order, kve_order  exp(-x) and exp(x) times those of I and K
    log_kve               log(exp(x) K), and n-th derivatives of K with respect to v divided by K

J + i Y is the integral of exp(x sinh t - v t) / (i pi) along a path between points at infinity
where the integrand vanishes (DLMF 10.9.18).  Each derivative with respect to v multiplies the
integrand by -t.  The path goes through the saddle point mu = arccosh(v / x), or 0 where v < x:
-infinity, mu, mu + i pi, i pi + infinity; so the integrand is not larger than the result.  I and K
are integrals of exp(x cosh t - v t), DLMF 10.32, along such paths, scaled so that they neither
overflow nor underflow where I and K do.

With respect to the argument they satisfy the same recurrences as the functions (DLMF 10.6, 10.29),
which can be differentiated with respect to v.  Accuracy for arguments up to 1e5 and any order, and
for larger arguments if the order is below their square root: 1e-12 relative to the larger of the
derivative and the function (for I and K: relative to the derivative).  For negative arguments the
derivative is NaN (docs/conventions.md, 3.3).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from math import comb, factorial, pi
from typing import Any

import numpy as np

from .register import OracleExpression, family
from .series_and_quadrature import FALL, edge, fail_where, integrals, repeat

__all__: list[str] = []

# ---- integral representations ------------------------------------------------------------------


_LARGEST_ARGUMENT = 1.0e5  # above, the oscillating integral takes seconds per element


def cospi_and_sinpi(v: Any) -> tuple[Any, Any]:
    """cos(pi v) and sin(pi v), exact where they are 0 or 1."""
    nearest = np.rint(v)
    angle = pi * (v - nearest)
    sign = 1.0 - 2.0 * np.mod(nearest, 2.0)
    return sign * np.where(np.abs(v - nearest) == 0.5, 0.0, np.cos(angle)), sign * np.sin(angle)


def _panels(length: Any) -> Any:
    return np.maximum(8.0, length / 1.5)


def hankel(n: int, v: Any, x: Any) -> Any:
    """The n-th derivative with respect to v of H1 = J + i Y, for x > 0 (1-d arrays, float64)."""
    total = _hankel_of_positive_order(n, np.abs(v), x)
    negative = v < 0
    if negative.any():
        total[negative] = _of_negative_order(n, total[negative], -v[negative], x[negative])
    return total


def _of_negative_order(n: int, highest: Any, a: Any, x: Any) -> Any:
    """`hankel` for the order -a < 0: by DLMF 10.4.6, H1 is exp(i pi a) times H1 of order a.

    `highest` is the n-th derivative for the order a.
    """
    cos, sin = cospi_and_sinpi(a)
    total = np.zeros_like(a, dtype=complex)
    for k in range(n + 1):
        factor = comb(n, k) * (-1.0) ** k * pi ** (n - k)
        h = highest if k == n else _hankel_of_positive_order(k, a, x)
        # (-i)**(n - k) (cos + i sin) h; by real and imaginary part, so that zeros are exact
        real, imag = cos * h.real - sin * h.imag, cos * h.imag + sin * h.real
        for _ in range((n - k) % 4):
            real, imag = imag, -real
        total = total + factor * (real + 1j * imag)
    return total


def _hankel_of_positive_order(n: int, v: Any, x: Any) -> Any:
    """`hankel` for v >= 0."""
    far = (x > 30.0) & (x > 1.5 * v * v)
    out = np.empty_like(v, dtype=complex)
    if far.any():
        out[far] = _hankel_asymptotic(n, v[far], x[far])
    near = ~far
    if near.any():
        out[near] = _hankel_integral(n, v[near], x[near])
    return out


def _hankel_asymptotic(n: int, v: Any, x: Any) -> Any:
    """Hankel's asymptotic expansion, DLMF 10.17.5, as a power series in a step h of the order."""
    size = n + 1
    square = [4.0 * v * v, 8.0 * v, np.full_like(v, 4.0)]  # coefficients of 4 (v + h)^2
    zero = np.zeros_like(v, dtype=complex)
    start = [zero + 1.0] + [zero] * n

    def step(k: Any, *state: Any) -> Any:
        term, total = state[:size], state[size:]
        factor = 1j / (8.0 * (k + 1.0) * x)
        new = []
        for j in range(size):
            c = (square[0] - (2.0 * k + 1.0) ** 2) * term[j]
            for i in range(1, min(j, 2) + 1):
                c = c + square[i] * term[j - i]
            new.append(c * factor)
        # The series diverges: the sum ends where its terms begin to grow.
        grows = _max_abs(new) > _max_abs(term)
        new = [np.where(grows, 0.0, c) for c in new]
        return *new, *[a + b for a, b in zip(total, new, strict=True)]

    def unconverged(*state: Any) -> Any:
        return _max_abs(state[:size]) > 1e-18 * np.abs(state[size])

    total = repeat(step, (*start, *start), 39, unconverged)[size:]
    # exp(i (x - pi v / 2 - pi / 4)); each derivative with respect to v multiplies by -i pi / 2
    cos, sin = cospi_and_sinpi(0.5 * v + 0.25)
    wave = np.sqrt(2.0 / (pi * x)) * (np.cos(x) + 1j * np.sin(x)) * (cos - 1j * sin)
    out = zero
    for k in range(size):  # the coefficient of h^n of the product
        coefficient = (-0.5j * pi) ** (n - k)
        for j in range(1, n - k + 1):
            coefficient /= j
        out = out + total[k] * coefficient
    return out * wave * float(factorial(n))


def _max_abs(terms: Sequence[Any]) -> Any:
    """The elementwise maximum of the absolute values."""
    return functools.reduce(np.maximum, [np.abs(c) for c in terms])


def _hankel_integral(n: int, v: Any, x: Any) -> Any:
    """The integral along the path through the saddle point."""
    has_mu = v > x
    ratio = np.where(has_mu, v / x, 1.0)
    # arccosh, accurate near 0 too
    excess = np.where(has_mu, (v - x) / x, 0.0)
    mu = np.where(has_mu, np.log1p(excess + np.sqrt(excess * (ratio + 1.0))), 0.0)
    sine = np.sqrt(excess * (ratio + 1.0))  # sinh(mu)
    height = x * sine - v * mu

    # The real line from -infinity to mu, with s = -t: exp(v s - x sinh s) from -mu on.
    def real_exponent(s: Any, i: Any) -> Any:
        return v[i, None] * s - x[i, None] * np.sinh(s)

    all_elements = np.arange(len(v))
    top = -height  # the maximum: at s = mu if v > x, else 0 at s = 0

    def right_of_top(d: Any) -> Any:
        return real_exponent((mu + d)[:, None], all_elements)[:, 0] - top

    def left_of_top(d: Any) -> Any:
        return real_exponent((mu - np.minimum(d, 2 * mu))[:, None], all_elements)[:, 0] - top

    with np.errstate(over="ignore"):
        right = edge(right_of_top, np.full_like(v, 0.1))
        is_negligible = left_of_top(2.0 * mu) < -FALL
        left = np.where(
            is_negligible,
            edge(lambda d: np.where(is_negligible, left_of_top(d), -1e9), 0.01 + 0.0 * mu),
            2 * mu,
        )

        def on_real_line(s: Any, i: Any) -> Any:
            return np.exp(real_exponent(s, i) - top[i, None]) * s**n

        line = integrals(on_real_line, mu, mu + right, _panels(right))
        line += integrals(on_real_line, mu - left, mu, _panels(left))
    line *= np.exp(top)
    rest = _vertical_part(n, v, x, mu, sine, height) + _horizontal_part(n, v, x, mu, height)
    total = np.empty_like(v, dtype=complex)  # by parts: Y may be infinite where J is zero
    total.real, total.imag = rest.imag / pi, -(line + rest.real) / pi
    return total


def _vertical_part(n: int, v: Any, x: Any, mu: Any, sine: Any, height: Any) -> Any:
    """The integral from mu to mu + i pi."""
    cosine = np.maximum(x, v)  # x cosh(mu)
    steep = x * sine
    with np.errstate(divide="ignore"):
        end = np.where(steep > 0.5 * FALL, np.arccos(np.clip(1.0 - FALL / steep, -1, 1)), pi)
    phases = np.where(v > x, v * end**3 / 6.0, (x + v) * end)
    fail_where(
        phases > 8.0 * _LARGEST_ARGUMENT,
        lambda: (
            f"order {float(v[np.argmax(phases)])!r} and argument "
            f"{float(x[np.argmax(phases)])!r} are too large for the derivative of a Bessel "
            "function with respect to its order"
        ),
    )

    def f(theta: Any, i: Any) -> Any:
        up = steep[i, None] * (-2.0 * np.sin(0.5 * theta) ** 2)
        phase = cosine[i, None] * np.sin(theta) - v[i, None] * theta
        return np.exp(up + 1j * phase) * (-(mu[i, None] + 1j * theta)) ** n

    found = integrals(f, np.zeros_like(v), end, np.maximum(8.0, phases / 6.0), complex)
    return 1j * np.exp(height) * found


def _horizontal_part(n: int, v: Any, x: Any, mu: Any, height: Any) -> Any:
    """The integral of exp(-x sinh s - v s - i pi v), from mu + i pi to i pi + infinity."""
    cos, sin = cospi_and_sinpi(v)
    zero = -x * np.sinh(mu) - v * mu

    def exponent(s: Any, i: Any) -> Any:
        return -x[i, None] * np.sinh(s) - v[i, None] * s - zero[i, None]

    all_elements = np.arange(len(v))
    with np.errstate(over="ignore"):
        right = edge(
            lambda d: exponent((mu + d)[:, None], all_elements)[:, 0], np.full_like(v, 1e-3)
        )

        def f(s: Any, i: Any) -> Any:
            return np.exp(exponent(s, i)) * (-(s + 1j * pi)) ** n

        found = integrals(f, mu, mu + right, _panels(right), complex)
    with np.errstate(under="ignore"):
        found = found * np.exp(zero)
    return (cos * found.real + sin * found.imag) + 1j * (cos * found.imag - sin * found.real)


def _around(peak: Any, f: Any, above: Any, below: Any, reach: Any, start: Any) -> Any:
    """The integral of f around its peak, to the left as far as `reach`, where it matters.

    `above` and `below` are logarithms of f at a distance from the peak, over f there.
    """
    right = edge(above, start)
    is_negligible = below(reach) < -FALL
    end = edge(lambda d: np.where(is_negligible, below(d), -1e9), 1e-3 + right)
    left = np.where(is_negligible, end, reach)
    total = integrals(f, peak, peak + right, _panels(right))
    return total + integrals(f, peak - left, peak, _panels(left))


def scaled_k(n: int, v: Any, x: Any) -> Any:
    """exp(x) times the n-th derivative of K with respect to v, for x > 0."""
    top, total = log_and_factor_of_k(n, v, x)
    with np.errstate(over="ignore"):
        return np.exp(top) * total


def log_and_factor_of_k(n: int, v: Any, x: Any) -> tuple[Any, Any]:
    """`scaled_k` as exp of the first result times the second, DLMF 10.32.9.

    The first result does not depend on n.
    """
    sign = np.where(v < 0, (-1.0) ** n, 1.0)  # K is even in v
    v = np.abs(v)
    peak = np.arcsinh(v / x)
    all_elements = np.arange(len(v))

    def exponent(t: Any, i: Any) -> Any:
        return v[i, None] * t - 2.0 * x[i, None] * np.sinh(0.5 * t) ** 2

    top = exponent(peak[:, None], all_elements)[:, 0]
    with np.errstate(over="ignore"):

        def above(d: Any) -> Any:
            return exponent((peak + d)[:, None], all_elements)[:, 0] - top

        def below(d: Any) -> Any:
            return exponent((peak - np.minimum(d, peak))[:, None], all_elements)[:, 0] - top

        def f(t: Any, i: Any) -> Any:
            # exp(v t) + (-1)^n exp(-v t) over exp(v t), without cancellation for small v
            other = np.exp(-2.0 * v[i, None] * t) if n % 2 == 0 else 0.0
            both = 1.0 + other if n % 2 == 0 else -np.expm1(-2.0 * v[i, None] * t)
            return np.exp(exponent(t, i) - top[i, None]) * both * t**n

        start = np.minimum(1.0, 1.0 / np.sqrt(np.hypot(x, v)))
        return top, 0.5 * sign * _around(peak, f, above, below, peak, start)


def scaled_i(n: int, v: Any, x: Any) -> Any:
    """exp(-x) times the n-th derivative of I with respect to v, for x > 0; DLMF 10.32.4."""
    mu = np.arcsinh(np.maximum(v, 0.0) / x)
    cosine, sine = np.hypot(x, np.maximum(v, 0.0)), np.maximum(v, 0.0)  # x cosh(mu), x sinh(mu)
    # x cosh(mu) - x without cancellation
    height = sine * (sine / (cosine + x)) - v * mu
    end = np.where(
        cosine > 0.5 * FALL, np.arccos(np.clip(1.0 - FALL / np.maximum(cosine, 1.0), -1.0, 1.0)), pi
    )

    def f(theta: Any, i: Any) -> Any:
        up = cosine[i, None] * (-2.0 * np.sin(0.5 * theta) ** 2)
        phase = sine[i, None] * np.sin(theta) - v[i, None] * theta
        return (np.exp(up + 1j * phase) * (-(mu[i, None] + 1j * theta)) ** n).real

    phases = np.abs(v) * np.where(v > 0, np.minimum(end, end**3), end)
    total = np.exp(height) * integrals(f, np.zeros_like(v), end, np.maximum(8.0, phases / 6.0))
    total += _modified_horizontal_part(n, v, x, mu)
    return total / pi


def _modified_horizontal_part(n: int, v: Any, x: Any, mu: Any) -> Any:
    """exp(-x) times the integral of exp(-x cosh s - v s - i pi v) from mu + i pi to infinity."""
    cos, sin = cospi_and_sinpi(v)
    peak = np.maximum(mu, np.arcsinh(np.maximum(-v, 0.0) / x))
    all_elements = np.arange(len(v))

    def exponent(s: Any, i: Any) -> Any:
        return -x[i, None] * (1.0 + np.cosh(s)) - v[i, None] * s

    top = exponent(peak[:, None], all_elements)[:, 0]
    reach = peak - mu
    with np.errstate(over="ignore", under="ignore"):

        def f(s: Any, i: Any) -> Any:
            far = (-(s + 1j * pi)) ** n
            both = far.imag * cos[i, None] - far.real * sin[i, None]
            return np.exp(exponent(s, i) - top[i, None]) * both

        def above(d: Any) -> Any:
            return exponent((peak + d)[:, None], all_elements)[:, 0] - top

        def below(d: Any) -> Any:
            return exponent((peak - np.minimum(d, reach))[:, None], all_elements)[:, 0] - top

        return np.exp(top) * _around(peak, f, above, below, reach, np.full_like(v, 1e-3))


# ---- families ----------------------------------------------------------------------------------


def _extend_to_limits(kernel: Any, n: int, v: Any, x: Any, at_zero: Any, at_infinity: float) -> Any:
    """The kernel for 0 < x < inf, limits at 0 and inf, and NaN for x < 0."""
    out = np.full_like(v, np.nan)
    inside = (x > 0) & np.isfinite(x) & np.isfinite(v)
    if inside.any():
        out[inside] = kernel(n, v[inside], x[inside])
    out[(x == np.inf) & np.isfinite(v)] = at_infinity
    zero = (x == 0) & np.isfinite(v)
    if zero.any():
        out[zero] = at_zero(kernel, n, v[zero])
    return out


def _limit_of_power(kernel: Any, n: int, v: Any) -> Any:
    """The limit at x = 0 of a function that behaves like x**v: 0 for v >= 0, else infinite."""
    near = kernel(n, v, np.full_like(v, 1e-8))
    return np.where(v >= 0, 0.0, np.sign(near) * np.inf)


def _limit_of_pole(kernel: Any, n: int, v: Any) -> Any:
    """The limit at x = 0 of a function with a pole there."""
    near = kernel(n, v, np.full_like(v, 1e-8))
    return np.where(near == 0, 0.0, np.sign(near) * np.inf)


@family(native=True, oracle=OracleExpression("v x", "diff(lambda v: besselj(v, x), v, n)"))
def jv_order(v: Any, x: Any, *, n: int) -> Any:
    """The n-th derivative of J with respect to the order."""
    return _extend_to_limits(lambda *of: hankel(*of).real, n, v, x, _limit_of_power, 0.0)


@family(native=True, oracle=OracleExpression("v x", "diff(lambda v: bessely(v, x), v, n)"))
def yv_order(v: Any, x: Any, *, n: int) -> Any:
    """The n-th derivative of Y with respect to the order."""
    return _extend_to_limits(lambda *of: hankel(*of).imag, n, v, x, _limit_of_pole, 0.0)


@family(
    native=True, oracle=OracleExpression("v x", "exp(-x) * diff(lambda v: besseli(v, x), v, n)")
)
def ive_order(v: Any, x: Any, *, n: int) -> Any:
    """exp(-x) times the n-th derivative of I with respect to the order."""
    return _extend_to_limits(scaled_i, n, v, x, _limit_of_power, 0.0)


@family(native=True, oracle=OracleExpression("v x", "exp(x) * diff(lambda v: besselk(v, x), v, n)"))
def kve_order(v: Any, x: Any, *, n: int) -> Any:
    """exp(x) times the n-th derivative of K with respect to the order."""
    return _extend_to_limits(scaled_k, n, v, x, _limit_of_pole, 0.0)


@family(
    native=True,
    oracle=OracleExpression(
        "v x",
        "log(exp(x) * besselk(v, x)) if n == 0 else "
        "diff(lambda v: besselk(v, x), v, n) / besselk(v, x)",
    ),
)
def log_kve(v: Any, x: Any, *, n: int) -> Any:
    """log(exp(x) K); for n >= 1 the n-th derivative of K with respect to the order, over K.

    Neither overflows nor underflows where K, or a cotangent divided by it, does.
    """
    out = np.full_like(v, np.nan)
    inside = (x > 0) & np.isfinite(x) & np.isfinite(v)
    if inside.any():
        top, total = log_and_factor_of_k(0, v[inside], x[inside])
        if n == 0:
            out[inside] = top + np.log(total)
        else:
            _, derivative = log_and_factor_of_k(n, v[inside], x[inside])
            out[inside] = derivative / total
    return out


def _log_kve_by_argument(t: Any, out: Any, v: Any, x: Any, n: int) -> Any:
    """The partial with respect to the argument, by DLMF 10.29.1 divided by K."""
    log_k = out if n == 0 else log_kve(v, x, n=0)
    lower = np.exp(log_kve(v - 1.0, x, n=0) - log_k)
    upper = np.exp(log_kve(v + 1.0, x, n=0) - log_k)
    slope = -0.5 * (lower + upper)
    if n == 0:
        return t * (1.0 + slope)
    slope_n = -0.5 * (log_kve(v - 1.0, x, n=n) * lower + log_kve(v + 1.0, x, n=n) * upper)
    return t * (slope_n - out * slope)


def _log_kve_by_order(t: Any, out: Any, v: Any, x: Any, n: int) -> Any:
    """The partial with respect to the order."""
    first = out if n == 1 else log_kve(v, x, n=1)
    return t * first if n == 0 else t * (log_kve(v, x, n=n + 1) - out * first)


log_kve.partials(_log_kve_by_order, _log_kve_by_argument)

for _op in (jv_order, yv_order):
    _op.partials(
        lambda t, out, v, x, n, op=_op: t * op(v, x, n=n + 1),
        lambda t, out, v, x, n, op=_op: 0.5 * t * (op(v - 1, x, n=n) - op(v + 1, x, n=n)),
    )
ive_order.partials(
    lambda t, out, v, x, n: t * ive_order(v, x, n=n + 1),
    lambda t, out, v, x, n: t * (0.5 * (ive_order(v - 1, x, n=n) + ive_order(v + 1, x, n=n)) - out),
)
kve_order.partials(
    lambda t, out, v, x, n: t * kve_order(v, x, n=n + 1),
    lambda t, out, v, x, n: t * (out - 0.5 * (kve_order(v - 1, x, n=n) + kve_order(v + 1, x, n=n))),
)


@jv_order.examples
@yv_order.examples
@ive_order.examples
@kve_order.examples
@log_kve.examples
def _examples(rng: Any) -> Any:
    yield (rng.uniform(0.2, 3.0, size=(2, 1)), rng.uniform(0.5, 4.0, size=1)), {"n": 1}

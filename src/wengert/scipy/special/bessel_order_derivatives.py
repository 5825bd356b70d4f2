"""Derivatives of Bessel functions with respect to the order, as families: DLMF 10.15, 10.38.

    jv_order, yv_order      the n-th derivative with respect to v of J, Y
    ive_order, kve_order    of exp(-x) I, exp(x) K
    log_kve                 the logarithm of exp(x) K, and its derivatives divided by it

With respect to the argument they satisfy the recurrences of the functions (DLMF 10.6, 10.29), which
are preserved by differentiation with respect to v.  Accuracy: 1e-12 relative to the
larger of the derivative and the function (I, K: to the derivative), for arguments to 1e5 and any
order; at larger arguments for orders below their square root.  Negative arguments have derivatives
by the order at no order: NaN (docs/conventions.md, 3.3).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import bessel_order_integrals, modified_bessel_order_integrals
from .derivative_families import family
from .oracle_expression import Witness

__all__: list[str] = []


def _positive(kernel: Any, n: int, v: Any, x: Any, at_zero: Any, far: float) -> Any:
    """The kernel where 0 < x < inf; NaN where x is negative."""
    out = np.full_like(v, np.nan)
    inside = (x > 0) & np.isfinite(x) & np.isfinite(v)
    if inside.any():
        out[inside] = kernel(n, v[inside], x[inside])
    out[(x == np.inf) & np.isfinite(v)] = far
    zero = (x == 0) & np.isfinite(v)
    if zero.any():
        out[zero] = at_zero(kernel, n, v[zero])
    return out


def _vanishing(kernel: Any, n: int, v: Any) -> Any:
    """At x = 0, where the function is x**v: 0 for v >= 0, infinite below."""
    near = kernel(n, v, np.full_like(v, 1e-8))
    return np.where(v >= 0, 0.0, np.sign(near) * np.inf)


def _infinite(kernel: Any, n: int, v: Any) -> Any:
    """At x = 0, where the function is infinite."""
    near = kernel(n, v, np.full_like(v, 1e-8))
    return np.where(near == 0, 0.0, np.sign(near) * np.inf)


def _real(n: int, v: Any, x: Any) -> Any:
    return bessel_order_integrals.hankel(n, v, x).real


def _imaginary(n: int, v: Any, x: Any) -> Any:
    return bessel_order_integrals.hankel(n, v, x).imag


@family(native=True, oracle=Witness("v x", "diff(lambda v: besselj(v, x), v, n)"))
def jv_order(v: Any, x: Any, *, n: int) -> Any:
    """The n-th derivative of J by its order."""
    return _positive(_real, n, v, x, _vanishing, 0.0)


@family(native=True, oracle=Witness("v x", "diff(lambda v: bessely(v, x), v, n)"))
def yv_order(v: Any, x: Any, *, n: int) -> Any:
    """The n-th derivative of Y by its order."""
    return _positive(_imaginary, n, v, x, _infinite, 0.0)


@family(native=True, oracle=Witness("v x", "exp(-x) * diff(lambda v: besseli(v, x), v, n)"))
def ive_order(v: Any, x: Any, *, n: int) -> Any:
    """exp(-x) times the n-th derivative of I by its order."""
    return _positive(modified_bessel_order_integrals.scaled_i, n, v, x, _vanishing, 0.0)


@family(native=True, oracle=Witness("v x", "exp(x) * diff(lambda v: besselk(v, x), v, n)"))
def kve_order(v: Any, x: Any, *, n: int) -> Any:
    """exp(x) times the n-th derivative of K by its order."""
    return _positive(modified_bessel_order_integrals.scaled_k, n, v, x, _infinite, 0.0)


@family(
    native=True,
    oracle=Witness(
        "v x",
        "log(exp(x) * besselk(v, x)) if n == 0 else "
        "diff(lambda v: besselk(v, x), v, n) / besselk(v, x)",
    ),
)
def log_kve(v: Any, x: Any, *, n: int) -> Any:
    """log(exp(x) K), and for n >= 1 the n-th derivative of K by its order, divided by K.

    Numbers of moderate size where K itself, or a cotangent divided by it, overflows or underflows.
    """
    out = np.full_like(v, np.nan)
    inside = (x > 0) & np.isfinite(x) & np.isfinite(v)
    if inside.any():
        top, total = modified_bessel_order_integrals.parts_of_k(0, v[inside], x[inside])
        if n == 0:
            out[inside] = top + np.log(total)
        else:
            _, found = modified_bessel_order_integrals.parts_of_k(n, v[inside], x[inside])
            out[inside] = found / total
    return out


def _log_kve_slope(t: Any, out: Any, v: Any, x: Any, n: int) -> Any:
    """By the argument: DLMF 10.29.1, each neighbor divided by K of this order."""
    middle = out if n == 0 else log_kve(v, x, n=0)
    below = np.exp(log_kve(v - 1.0, x, n=0) - middle)
    above = np.exp(log_kve(v + 1.0, x, n=0) - middle)
    slope = -0.5 * (below + above)
    if n == 0:
        return t * (1.0 + slope)
    moved = -0.5 * (log_kve(v - 1.0, x, n=n) * below + log_kve(v + 1.0, x, n=n) * above)
    return t * (moved - out * slope)


def _log_kve_turn(t: Any, out: Any, v: Any, x: Any, n: int) -> Any:
    """By the order."""
    first = out if n == 1 else log_kve(v, x, n=1)
    return t * first if n == 0 else t * (log_kve(v, x, n=n + 1) - out * first)


log_kve.partials(_log_kve_turn, _log_kve_slope)


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
def _orders(rng: Any) -> Any:
    yield (rng.uniform(0.2, 3.0, size=(2, 1)), rng.uniform(0.5, 4.0, size=1)), {"n": 1}

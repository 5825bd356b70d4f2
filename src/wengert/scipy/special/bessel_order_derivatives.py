"""Derivatives of Bessel functions with respect to the order: DLMF 10.15, 10.38.

    jv_order, yv_order      n-th derivatives of J and Y with respect to v
    ive_order, kve_order    exp(-x) and exp(x) times those of I and K
    log_kve                 log(exp(x) K), and n-th derivatives of K with respect to v divided by K

With respect to the argument they satisfy the same recurrences as the functions (DLMF 10.6, 10.29),
which can be differentiated with respect to v.  Accuracy for arguments up to 1e5 and any order, and
for larger arguments if the order is below their square root: 1e-12 relative to the larger of the
derivative and the function (for I and K: relative to the derivative).  For negative arguments the
derivative is NaN (docs/conventions.md, 3.3).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import bessel_order_integrals
from .register import OracleExpression, family

__all__: list[str] = []


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


def _j_derivative(n: int, v: Any, x: Any) -> Any:
    return bessel_order_integrals.hankel(n, v, x).real


def _y_derivative(n: int, v: Any, x: Any) -> Any:
    return bessel_order_integrals.hankel(n, v, x).imag


@family(native=True, oracle=OracleExpression("v x", "diff(lambda v: besselj(v, x), v, n)"))
def jv_order(v: Any, x: Any, *, n: int) -> Any:
    """The n-th derivative of J with respect to the order."""
    return _extend_to_limits(_j_derivative, n, v, x, _limit_of_power, 0.0)


@family(native=True, oracle=OracleExpression("v x", "diff(lambda v: bessely(v, x), v, n)"))
def yv_order(v: Any, x: Any, *, n: int) -> Any:
    """The n-th derivative of Y with respect to the order."""
    return _extend_to_limits(_y_derivative, n, v, x, _limit_of_pole, 0.0)


@family(
    native=True, oracle=OracleExpression("v x", "exp(-x) * diff(lambda v: besseli(v, x), v, n)")
)
def ive_order(v: Any, x: Any, *, n: int) -> Any:
    """exp(-x) times the n-th derivative of I with respect to the order."""
    return _extend_to_limits(bessel_order_integrals.scaled_i, n, v, x, _limit_of_power, 0.0)


@family(native=True, oracle=OracleExpression("v x", "exp(x) * diff(lambda v: besselk(v, x), v, n)"))
def kve_order(v: Any, x: Any, *, n: int) -> Any:
    """exp(x) times the n-th derivative of K with respect to the order."""
    return _extend_to_limits(bessel_order_integrals.scaled_k, n, v, x, _limit_of_pole, 0.0)


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
        top, total = bessel_order_integrals.log_and_factor_of_k(0, v[inside], x[inside])
        if n == 0:
            out[inside] = top + np.log(total)
        else:
            _, derivative = bessel_order_integrals.log_and_factor_of_k(n, v[inside], x[inside])
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

"""Hypergeometric and Struve functions, with derivatives in all arguments: DLMF 11, 13, 15, 16.

    hyp0f1 hyp1f1 hyp2f1    0F1, 1F1 (Kummer's M), 2F1 (Gauss)
    hyperu                  Tricomi's U
    struve modstruve        H and L

The derivative with respect to the argument is the same function with other parameters; complex
arguments are supported where SciPy supports them.  Derivatives with respect to parameters are for
real arguments only (hypergeometric_parameter_derivatives.py).
"""

from __future__ import annotations

from math import inf, log, pi, sqrt
from typing import Any

import numpy as np

from wengert._engine.kinds.elementwise import POSITIVE, REAL, elementwise

from . import hypergeometric_parameter_derivatives
from .gamma import gammaln, psi, rgamma, rgamma_derivative
from .hypergeometric_parameter_derivatives import (
    hyp0f1_orders,
    hyp1f1_orders,
    hyp2f1_orders,
    struve_orders,
)
from .register import PREFIX, OracleExpression, family, sampled_function

_LARGE_ORDER = 20.0  # orders from which on gammaln is used, as gamma would overflow

__all__ = "hyp0f1 hyp1f1 hyp2f1 hyperu struve modstruve".split()


_RANGE = (0.5, 2.5)

hyp0f1 = sampled_function(
    "hyp0f1", "v x", "0F1(; v; x), DLMF 16.2.1.", "hyp0f1(v, x)", [_RANGE, (-2.0, 2.0)]
)
hyp0f1.partials(
    lambda t, out, v, x: t * hyp0f1_orders(v, x, k=1, m=0),
    lambda t, out, v, x: t * (hyp0f1(v + 1.0, x) / v),
)


@elementwise(
    name=f"{PREFIX}hyp1f1",
    domain=[POSITIVE, POSITIVE, REAL],
    oracle=OracleExpression("a b x", "hyp1f1(a, b, x)"),
    singular=True,
    half=False,
)
def hyp1f1(s: Any, a: Any, b: Any, x: Any) -> Any:
    """Kummer's function M = 1F1(a; b; x), DLMF 13.2.2.

    For infinite x, where SciPy's function does not return or crashes, it is the limit, DLMF 13.2.4,
    13.2.23.
    """
    infinite = s.isinf(x)
    found = s.special("hyp1f1", a, b, s.where(infinite, s.copysign(800.0, x), x))
    vanishes = s.where(s.less(x, 0.0), s.less(0.0, a), False)
    limit = s.where(vanishes, 0.0, s.where(s.equal(a, 0.0), 1.0, found * inf))
    return s.where(infinite, limit, found)


@hyp1f1.examples  # type: ignore[untyped-decorator]
def _kummers(rng: Any) -> Any:
    yield (rng.uniform(0.5, 2.5, size=2), rng.uniform(0.5, 2.5), rng.uniform(-2.0, 2.0)), {}


hyp1f1.partials(
    lambda t, out, a, b, x: t * hyp1f1_orders(a, b, x, j=1, k=0, m=0),
    lambda t, out, a, b, x: t * hyp1f1_orders(a, b, x, j=0, k=1, m=0),
    lambda t, out, a, b, x: t * (a / b * hyp1f1(a + 1.0, b + 1.0, x)),
)
hyp2f1 = sampled_function(
    "hyp2f1",
    "a b c x",
    "Gauss hypergeometric function 2F1(a, b; c; x), DLMF 15.2.1; for real x < 1.",
    "hyp2f1(a, b, c, x)",
    [_RANGE, _RANGE, _RANGE, (-0.7, 0.5)],
)
hyp2f1.partials(
    lambda t, out, a, b, c, x: t * hyp2f1_orders(a, b, c, x, i=1, j=0, k=0, m=0),
    lambda t, out, a, b, c, x: t * hyp2f1_orders(a, b, c, x, i=0, j=1, k=0, m=0),
    lambda t, out, a, b, c, x: t * hyp2f1_orders(a, b, c, x, i=0, j=0, k=1, m=0),
    lambda t, out, a, b, c, x: t * (a * b / c * hyp2f1(a + 1.0, b + 1.0, c + 1.0, x)),
)

# ---- U -------------------------------------------------------------------------------------------


@family(
    native=True,
    oracle=OracleExpression("a b x", "diff(lambda a, b, x: hyperu(a, b, x), (a, b, x), (j, k, m))"),
)
def hyperu_orders(a: Any, b: Any, x: Any, *, j: int, k: int, m: int) -> Any:
    """The derivative of U(a, b, x) of orders j, k, m in a, b, x, for x > 0; NaN elsewhere."""
    out = np.full_like(a, np.nan)
    inside = (x > 0) & np.isfinite(a) & np.isfinite(b) & np.isfinite(x)
    if inside.any():
        out[inside] = hypergeometric_parameter_derivatives.derivatives(
            j, k, m, a[inside], b[inside], x[inside]
        )
    return out


hyperu_orders.partials(
    lambda t, out, a, b, x, j, k, m: t * hyperu_orders(a, b, x, j=j + 1, k=k, m=m),
    lambda t, out, a, b, x, j, k, m: t * hyperu_orders(a, b, x, j=j, k=k + 1, m=m),
    lambda t, out, a, b, x, j, k, m: t * hyperu_orders(a, b, x, j=j, k=k, m=m + 1),
)


@hyperu_orders.examples
def _tricomi(rng: Any) -> Any:
    operands = rng.uniform(0.5, 3.0, size=1), rng.uniform(0.5, 3.0), rng.uniform(0.5, 3.0)
    yield operands, {"j": 1, "k": 0, "m": 0}


hyperu = sampled_function(
    "hyperu",
    "a b x",
    "Tricomi's function U(a, b, x), DLMF 13.2.6; for x > 0.",
    "hyperu(a, b, x)",
    [_RANGE, _RANGE, (0.5, 3.0)],
)
# The integrals are more accurate than SciPy's hyperu, which is wrong for some parameters.
hyperu.partials(
    lambda t, out, a, b, x: t * hyperu_orders(a, b, x, j=1, k=0, m=0),
    lambda t, out, a, b, x: t * hyperu_orders(a, b, x, j=0, k=1, m=0),
    lambda t, out, a, b, x: t * hyperu_orders(a, b, x, j=0, k=0, m=1),
)

# ---- Struve functions ----------------------------------------------------------------------------

struve = sampled_function(
    "struve",
    "v x",
    "Struve function H of order v, DLMF 11.2.1.",
    "struveh(v, x)",
    [(-0.9, 2.5), (0.5, 3.0)],
    [POSITIVE, POSITIVE],
)
modstruve = sampled_function(
    "modstruve",
    "v x",
    "Modified Struve function L of order v, DLMF 11.2.2.",
    "struvel(v, x)",
    [(-0.9, 2.5), (0.5, 3.0)],
    [POSITIVE, POSITIVE],
)


def _power_over_gamma(v: Any, x: Any, p: float) -> Any:
    """(x/2)^(v+p) / gamma(v + 3/2) for large v, where both would overflow."""
    log_half = np.log(np.where(x > 0, x, 1.0)) - log(2.0)
    return np.where(x > 0, np.exp((v + p) * log_half - gammaln(v + 1.5)), 0.0)


def _recurrence_term(v: Any, x: Any) -> Any:
    """(x/2)^v / (sqrt(pi) gamma(v + 3/2)), a term of the recurrences DLMF 11.4.23, 11.4.25."""
    large = v > _LARGE_ORDER
    low, high = np.where(large, 1.0, v), np.where(large, v, _LARGE_ORDER)
    near = np.power(0.5 * x, low) * rgamma(low + 1.5)
    return np.where(large, _power_over_gamma(high, x, 0.0), near) / sqrt(pi)


def _struve_by_order(t: Any, v: Any, x: Any, sign: float) -> Any:
    """The partial with respect to v of a Struve function.

    The function is (x/2)^(v+1) / (gamma(3/2) gamma(v + 3/2)) 1F2(1; 3/2, v + 3/2; sign x^2/4).
    """
    b, z = v + 1.5, sign * 0.25 * (x * x)
    large = v > _LARGE_ORDER
    low, high = np.where(large, 1.0, v), np.where(large, v, _LARGE_ORDER)
    f, slope = struve_orders(b, z, k=0, m=0), struve_orders(b, z, k=1, m=0)
    log_half = np.log(np.where(x == 0, 1.0, x)) - log(2.0)  # at x = 0 the power is 0
    inverse = rgamma(low + 1.5)
    near = log_half * inverse * f + rgamma_derivative(inverse, low + 1.5) * f + inverse * slope
    far = (log_half - psi(high + 1.5)) * f + slope
    product = np.where(
        large, _power_over_gamma(high, x, 1.0) * far, np.power(0.5 * x, low + 1.0) * near
    )
    return t * (product * (2.0 / sqrt(pi)))


struve.partials(
    lambda t, out, v, x: _struve_by_order(t, v, x, -1.0),
    lambda t, out, v, x: (
        0.5 * t * (struve(v - 1.0, x) - struve(v + 1.0, x) + _recurrence_term(v, x))
    ),
)
modstruve.partials(
    lambda t, out, v, x: _struve_by_order(t, v, x, 1.0),
    lambda t, out, v, x: (
        0.5 * t * (modstruve(v - 1.0, x) + modstruve(v + 1.0, x) + _recurrence_term(v, x))
    ),
)

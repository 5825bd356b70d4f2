"""Orthogonal polynomials of real order, differentiable in argument, order and parameters.

    eval_legendre, eval_chebyt, eval_chebyu, eval_gegenbauer, eval_jacobi     on [-1, 1]
    eval_laguerre, eval_genlaguerre                                            on [0, inf)
    eval_hermite, eval_hermitenorm                                             of integer order

The derivative with respect to x is a polynomial of the preceding order (DLMF 18.9(iii)).  As
functions of order and parameters they are hypergeometric functions (DLMF 18.5.7, 15.9(i)).  Between
integer orders they are real for x > -1 only; the derivative with respect to the order is NaN
elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.kinds.elementwise import POSITIVE, REAL, UNIT

from .beta import binom, poch
from .gamma import digamma, rgamma, rgamma_derivative
from .hypergeometric_parameter_derivatives import hyp1f1_orders, hyp2f1_orders
from .register import OracleExpression, function

__all__ = """
    eval_legendre eval_chebyt eval_chebyu eval_gegenbauer eval_jacobi
    eval_laguerre eval_genlaguerre eval_hermite eval_hermitenorm
""".split()


def _entry(name: str, operands: str, doc: str, expression: str, domains: Any) -> Any:
    entry = function(
        name,
        operands,
        domain=domains,
        oracle=OracleExpression(operands, expression),
        singular=True,
        half=False,
        doc=doc,
    )

    @entry.examples  # type: ignore[untyped-decorator]
    def _(rng: Any) -> Any:
        order = rng.uniform(0.5, 3.5, size=2)
        if domains[0] == (0, 4):
            order = rng.integers(0, 4, size=2)
        others = [rng.uniform(0.3, 1.5) for _ in domains[2:]]
        yield (order, *others, rng.uniform(0.1, 0.9)), {}

    return entry


def _gauss(n: Any, p: Any, c: Any, x: Any, i: int, j: int, k: int) -> Any:
    """The derivative of 2F1(-n, p; c; (1 - x) / 2), of orders i, j, k in its three parameters."""
    return hyp2f1_orders(-n, p, c, 0.5 * (1.0 - x), i=i, j=j, k=k, m=0)


def _by_n(n: Any, p: Any, c: Any, x: Any) -> Any:
    """The derivative of 2F1(-n, p; c; (1 - x) / 2) with respect to n, where dp/dn = 1."""
    return _gauss(n, p, c, x, 0, 1, 0) - _gauss(n, p, c, x, 1, 0, 0)


def _zero_for_order_0(n: Any, x: Any, derivative: Any) -> Any:
    """`derivative`, with respect to x; 0 for order 0 and x <= -1."""
    return np.where((n == 0) & (x <= -1.0), 0.0, derivative)


# ---- Jacobi and Gegenbauer -----------------------------------------------------------------------

eval_jacobi = _entry(
    "eval_jacobi",
    "n a b x",
    "Jacobi polynomial of order n and parameters a, b, DLMF 18.3.",
    "jacobi(n, a, b, x)",
    [POSITIVE, POSITIVE, POSITIVE, UNIT],
)
eval_gegenbauer = _entry(
    "eval_gegenbauer",
    "n a x",
    "Gegenbauer polynomial of order n and parameter a, DLMF 18.3.",
    "gegenbauer(n, a, x)",
    [POSITIVE, POSITIVE, UNIT],
)


def _order_derivative(n: Any, a: Any, value: Any, derivative: Any) -> Any:
    """The derivative with respect to n of gamma(n + a) / (gamma(a) gamma(n + 1)) times a function.

    For n = -1, which occurs in the derivative of a polynomial of order 0 with respect to x, the
    quotient is 0 but its derivative is not.
    """
    inverse = rgamma(n + 1.0)
    rate = digamma(n + a) * inverse + rgamma_derivative(inverse, n + 1.0)
    return poch(a, n) * (rate * value + inverse * derivative)


def _jacobi_by_order(t: Any, out: Any, n: Any, a: Any, b: Any, x: Any) -> Any:
    arguments = n, n + a + b + 1.0, a + 1.0, x
    return t * _order_derivative(n, a + 1.0, _gauss(*arguments, 0, 0, 0), _by_n(*arguments))


def _jacobi_by_a(t: Any, out: Any, n: Any, a: Any, b: Any, x: Any) -> Any:
    rate = digamma(n + a + 1.0) - digamma(a + 1.0)
    arguments = n, n + a + b + 1.0, a + 1.0, x
    return t * (
        rate * out + binom(n + a, n) * (_gauss(*arguments, 0, 1, 0) + _gauss(*arguments, 0, 0, 1))
    )


eval_jacobi.partials(
    _jacobi_by_order,
    _jacobi_by_a,
    lambda t, out, n, a, b, x: (
        t * (binom(n + a, n) * _gauss(n, n + a + b + 1.0, a + 1.0, x, 0, 1, 0))
    ),
    lambda t, out, n, a, b, x: (
        0.5 * t * ((n + a + b + 1.0) * eval_jacobi(n - 1, a + 1.0, b + 1.0, x))
    ),
)


def _gegenbauer_scale(n: Any, a: Any) -> Any:
    """gamma(n + 2a) / (gamma(2a) gamma(n + 1))."""
    return binom(n + 2.0 * a - 1.0, n)


def _gegenbauer_by_order(t: Any, out: Any, n: Any, a: Any, x: Any) -> Any:
    arguments = n, n + 2.0 * a, a + 0.5, x
    return t * _order_derivative(n, 2.0 * a, _gauss(*arguments, 0, 0, 0), _by_n(*arguments))


def _gegenbauer_by_a(t: Any, out: Any, n: Any, a: Any, x: Any) -> Any:
    rate = 2.0 * (digamma(n + 2.0 * a) - digamma(2.0 * a))
    arguments = n, n + 2.0 * a, a + 0.5, x
    derivative = 2.0 * _gauss(*arguments, 0, 1, 0) + _gauss(*arguments, 0, 0, 1)
    return t * (rate * out + _gegenbauer_scale(n, a) * derivative)


eval_gegenbauer.partials(
    _gegenbauer_by_order,
    _gegenbauer_by_a,
    lambda t, out, n, a, x: (
        2.0 * t * _zero_for_order_0(n, x, a * eval_gegenbauer(n - 1, a + 1.0, x))
    ),
)

# ---- Legendre and Chebyshev ----------------------------------------------------------------------

eval_legendre = _entry(
    "eval_legendre",
    "n x",
    "Legendre polynomial of order n, DLMF 18.3; Legendre function P between integer orders.",
    "legendre(n, x)",
    [POSITIVE, UNIT],
)
eval_legendre.partials(
    lambda t, out, n, x: t * _by_n(n, n + 1.0, 1.0, x),
    lambda t, out, n, x: 0.5 * t * ((n + 1.0) * eval_jacobi(n - 1, 1.0, 1.0, x)),
)
eval_chebyt = _entry(
    "eval_chebyt",
    "n x",
    "Chebyshev polynomial T of order n, DLMF 18.3: cos(n arccos x).",
    "cos(n * acos(x))",
    [POSITIVE, UNIT],
)
eval_chebyu = _entry(
    "eval_chebyu",
    "n x",
    "Chebyshev polynomial U of order n, DLMF 18.3.",
    "sin((n + 1) * acos(x)) / sin(acos(x))",
    [POSITIVE, UNIT],
)
eval_chebyt.partials(
    lambda t, out, n, x: t * _by_n(n, n * 1.0, 0.5, x),
    lambda t, out, n, x: t * _zero_for_order_0(n, x, n * eval_chebyu(n - 1, x)),
)
eval_chebyu.partials(
    lambda t, out, n, x: (
        t * (_gauss(n, n + 2.0, 1.5, x, 0, 0, 0) + (n + 1.0) * _by_n(n, n + 2.0, 1.5, x))
    ),
    lambda t, out, n, x: 2.0 * t * _zero_for_order_0(n, x, eval_gegenbauer(n - 1, 2.0, x)),
)

# ---- Laguerre ------------------------------------------------------------------------------------


def _kummer(n: Any, a: Any, x: Any, j: int, k: int) -> Any:
    return hyp1f1_orders(-n, a + 1.0, x, j=j, k=k, m=0)


eval_genlaguerre = _entry(
    "eval_genlaguerre",
    "n a x",
    "Laguerre polynomial of order n and parameter a, DLMF 18.3.",
    "laguerre(n, a, x)",
    [POSITIVE, POSITIVE, POSITIVE],
)
eval_genlaguerre.partials(
    lambda t, out, n, a, x: (
        t * _order_derivative(n, a + 1.0, _kummer(n, a, x, 0, 0), -_kummer(n, a, x, 1, 0))
    ),
    lambda t, out, n, a, x: (
        t
        * (
            (digamma(n + a + 1.0) - digamma(a + 1.0)) * out
            + binom(n + a, n) * _kummer(n, a, x, 0, 1)
        )
    ),
    lambda t, out, n, a, x: -t * eval_genlaguerre(n - 1, a + 1.0, x),
)
eval_laguerre = _entry(
    "eval_laguerre",
    "n x",
    "Laguerre polynomial of order n, DLMF 18.3.",
    "laguerre(n, 0, x)",
    [POSITIVE, POSITIVE],
)
eval_laguerre.partials(
    lambda t, out, n, x: -t * _kummer(n, 0.0, x, 1, 0),
    lambda t, out, n, x: -t * eval_genlaguerre(n - 1, 1.0, x),
)

# ---- Hermite -------------------------------------------------------------------------------------

eval_hermite = _entry(
    "eval_hermite",
    "n x",
    "Hermite polynomial H of integer order n, DLMF 18.3.",
    "hermite(n, x)",
    [(0, 4), REAL],
)
eval_hermite.partials(
    None, lambda t, out, n, x: 2.0 * t * (n * eval_hermite(np.maximum(n - 1, 0), x))
)
eval_hermitenorm = _entry(
    "eval_hermitenorm",
    "n x",
    "Hermite polynomial He of integer order n, DLMF 18.3.",
    "2**(-mpf(n) / 2) * hermite(n, x / sqrt(2))",
    [(0, 4), REAL],
)
eval_hermitenorm.partials(
    None, lambda t, out, n, x: t * (n * eval_hermitenorm(np.maximum(n - 1, 0), x))
)

"""Orthogonal polynomials of real order, differentiable in argument, order and parameters.

    eval_legendre, eval_chebyt, eval_chebyu, eval_gegenbauer, eval_jacobi     on -1 to 1
    eval_laguerre, eval_genlaguerre                                            on 0 to infinity
    eval_hermite, eval_hermitenorm                                             of whole order

By x they are polynomials of the order before (DLMF 18.9(iii)).  By order and parameters they are
hypergeometric functions (DLMF 18.5.7, 15.9(i)), differentiated in their parameters; between whole
orders they are real for x > -1 only, and so is a derivative with respect to the order: elsewhere it
is NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.kinds.elementwise import POSITIVE, REAL, UNIT

from .beta import binom, poch
from .gamma import rgamma, rgamma_slope
from .hypergeometric_parameter_derivatives import hyp1f1_orders, hyp2f1_orders
from .oracle_expression import Witness
from .polygammas import digamma
from .register import function

__all__ = """
    eval_legendre eval_chebyt eval_chebyu eval_gegenbauer eval_jacobi
    eval_laguerre eval_genlaguerre eval_hermite eval_hermitenorm
""".split()


def _entry(name: str, operands: str, doc: str, expression: str, domains: Any) -> Any:
    entry = function(
        name,
        operands,
        domain=domains,
        oracle=Witness(operands, expression),
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
    """A derivative with respect to its parameters of 2F1(-n, p; c; (1 - x) / 2)."""
    return hyp2f1_orders(-n, p, c, 0.5 * (1.0 - x), i=i, j=j, k=k, m=0)


def _by_n(n: Any, p: Any, c: Any, x: Any) -> Any:
    """The derivative of 2F1(-n, p; c; (1 - x) / 2) by n, where p moves with n."""
    return _gauss(n, p, c, x, 0, 1, 0) - _gauss(n, p, c, x, 1, 0, 0)


def _flat(n: Any, x: Any, slope: Any) -> Any:
    """The derivative with respect to x; 0 for order 0 outside of the interval."""
    return np.where((n == 0) & (x <= -1.0), 0.0, slope)


# ---- Jacobi's and Gegenbauer's -------------------------------------------------------------------

eval_jacobi = _entry(
    "eval_jacobi",
    "n a b x",
    "Jacobi's polynomial of order n and parameters a, b, DLMF 18.3.",
    "jacobi(n, a, b, x)",
    [POSITIVE, POSITIVE, POSITIVE, UNIT],
)
eval_gegenbauer = _entry(
    "eval_gegenbauer",
    "n a x",
    "Gegenbauer's polynomial of order n and parameter a, DLMF 18.3.",
    "gegenbauer(n, a, x)",
    [POSITIVE, POSITIVE, UNIT],
)


def _scaled(n: Any, a: Any, value: Any, slope: Any) -> Any:
    """The derivative with respect to n of gamma(n + a) / (gamma(a) gamma(n + 1)) times a function.

    Where n is -1, as in the derivative in x of a polynomial of order 0, that quotient is 0, and its
    derivative is not.
    """
    inverse = rgamma(n + 1.0)
    rate = digamma(n + a) * inverse + rgamma_slope(inverse, n + 1.0)
    return poch(a, n) * (rate * value + inverse * slope)


def _jacobi_by_order(t: Any, out: Any, n: Any, a: Any, b: Any, x: Any) -> Any:
    at = n, n + a + b + 1.0, a + 1.0, x
    return t * _scaled(n, a + 1.0, _gauss(*at, 0, 0, 0), _by_n(*at))


def _jacobi_by_a(t: Any, out: Any, n: Any, a: Any, b: Any, x: Any) -> Any:
    rate = digamma(n + a + 1.0) - digamma(a + 1.0)
    at = n, n + a + b + 1.0, a + 1.0, x
    return t * (rate * out + binom(n + a, n) * (_gauss(*at, 0, 1, 0) + _gauss(*at, 0, 0, 1)))


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
    at = n, n + 2.0 * a, a + 0.5, x
    return t * _scaled(n, 2.0 * a, _gauss(*at, 0, 0, 0), _by_n(*at))


def _gegenbauer_by_a(t: Any, out: Any, n: Any, a: Any, x: Any) -> Any:
    rate = 2.0 * (digamma(n + 2.0 * a) - digamma(2.0 * a))
    at = n, n + 2.0 * a, a + 0.5, x
    moved = 2.0 * _gauss(*at, 0, 1, 0) + _gauss(*at, 0, 0, 1)
    return t * (rate * out + _gegenbauer_scale(n, a) * moved)


eval_gegenbauer.partials(
    _gegenbauer_by_order,
    _gegenbauer_by_a,
    lambda t, out, n, a, x: 2.0 * t * _flat(n, x, a * eval_gegenbauer(n - 1, a + 1.0, x)),
)

# ---- Legendre's and Chebyshev's ------------------------------------------------------------------

eval_legendre = _entry(
    "eval_legendre",
    "n x",
    "Legendre's polynomial of order n, DLMF 18.3; between whole orders Legendre's function P.",
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
    "Chebyshev's polynomial T of order n, DLMF 18.3: cos(n arccos x).",
    "cos(n * acos(x))",
    [POSITIVE, UNIT],
)
eval_chebyu = _entry(
    "eval_chebyu",
    "n x",
    "Chebyshev's polynomial U of order n, DLMF 18.3.",
    "sin((n + 1) * acos(x)) / sin(acos(x))",
    [POSITIVE, UNIT],
)
eval_chebyt.partials(
    lambda t, out, n, x: t * _by_n(n, n * 1.0, 0.5, x),
    lambda t, out, n, x: t * _flat(n, x, n * eval_chebyu(n - 1, x)),
)
eval_chebyu.partials(
    lambda t, out, n, x: (
        t * (_gauss(n, n + 2.0, 1.5, x, 0, 0, 0) + (n + 1.0) * _by_n(n, n + 2.0, 1.5, x))
    ),
    lambda t, out, n, x: 2.0 * t * _flat(n, x, eval_gegenbauer(n - 1, 2.0, x)),
)

# ---- Laguerre's ----------------------------------------------------------------------------------


def _kummer(n: Any, a: Any, x: Any, j: int, k: int) -> Any:
    return hyp1f1_orders(-n, a + 1.0, x, j=j, k=k, m=0)


eval_genlaguerre = _entry(
    "eval_genlaguerre",
    "n a x",
    "Laguerre's polynomial of order n and parameter a, DLMF 18.3.",
    "laguerre(n, a, x)",
    [POSITIVE, POSITIVE, POSITIVE],
)
eval_genlaguerre.partials(
    lambda t, out, n, a, x: (
        t * _scaled(n, a + 1.0, _kummer(n, a, x, 0, 0), -_kummer(n, a, x, 1, 0))
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
    "Laguerre's polynomial of order n, DLMF 18.3.",
    "laguerre(n, 0, x)",
    [POSITIVE, POSITIVE],
)
eval_laguerre.partials(
    lambda t, out, n, x: -t * _kummer(n, 0.0, x, 1, 0),
    lambda t, out, n, x: -t * eval_genlaguerre(n - 1, 1.0, x),
)

# ---- Hermite's -----------------------------------------------------------------------------------

eval_hermite = _entry(
    "eval_hermite",
    "n x",
    "Hermite's polynomial H of whole order n, DLMF 18.3.",
    "hermite(n, x)",
    [(0, 4), REAL],
)
eval_hermite.partials(
    None, lambda t, out, n, x: 2.0 * t * (n * eval_hermite(np.maximum(n - 1, 0), x))
)
eval_hermitenorm = _entry(
    "eval_hermitenorm",
    "n x",
    "Hermite's polynomial He of whole order n, DLMF 18.3.",
    "2**(-mpf(n) / 2) * hermite(n, x / sqrt(2))",
    [(0, 4), REAL],
)
eval_hermitenorm.partials(
    None, lambda t, out, n, x: t * (n * eval_hermitenorm(np.maximum(n - 1, 0), x))
)

"""Bessel functions of real order and modified Bessel functions: DLMF 10.

    jv jn jve, yv yve yn            J and Y; also scaled, and of integer order
    hankel1 hankel2                 J + i Y and J - i Y; scaled, hankel1e and hankel2e
    iv ive, kv kve kn               I and K

Derivatives with respect to the argument are the recurrences DLMF 10.6.1 and 10.29.1, in a form that
holds at 0 too; for complex arguments they are complex derivatives.  Derivatives with respect to the
order are in bessel_order_derivatives.py, for real arguments.  SciPy's functions of order 0 and 1
are in bessel_order_0_1.py.

The derivative of scaled I and K cancels for large x, where it decreases as 1 / x: its relative
error is 2 x roundings, 1e-13 at x = 300 and 1e-9 at x = 1e6.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, possibly, value_of
from wengert._engine.kinds.elementwise import POSITIVE
from wengert._engine.ops.elementwise.selection import where

from ...errors import NotDifferentiableError, at, user_line
from .bessel_order_derivatives import ive_order, jv_order, kve_order, yv_order
from .oracle_expression import OracleExpression
from .register import function

__all__ = """jv jn jve yv yve yn hankel1 hankel2 hankel1e hankel2e iv ive kv kve kn""".split()

_ORDER = (-1.5, 3.5)


def _examples(rng: Any) -> Any:
    yield (rng.uniform(-1.5, 3.5, size=(2, 1)), rng.uniform(0.4, 5.0, size=1)), {}


def _entry(name: str, doc: str, expression: str) -> Any:
    """Register a Bessel function of order v and argument x."""
    entry = function(
        name,
        "v x",
        domain=[_ORDER, POSITIVE],
        oracle=OracleExpression("v x", expression),
        singular=True,
        half=False,
        doc=doc,
    )
    entry.examples(_examples)
    return entry


# ---- J, Y and Hankel functions -------------------------------------------------------------------

jv = _entry("jv", "The Bessel function J of order v, DLMF 10.2.2.", "besselj(v, x)")
jn = jv
yv = _entry("yv", "The Bessel function Y of order v, DLMF 10.2.3.", "bessely(v, x)")
hankel1 = _entry("hankel1", "J + i Y of order v, DLMF 10.4.3.", "besselj(v, x) + j * bessely(v, x)")
hankel2 = _entry("hankel2", "J - i Y of order v, DLMF 10.4.3.", "besselj(v, x) - j * bessely(v, x)")


def _argument_partial(f: Any) -> Any:
    """The partial with respect to the argument, DLMF 10.6.1: (f(v - 1, x) - f(v + 1, x)) / 2."""
    return lambda t, out, v, x: 0.5 * t * (f(v - 1, x) - f(v + 1, x))


jv.partials(lambda t, out, v, x: t * jv_order(v, x, n=1), _argument_partial(jv))
yv.partials(lambda t, out, v, x: t * yv_order(v, x, n=1), _argument_partial(yv))


def _hankel_order_derivative(kind: int, v: Any, x: Any) -> Any:
    """The derivative of a Hankel function with respect to its order, for real x.

    For x < 0 SciPy gives the value above the branch cut.  The derivative there follows from DLMF
    10.11.3 with m = 1: H1(-x) = -exp(-i pi v) H2(x), and
    H2(-x) = exp(i pi v) H1(x) + 2 cos(pi v) H2(x).
    """
    real = dtype_of(x).kind != "c"
    y = np.abs(x) if real else x
    regular, singular = jv_order(v, y, n=1), 1j * yv_order(v, y, n=1)
    first, second = regular + singular, regular - singular
    positive = first if kind == 1 else second
    if not real or not possibly(value_of(x) < 0):
        return positive
    phase = np.exp(1j * np.pi * v)
    if kind == 1:
        negative = (1j * np.pi * hankel2(v, y) - second) / phase
    else:
        negative = phase * (1j * np.pi * hankel1(v, y) + first) + 2 * np.cos(np.pi * v) * second
        negative = negative - 2 * np.pi * np.sin(np.pi * v) * hankel2(v, y)
    return where(x < 0, negative, positive)


hankel1.partials(
    lambda t, out, v, x: t * _hankel_order_derivative(1, v, x), _argument_partial(hankel1)
)
hankel2.partials(
    lambda t, out, v, x: t * _hankel_order_derivative(2, v, x), _argument_partial(hankel2)
)

hankel1e = _entry(
    "hankel1e",
    "exp(-i x) times hankel1, DLMF 10.4.3.",
    "exp(-j * x) * (besselj(v, x) + j * bessely(v, x))",
)
hankel2e = _entry(
    "hankel2e",
    "exp(i x) times hankel2, DLMF 10.4.3.",
    "exp(j * x) * (besselj(v, x) - j * bessely(v, x))",
)
hankel1e.partials(
    lambda t, out, v, x: t * np.exp(-1j * x) * _hankel_order_derivative(1, v, x),
    lambda t, out, v, x: t * (0.5 * (hankel1e(v - 1, x) - hankel1e(v + 1, x)) - 1j * out),
)
hankel2e.partials(
    lambda t, out, v, x: t * np.exp(1j * x) * _hankel_order_derivative(2, v, x),
    lambda t, out, v, x: t * (0.5 * (hankel2e(v - 1, x) - hankel2e(v + 1, x)) + 1j * out),
)


def _require_real(name: str, x: Any) -> Any:
    """x, if it is real.

    Raises
    ------
    NotDifferentiableError
        It is complex: the scaling factor is not holomorphic.
    """
    if dtype_of(x).kind == "c":
        raise NotDifferentiableError(
            f"{name} of complex arguments has no complex derivative: its scaling factor depends on "
            f"the absolute value of a real or imaginary part. Use {name[:-1]}, and scale its value"
            f"{at(user_line())}."
        )
    return x


# ---- I and K -------------------------------------------------------------------------------------

iv = _entry("iv", "The modified Bessel function I of order v, DLMF 10.25.2.", "besseli(v, x)")
kv = _entry("kv", "The modified Bessel function K of order v, DLMF 10.25.3.", "besselk(v, x)")
iv.partials(
    lambda t, out, v, x: t * (np.exp(x) * ive_order(v, x, n=1)),
    lambda t, out, v, x: 0.5 * t * (iv(v - 1, x) + iv(v + 1, x)),
)
kv.partials(
    lambda t, out, v, x: t * (np.exp(-x) * kve_order(v, x, n=1)),
    lambda t, out, v, x: -0.5 * t * (kv(v - 1, x) + kv(v + 1, x)),
)
ive = _entry("ive", "exp(-|Re x|) times I of order v.", "exp(-x) * besseli(v, x)")
kve = _entry("kve", "exp(x) times K of order v.", "exp(x) * besselk(v, x)")
ive.partials(
    lambda t, out, v, x: t * ive_order(v, x, n=1),
    lambda t, out, v, x: (
        t * (0.5 * (ive(v - 1, x) + ive(v + 1, x)) - np.sign(_require_real("ive", x)) * out)
    ),
)
kve.partials(
    lambda t, out, v, x: t * kve_order(v, x, n=1),
    lambda t, out, v, x: t * (out - 0.5 * (kve(v - 1, x) + kve(v + 1, x))),
)

# ---- integer orders ------------------------------------------------------------------------------


def _entry_of_integer_order(name: str, doc: str, expression: str) -> Any:
    return function(
        name,
        "n x",
        domain=[(0, 4), POSITIVE],
        oracle=OracleExpression("n x", expression),
        singular=True,
        half=False,
        doc=doc,
    )


yn = _entry_of_integer_order("yn", "Y of integer order n.", "bessely(n, x)")
yn.partials(None, lambda t, out, n, x: 0.5 * t * (yv(n - 1.0, x) - yv(n + 1.0, x)))
kn = _entry_of_integer_order("kn", "K of integer order n.", "besselk(n, x)")
kn.partials(None, lambda t, out, n, x: -0.5 * t * (kv(n - 1.0, x) + kv(n + 1.0, x)))

# ---- scaled J and Y ------------------------------------------------------------------------------

jve = _entry("jve", "exp(-|Im x|) times J of order v.", "besselj(v, x)")
yve = _entry("yve", "exp(-|Im x|) times Y of order v.", "bessely(v, x)")
jve.partials(
    lambda t, out, v, x: t * jv_order(v, x, n=1),
    lambda t, out, v, x: 0.5 * t * (jve(v - 1, _require_real("jve", x)) - jve(v + 1, x)),
)
yve.partials(
    lambda t, out, v, x: t * yv_order(v, x, n=1),
    lambda t, out, v, x: 0.5 * t * (yve(v - 1, _require_real("yve", x)) - yve(v + 1, x)),
)

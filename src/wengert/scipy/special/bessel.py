"""Bessel functions of real order and modified Bessel functions, and integrals of them: DLMF 10.

    jv jn jve, yv yve yn    J and Y; also scaled, and of integer order
    hankel1 hankel2         J + i Y and J - i Y; scaled, hankel1e and hankel2e
    iv ive, kv kve kn       I and K
    j0 j1, y0 y1            J and Y
    i0 i1 i0e i1e           I, and exp(-|x|) I
    k0 k1 k0e k1e           K, and exp(x) K
    itj0y0                  the integrals of J_0 and Y_0
    iti0k0                  the integrals of I_0 and K_0
    jvp yvp h1vp h2vp       of J, Y and Hankel functions
    ivp kvp                 of I and K

Derivatives with respect to the argument are the recurrences DLMF 10.6.1 and 10.29.1, in a form that
holds at 0 too; for complex arguments they are complex derivatives.  Derivatives with respect to the
order are in bessel_orders.py, for real arguments.

The derivative of scaled I and K cancels for large x, where it decreases as 1 / x: its relative
error is 2 x roundings, 1e-13 at x = 300 and 1e-9 at x = 1e6.

The derivatives of those of order 0 and 1 are Bessel functions of neighboring orders (DLMF 10.6.3,
10.29.3).

The n-th derivative, jvp ..., is a sum of n + 1 Bessel functions with binomial coefficients (DLMF
10.6.7, 10.29.5), which is differentiable with respect to argument and order.
"""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import scipy.special

from wengert._engine.core.handle import dtype_of, possibly, value_of
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import Differentiation
from wengert._engine.kinds.elementwise import POSITIVE, REAL
from wengert._engine.ops.elementwise.selection import where
from wengert._engine.tensor.numpy_dispatch import counterpart

from ...errors import ArgumentError, NotDifferentiableError, at, user_line
from .bessel_orders import ive_order, jv_order, kve_order, yv_order
from .register import PREFIX, OracleExpression, function

__all__ = """
    jv jn jve yv yve yn hankel1 hankel2 hankel1e hankel2e iv ive kv kve kn j0 j1 y0 y1 i0 i1 i0e
    i1e k0 k1 k0e k1e itj0y0 iti0k0 jvp yvp h1vp h2vp ivp kvp
""".split()


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


def _integer_order(name: str, doc: str, expression: str, domain: Any = POSITIVE) -> Any:
    return function(
        name,
        "x",
        domain=[domain],
        oracle=OracleExpression("x", expression),
        singular=True,
        half=False,
        doc=doc,
    )


j0 = _integer_order("j0", "J of order 0, DLMF 10.2.2.", "besselj(0, x)", REAL)
j1 = _integer_order("j1", "J of order 1, DLMF 10.2.2.", "besselj(1, x)", REAL)
y0 = _integer_order("y0", "Y of order 0, DLMF 10.2.3.", "bessely(0, x)")
y1 = _integer_order("y1", "Y of order 1, DLMF 10.2.3.", "bessely(1, x)")
j0.partials(lambda t, out, x: -t * j1(x))
j1.partials(lambda t, out, x: 0.5 * t * (j0(x) - jv(2.0, x)))
y0.partials(lambda t, out, x: -t * y1(x))
y1.partials(lambda t, out, x: 0.5 * t * (y0(x) - yv(2.0, x)))

i0 = _integer_order("i0", "I of order 0, DLMF 10.25.2.", "besseli(0, x)", REAL)
i1 = _integer_order("i1", "I of order 1, DLMF 10.25.2.", "besseli(1, x)", REAL)
i0e = _integer_order("i0e", "exp(-|x|) times I of order 0.", "exp(-abs(x)) * besseli(0, x)", REAL)
i1e = _integer_order("i1e", "exp(-|x|) times I of order 1.", "exp(-abs(x)) * besseli(1, x)", REAL)
i0.partials(lambda t, out, x: t * i1(x))
i1.partials(lambda t, out, x: 0.5 * t * (i0(x) + iv(2.0, x)))
i0e.partials(lambda t, out, x: t * (i1e(x) - np.sign(x) * out))
i1e.partials(lambda t, out, x: t * (0.5 * (i0e(x) + ive(2.0, x)) - np.sign(x) * out))

k0 = _integer_order("k0", "K of order 0, DLMF 10.25.3.", "besselk(0, x)")
k1 = _integer_order("k1", "K of order 1, DLMF 10.25.3.", "besselk(1, x)")
k0e = _integer_order("k0e", "exp(x) times K of order 0.", "exp(x) * besselk(0, x)")
k1e = _integer_order("k1e", "exp(x) times K of order 1.", "exp(x) * besselk(1, x)")
k0.partials(lambda t, out, x: -t * k1(x))
k1.partials(lambda t, out, x: -0.5 * t * (k0(x) + kv(2.0, x)))
k0e.partials(lambda t, out, x: t * (out - k1e(x)))
k1e.partials(lambda t, out, x: t * (out - 0.5 * (k0e(x) + kve(2.0, x))))


def _integral(name: str, result: int, integrand: str, mpmath_name: str) -> Any:
    witness = OracleExpression("x", f"quad(lambda u: {mpmath_name}(0, u), [0, x / 8, x / 2, x])")
    doc = f"The integral of {integrand} from 0 to x."
    entry = function(name, "x", result=result, domain=[POSITIVE], oracle=witness, doc=doc)
    entry.differentiation = Differentiation(singular=True)
    entry.partials(lambda t, out, x: t * lookup(PREFIX + integrand)(x))
    return entry


_j0 = _integral("itj0y0", 0, "j0", "besselj")
_y0 = _integral("itj0y0", 1, "y0", "bessely")
_i0 = _integral("iti0k0", 0, "i0", "besseli")
_k0 = _integral("iti0k0", 1, "k0", "besselk")


def itj0y0(x: Any) -> tuple[Any, Any]:
    """The integrals of J_0 and Y_0 from 0 to x."""
    return _j0(x), _y0(x)


def iti0k0(x: Any) -> tuple[Any, Any]:
    """The integrals of I_0 and K_0 from 0 to x."""
    return _i0(x), _k0(x)


def _derivative(name: str, function: Any, alternate: float, sign: float) -> Any:
    """SciPy's function of that name, and the sum of Bessel functions for tensors."""

    def ours(v: Any, z: Any, n: int = 1) -> Any:
        if n != int(n) or n < 0:
            raise ArgumentError(
                f"{name} with n={n}: the order of the derivative must be a nonnegative integer"
                f"{at(user_line())}."
            )
        total: Any = 0.0
        for k in range(int(n) + 1):
            total = total + alternate**k * comb(int(n), k) * function(v - n + 2 * k, z)
        return total * (sign / 2.0) ** n

    ours.__name__ = name
    name_of_function = function.name.split(".")[-1]
    ours.__doc__ = f"""The n-th derivative of ``{name_of_function}(v, z)`` with respect to z.

    Parameters
    ----------
    v, z : array or Tensor
        Order and argument; both are differentiable.
    n : int
        The order of the derivative, 0 or more.

    Returns
    -------
    array or Tensor

    Raises
    ------
    ArgumentError
        n is negative or not an integer.

    Notes
    -----
    DLMF 10.6.7 and 10.29.5. *Cost.* That of n + 1 Bessel functions.

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert.scipy.special import {name}
    >>> slope = wg.grad(lambda z: abs({name}(1.5, z, 0)) ** 2 / 2)(2.0)
    >>> value, first = {name}(1.5, 2.0, 0), {name}(1.5, 2.0, 1)
    >>> bool(abs(slope - (value * first.conjugate()).real) < 1e-12)
    True
    """
    return counterpart(getattr(scipy.special, name))(ours)


jvp = _derivative("jvp", jv, -1.0, 1.0)
yvp = _derivative("yvp", yv, -1.0, 1.0)
h1vp = _derivative("h1vp", hankel1, -1.0, 1.0)
h2vp = _derivative("h2vp", hankel2, -1.0, 1.0)
ivp = _derivative("ivp", iv, 1.0, 1.0)
kvp = _derivative("kvp", kv, 1.0, -1.0)

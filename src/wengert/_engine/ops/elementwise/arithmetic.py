"""Arithmetic and powers.

Each entry states what is specific to the operation:

    body      the value of one element, in the scalar language `s` (kinds/elementwise.py)
    ufunc     NumPy's function on arrays
    oracle    an independent reference for the tests, in mpmath's functions
    partials  for each operand the map t -> partial * t, in wengert operations, so that it can be
              differentiated again; None for an operand without derivative
    domain    for each operand the open interval that tests draw from
    kinks     points of the domain where the function is continuous but not differentiable

The kind (kinds/elementwise.py) derives shape rule, dtype rule, both modes of derivative and the
formula in the documentation.  Conventions at kinks and poles: docs/conventions.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle, dtype_of, possibly, value_of
from wengert._engine.core.node import ConstantLeaf, Node
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import (
    ARITHMETIC,
    DIVISION,
    GUARD,
    STEPS,
    Cost,
    InverseProduct,
    Remedy,
    call,
    facts,
)
from wengert._engine.kinds.elementwise import POSITIVE, REAL, elementwise

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand, Scalar, ScalarLanguage


def _number(x: Any) -> Any:
    """The value of a constant number; None for other operands.

    `x` is an operand as passed to a rule, or as stored in a node.
    """
    if isinstance(x, Handle):
        x = x.node
    if isinstance(x, Node):
        x = x.value if type(x) is ConstantLeaf else None
    return None if x is None or np.ndim(x) else x


def _may_vanish(node: Node) -> bool:
    """Whether the divisor of a node can be zero."""
    divisor = _number(node.args[1])
    return divisor is None or bool(divisor == 0)


def _may_be_steep(node: Node) -> bool:
    """Whether the derivative of a power may be infinite at zero, given its exponent."""
    exponent = _number(node.args[1])
    return exponent is None or not bool(exponent == 0 or np.real(exponent) >= 1)


@facts(cost=ARITHMETIC, onnx="Add")
@elementwise(
    ufunc=np.add,
    commutative=True,
    oracle="x + y",
    complex_ok=True,
    bounded=True,
    constant_partials=True,
)
def add(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """x + y."""
    return x + y


add.partials(lambda t, out, x, y: t, lambda t, out, x, y: t)


@facts(cost=ARITHMETIC, remedy=Remedy(outside="inf - inf: find the earlier overflow"), onnx="Sub")
@elementwise(
    ufunc=np.subtract, oracle="x - y", complex_ok=True, bounded=True, constant_partials=True
)
def subtract(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """x - y."""
    return x - y


subtract.partials(lambda t, out, x, y: t, lambda t, out, x, y: -t)


@facts(
    cost=ARITHMETIC,
    remedy=Remedy(
        outside="0 * inf: select with np.where instead of multiplying by a mask",
        overflow="Work with logarithms, or rescale first",
    ),
    onnx="Mul",
    multilinear=True,
)
@elementwise(ufunc=np.multiply, commutative=True, oracle="x * y", complex_ok=True)
def multiply(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """x * y."""
    return x * y


multiply.partials(lambda t, out, x, y: t * y, lambda t, out, x, y: t * x)


@facts(
    cost=DIVISION,
    remedy=Remedy(
        singular=f"{GUARD} for the denominator",
        overflow="Rescale first, or keep the denominator away from 0",
    ),
    onnx="Div",
    quotient=InverseProduct(0, lambda y, z: y * z),
)
@elementwise(
    ufunc=np.divide,
    oracle="x / y",
    domain=[REAL, POSITIVE],
    complex_ok=True,
    singular=_may_vanish,
)
def divide(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """x / y for y != 0; the tests draw y > 0."""
    return x / y


# Not t * (out / y): in second derivatives x / y**2 may be out of range where t / y**2 is not.  Both
# partials share t / y.
divide.partials(lambda t, out, x, y: t / y, lambda t, out, x, y: -(t / y) * out)


# ---- quotients of integers ----------------------------------------------------------------
# floor(x / y) is not floor division: 1.0 // 0.1 is 9, because 0.1 is slightly more than a tenth,
# although 1.0 / 0.1 rounds to 10.  The exact remainder, by fmod, is used instead.


def _wrapped(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """The exact remainder with the sign of x, and whether y must be added to it."""
    r = s.fmod(x, y)
    return r, s.logical_and(s.not_equal(r, 0.0), s.logical_xor(s.less(y, 0.0), s.less(r, 0.0)))


@facts(cost=call(), jump=STEPS)
@elementwise(ufunc=np.floor_divide, oracle="floor(x / y)", domain=[REAL, POSITIVE], discrete=True)
def floor_divide(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """The largest integer not above x / y; a step function."""
    r, wraps = _wrapped(s, x, y)
    q = (x - r) / y - s.where(wraps, 1.0, 0.0)
    below = s.floor(q)  # q is an integer up to rounding
    whole = below + s.where(s.less(0.5, q - below), 1.0, 0.0)
    signed_zero = s.copysign(0.0, x / y)
    inside = s.where(s.equal(q, 0.0), signed_zero, whole)
    return s.where(s.equal(y, 0.0), x / y, inside)


# Tests draw quotients away from the jumps at integers.
_BETWEEN = [(2.4, 2.6), (0.95, 1.05)]


@facts(remedy=Remedy(singular=f"{GUARD} for the divisor"), cost=call(23.0), jump=STEPS)
@elementwise(
    ufunc=np.remainder, oracle="x - y * floor(x / y)", domain=_BETWEEN, singular=_may_vanish
)
def remainder(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """x - y floor(x / y), with the sign of y.

    It jumps where x / y is an integer; the right-hand derivative is returned there.
    """
    r, wraps = _wrapped(s, x, y)
    zero = s.where(s.equal(y, 0.0), r, s.copysign(r, y))
    return s.where(wraps, r + y, s.where(s.equal(r, 0.0), zero, r))


remainder.partials(
    lambda t, out, x, y: t, lambda t, out, x, y: -t * np.floor_divide(value_of(x), value_of(y))
)


@facts(remedy=Remedy(singular=f"{GUARD} for the divisor"), cost=call(), jump=STEPS)
@elementwise(
    ufunc=np.fmod,
    oracle="x - y * sign(x / y) * floor(abs(x / y))",
    domain=_BETWEEN,
    singular=_may_vanish,
)
def fmod(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """x - y trunc(x / y), exact, with the sign of x, as C's fmod."""
    return s.fmod(x, y)


def _whole_quotient(out: Array, x: Operand, y: Array) -> Any:
    """The quotient of fmod: trunc(x / y), without the rounding error of x / y."""
    return np.rint((value_of(x) - value_of(out)) / value_of(y))


fmod.partials(lambda t, out, x, y: t, lambda t, out, x, y: -t * _whole_quotient(out, x, y))


for _op in (remainder, fmod):

    @_op.examples
    def _(rng: np.random.Generator) -> Any:
        for shape in [(5,), (2, 3), ()]:
            x = (rng.uniform(0.3, 0.7, shape) + rng.integers(-4, 4, shape)) * 1.5
            yield (x, rng.choice([-1.5, 1.5], shape)), {}


@facts(cost=ARITHMETIC, onnx="Neg", involution=True)
@elementwise(ufunc=np.negative, oracle="-x", complex_ok=True, bounded=True)
def negative(s: ScalarLanguage, x: Scalar) -> Any:
    """-x."""
    return -x


negative.partials(lambda t, out, x: -t)


@facts(cost=ARITHMETIC, onnx="Identity")
@elementwise(ufunc=np.positive, oracle="x", complex_ok=True, bounded=True)
def positive(s: ScalarLanguage, x: Scalar) -> Any:
    """+x."""
    return x


positive.partials(lambda t, out, x: t)


@facts(cost=DIVISION, remedy=Remedy(singular=GUARD), onnx="Reciprocal")
@elementwise(ufunc=np.reciprocal, oracle="1 / x", domain=[POSITIVE], complex_ok=True, singular=True)
def reciprocal(s: ScalarLanguage, x: Scalar) -> Any:
    """1 / x."""
    return 1.0 / x


reciprocal.partials(lambda t, out, x: -t * (out * out))


@facts(
    cost=ARITHMETIC,
    remedy=Remedy(overflow="Rescale first; for a length use np.hypot or np.linalg.norm"),
)
@elementwise(ufunc=np.square, oracle="x * x", complex_ok=True)
def square(s: ScalarLanguage, x: Scalar) -> Any:
    """x * x."""
    return x * x


square.partials(lambda t, out, x: t * (x + x))


@facts(
    cost=Cost(31.0),
    remedy=Remedy(
        singular=f"{GUARD}; or add a small number under the root, np.sqrt(x + eps); for a length "
        "use np.linalg.norm or np.hypot, and np.abs for the root of a square"
    ),
    onnx="Sqrt",
)
@elementwise(ufunc=np.sqrt, oracle="sqrt(x)", domain=[POSITIVE], complex_ok=True, singular=True)
def sqrt(s: ScalarLanguage, x: Scalar) -> Any:
    """The square root; its derivative is infinite at 0."""
    return s.sqrt(x)


sqrt.partials(lambda t, out, x: t / (out + out))


@facts(cost=call(48.0), remedy=Remedy(singular=GUARD))
@elementwise(ufunc=np.cbrt, oracle="sign(x) * cbrt(abs(x))", kinks=[0.0], singular=True)
def cbrt(s: ScalarLanguage, x: Scalar) -> Any:
    """The real cube root; its derivative is infinite at 0."""
    return s.cbrt(x)


# Divided twice, so that the second derivative at infinity is 0 and not 0 * inf.
cbrt.partials(lambda t, out, x: t / out / (3.0 * out))


# ---- powers: DLMF 4.2(iv) ----------------------------------------------------------------------


@facts(
    cost=call(95.0),
    remedy=Remedy(
        singular=f"{GUARD}; a power below 1 has an infinite derivative at 0, and a negative base "
        "has no real derivative with respect to the exponent (make the exponent a plain number)",
        overflow="Work with logarithms, or rescale first",
    ),
    onnx="Pow",
    special_numbers=True,
)
@elementwise(
    ufunc=np.power,
    oracle="x ** y",
    domain=[POSITIVE, (-3.0, 3.0)],
    complex_ok=True,
    singular=_may_be_steep,
)
def power(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """x ** y; for negative x the exponent must be an integer.

    The derivative with respect to x is y x**(y-1), and 0 for x = y = 0.  The derivative with
    respect to y is x**y log x, and 0 for x = 0, y >= 0 (its limit for y > 0).
    """
    return s.power(x, y)


def _power_by_base(t: Array, out: Array, x: Array, y: Any) -> Any:
    raise_to = lookup("power")
    exponent = _number(y)
    if exponent is not None:
        y = exponent
        if exponent == 2:
            return t * (x + x)
        if exponent == 0:
            return t * 0.0
        return t * (y * raise_to(x, int(y) - 1 if isinstance(y, np.integer) else y - 1))
    kind = dtype_of(y).kind
    if kind in "bu":  # 0 - 1 would wrap around
        y = y.astype(np.int64)
    at_origin = np.logical_and(np.equal(value_of(y), 0), np.equal(value_of(x), 0))
    if kind in "bui" or not possibly(at_origin):
        factor = y * raise_to(x, y - 1)
        return (
            t * factor if not possibly(at_origin) else lookup("where")(at_origin, 0.0, t * factor)
        )
    where = lookup("where")
    return where(at_origin, 0.0, t * (y * raise_to(x, where(at_origin, 1, y) - 1)))


def _power_by_exponent(t: Array, out: Array, x: Operand, y: Array) -> Any:
    where, log = lookup("where"), lookup("log")
    exponent = value_of(y)
    real_exponent = exponent.real if dtype_of(y).kind == "c" else exponent
    at_zero = np.logical_and(np.equal(value_of(x), 0), np.greater_equal(real_exponent, 0))
    if not possibly(at_zero):
        return t * (out * log(x))
    return where(at_zero, 0.0, t * (out * log(where(at_zero, 1.0, x))))


power.partials(_power_by_base, _power_by_exponent)


@facts(cost=call(95.0), remedy=Remedy(singular=GUARD), onnx="Pow", special_numbers=True)
@elementwise(
    ufunc=np.float_power,
    oracle="x ** y",
    domain=[POSITIVE, (-3.0, 3.0)],
    complex_ok=True,
    singular=_may_be_steep,
)
def float_power(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """x ** y, computed in float64 or more."""
    return s.power(x, y)


float_power.partials(_power_by_base, _power_by_exponent)

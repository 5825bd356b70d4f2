"""Hyperbolic functions and their inverses: DLMF 4.28 to 4.40.

The derivatives are accurate to relative precision where the function is flat: 1 / cosh(x)**2
instead of 1 - tanh(x)**2, which is exactly zero for x >= 19.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import (
    BOUNDED,
    GUARD,
    IN_LOGARITHMS,
    SATURATES,
    Remedy,
    ValueRange,
    call,
    facts,
)
from wengert._engine.kinds.elementwise import POSITIVE, UNIT, elementwise

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Scalar, ScalarLanguage


@facts(cost=call(37.0), remedy=Remedy(overflow=IN_LOGARITHMS), onnx="Sinh")
@elementwise(ufunc=np.sinh, oracle="sinh(x)", complex_ok=True)
def sinh(s: ScalarLanguage, x: Scalar) -> Any:
    """(exp(x) - exp(-x)) / 2."""
    return s.sinh(x)


@facts(
    cost=call(23.0),
    remedy=Remedy(overflow="Use np.logaddexp(x, -x) for its logarithm"),
    onnx="Cosh",
    range=ValueRange(always=frozenset({"positive"}), inherited=frozenset({"number"})),
)
@elementwise(ufunc=np.cosh, oracle="cosh(x)", complex_ok=True)
def cosh(s: ScalarLanguage, x: Scalar) -> Any:
    """(exp(x) + exp(-x)) / 2."""
    return s.cosh(x)


sinh.partials(lambda t, out, x: t * cosh(x))
cosh.partials(lambda t, out, x: t * sinh(x))


@facts(cost=call(60.0), onnx="Tanh", zero_slope=SATURATES, range=BOUNDED)
@elementwise(ufunc=np.tanh, oracle="tanh(x)", complex_ok=True)
def tanh(s: ScalarLanguage, x: Scalar) -> Any:
    """sinh(x) / cosh(x), in (-1, 1)."""
    return s.tanh(x)


def _tanh_by_x(t: Array, out: Array, x: Array) -> Any:
    if t.dtype.kind == "c":  # a complex cosh overflows to inf + inf i, whose quotient is NaN
        return t * (1.0 - out * out)
    return t * sech_squared(x)


tanh.partials(_tanh_by_x)


@facts(zero_slope=SATURATES, cost=call(60.0))
@elementwise(oracle="sech(x) ** 2")
def sech_squared(s: ScalarLanguage, x: Scalar) -> Any:
    """1 / cosh(x)**2, the derivative of tanh, accurate where tanh is close to 1."""
    u = s.exp(-2.0 * s.abs(x))
    return 4.0 * u / ((1.0 + u) * (1.0 + u))


sech_squared.partials(lambda t, out, x: -2.0 * t * (out * tanh(x)))


@facts(zero_slope=SATURATES, remedy=Remedy(singular=GUARD), cost=call())
@elementwise(oracle="coth(x)", domain=[POSITIVE], complex_ok=True, singular=True)
def coth(s: ScalarLanguage, x: Scalar) -> Any:
    """1 / tanh(x), for x != 0."""
    return 1.0 / s.tanh(x)


def _coth_by_x(t: Array, out: Array, x: Array) -> Any:
    if t.dtype.kind == "c":
        return t * (1.0 - out * out)
    c = sinh(x)
    return -t / (c * c)


coth.partials(_coth_by_x)


@facts(cost=call(95.0), onnx="Asinh", zero_slope=SATURATES)
@elementwise(ufunc=np.arcsinh, oracle="asinh(x)", complex_ok=True)
def arcsinh(s: ScalarLanguage, x: Scalar) -> Any:
    """The number whose sinh is x."""
    return s.arcsinh(x)


def _arcsinh_by_x(t: Array, out: Array, x: Array) -> Any:
    if t.dtype.kind == "c":
        return t / lookup("sqrt")(1.0 + x * x)
    return t / lookup("hypot")(1.0, x)  # x * x would overflow above 1e154


arcsinh.partials(_arcsinh_by_x)


@facts(cost=call(), remedy=Remedy(singular="Keep the operand above 1"), onnx="Acosh")
@elementwise(
    ufunc=np.arccosh, oracle="acosh(x)", domain=[(1.0, inf)], complex_ok=True, singular=True
)
def arccosh(s: ScalarLanguage, x: Scalar) -> Any:
    """The number >= 0 whose cosh is x, for x >= 1; derivative infinite at 1."""
    return s.arccosh(x)


def _arccosh_by_x(t: Array, out: Array, x: Array) -> Any:
    sqrt = lookup("sqrt")
    # The branch cuts of arccosh: DLMF 4.37.21; divided twice for the second derivative at infinity.
    return t / sqrt(x - 1.0) / sqrt(x + 1.0)


arccosh.partials(_arccosh_by_x)


@facts(
    cost=call(48.0), remedy=Remedy(singular="Clip the operand to just inside (-1, 1)"), onnx="Atanh"
)
@elementwise(ufunc=np.arctanh, oracle="atanh(x)", domain=[UNIT], complex_ok=True, singular=True)
def arctanh(s: ScalarLanguage, x: Scalar) -> Any:
    """The number whose tanh is x, for -1 < x < 1."""
    return s.arctanh(x)


# Divided twice: the second derivative at infinity is 0 in a graph too.
arctanh.partials(lambda t, out, x: t / (1.0 - x) / (1.0 + x))

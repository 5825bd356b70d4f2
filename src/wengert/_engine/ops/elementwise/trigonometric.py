"""Trigonometric and hyperbolic functions and their inverses.

Trigonometric functions and their inverses: DLMF 4.14 to 4.26; angles and lengths.

sin cos tan cot sinc             and the inverses arcsin arccos arctan
arctan2 hypot                    angle and length of a pair of coordinates
deg2rad rad2deg ...              units of angles

Hyperbolic functions and their inverses: DLMF 4.28 to 4.40.

The derivatives are accurate to relative precision where the function is flat: 1 / cosh(x)**2
instead of 1 - tanh(x)**2, which is exactly zero for x >= 19.
"""

from __future__ import annotations

from math import factorial, inf, pi
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle, dtype_of, possibly, value_of
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import (
    ARITHMETIC,
    AT_ORIGIN,
    BOUNDED,
    CLIP,
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
    from wengert._engine.core.types import Array, Operand, Scalar, ScalarLanguage

ANGLE = (-pi / 2, pi / 2)


@facts(cost=call(23.0), onnx="Sin", range=ValueRange(inherited=frozenset({"finite"})))
@elementwise(ufunc=np.sin, oracle="sin(x)", complex_ok=True)
def sin(s: ScalarLanguage, x: Scalar) -> Any:
    """The sine of x radians."""
    return s.sin(x)


sin.partials(lambda t, out, x: t * np.cos(x))


@facts(cost=call(23.0), onnx="Cos", range=ValueRange(inherited=frozenset({"finite"})))
@elementwise(ufunc=np.cos, oracle="cos(x)", complex_ok=True)
def cos(s: ScalarLanguage, x: Scalar) -> Any:
    """The cosine of x radians."""
    return s.cos(x)


cos.partials(lambda t, out, x: -t * np.sin(x))


@facts(cost=call(48.0), onnx="Tan")
@elementwise(ufunc=np.tan, oracle="tan(x)", domain=[ANGLE], complex_ok=True)
def tan(s: ScalarLanguage, x: Scalar) -> Any:
    """The tangent of x radians."""
    return s.tan(x)


tan.partials(lambda t, out, x: t * (1.0 + out * out))


@facts(remedy=Remedy(singular=GUARD), cost=call())
@elementwise(oracle="cot(x)", domain=[(0.0, pi)], complex_ok=True, singular=True)
def cot(s: ScalarLanguage, x: Scalar) -> Any:
    """The cotangent of x radians, 1 / tan(x)."""
    return 1.0 / s.tan(x)


cot.partials(lambda t, out, x: -t * (1.0 + out * out))


@facts(cost=call(31.0), remedy=Remedy(singular=CLIP), onnx="Asin")
@elementwise(ufunc=np.arcsin, oracle="asin(x)", domain=[UNIT], complex_ok=True, singular=True)
def arcsin(s: ScalarLanguage, x: Scalar) -> Any:
    """The angle in [-pi/2, pi/2] whose sine is x; derivative infinite at -1 and 1."""
    return s.arcsin(x)


def _cosine(x: Array) -> Any:
    """sqrt(1 - x*x), accurate near 1 and with the branch cuts of arcsin (DLMF 4.24.1)."""
    sqrt = lookup("sqrt")
    return sqrt(1.0 - x) * sqrt(1.0 + x)


arcsin.partials(lambda t, out, x: t / _cosine(x))


@facts(cost=call(31.0), remedy=Remedy(singular=CLIP), onnx="Acos")
@elementwise(ufunc=np.arccos, oracle="acos(x)", domain=[UNIT], complex_ok=True, singular=True)
def arccos(s: ScalarLanguage, x: Scalar) -> Any:
    """The angle in [0, pi] whose cosine is x; derivative infinite at -1 and 1."""
    return s.arccos(x)


arccos.partials(lambda t, out, x: -t / _cosine(x))


@facts(cost=call(37.0), onnx="Atan", zero_slope=SATURATES, range=BOUNDED)
@elementwise(ufunc=np.arctan, oracle="atan(x)", complex_ok=True)
def arctan(s: ScalarLanguage, x: Scalar) -> Any:
    """The angle in (-pi/2, pi/2) whose tangent is x."""
    return s.arctan(x)


@elementwise(oracle="1 / (1 + x * x)")
def lorentzian(s: ScalarLanguage, x: Scalar) -> Any:
    """1 / (1 + x*x), the derivative of arctan; its derivatives at infinity are zero."""
    far = s.less(1e4, s.abs(x))  # where x * x could overflow: 1 / x**2 - 1 / x**4 + O(1 / x**6)
    near = s.where(far, 0.0, x)
    quotient = 1.0 / s.where(far, x, 1.0 + near * near)
    square = quotient * quotient
    return s.where(far, square * (1.0 - square), quotient)


def _lorentzian_by_x(t: Array, out: Array, x: Array) -> Any:
    inside = lookup("where")(np.isinf(value_of(x)), 0.0, x)
    return -2.0 * t * ((inside * out) * out)


lorentzian.partials(_lorentzian_by_x)


def _arctan_by_x(t: Array, out: Array, x: Array) -> Any:
    if isinstance(x, Handle) and dtype_of(x).kind != "c":
        return t * lorentzian(x)
    return t / (1.0 + x * x)


arctan.partials(_arctan_by_x)


# ---- the plane ---------------------------------------------------------------------------------
# Both are singular at the origin, where the derivative is 0 (docs/conventions.md).


@facts(cost=call(48.0), zero_slope=AT_ORIGIN, range=ValueRange(always=frozenset({"nonnegative"})))
@elementwise(ufunc=np.hypot, oracle="hypot(x, y)")
def hypot(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """sqrt(x*x + y*y) without overflow; derivative 0 at the origin."""
    a, b = s.abs(x), s.abs(y)
    large, small = s.max(a, b), s.min(a, b)
    ratio = small / s.where(s.equal(large, 0.0), 1.0, large)
    length = large * s.sqrt(1.0 + ratio * ratio)
    return s.where(s.logical_or(s.isinf(x), s.isinf(y)), inf, length)


def _direction_cosine(x: Operand, y: Operand, length: Array) -> Any:
    """x / length; 0 at the origin, and the sign of x where only x is infinite."""
    is_infinite = np.isinf(value_of(length))
    if dtype_of(x).kind != "f" or not possibly(is_infinite):  # an integer is never infinite
        return _quotient(x, length)
    where = lookup("where")
    only_x = np.logical_and(np.isinf(value_of(x)), np.isfinite(value_of(y)))
    cosine = _quotient(where(only_x, 0.0, x), where(only_x, 1.0, length))
    return where(only_x, np.sign(value_of(x)), cosine)


def _quotient(t: Operand, length: Array) -> Any:
    """t / length, and 0 at the origin."""
    at_origin = np.equal(value_of(length), 0)
    if not possibly(at_origin):
        return t / length
    where = lookup("where")
    return where(at_origin, 0.0, t / where(at_origin, 1.0, length))


hypot.partials(
    lambda t, out, x, y: t * _direction_cosine(x, y, out),
    lambda t, out, x, y: t * _direction_cosine(y, x, out),
)


@facts(cost=call(37.0), remedy=Remedy(outside="Its operands are NaN"), zero_slope=AT_ORIGIN)
@elementwise(ufunc=np.arctan2, oracle="atan2(y, x)")
def arctan2(s: ScalarLanguage, y: Scalar, x: Scalar) -> Any:
    """The angle of the point (x, y), in [-pi, pi]; derivative 0 at the origin.

    y comes first, as in NumPy.  The value jumps by 2 pi across the negative x axis; the derivatives
    of both sides agree there.
    """
    return s.arctan2(y, x)


def _arctan2_by_y(t: Array, out: Array, y: Array, x: Operand) -> Any:
    length = hypot(x, y)
    return _quotient(t, length) * _direction_cosine(x, y, length)


def _arctan2_by_x(t: Array, out: Array, y: Operand, x: Array) -> Any:
    length = hypot(x, y)
    return -_quotient(t, length) * _direction_cosine(y, x, length)


arctan2.partials(_arctan2_by_y, _arctan2_by_x)


# ---- units -------------------------------------------------------------------------------------


@facts(cost=ARITHMETIC)
@elementwise(ufunc=np.deg2rad, oracle="radians(x)")
def deg2rad(s: ScalarLanguage, x: Scalar) -> Any:
    """Degrees to radians: x pi / 180."""
    return x * (pi / 180.0)


@facts(cost=ARITHMETIC)
@elementwise(ufunc=np.radians, oracle="radians(x)")
def radians(s: ScalarLanguage, x: Scalar) -> Any:
    """Degrees to radians: x pi / 180."""
    return x * (pi / 180.0)


@facts(cost=ARITHMETIC)
@elementwise(ufunc=np.rad2deg, oracle="degrees(x)")
def rad2deg(s: ScalarLanguage, x: Scalar) -> Any:
    """Radians to degrees: x 180 / pi."""
    return x * (180.0 / pi)


@facts(cost=ARITHMETIC)
@elementwise(ufunc=np.degrees, oracle="degrees(x)")
def degrees(s: ScalarLanguage, x: Scalar) -> Any:
    """Radians to degrees: x 180 / pi."""
    return x * (180.0 / pi)


for _op in (deg2rad, radians):
    _op.partials(lambda t, out, x: t * (pi / 180.0))
for _op in (rad2deg, degrees):
    _op.partials(lambda t, out, x: t * (180.0 / pi))


# ---- sinc --------------------------------------------------------------------------------------


@facts(cost=call(23.0))
@elementwise(ufunc=np.sinc, oracle="sincpi(x)", complex_ok=True)
def sinc(s: ScalarLanguage, x: Scalar) -> Any:
    """sin(pi x) / (pi x), and 1 at x = 0: NumPy's normalized sinc."""
    y = pi * x
    zero = s.equal(y, 0)
    return s.where(zero, 1.0, s.sin(y) / s.where(zero, 1.0, y))


# (cos(pi x) - sinc(x)) / x cancels near 0, more so for derivatives of higher order; for |x| < 0.4
# the power series is used instead: the sum of -2k (-1)^k pi^(2k) x^(2k-1) / (2k+1)!.
_TERMS = [2 * k * (-1) ** k * pi ** (2 * k) / factorial(2 * k + 1) for k in range(1, 14)]


def _sinc_by_x(t: Array, out: Array, x: Array) -> Any:
    where = lookup("where")
    is_near = np.abs(value_of(x)) < 0.4
    if not possibly(is_near):
        return t * ((cos(pi * x) - out) / x)
    x_near = where(is_near, x, 0.0)
    square = x_near * x_near
    series: Any = _TERMS[-1]
    for term in reversed(_TERMS[:-1]):
        series = series * square + term
    x_far = where(is_near, 1.0, x)
    return t * where(is_near, series * x_near, (cos(pi * x_far) - sinc(x_far)) / x_far)


sinc.partials(_sinc_by_x)


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

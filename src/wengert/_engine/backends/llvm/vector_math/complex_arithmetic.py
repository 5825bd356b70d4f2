"""Arithmetic and comparisons of complex numbers, in NumPy's order of operations.

Nothing is fused, so z * conj(z) is real.  Quotients use R. L. Smith's algorithm (Algorithm 116,
CACM 5, 1962), as NumPy does: no square of the divisor overflows.

NumPy's order is lexicographic: by the real parts, and if these are equal by the imaginary parts.  A
number with a NaN part is neither less nor greater.
"""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any

from ..ir.llvm_types import part_of
from ..ir.scalar_language import Language, constant_value
from ..ir.simd_value import ComplexLane, Lane

_Rule = Callable[..., Any]


def _before(word: str, swapped: bool = False) -> _Rule:
    """x < y or x <= y (`word` compares the imaginary parts); of (y, x) if swapped."""

    def rule(s: Language, x: ComplexLane, y: ComplexLane) -> Lane:
        if swapped:
            x, y = y, x
        known = s.logical_not(s.logical_or(s.isnan(x.imag), s.isnan(y.imag)))
        real = s.logical_and(s.less(x.real, y.real), known)
        imag = s.logical_and(s.equal(x.real, y.real), s.binary(word, x.imag, y.imag))
        found: Lane = s.logical_or(real, imag)
        return found

    return rule


def _extreme(word: str) -> _Rule:
    wins = _before("less_equal", swapped=word == "greater")

    def rule(s: Language, x: ComplexLane, y: ComplexLane) -> Any:
        return s.where(s.logical_or(_isnan(s, x), wins(s, x, y)), x, y)

    return rule


def _isnan(s: Language, x: ComplexLane) -> Any:
    return s.logical_or(s.isnan(x.real), s.isnan(x.imag))


_COMPARISONS: dict[str, _Rule] = {
    "equal": lambda s, x, y: s.logical_and(s.equal(x.real, y.real), s.equal(x.imag, y.imag)),
    "not_equal": lambda s, x, y: s.logical_or(
        s.not_equal(x.real, y.real), s.not_equal(x.imag, y.imag)
    ),
    "less": _before("less"),
    "less_equal": _before("less_equal"),
    "greater": _before("less", swapped=True),
    "greater_equal": _before("less_equal", swapped=True),
    "maximum": _extreme("greater"),
    "minimum": _extreme("less"),
    "isnan": _isnan,
    "isinf": lambda s, x: s.logical_or(s.isinf(x.real), s.isinf(x.imag)),
    "isfinite": lambda s, x: s.logical_and(s.isfinite(x.real), s.isfinite(x.imag)),
}


_MAX_MULTIPLIED_EXPONENT = 100  # NumPy uses products for integer exponents below it


def multiply(s: Language, x: ComplexLane, y: ComplexLane) -> ComplexLane:
    """The product; each part is a sum of two products."""
    real = x.real * y.real - x.imag * y.imag
    return ComplexLane(s, real, x.real * y.imag + x.imag * y.real, x.dtype)


def divide(s: Language, x: ComplexLane, y: ComplexLane) -> ComplexLane:
    """The quotient, by the ratio of the smaller to the larger part of the divisor."""
    a, b = s.abs(y.real), s.abs(y.imag)
    flat = s.less_equal(b, a)
    large, small = s.where(flat, y.real, y.imag), s.where(flat, y.imag, y.real)
    ratio = small / large
    scale = 1.0 / (large + small * ratio)
    one = s.where(flat, x.real, x.imag)
    two = s.where(flat, x.imag, x.real)
    cross = one * ratio
    real = (one + two * ratio) * scale
    imag = s.where(flat, two - cross, cross - two) * scale
    empty = s.logical_and(s.equal(a, 0.0), s.equal(b, 0.0))
    real = s.where(empty, x.real / a, real)
    return ComplexLane(s, real, s.where(empty, x.imag / a, imag), x.dtype)


def _reciprocal(s: Language, x: ComplexLane) -> ComplexLane:
    flat = s.less_equal(s.abs(x.imag), s.abs(x.real))
    large, small = s.where(flat, x.real, x.imag), s.where(flat, x.imag, x.real)
    ratio = small / large
    size = large + small * ratio
    whole, part = 1.0 / size, ratio / size
    return ComplexLane(s, s.where(flat, whole, part), s.where(flat, -part, -whole), x.dtype)


def _absolute(s: Language, x: ComplexLane) -> Lane:
    found: Lane = s.binary("hypot", x.real, x.imag)
    return found


def _sign(s: Language, x: ComplexLane) -> ComplexLane:
    """z / |z|; on an axis if one part is infinite, NaN if both are, 0 for 0."""
    size = _absolute(s, x)
    real, imag = s.isinf(x.real), s.isinf(x.imag)
    parts = []
    for part, this, other in ((x.real, real, imag), (x.imag, imag, real)):
        ratio = part / s.where(s.equal(size, 0.0), 1.0, size)
        one = s.copysign(s.cast(1.0, part.dtype), part)
        endless = s.where(this, s.where(other, float("nan"), one), s.cast(0.0, part.dtype))
        ratio = s.where(s.isinf(size), endless, ratio)
        parts.append(s.where(s.equal(size, 0.0), 0.0, ratio))
    return ComplexLane(s, parts[0], parts[1], x.dtype)


def whole_exponent(y: ComplexLane) -> int | None:
    """The exponent, if it is a constant integer, small enough for products."""
    if y.width:
        return None
    value = complex(constant_value(y))
    if value.imag or abs(value.real) >= _MAX_MULTIPLIED_EXPONENT or value.real != int(value.real):
        return None
    return int(value.real)


def whole_power(s: Language, x: ComplexLane, n: int) -> Any:
    """x**n by squaring, in the order of NumPy's products."""
    if n == 0:
        one = s.cast(1.0, part_of(x.dtype))
        return ComplexLane(s, one, s.cast(0.0, part_of(x.dtype)), x.dtype)
    # NumPy starts from 1, so an infinite part becomes NaN, except for n = 1, 2, 3.
    out = None if 1 <= n <= 3 else s.constant(1.0, x.dtype)
    power, left = x, abs(n)
    while left:
        if left & 1:
            out = power if out is None else multiply(s, out, power)
        left >>= 1
        power = multiply(s, power, power) if left else power
    assert out is not None
    out = out if n > 0 else divide(s, s.constant(1.0, x.dtype), out)
    empty = s.logical_and(s.equal(x.real, 0.0), s.equal(x.imag, 0.0))
    return s.where(empty, complex(0.0) if n > 0 else complex(nan, nan), out)


RULES: dict[str, Any] = {
    **_COMPARISONS,
    "add": lambda s, x, y: ComplexLane(s, x.real + y.real, x.imag + y.imag, x.dtype),
    "subtract": lambda s, x, y: ComplexLane(s, x.real - y.real, x.imag - y.imag, x.dtype),
    "multiply": multiply,
    "divide": divide,
    "negative": lambda s, x: ComplexLane(s, -x.real, -x.imag, x.dtype),
    "positive": lambda s, x: x,
    **dict.fromkeys(("conj", "conjugate"), lambda s, x: ComplexLane(s, x.real, -x.imag, x.dtype)),
    "absolute": _absolute,
    "sign": _sign,
    "rint": lambda s, x: ComplexLane(s, s.rint(x.real), s.rint(x.imag), x.dtype),
    "square": lambda s, x: multiply(s, x, x),
    "reciprocal": _reciprocal,
}

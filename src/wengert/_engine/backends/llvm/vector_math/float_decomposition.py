"""Functions of the sign, exponent and mantissa of floating-point numbers.

    sign, heaviside              steps
    nextafter, spacing, ldexp    the format itself
    fmod                         the exact remainder, used by remainder and floor_divide
    hypot                        the length of a pair

All are exact, or rounded once (hypot: within 1 ulp), and agree with NumPy for zeros, infinities and
NaN.

The parts of a floating-point number, for vector functions.

    sign_of, flipped  the sign bit, and a number with its sign changed by such a bit
    nearest_whole     the nearest integer, and its bits
    power_of_two      2**n
    split             a number as 2**k * m
    whole_as_float    an integer as a float
    any_of            whether a condition holds in any lane

Adding 1.5 * 2**52 (float32: 1.5 * 2**23) to a number rounds it to an integer, and leaves that
integer in the low bits of the sum: two results of one instruction that every processor has.
"""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np

from wengert._engine.core.types import Scalar, ScalarLanguage

from ..ir.llvm_types import Dtype
from ..ir.scalar_language import Language
from ..ir.simd_value import Lane
from .registry import leaf, repeat


def _format(x: Any) -> tuple[int, int]:
    """The number of stored mantissa bits, and the exponent bias."""
    limits = np.finfo(x.dtype)
    return limits.nmant, limits.maxexp - 1


@leaf("sign")
def sign(s: Any, x: Any) -> Any:
    """-1, 0 or 1; NaN for NaN."""
    size = s.where(s.less(x, 0.0), -1.0, s.cast(1.0, x.dtype))
    return s.where(s.equal(x, 0.0), 0.0, s.where(s.isnan(x), x, size))


@leaf("heaviside")
def heaviside(s: Any, x: Any, y: Scalar) -> Any:
    """0 below zero, y at zero, 1 above; NaN if x is NaN."""
    side = s.where(s.less(x, 0.0), 0.0, s.cast(1.0, x.dtype))
    return s.where(s.equal(x, 0.0), y, s.where(s.isnan(x), x, side))


# Until NumPy 2.4 the number after -0.0 towards 0.0 is -0.0 in float16.
_HALF_STAYS = bool(np.signbit(np.nextafter(np.float16(-0.0), np.float16(0.0))))


@leaf("nextafter")
def nextafter(s: Any, x: Any, y: Any) -> Any:
    """The next number after x towards y: for numbers of one sign, the bits are ordered."""
    bits = s.bits(x)
    away = s.logical_not(s.logical_xor(s.less(x, y), s.less(0.0, x)))
    moved = s.number(bits + s.where(away, s.cast(1, bits.dtype), -1))
    first = s.copysign(s.cast(np.finfo(x.dtype).smallest_subnormal, x.dtype), y)
    moved = s.where(s.equal(x, 0.0), first, moved)
    here = x if x.dtype.itemsize == 2 and _HALF_STAYS else y  # for two zeros, as in NumPy and C
    return s.where(s.equal(x, y), here, s.where(s.isnan(x), x, s.where(s.isnan(y), y, moved)))


@leaf("spacing")
def spacing(s: Any, x: Any) -> Any:
    """The distance to the next number away from zero, with the sign of x.

    For float16 it is the distance to the next larger number, as in NumPy.
    """
    endless = s.cast(inf, x.dtype)
    toward = endless if x.dtype.itemsize == 2 else s.copysign(endless, x)
    distance = s.where(s.isinf(x), nan, nextafter(s, x, toward) - x)
    return s.where(s.equal(x, 0.0), s.abs(distance), distance)


@leaf("ldexp")
def ldexp(s: Any, x: Any, n: Any) -> Any:
    """x * 2**n for integer n, with a single rounding if the result is subnormal.

    The exponent is removed from x, so that all but the last multiplication are exact.
    """
    digits, bias = _format(x)
    whole = s.bits(x).dtype
    limit = 8 * bias
    n = s.cast(s.max(s.min(n, min(limit, np.iinfo(n.dtype).max)), -limit), whole)
    small = s.less(s.abs(x), float(np.finfo(x.dtype).tiny))
    bits = s.bits(s.where(small, x * 2.0 ** (digits + 2), x))
    field = 2 * bias + 1
    exponent = ((bits >> digits) & field) - bias - s.where(small, s.cast(digits + 2, whole), 0) + n
    low, high = s.less(exponent, 1 - bias), s.less(bias, exponent)
    lifted = s.max(exponent + (digits + 12), 1 - bias)
    written = s.where(low, lifted, s.min(exponent, bias)) + bias
    exact = s.number((bits & ~(field << digits)) | (written << digits))
    ones = s.cast(1.0, x.dtype)
    scaled = exact * s.where(low, 2.0 ** -(digits + 12), s.where(high, inf, ones))
    unchanged = s.logical_or(s.equal(x, 0.0), s.logical_not(s.isfinite(x)))
    return s.where(unchanged, x, scaled)


@leaf("fmod")
def fmod(s: Any, x: Any, y: Scalar) -> Any:
    """The exact remainder of x / y, with the sign of x.

    If q is an integer close to r / y, then r - q y, computed as one fused operation, is exact: it
    has no more digits than r and y.  One iteration removes 53 binary digits of the quotient (24 in
    float32), so one is nearly always enough.  If the quotient overflows, y is scaled by a power of
    two.
    """
    a, b = s.abs(x), s.abs(y)
    b = s.where(s.equal(b, 0.0), nan, b)
    quotient = s.trunc(a / b)
    first = s.where(s.logical_or(s.less(a, b), s.isinf(quotient)), a, s.fma(-quotient, b, a))
    power = s.cast(2.0 ** (_format(x)[1] - 7), x.dtype)

    def step(rest: Scalar) -> list[Any]:
        once = s.where(s.isinf(rest / b), b * power, b)
        twice = s.where(s.isinf(rest / once), once * power, once)
        next_rest = s.fma(-s.trunc(rest / twice), twice, rest)
        return [s.where(s.less(s.abs(rest), b), rest, next_rest)]

    (rest,) = repeat(s, [first], lambda r: s.less_equal(b, s.abs(r)), step)
    rest = s.where(s.less(rest, 0.0), rest + b, rest)
    return s.copysign(rest, x)


def _python(s: ScalarLanguage, x: Scalar, y: Scalar) -> tuple[Any, Any]:
    """The exact remainder with the sign of x, and whether y must be added to it."""
    rest = s.fmod(x, y)
    other = s.logical_xor(s.less(y, 0.0), s.less(rest, 0.0))
    return rest, s.logical_and(s.not_equal(rest, 0.0), other)


@leaf("remainder")
def remainder(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """The remainder with the sign of y."""
    rest, wraps = _python(s, x, y)
    zero = s.where(s.equal(y, 0.0), rest, s.copysign(rest, y))
    return s.where(wraps, rest + y, s.where(s.equal(rest, 0.0), zero, rest))


@leaf("floor_divide")
def floor_divide(s: Any, x: Any, y: Scalar) -> Any:
    """The largest integer not above x / y, rounded as in NumPy."""
    rest, wraps = _python(s, x, y)
    ratio = x / y
    quotient = (x - rest) / y
    quotient = s.where(wraps, quotient - 1.0, quotient)
    below = s.floor(quotient)
    whole = s.where(s.less(0.5, quotient - below), below + 1.0, below)
    whole = s.where(s.equal(quotient, 0.0), s.copysign(s.cast(0.0, x.dtype), ratio), whole)
    return s.where(s.equal(y, 0.0), ratio, whole)


@leaf("hypot")
def hypot(s: Any, x: Any, y: Scalar) -> Any:
    """sqrt(x*x + y*y), scaled by a power of two if a square would overflow or underflow.

    The rounding errors of the sum of squares and of the square root are corrected after it.  They
    are divided by twice the root, of whose reciprocal few digits are enough: the complement of its
    bits, and one step of Newton's method (`_half_reciprocal`).
    """
    digits, bias = _format(x)
    a, b = s.abs(x), s.abs(y)
    other = s.less(a, b)
    large, small = s.where(other, b, a), s.where(other, a, b)
    lift, drop = 2.0 ** (bias // 2 + digits), 2.0 ** -(bias // 2 + digits)
    tiny, huge = s.less(large, 2.0 ** -(bias // 2)), s.less(2.0 ** (bias // 2 - 1), large)
    ones = s.cast(1.0, x.dtype)
    factor = s.where(tiny, lift, s.where(huge, drop, ones))
    back = s.where(tiny, drop, s.where(huge, lift, ones))
    large, small = large * factor, small * factor
    square = large * large
    lost = s.fma(large, large, -square)
    total = s.fma(small, small, square)
    lost = s.fma(small, small, square - total) + lost
    root = s.sqrt(total)
    lost = lost + s.fma(-root, root, total)
    length = s.fma(lost, _half_reciprocal(s, root), root) * back
    return s.where(s.logical_or(s.isinf(x), s.isinf(y)), inf, length)


def _half_reciprocal(s: Any, x: Any) -> Any:
    """1 / (2 x) up to 2 %, for positive numbers away from the ends of the range; finite for 0."""
    digits, bias = _format(x)
    bits = s.bits(x)
    first = s.number(s.cast((2 * bias << digits) - round(0.10102 * 2**digits), bits.dtype) - bits)
    return first * s.fma(x * -0.5, first, 1.0)


# 1.5 * 2**p.
_ROUNDING = {8: 6755399441055744.0, 4: 12582912.0}
_MANTISSA = {8: 52, 4: 23}
_BIAS = {8: 1023, 4: 127}


def sign_of(s: Language, x: Lane) -> Any:
    """The sign bit of x; other bits zero."""
    bits = s.bits(x)
    return bits & int(np.iinfo(bits.dtype).min)


def flipped(s: Language, x: Lane, sign: Scalar) -> Any:
    """x with its sign changed if the sign bit of an integer is set."""
    return s.number(s.bits(x) ^ sign)


def nearest_whole(s: Language, shifted: Lane) -> tuple[Any, Any]:
    """The integer in `shifted`, which is `rounding(x) + x` for some x, and its low bits.

    The high bits are those of the rounding constant; only the low ones are used.
    """
    return shifted - rounding(shifted), s.bits(shifted)


def rounding(x: Lane) -> float:
    """The number that rounds another one to an integer if it is added."""
    return _ROUNDING[x.dtype.itemsize]


def to_top(x: Lane, bits: Any) -> Any:
    """The lowest bit of an integer, shifted to the position of the sign."""
    return bits << (8 * x.dtype.itemsize - 1)


def power_of_two(s: Language, bits: Any, less: int = 0) -> Any:
    """2**(n - less) for the n in the low bits; the power must be a normal number."""
    size = bits.dtype.itemsize
    offset = (_BIAS[size] - less) << _MANTISSA[size]
    return s.number((bits << _MANTISSA[size]) + offset)


def split(s: Language, x: Lane, near: Lane | None = None) -> tuple[Any, Lane]:
    """Integer k and m with x = 2**k * m and m near 1, or near another number; both normal.

    m is between sqrt(1/2) and sqrt(2), or between 2/3 and 3/2 times that number: the difference of
    the bits of two floats is the logarithm of their quotient, up to 0.086.
    """
    size = x.dtype.itemsize
    bits = s.bits(x)
    if near is None:
        root = np.sqrt(x.dtype.type(0.5))
        k = (bits - int(root.view(bits.dtype))) >> _MANTISSA[size]
    else:
        k = (bits - s.bits(near) + (1 << (_MANTISSA[size] - 1))) >> _MANTISSA[size]
    return k, s.number(bits - (k << _MANTISSA[size]))


def whole_as_float(s: Language, k: Any, dtype: Dtype) -> Any:
    """A small integer, of the size of a float, as a float: two instructions everywhere."""
    big = dtype.type(_ROUNDING[dtype.itemsize])
    return s.number(k + int(big.view(k.dtype))) - float(big)


def any_of(condition: Lane) -> str:
    """The name of an i1: whether the condition holds in any lane."""
    section = condition.section
    assert section is not None
    name = section.any_lane(condition.name, condition.width)
    # Unused lanes may hold poison, on which a branch is undefined behavior.
    return section.value(f"freeze i1 {name}")

"""Functions of the sign, exponent and mantissa of floating-point numbers.

    sign, heaviside              steps
    nextafter, spacing, ldexp    the format itself
    fmod                         the exact remainder, used by remainder and floor_divide
    hypot                        the length of a pair

All are exact, or rounded once (hypot: within 1 ulp), and agree with NumPy for zeros, infinities and
NaN.
"""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np

from wengert._engine.core.types import Scalar, ScalarLanguage

from .lane_loops import repeat
from .registry import leaf


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


@leaf("nextafter")
def nextafter(s: Any, x: Any, y: Any) -> Any:
    """The next number after x towards y: for numbers of one sign, the bits are ordered."""
    bits = s.bits(x)
    away = s.logical_not(s.logical_xor(s.less(x, y), s.less(0.0, x)))
    moved = s.number(bits + s.where(away, s.cast(1, bits.dtype), -1))
    first = s.copysign(s.cast(np.finfo(x.dtype).smallest_subnormal, x.dtype), y)
    moved = s.where(s.equal(x, 0.0), first, moved)
    here = x if x.dtype.itemsize == 2 else y  # for two zeros, as in NumPy and C
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

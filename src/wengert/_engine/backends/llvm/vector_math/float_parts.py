"""The parts of a floating-point number, for vector functions.

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

from typing import Any

import numpy as np

from wengert._engine.core.types import Scalar

from ..ir.llvm_types import Dtype
from ..ir.scalar_language import Language
from ..ir.simd_value import Lane

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

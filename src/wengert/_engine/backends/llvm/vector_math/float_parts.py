"""The parts of a floating-point number, for the authors of vector functions.

    sign_of, flipped  the sign as a bit, and a number whose sign is changed by it
    nearest_whole     the nearest integer, and its bits
    power_of_two      2**n
    split             a number as 2**k * m
    whole_as_float    an integer as a float
    any_of            whether something holds in any lane

Adding 1.5 * 2**52 (float32: 1.5 * 2**23) to a number rounds it to an integer, and leaves that
integer in its lowest bits: two results of one instruction, which every processor has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.types import Scalar

from ..ir.llvm_types import Dtype, of_width
from ..ir.scalar_language import Language
from ..ir.simd_value import Lane

# 1.5 * 2**p.
_ROUNDING = {8: 6755399441055744.0, 4: 12582912.0}
_MANTISSA = {8: 52, 4: 23}
_BIAS = {8: 1023, 4: 127}


def sign_of(s: Language, x: Lane) -> Any:
    """The sign bit of x, the others zero."""
    bits = s.bits(x)
    return bits & int(np.iinfo(bits.dtype).min)


def flipped(s: Language, x: Lane, sign: Scalar) -> Any:
    """x with its sign changed where the sign bit of an integer is set."""
    return s.number(s.bits(x) ^ sign)


def nearest_whole(s: Language, shifted: Lane) -> tuple[Any, Any]:
    """The integer in `shifted`, which is `rounding(x) + x` for some x, and its low bits.

    Half of what is left of the bits is the rounding constant's; only the lowest ones count.
    """
    return shifted - rounding(shifted), s.bits(shifted)


def rounding(x: Lane) -> float:
    """The number that, added to another, rounds it to an integer."""
    return _ROUNDING[x.dtype.itemsize]


def to_top(x: Lane, bits: Any) -> Any:
    """The lowest bit of an integer, moved to where the sign is."""
    return bits << (8 * x.dtype.itemsize - 1)


def power_of_two(s: Language, bits: Any, less: int = 0) -> Any:
    """2**(n - less) for the n in the low bits; the power has to be a normal number."""
    size = bits.dtype.itemsize
    offset = (_BIAS[size] - less) << _MANTISSA[size]
    return s.number((bits << _MANTISSA[size]) + offset)


def split(s: Language, x: Lane, near: Lane | None = None) -> tuple[Any, Lane]:
    """The whole k and m with x = 2**k * m and m near 1, or near another number; both normal.

    m is from sqrt(1/2) to sqrt(2), or from 2/3 to 3/2 times the number: the difference of two
    floats' bits is, up to 0.086, the logarithm of their quotient.
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
    """An integer of a float's size, and small, as a float: two instructions everywhere."""
    big = dtype.type(_ROUNDING[dtype.itemsize])
    return s.number(k + int(big.view(k.dtype))) - float(big)


def any_of(s: Language, condition: Lane) -> str:
    """The name of an i1: whether the condition holds in any lane."""
    section, width = condition.section, condition.width
    assert section is not None
    name = condition.name
    if width > 1:
        lanes = of_width("i1", width)
        callee = s.module.declare(f"llvm.vector.reduce.or.v{width}i1", "i1", [lanes])
        name = section.value(f"call i1 {callee}({lanes} {name})")
    # Unused lanes may hold poison, on which a branch is undefined behavior.
    return section.value(f"freeze i1 {name}")

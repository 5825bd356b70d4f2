"""Conversions of floating-point values to float16 and to integers, as NumPy's astype.

    to_half       float64 to float16
    to_integer    floating point to integers

Rounding float64 to float32 and then to float16 differs from rounding it to float16 directly:
1 + 2**-11 + 2**-40 would become a tie, and then 1.  Rounding to odd in the first step (an inexact
result has its last bit set) avoids this, because float32 has more than two extra bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.llvm_types import F16, F32, F64, I64, Dtype
from ..ir.scalar_language import Language, rule
from ..ir.simd_value import Lane


@rule("to_half")
def to_half(s: Language, x: Lane) -> Lane:
    """float64 to float16, rounded once."""
    nearest = s.converted("fptrunc", x, F32)
    back = s.converted("fpext", nearest, F64)
    beyond = s.less(s.unary("absolute", x), s.unary("absolute", back))
    bits = s.bits(nearest)
    zero, one = s.constant(0, bits.dtype), s.constant(1, bits.dtype)
    towards_zero = s.emit("sub", bits.dtype, bits, s.select(beyond, one, zero))
    inexact = s.select(s.compare("not_equal", x, back), one, zero)
    odd = s.emit("or", bits.dtype, towards_zero, inexact)
    return s.converted("fptrunc", s.number(odd), F16)


@rule("to_integer")
def to_integer(s: Language, x: Lane, dtype: Dtype) -> Any:
    """Floating-point numbers as integers, rounded towards zero; out of range as on x86.

    LLVM's plain conversion is undefined out of range; NumPy's result there is that of the machine:
    the smallest int32 or int64, of which smaller dtypes keep the low bits.
    """
    wide: Dtype
    if dtype.itemsize == 8 or dtype.str[1:] == "u4":
        wide, low = I64, -9223372036854775808.0
    else:
        wide, low = np.dtype(np.int32), -2147483648.0
    if x.dtype.itemsize < 4:
        x = s.cast(x, np.dtype(np.float32))
    if dtype.str[1:] == "u8":
        return _to_uint64(s, x)
    inside = s.binary("logical_and", s.less_equal(low, x), s.less(x, -low))
    whole = s.converted("fptosi", s.where(inside, x, 0.0), wide)
    smallest = int(np.iinfo(wide).min)
    return s.cast(s.select(inside, whole, s.constant(smallest, wide)), dtype)


def _to_uint64(s: Language, x: Lane) -> Any:
    half = 9223372036854775808.0
    signed = to_integer(s, x, I64)
    upper = to_integer(s, x - half, I64)
    flipped = s.emit("xor", I64, upper, s.constant(np.iinfo(np.int64).min, I64))
    large = s.less_equal(half, x)
    chosen = s.select(large, flipped, signed)
    return s.cast(chosen, np.dtype(np.uint64))

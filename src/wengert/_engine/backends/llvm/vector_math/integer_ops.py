"""Integer and boolean operations, as NumPy's ufuncs.

They wrap around; division by zero gives zero; a shift by the number of bits or more gives what
repeated shifts would give.  LLVM leaves these cases undefined, so operands are replaced first.

Functions of unsigned integers that loop over their bits.

    gcd            halving and subtracting: no division, which processors do one lane at a time
    whole_power    repeated squaring

The greatest common divisor is J. Stein's algorithm (J. Comput. Phys. 1, 1967): halve even numbers,
subtract the smaller of two odd numbers from the larger.

Conversions of floating-point values to float16 and to integers, as NumPy's astype.

    to_half       float64 to float16
    to_integer    floating point to integers

Rounding float64 to float32 and then to float16 differs from rounding it to float16 directly:
1 + 2**-11 + 2**-40 would become a tie, and then 1.  Rounding to odd in the first step (an inexact
result has its last bit set) avoids this, because float32 has more than two extra bits.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.types import Scalar

from ..ir.llvm_types import BOOL, F16, F32, F64, I64, U8, Dtype
from ..ir.scalar_language import Language, rule
from ..ir.simd_value import Lane
from .registry import call_leaf, leaf, repeat

_PLAIN = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
}
_OF_TRUTH = {
    "add": "or",
    "multiply": "and",
    "maximum": "or",
    "minimum": "and",
    "logical_and": "and",
    "logical_or": "or",
    "logical_xor": "xor",
    **{k: v for k, v in _PLAIN.items() if k.startswith("bitwise")},
}


@rule("integer")
def computed(s: Language, ufunc: str, outer: Dtype, operands: Sequence[Lane]) -> Any:
    """A ufunc of integers or booleans, in the dtype of NumPy's loop."""
    x = operands[0]
    if ufunc.startswith("logical") and x.dtype != BOOL:
        return computed(s, ufunc, BOOL, [s.cast(v, BOOL) for v in operands])
    if x.dtype == BOOL:
        if ufunc in _OF_TRUTH:
            return s.emit(_OF_TRUTH[ufunc], BOOL, *operands)
        if ufunc in ("logical_not", "invert"):
            return s.emit("xor", BOOL, x, s.constant(True, BOOL))
        if ufunc in ("absolute", "positive"):
            return x
    if ufunc in _PLAIN:
        return s.emit(_PLAIN[ufunc], outer, *operands)
    if ufunc in _RULES:
        return _RULES[ufunc](s, *operands)
    if ufunc in ("isnan", "isinf", "isfinite"):
        return s.constant(ufunc == "isfinite", BOOL)
    if ufunc in ("positive", "conj", "conjugate", "rint", "floor", "ceil", "trunc"):
        return x
    raise NotImplementedError(f"{ufunc} of {x.dtype}")


def has_rule(ufunc: str) -> bool:
    """Whether a ufunc of integers can be computed."""
    return ufunc in _RULES or ufunc in _PLAIN or ufunc in _OF_TRUTH or ufunc == "logical_not"


@rule("mixed_sign")
def compared_by_size(s: Language, ufunc: str, x: Lane, y: Lane) -> Lane:
    """Comparisons of a signed and an unsigned integer of one size, by value."""
    signed, other = (x, y) if x.dtype.kind == "i" else (y, x)
    below = s.compare("less", signed, s.constant(0, signed.dtype))
    smaller = ("less", "less_equal") if signed is x else ("greater", "greater_equal")
    bits = s.compare(ufunc, s.cast(x, other.dtype), s.cast(y, other.dtype))
    return s.select(below, s.constant(ufunc in (*smaller, "not_equal"), BOOL), bits)


def _sign(s: Language, x: Lane) -> Any:
    one, zero = s.constant(1, x.dtype), s.constant(0, x.dtype)
    positive = s.select(s.compare("less", zero, x), one, zero)
    if x.dtype.kind == "u":
        return positive
    return s.select(s.compare("less", x, zero), s.constant(-1, x.dtype), positive)


def _absolute(s: Language, x: Lane) -> Any:
    if x.dtype.kind == "u":
        return x
    zero = s.constant(0, x.dtype)
    return s.select(s.compare("less", x, zero), s.emit("sub", x.dtype, zero, x), x)


def _divisor(s: Language, x: Lane, y: Lane) -> tuple[Lane, Lane, Lane | None]:
    """A divisor valid in LLVM; where it was zero, and where the quotient wraps around."""
    zero, one = s.constant(0, y.dtype), s.constant(1, y.dtype)
    empty = s.compare("equal", y, zero)
    if y.dtype.kind == "u":
        return s.select(empty, one, y), empty, None
    least = s.constant(np.iinfo(x.dtype).min, x.dtype)
    minus = s.compare("equal", y, s.constant(-1, y.dtype))
    wraps = s.emit("and", BOOL, minus, s.compare("equal", x, least))
    return s.select(s.emit("or", BOOL, empty, wraps), one, y), empty, wraps


def _quotient(s: Language, x: Lane, y: Lane) -> tuple[Lane, Lane]:
    """x / y rounded towards zero, and the remainder, for y != 0.

    Processors divide integers one lane at a time, so those of up to 32 bits are divided as
    floating-point numbers.  The result is exact: unless x / y is an integer, its distance from the
    nearest integer is at least 1 / y, which is more than the rounding error of the quotient.
    """
    unsigned = x.dtype.kind == "u"
    if x.dtype.itemsize == 8:
        words = ("udiv", "urem") if unsigned else ("sdiv", "srem")
        whole, rest = (s.emit(word, x.dtype, x, y) for word in words)
        return whole, rest
    wide = F64 if x.dtype.itemsize == 4 else F32
    ratio = s.emit("fdiv", wide, s.cast(x, wide), s.cast(y, wide))
    middle = I64 if x.dtype.str[1:] == "u4" else np.dtype(np.int32)
    whole = s.cast(s.converted("fptosi", ratio, middle), x.dtype)
    return whole, s.emit("sub", x.dtype, x, s.emit("mul", x.dtype, whole, y))


def _floor_divide(s: Language, x: Lane, y: Lane) -> Any:
    zero = s.constant(0, x.dtype)
    divisor, empty, _ = _divisor(s, x, y)
    quotient, rest = _quotient(s, x, divisor)
    if x.dtype.kind == "u":
        return s.select(empty, zero, quotient)
    down = _rest_is_against(s, rest, divisor)
    lower = s.emit("sub", x.dtype, quotient, s.cast(down, x.dtype))
    return s.select(empty, zero, lower)


def _rest_is_against(s: Language, rest: Lane, divisor: Lane) -> Lane:
    """Whether a remainder is nonzero and its sign differs from the divisor's."""
    zero = s.constant(0, rest.dtype)
    other = s.compare("less", s.emit("xor", rest.dtype, rest, divisor), zero)
    found: Lane = s.emit("and", BOOL, s.compare("not_equal", rest, zero), other)
    return found


def _remainder(s: Language, x: Lane, y: Lane) -> Any:
    zero = s.constant(0, x.dtype)
    divisor, empty, _ = _divisor(s, x, y)
    _, rest = _quotient(s, x, divisor)
    if x.dtype.kind == "u":
        return s.select(empty, zero, rest)
    against = _rest_is_against(s, rest, divisor)
    moved = s.select(against, s.emit("add", x.dtype, rest, divisor), rest)
    return s.select(empty, zero, moved)


def _fmod(s: Language, x: Lane, y: Lane) -> Any:
    divisor, empty, _ = _divisor(s, x, y)
    return s.select(empty, s.constant(0, x.dtype), _quotient(s, x, divisor)[1])


def _left_shift(s: Language, x: Lane, y: Lane) -> Any:
    fits = _fits(s, x, y)
    moved = s.emit("shl", x.dtype, x, s.select(fits, y, s.constant(0, y.dtype)))
    return s.select(fits, moved, s.constant(0, x.dtype))


def _right_shift(s: Language, x: Lane, y: Lane) -> Any:
    fits = _fits(s, x, y)
    most = s.constant(8 * x.dtype.itemsize - 1, y.dtype)
    if x.dtype.kind == "i":
        return s.emit("ashr", x.dtype, x, s.select(fits, y, most))
    moved = s.emit("lshr", x.dtype, x, s.select(fits, y, most))
    return s.select(fits, moved, s.constant(0, x.dtype))


def _fits(s: Language, x: Lane, y: Lane) -> Lane:
    """Whether the distance is at least zero and less than the number of bits."""
    found: Lane = s.emit("icmp ult", BOOL, y, s.constant(8 * x.dtype.itemsize, y.dtype))
    return found


def _power(s: Language, x: Lane, y: Lane) -> Any:
    """By squaring; a negative exponent, which NumPy rejects, gives zero (see lowering)."""
    zero = s.constant(0, y.dtype)
    if y.width == 0:
        return _constant_power(s, x, int(y.name))
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    lanes = [s.cast(x, unsigned), s.cast(s.select(s.compare("less", y, zero), zero, y), unsigned)]
    found = s.cast(call_leaf(s, "whole_power", unsigned, lanes), x.dtype)
    return s.select(s.compare("less", y, zero), s.constant(0, x.dtype), found)


def _constant_power(s: Language, x: Lane, n: int) -> Lane:
    if n <= 0:
        return s.constant(int(n == 0), x.dtype)  # type: ignore[no-any-return]
    out = None
    while n:
        if n & 1:
            out = x if out is None else s.emit("mul", x.dtype, out, x)
        n >>= 1
        x = s.emit("mul", x.dtype, x, x) if n else x
    assert out is not None
    return out


def _unsigned(s: Language, x: Lane) -> Lane:
    """The absolute value, unsigned, because that of the least number does not fit otherwise."""
    found: Lane = s.cast(_absolute(s, x), np.dtype(f"u{x.dtype.itemsize}"))
    return found


def _gcd(s: Language, x: Lane, y: Lane) -> Any:
    a, b = _unsigned(s, x), _unsigned(s, y)
    return s.cast(call_leaf(s, "gcd", a.dtype, [a, b]), x.dtype)


def _lcm(s: Language, x: Lane, y: Lane) -> Any:
    a, b = _unsigned(s, x), _unsigned(s, y)
    common = call_leaf(s, "gcd", a.dtype, [a, b])
    zero, one = s.constant(0, a.dtype), s.constant(1, a.dtype)
    divisor = s.select(s.compare("equal", common, zero), one, common)
    return s.cast(s.emit("mul", a.dtype, _quotient(s, a, divisor)[0], b), x.dtype)


def _compared(word: str, s: Language, x: Lane, y: Lane) -> Any:
    return s.compare(word, x, y)


_COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
_RULES: dict[str, Any] = {
    "sign": _sign,
    "absolute": _absolute,
    "maximum": lambda s, x, y: s.select(s.compare("greater_equal", x, y), x, y),
    "minimum": lambda s, x, y: s.select(s.compare("less_equal", x, y), x, y),
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "fmod": _fmod,
    "left_shift": _left_shift,
    "right_shift": _right_shift,
    "power": _power,
    "bitwise_count": lambda s, x: s.cast(s.intrinsic("ctpop", x.dtype, _absolute(s, x)), U8),
    "invert": lambda s, x: s.emit("xor", x.dtype, x, s.constant(~x.dtype.type(0), x.dtype)),
    "negative": lambda s, x: s.emit("sub", x.dtype, s.constant(0, x.dtype), x),
    "divide": lambda s, x, y: s.binary("divide", s.cast(x, F64), s.cast(y, F64)),
    "square": lambda s, x: s.emit("mul", x.dtype, x, x),
    "reciprocal": lambda s, x: to_integer(s, s.binary("divide", 1.0, s.cast(x, F64)), x.dtype),
    "gcd": _gcd,
    "lcm": _lcm,
    **{word: functools.partial(_compared, word) for word in _COMPARISONS},
}


@leaf("gcd")
def gcd(s: Any, x: Any, y: Any) -> Any:
    """The greatest common divisor; that of 0 and y is y."""
    most = 8 * x.dtype.itemsize - 1

    def halvings(v: Any) -> Any:
        # For 0 the count of trailing zeros is the number of bits; a shift by that is undefined.
        return s.intrinsic("cttz", v.dtype, v, more="i1 false") & s.constant(most, v.dtype)

    zero = s.constant(0, x.dtype)
    empty = s.equal(x, zero)
    x, y = s.where(empty, y, x), s.where(empty, zero, y)
    common = halvings(x | y)

    def step(a: Scalar, b: Scalar) -> list[Any]:
        done = s.equal(b, zero)
        b = b >> halvings(b)
        less = s.less(a, b)
        apart = s.where(less, b - a, a - b)
        return [s.where(done, a, s.where(less, a, b)), s.where(done, zero, apart)]

    found, _ = repeat(s, [x >> halvings(x), y], lambda a, b: s.not_equal(b, zero), step)
    return found << common


@leaf("whole_power")
def whole_power(s: Any, x: Any, y: Any) -> Any:
    """x**y, which wraps around."""
    one, zero = s.constant(1, x.dtype), s.constant(0, x.dtype)

    def step(out: Any, power: Any, left: Any) -> list[Any]:
        odd = s.not_equal(left & one, zero)
        return [s.where(odd, out * power, out), power * power, left >> 1]

    found = repeat(s, [one, x, y], lambda out, power, left: s.not_equal(left, zero), step)
    return found[0]


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

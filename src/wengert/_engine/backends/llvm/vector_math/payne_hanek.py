"""Payne and Hanek's reduction: a number of any size, minus a multiple of pi/2.

    exact_quarters    for lanes: calls a function that handles them one by one
    _product          x * 2/pi modulo four, in integers
    _fraction         an integer of 126 bits as two floats

M. Payne and R. Hanek, "Radian reduction for trigonometric functions", SIGNUM Newsletter 18 (1983):
with x = m * 2**e, m an integer, only some bits of 2/pi matter for x * 2/pi: higher ones give
multiples of four quarters, lower ones less than the distance of floating-point numbers from
multiples of pi/2 (2**-62; Muller, "Elementary Functions", 3rd edition, 11.3).  Here the 53 bits of
m are multiplied by 192 bits of 2/pi, and 126 bits after the binary point are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.types import Scalar

from ..ir.ir_builder import Function, Section
from ..ir.llvm_types import F64, I32, I64, Dtype, in_register, of_width, suffix
from ..ir.scalar_language import Language
from ..ir.simd_value import Lane

# The bits of 2/pi: the integer below 2**1168 * 2/pi, lowest byte first, and zeros above.
_BITS = 1168
_TWO_OVER_PI = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea"
    "09d1921cfe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b"
    "1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b3d0739f7"
    "8a5292ea6bfb5fb11f8d5d085603",
    16,
)
_HALF_PI, _HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17
# Rarely called, so it must compile fast: without `optnone` its loop would be unrolled.
_COLD = "noinline optnone cold nounwind willreturn memory(none)"


def exact_quarters(s: Language, a: Lane) -> tuple[Lane, Lane, Lane]:
    """a minus a multiple k of pi/2, as the sum of two lanes, and k modulo four.

    Parameters
    ----------
    a : Lane
        The result is undefined where it is below 1, and NaN where it is not finite.
    """
    section = a.section
    assert section is not None
    dtypes = (a.dtype, a.dtype, np.dtype(f"i{a.dtype.itemsize}"))
    result = "{ " + ", ".join(of_width(in_register(d), a.width) for d in dtypes) + " }"
    name = "leaf.quarters" + suffix(in_register(a.dtype), a.width)
    if name not in s.module:
        function = Function(s.module, name, [(a.kind, "x")], result, _COLD)
        _one_by_one(s, function, a, dtypes, result)
        s.module.add(function)
    call = section.value(f"call {result} @{name}({a.kind} {a.name})")
    r, low, quarters = [
        s.lane(section, f"extractvalue {result} {call}, {k}", d, a.width)
        for k, d in enumerate(dtypes)
    ]
    return r, low, quarters


def _one_by_one(
    s: Language, function: Function, a: Lane, dtypes: Sequence[Dtype], result: str
) -> None:
    """A loop over the lanes, which are stored in memory."""
    body = function.body
    given = function.slot(a.kind)
    body.write(f"store {a.kind} %x, ptr {given}")
    scalars = [in_register(d) for d in dtypes]
    wide = [of_width(kind, a.width) for kind in scalars]
    places = [function.slot(kind) for kind in wide]
    with body.loop("0", str(a.width)) as (turn, i):
        address = turn.value(f"getelementptr {scalars[0]}, ptr {given}, i64 {i}")
        x = s.cast(s.lane(turn, f"load {scalars[0]}, ptr {address}", a.dtype, 1), F64)
        for place, dtype, part in zip(places, dtypes, _one(s, turn, x, a.dtype), strict=True):
            kind = in_register(dtype)
            address = turn.value(f"getelementptr {kind}, ptr {place}, i64 {i}")
            turn.write(f"store {kind} {part.name}, ptr {address}")
    whole = "poison"
    for k, (kind, place) in enumerate(zip(wide, places, strict=True)):
        found = body.value(f"load {kind}, ptr {place}")
        whole = body.value(f"insertvalue {result} {whole}, {kind} {found}, {k}")
    body.write(f"ret {result} {whole}")


def _one(s: Language, body: Section, x: Lane, dtype: Dtype) -> list[Lane]:
    """The remainder of one float64, as two numbers of a dtype, and the number of quarters."""
    v = body.value
    first, second = _product(s, body, x)
    quarters = Lane(s, body, v(f"lshr i64 {v(f'add i64 {first}, {1 << 61}')}, 62"), I64, 1)
    signed = v(f"ashr i64 {v(f'shl i64 {first}, 2')}, 2")
    high, low = _fraction(s, body, signed, second)
    lacks = s.fma(high, _HALF_PI_LOW, low * _HALF_PI)
    r = s.where(s.less(x, np.inf), s.fma(high, _HALF_PI, lacks), np.nan)
    if dtype == F64:
        return [r, s.fma(high, _HALF_PI, -r) + lacks, quarters]
    short = s.cast(r, dtype)  # a float64 has more digits than two float32
    rest = s.cast(r - s.cast(short, F64), dtype)
    return [short, rest, s.converted("trunc", quarters, I32)]


def _product(s: Language, body: Section, x: Lane) -> tuple[str, str]:
    """x * 2/pi modulo four: two i64, in units of 2**-62 and of 2**-126.

    With the integer T of the table it is m * T * 2**(e - 1168), so the 192 bits of T from bit
    978 - e up matter; the lowest 64 bits of the product are only used for their carry.
    """
    v = body.value
    size = _BITS // 8 + 24
    listed = ", ".join(f"i8 {b}" for b in _TWO_OVER_PI.to_bytes(size, "little"))
    table = s.module.constant("two_over_pi", f"[{size} x i8]", f"[{listed}]")
    bits = v(f"bitcast double {x.name} to i64")
    larger = s.module.declare("llvm.umax.i64", "i64", ["i64", "i64"])
    field = v(f"call i64 {larger}(i64 {v(f'lshr i64 {bits}, 52')}, i64 1023)")
    fraction = v(f"and i64 {bits}, {(1 << 52) - 1}")
    m = v(f"or i64 {fraction}, {1 << 52}")
    skipped = v(f"sub i64 {_BITS - 190 + 1075}, {field}")
    byte = v(f"lshr i64 {skipped}, 3")
    place = v(f"getelementptr i8, ptr {table}, i64 {byte}")
    words = []
    for i in range(4):
        address = v(f"getelementptr i64, ptr {place}, i64 {i}")
        words.append(v(f"load i64, ptr {address}, align 1"))
    rest = v(f"and i64 {skipped}, 7")
    shift = s.module.declare("llvm.fshr.i64", "i64", ["i64", "i64", "i64"])
    low, middle, high = [
        v(f"call i64 {shift}(i64 {words[i + 1]}, i64 {words[i]}, i64 {rest})") for i in range(3)
    ]
    long = v(f"zext i64 {m} to i128")
    below = v(f"mul i128 {long}, {v(f'zext i64 {low} to i128')}")
    carried = v(f"lshr i128 {below}, 64")
    product = v(f"mul i128 {long}, {v(f'zext i64 {middle} to i128')}")
    total = v(f"add i128 {product}, {carried}")
    upper = v(f"trunc i128 {v(f'lshr i128 {total}, 64')} to i64")
    first = v(f"add i64 {v(f'mul i64 {m}, {high}')}, {upper}")
    return first, v(f"trunc i128 {total} to i64")


def _fraction(s: Language, body: Section, signed: str, second: str) -> tuple[Lane, Lane]:
    """The number with these words, with 62 and 126 bits after the binary point, as two float64."""
    v = body.value
    parts = []
    for word, up, point in ((signed, "ashr", 62), (second, "lshr", 126)):
        convert = "sitofp" if up == "ashr" else "uitofp"
        above = v(f"{convert} i64 {v(f'{up} i64 {word}, 32')} to double")
        below = v(f"uitofp i64 {v(f'and i64 {word}, {(1 << 32) - 1}')} to double")
        parts.append(Lane(s, body, above, F64, 1) * 2.0 ** (32 - point))
        parts.append(Lane(s, body, below, F64, 1) * 2.0**-point)
    (high, lack), (low, less) = _sum(parts[0], parts[1]), _sum(parts[2], parts[3])
    total, rest = _sum(high, low)
    return total, rest + (lack + less)


def _sum(larger: Scalar, smaller: Scalar) -> tuple[Any, Any]:
    """Dekker's fast sum: the sum, and its rounding error."""
    total = larger + smaller
    return total, smaller - (total - larger)

"""Payne and Hanek's reduction: a number of any size, less a multiple of pi/2.

    exact_quarters    of lanes, one after the other
    _one              of one float64: a function of the module

M. Payne and R. Hanek, "Radian reduction for trigonometric functions", SIGNUM Newsletter 18 (1983):
with x = m * 2**e, m a whole number, only some bits of 2/pi count for x * 2/pi: those further up
give multiples of four quarters, those further down less than the distance that floating-point
numbers keep from multiples of pi/2 (2**-62; Muller, "Elementary Functions", 3rd edition, 11.3).
LLVM has whole numbers of any size, so with 192 bits it is one product.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..assembly import Function, Section
from ..dtypes import F64, I64, in_register, of_width
from ..lane import Lane
from .polynomial import flipped

if TYPE_CHECKING:
    from ..language import Language

# The bits of 2/pi: the whole number below 2**1168 * 2/pi, lowest byte first, and zeros above.
_BITS = 1168
_TWO_OVER_PI = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea"
    "09d1921cfe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b"
    "1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b3d0739f7"
    "8a5292ea6bfb5fb11f8d5d085603",
    16,
)
_HALF_PI, _HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17
_COLD = "noinline cold nounwind willreturn memory(none)"
_RESULT = "{ double, double, i64 }"


def exact_quarters(s: Language, a: Lane) -> tuple[Lane, Lane, Lane]:
    """a less a multiple k of pi/2, as the sum of two lanes, and k modulo four.

    Parameters
    ----------
    s : Language
    a : Lane
        Where it is below 1 the result means nothing; where it is not finite it is NaN.
    """
    section, width, size = a.section, a.width, a.dtype.itemsize
    assert section is not None
    one = _one(s)
    dtypes = (a.dtype, a.dtype, np.dtype(f"i{size}"))
    names = ["poison"] * 3
    for i in range(width):
        x = a
        if width > 1:
            x = s.lane(section, f"extractelement {a.kind} {a.name}, i64 {i}", a.dtype, 1)
        call = section.value(f"call {_RESULT} @{one}(double {s.cast(x, F64).name})")
        parts = [
            s.lane(section, f"extractvalue {_RESULT} {call}, {k}", d, 1)
            for k, d in enumerate((F64, F64, I64))
        ]
        if size == 4:  # one float64 has more digits than two float32
            first = s.cast(parts[0], a.dtype)
            rest = s.cast(parts[0] - s.cast(first, F64), a.dtype)
            parts = [first, rest, s.converted("trunc", parts[2], dtypes[2])]
        for k, part in enumerate(parts):
            into, kind = of_width(in_register(part.dtype), width), in_register(part.dtype)
            text = f"insertelement {into} {names[k]}, {kind} {part.name}, i64 {i}"
            names[k] = part.name if width == 1 else section.value(text)
    r, low, k = [Lane(s, section, n, d, width) for n, d in zip(names, dtypes, strict=True)]
    return r, low, k


def _one(s: Language) -> str:
    """The name of a function of one float64: its remainder as two, and the quarters taken off."""
    name = "leaf.payne_hanek"
    if name in s.module:
        return name
    function = Function(s.module, name, [("double", "x")], _RESULT, _COLD)
    body = function.body
    v = body.value
    product = _product(s, body)
    half = v(f"add i192 {product}, {1 << 189}")
    quarters = v(f"trunc i192 {v(f'lshr i192 {half}, 190')} to i64")
    signed = v(f"ashr i192 {v(f'shl i192 {product}, 2')}, 2")
    absolute = s.module.declare("llvm.abs.i192", "i192", ["i192", "i1"])
    distance = v(f"call i192 {absolute}(i192 {signed}, i1 false)")
    r, low = _radians(s, body, distance)
    top = v(f"trunc i192 {v(f'lshr i192 {signed}, 128')} to i64")
    sign = Lane(s, body, top, I64, 1) & int(np.iinfo(np.int64).min)
    finite = s.less(Lane(s, body, "%x", F64, 1), np.inf)
    result = "poison"
    for i, part in enumerate((r, low)):
        chosen = s.where(finite, flipped(s, part, sign), np.nan)
        result = v(f"insertvalue {_RESULT} {result}, double {chosen.name}, {i}")
    result = v(f"insertvalue {_RESULT} {result}, i64 {quarters}, 2")
    body.write(f"ret {_RESULT} {result}")
    s.module.add(function)
    return name


def _product(s: Language, body: Section) -> str:
    """x * 2/pi modulo four, in units of 2**-190: an i192.

    With T the table's number it is m * T * 2**(e - 1168 + 190) modulo 2**192, so T without its
    lowest 978 - e bits counts.  What is left out is below 2**53 units.
    """
    v = body.value
    size = _BITS // 8 + 24
    listed = ", ".join(f"i8 {b}" for b in _TWO_OVER_PI.to_bytes(size, "little"))
    table = s.module.constant("two_over_pi", f"[{size} x i8]", f"[{listed}]")
    bits = v("bitcast double %x to i64")
    larger = s.module.declare("llvm.umax.i64", "i64", ["i64", "i64"])
    field = v(f"call i64 {larger}(i64 {v(f'lshr i64 {bits}, 52')}, i64 1023)")
    fraction = v(f"and i64 {bits}, {(1 << 52) - 1}")
    m = v(f"or i64 {fraction}, {1 << 52}")
    skipped = v(f"sub i64 {_BITS - 190 + 1075}, {field}")
    byte = v(f"lshr i64 {skipped}, 3")
    place = v(f"getelementptr i8, ptr {table}, i64 {byte}")
    loaded = v(f"load i256, ptr {place}, align 1")
    rest = v(f"and i64 {skipped}, 7")
    window = v(f"lshr i256 {loaded}, {v(f'zext i64 {rest} to i256')}")
    factor = v(f"trunc i256 {window} to i192")
    return v(f"mul i192 {factor}, {v(f'zext i64 {m} to i192')}")


def _radians(s: Language, body: Section, quarters: str) -> tuple[Lane, Lane]:
    """A positive number of quarters in units of 2**-190 times pi/2, as the sum of two."""
    v = body.value
    leading = s.module.declare("llvm.ctlz.i192", "i192", ["i192", "i1"])
    zeros = v(f"call i192 {leading}(i192 {quarters}, i1 true)")
    full = v(f"shl i192 {quarters}, {zeros}")
    parts = []
    for below in (139, 86):  # two times 53 bits
        part = v(f"trunc i192 {v(f'lshr i192 {full}, {below}')} to i64")
        part = v(f"and i64 {part}, {(1 << 53) - 1}")
        parts.append(Lane(s, body, v(f"uitofp i64 {part} to double"), F64, 1))
    high, low = parts
    lacks = s.fma(high, _HALF_PI_LOW, low * (_HALF_PI * 2.0**-53))
    r = s.fma(high, _HALF_PI, lacks)
    rest = s.fma(high, _HALF_PI, -r) + lacks
    exponent = v(f"sub i64 {1023 - 51}, {v(f'trunc i192 {zeros} to i64')}")
    scale = Lane(s, body, v(f"bitcast i64 {v(f'shl i64 {exponent}, 52')} to double"), F64, 1)
    return r * scale, rest * scale

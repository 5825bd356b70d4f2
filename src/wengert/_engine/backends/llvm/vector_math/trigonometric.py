"""Circular functions, of any argument, and their inverses.

Sine and cosine are one odd polynomial on [-pi/2, pi/2].  The tangent is one on [-pi/4, pi/4]; in
odd quarters it is the negative reciprocal, corrected by one Newton step.

    arcsin, arccos  up to 1/2 a polynomial; beyond, arcsin(x) = pi/2 - 2 arcsin(sqrt((1 - x) / 2))
    arctan          up to 1 a polynomial; beyond, arctan(x) = pi/2 - arctan(1/x)
    arctan2         the arctangent of the smaller by the larger part, moved to its octant

The inverses are computed for |x|, and the sign is restored, so that -0 gives -0.  Outside of their
domain the square root is NaN.  Polynomials: minimax in the relative error of the function, by
Remez' exchange (docs/generate/minimax_coefficients.py).  Measured errors: sin and cos 1.7, tan 1.5,
arcsin 1.6, arccos 1.2, arctan 1.3, arctan2 1.4 ulp.

Range reduction: an argument of sine, cosine or tangent, minus a multiple of pi or of pi/2.

    less_pi        r from -pi/2 to pi/2 with sin(r) = sin(a), or = cos(a); for sine and cosine
    less_quarter   r + low from -pi/4 to pi/4 and the number of quarters; for the tangent

Ordinary arguments: Cody and Waite, "Software Manual for the Elementary Functions" (1980), in the
form for fused multiply-add (Muller, "Elementary Functions", 3rd edition, 11.2): pi in three parts
of full length.  The subtraction of the first product is exact, because the remainder has no more
bits than a floating-point number; so near multiples of pi no accuracy is lost.

Huge arguments: `exact_quarters`, one lane after the other, and only if some
lane of the vector is huge or not finite.  So a lane of ordinary size costs one comparison and a
branch, and its result does not depend on its neighbors: results of the slow path are selected lane
by lane.

M. Payne and R. Hanek, "Radian reduction for trigonometric functions", SIGNUM Newsletter 18 (1983):
with x = m * 2**e, m an integer, only some bits of 2/pi matter for x * 2/pi: higher ones give
multiples of four quarters, lower ones less than the distance of floating-point numbers from
multiples of pi/2 (2**-62; Muller, "Elementary Functions", 3rd edition, 11.3).  Here the 53 bits of
m are multiplied by 192 bits of 2/pi, and 126 bits after the binary point are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.types import Scalar

from ..ir.ir_builder import Function, Section
from ..ir.llvm_types import BOOL, F64, I32, I64, Dtype, in_register, of_width, suffix
from ..ir.scalar_language import Language
from ..ir.simd_value import Lane
from .float_decomposition import any_of, flipped, nearest_whole, rounding, sign_of, to_top
from .registry import horner, leaf, polynomial

# (sin(r) - r) / r**3 in r**2, r to pi/2.  Errors 2**-57.7 and 2**-27.2.
_SINE = {
    8: (
        -0.16666666666666666, 0.008333333333333207, -0.0001984126984121272, 2.7557319211620363e-06,
        -2.505210690971811e-08, 1.605894129265801e-10, -7.64302742151194e-13,
        2.7215084984178876e-15,
    ),
    4: (
        -0.16666659712791443, 0.008333069272339344, -0.00019809772493317723, 2.6060727122967364e-06,
    ),
}  # fmt: skip
# (tan(r) - r) / r**3 in r**2, r to pi/4.  Errors 2**-56.1 and 2**-29.3.
_TANGENT = {
    8: (
        0.3333333333333277, 0.13333333333415584, 0.053968253926209485, 0.02186948961997555,
        0.008863219009683706, 0.003592290474709039, 0.0014547494691925392, 0.0005951006004399206,
        0.00022227375234309496, 0.000136744686186026, -2.6695988386621603e-05,
        8.973792760862064e-05, -4.50311913792048e-05, 2.0900558669745502e-05,
    ),
    4: (
        0.33333349227905273, 0.13332675397396088, 0.05405895411968231, 0.021285763010382652,
        0.010829126462340355, 9.552960545988753e-05, 0.004374287556856871,
    ),
}  # fmt: skip


@leaf("sin")
def sin(s: Language, x: Lane) -> Any:
    """The sine of |x| with the sign of x, so that the sine of -0 is -0."""
    return flipped(s, _sine(s, less_pi(s, s.abs(x), cosine=False)), sign_of(s, x))


@leaf("cos")
def cos(s: Language, x: Lane) -> Any:
    """The cosine, as the sine of the reduced x + pi/2."""
    return _sine(s, less_pi(s, s.abs(x), cosine=True))


def _sine(s: Language, r: Lane) -> Any:
    square = r * r
    y = s.fma(r * square, horner(s, square, _SINE), r)
    # Clamped to 1, because sqrt(1 - y*y) would be NaN after rounding up.
    y = s.where(s.less(1.0, y), 1.0, y)
    return s.where(s.less(y, -1.0), -1.0, y)


@leaf("tan")
def tan(s: Language, x: Lane) -> Any:
    """The tangent of the reduced argument, or its corrected negative reciprocal in odd quarters."""
    r, low, quarters = less_quarter(s, s.abs(x))
    square = r * r
    rest = s.fma(r * square, horner(s, square, _TANGENT), low)
    y = r + rest
    lacks = rest - (y - r)
    inverse = 1.0 / y
    error = s.fma(-lacks, inverse, s.fma(-y, inverse, 1.0))
    odd = to_top(x, quarters)
    is_odd = s.compare("less", odd, s.constant(0, odd.dtype))
    chosen = s.select(is_odd, s.fma(inverse, error, inverse), y)
    sign: Any = sign_of(s, x) ^ odd
    return flipped(s, chosen, sign)


# From here on the fast path would lose accuracy.
_PAYNE_HANEK_FROM = {8: 2.0**30, 4: 2.0**17}
# pi in parts, each the rounded remainder of the previous ones; halved, those of pi/2.
_PI = {
    8: (3.141592653589793, 1.2246467991473532e-16, -2.9947698097183397e-33),
    4: (3.1415927410125732, -8.742277657347586e-08, -3.4302490200117637e-15),
}
_OVER_PI = {8: 0.3183098861837907, 4: 0.31830987334251404}


def less_pi(s: Language, a: Lane, cosine: bool) -> Lane:
    """The r from -pi/2 to pi/2 with sin(r) = sin(a), or sin(r) = cos(a).

    Parameters
    ----------
    a : Lane
        Not negative.
    """
    size = a.dtype.itemsize
    over = _OVER_PI[size]
    turns = s.fma(a, over, -0.5) + rounding(a) if cosine else s.fma(a, over, rounding(a))
    n, bits = nearest_whole(s, turns)
    if cosine:  # cos(a) = sin(a + pi/2): the zeros are at odd multiples of pi/2
        n, bits = n + 0.5, ~bits
    r = a
    for part in _PI[size]:
        r = s.fma(n, -part, r)
    r = flipped(s, r, to_top(a, bits))

    def slow(moved: Lane) -> list[Lane]:
        exact, low, quarters = exact_quarters(s, moved)
        k = quarters + 1 if cosine else quarters
        odd = s.compare("not_equal", k & 1, s.constant(0, k.dtype))
        # cos(r) = sin(pi/2 - |r|)
        half, half_low = [part / 2 for part in _PI[size][:2]]
        near, more = s.abs(exact), flipped(s, low, sign_of(s, exact))
        far = half - near
        far = far + (((half - far) - near) + (half_low - more))
        return [flipped(s, s.where(odd, far, exact), to_top(a, k >> 1))]

    return _unless_huge(s, a, [r], slow)[0]


def less_quarter(s: Language, a: Lane) -> tuple[Lane, Lane, Lane]:
    """a minus a multiple k of pi/2, as the sum of two lanes, and k in the low bits of a third.

    Parameters
    ----------
    a : Lane
        Not negative.
    """
    size = a.dtype.itemsize
    first, second, third = [part / 2 for part in _PI[size]]
    n, bits = nearest_whole(s, s.fma(a, 2 * _OVER_PI[size], rounding(a)))
    high = s.fma(n, -first, a)
    product = n * second
    r = high - product
    beyond = s.fma(n, third, s.fma(n, second, -product))
    low = ((high - r) - product) - beyond
    found = _unless_huge(s, a, [r, low, bits], lambda moved: list(exact_quarters(s, moved)))
    return found[0], found[1], found[2]


def _unless_huge(
    s: Language, a: Lane, quick: list[Lane], slow: Callable[[Lane], list[Lane]]
) -> list[Lane]:
    """The lanes of the fast path, replaced by the slow path where `a` is huge."""
    section = a.section
    assert section is not None
    huge = s.emit("fcmp uge", BOOL, a, s.constant(_PAYNE_HANEK_FROM[a.dtype.itemsize], a.dtype))
    slots = [section.function.slot(lane.kind) for lane in quick]
    for lane, slot in zip(quick, slots, strict=True):
        section.write(f"store {lane.kind} {lane.name}, ptr {slot}")
    with section.when(any_of(huge)) as body:
        moved = Lane(s, body, a.name, a.dtype, a.width)
        for lane, exact, slot in zip(quick, slow(moved), slots, strict=True):
            chosen = s.select(huge, exact, lane)
            body.write(f"store {lane.kind} {chosen.name}, ptr {slot}")
    return [
        s.lane(section, f"load {lane.kind}, ptr {slot}", lane.dtype, lane.width)
        for lane, slot in zip(quick, slots, strict=True)
    ]


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


# ---- inverses ------------------------------------------------------------------------------------


# (arctan(t) - t) / t**3 in t**2, t to 1.  Errors 2**-56.9 and 2**-28.0.
# The sixth for float32 is changed by one ulp, so that arctan(1) is pi/4 rounded.
_ARCTANGENT = {
    8: (
        -0.3333333333333307, 0.19999999999951765, -0.14285714282589437, 0.11111111007391233,
        -0.09090907008792609, 0.07692279901668898, -0.0666640453567847, 0.05880530520428977,
        -0.05253530137062677, 0.04722360355184703, -0.042192765245146445, 0.03664386073913022,
        -0.029906903304927523, 0.02198855039571947, -0.013904011033142812, 0.007198930058563385,
        -0.0028861614929168128, 0.0008317592579709634, -0.00015225537462509997,
        1.323452512985204e-05,
    ),
    4: (
        -0.33333298563957214, 0.1999852955341339, -0.14264041185379028, 0.10951173305511475,
        -0.08400615304708481, 0.05791107192635536, -0.031133286654949188, 0.010891531594097614,
        -0.0017886291025206447,
    ),
}  # fmt: skip

# (arcsin(t) - t) / t**3 in t**2, t to 1/2.  Errors 2**-59.3 and 2**-27.6.
_ARCSINE = {
    8: (
        0.1666666666666676, 0.0749999999997086, 0.044642857174567147, 0.030381942709546365,
        0.022372214944978135, 0.017351612691772475, 0.01398081320857589, 0.011398967203566764,
        0.01077996773879414, 0.0037074126365835474, 0.021705154969922764, -0.02099600248692012,
        0.032626810612976086,
    ),
    4: (
        0.16666752099990845, 0.07495314627885818, 0.045468300580978394, 0.024189231917262077,
        0.04215071350336075,
    ),
}  # fmt: skip
# pi / 2, and its rounding error.
_HALF_PI_PARTS = {
    8: (1.5707963267948966, 6.123233995736766e-17),
    4: (1.5707963705062866, -4.371138828673793e-08),
}


@leaf("arcsin")
def arcsin(s: Language, x: Lane) -> Any:
    """The angle whose sine is x."""
    a = s.abs(x)
    large = s.less(0.5, a)
    t, rest = _half_angle(s, a, large)
    half, lacks = _HALF_PI_PARTS[x.dtype.itemsize]
    y = t + (rest - s.where(large, 0.5 * lacks, 0.0))
    y = s.where(large, s.fma(y, -2.0, half), y)
    return s.copysign(y, x)


@leaf("arccos")
def arccos(s: Language, x: Lane) -> Any:
    """The angle whose cosine is x; small angles have a small relative error."""
    a = s.abs(x)
    large = s.less(0.5, a)
    t, rest = _half_angle(s, a, large)
    half, lacks = _HALF_PI_PARTS[x.dtype.itemsize]
    t, rest = s.copysign(t, x), s.copysign(rest, x)
    negative = s.less(x, 0.0)
    start = s.where(negative, 2.0 * half, 0.0)
    far = s.fma(t, 2.0, start) + s.fma(rest, 2.0, s.where(negative, 2.0 * lacks, 0.0))
    return s.where(large, far, half - (t + (rest - lacks)))


def _half_angle(s: Language, a: Lane, large: Lane) -> tuple[Lane, Lane]:
    """An argument up to 1/2 (a or sqrt((1 - a) / 2)), and the other term of the arcsine."""
    square = s.where(large, s.fma(a, -0.5, 0.5), a * a)
    t = s.where(large, s.sqrt(square), a)
    return t, t * square * polynomial(s, square, _ARCSINE)


@leaf("arctan")
def arctan(s: Language, x: Lane) -> Any:
    """The angle whose tangent is x."""
    a = s.abs(x)
    large = s.less(1.0, a)
    t = s.where(large, 1.0 / a, a)
    half, lacks = _HALF_PI_PARTS[x.dtype.itemsize]
    angle = _arctangent(s, t, s.where(large, -lacks, 0.0))
    y = s.where(large, half - angle, angle)
    return s.copysign(y, x)


@leaf("arctan2")
def arctan2(s: Language, y: Lane, x: Lane) -> Any:
    """The angle of the point (x, y), from -pi to pi, with C's choices for zeros and infinities."""
    a, b = s.abs(y), s.abs(x)
    steep = s.less(b, a)
    short, long = s.where(steep, b, a), s.where(steep, a, b)
    # The quotient of two infinities is taken as 1, that of two zeros as 0.
    t = s.where(s.equal(short, long), 1.0, short / long)
    t = s.where(s.equal(long, 0.0), short, t)
    half, lacks = _HALF_PI_PARTS[x.dtype.itemsize]
    left = s.signbit(x)
    # The octants: t, pi/2 - t, pi/2 + t, pi - t; the second summand is the rounding error of pi.
    start = s.where(steep, half, s.where(left, 2.0 * half, 0.0))
    flat_lacks = s.where(left, -2.0 * lacks, 0.0)
    total = _arctangent(s, t, s.where(steep, s.where(left, lacks, -lacks), flat_lacks))
    angle = start + s.where(s.logical_xor(steep, left), -total, total)
    return s.copysign(angle, y)


def _arctangent(s: Language, t: Lane, more: Lane) -> Any:
    """The arctangent of t between 0 and 1, plus a small correction.

    By Horner's rule: the coefficients alternate, so the even and odd sums would cancel.
    """
    square = t * t
    return t + s.fma(t * square, horner(s, square, _ARCTANGENT), more)

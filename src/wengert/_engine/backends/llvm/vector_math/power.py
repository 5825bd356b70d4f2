"""Powers: x**y and the cube root without branches, for float32 and float64.

    |x|**y = 2**(y log2 |x|)

The logarithm of float64 is a sum of two numbers, about 64 bits (T. J. Dekker, 1971), because its
error is multiplied by up to 1075: with 2**k m = |x| and s = (m - 1) / (m + 1),
log m = 2 artanh s = 2 (s + s**3 / 3 + ...), of which s and the first two terms are in two parts.
float32 computes in float64, where one number is enough.  The special cases of C99 (F.9.4.4) and
NumPy for zeros, infinities, NaN and negative bases are selected at the end.

The cube root starts from a polynomial for m**(-1/3), which one step of third order and one
correction of the root itself make exact up to rounding (J.-M. Muller, Handbook of Floating-Point
Arithmetic, 2nd ed., sect. 4.7, for roots without division).

Measured errors: power 1.0 (float64) and 0.52 (float32), cbrt 0.501 ulp.

Logarithms: log, log2, log10 and log1p without branches, for float32 and float64.

    x = 2**k (1 + f),  sqrt(1/2) <= 1 + f < sqrt(2),     log x = k log 2 + log(1 + f)

log(1 + f) = f - f**2 / 2 + f**3 P(f), with one long polynomial P, whose coefficients are computed
by docs/generate/leaf_coefficients.py: for SIMD lanes it costs less than the usual quotient
f / (2 + f), or a table.  k log 2 + f is a sum of two parts (T. J. Dekker, 1971), so that only the
last addition has a significant rounding error.  For another base f is multiplied by a factor in two
parts.

The exponent is taken from the bits; subnormal numbers are scaled by a power of two first.  log1p
has f = 2**-k x + (2**-k - 1), which is x itself for k = 0.

Measured errors: log 0.78, log2 1.0, log10 0.84, log1p 1.4 ulp.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.types import Scalar, ScalarLanguage

from ..ir.llvm_types import F64
from .exponential import clipped, power_of_two, rounded, times_power
from .registry import leaf, polynomial

# (artanh(s) / s - 1 - z / 3) / z**2 for z = s**2 <= 0.02944; z**2 times it within 2**-66.2.
_ARTANH = (
    0.20000000000001186, 0.14285714285026294, 0.11111111263609398, 0.09090891899671552,
    0.07693390483257592, 0.06628157194293076, 0.06600320853637867,
)  # fmt: skip
# log2(1 + f) / f for sqrt(1/2) <= 1 + f <= sqrt(2), with relative error 2**-35.1.
_LOG2 = (
    1.4426950408710308, -0.7213475209708866, 0.4808983600910101, -0.36067365374333077,
    0.28853740137584344, -0.24045442979801288, 0.20617266270560014, -0.18026871911504982,
    0.15878428503775396, -0.14351606700127378, 0.14496786159220176, -0.14134222272317484,
    0.07539570602218489,
)  # fmt: skip
# (2**r - 1) / r for |r| <= 1/2; relative to 2**r within 2**-34.1.
_EXP2 = (
    0.6931471807889915, 0.24022651071983492, 0.055504101578422727, 0.009618037519616835,
    0.0013334079946025292, 0.00015466918342518156, 1.5165811481909739e-05,
)  # fmt: skip
# m**(-1/3) for 1 <= m <= 2, with relative error 2**-14.5.
_CBRT = (
    1.6670206036806783, -1.1644779330871307, 0.6867964505362203, -0.2173245294264283,
    0.027941972984810565,
)  # fmt: skip
_THIRD = (1.0 / 3.0, 1.850371707708594e-17)  # 1/3 in two parts
_SCALE = (2.8853900817779268, 4.0710547481862066e-17)  # 2 / log(2) in two parts


def _normal(s: Any, x: Any) -> tuple[Any, Any]:
    """x = 2**k m for positive x, with m between sqrt(1/2) and sqrt(2)."""
    form = FORMATS[x.dtype.itemsize]
    below = s.less(x, form.tiny)
    scaled = s.where(below, x * 2.0 ** (form.mantissa + 2), x)
    k, m, _ = split(s, s.bits(scaled))
    return k - s.where(below, s.cast(form.mantissa + 2, x.dtype), s.cast(0.0, x.dtype)), m


def _product(s: ScalarLanguage, a: tuple[Scalar, ...], b: tuple[Scalar, ...]) -> tuple[Any, Any]:
    """(a + a') (b + b') as a sum of two parts."""
    high = a[0] * b[0]
    return high, s.fma(a[0], b[1], s.fma(a[1], b[0], s.fma(a[0], b[0], -high)))


def log2_in_two_parts(s: ScalarLanguage, x: Scalar) -> tuple[Any, Any]:
    """The logarithm to base 2 of a positive float64, as a sum of two parts."""
    k, m = _normal(s, x)
    f, d = m - 1.0, m + 1.0
    inverse = 1.0 / d
    high = f * inverse
    left = s.fma(-high, d, f)
    left = s.fma(-high, m - (d - 1.0), left)
    root = (high, left * inverse)
    z, more = _product(s, root, root)
    tail = z * polynomial(s, z, _ARTANH)
    third = _THIRD[0] + tail
    factor = third, (_THIRD[0] - third) + tail + _THIRD[1]
    cube = _product(s, root, _product(s, (z, more), factor))
    half = high + cube[0]
    scaled = _product(s, (half, ((high - half) + cube[0]) + (root[1] + cube[1])), _SCALE)
    total = k + scaled[0]
    return total, ((k - total) + scaled[0]) + scaled[1]


def _magnitude(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """x**y for positive finite x and any y, in float64."""
    y = clipped(s, y, -(2.0**66), 2.0**66)  # beyond that they overflow or underflow
    high, low = log2_in_two_parts(s, x)
    e = y * high
    rest = s.fma(y, low, s.fma(y, high, -e))
    n, bits = rounded(s, clipped(s, e, -1080.0, 1030.0), 1.0)
    r = clipped(s, e - n, -1.0, 1.0) + clipped(s, rest, -1.0, 1.0)
    return times_power(s, power_of_two(s, r), n, bits)


def _short_magnitude(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """The same for float32 operands: float64 is precise enough without second parts."""
    x, y = s.cast(x, F64), s.cast(clipped(s, y, -(2.0**40), 2.0**40), F64)
    k, m, _ = split(s, s.bits(x))
    f = m - 1.0
    e = clipped(s, y * s.fma(f, polynomial(s, f, _LOG2), k), -200.0, 200.0)
    n, bits = rounded(s, e, 1.0)
    r = e - n
    y = s.fma(r, polynomial(s, r, _EXP2), 1.0)
    exponent = s.shifted("shl", bits - 1023, 52)
    return s.cast(y * s.number(exponent), np.dtype(np.float32))


@leaf("power")
def power(s: Any, x: Any, y: Any) -> Any:
    """x**y."""
    size = x.dtype.itemsize
    zero, inf = s.cast(0.0, x.dtype), s.cast(np.inf, x.dtype)
    positive = s.abs(x)
    found = _magnitude(s, positive, y) if size == 8 else _short_magnitude(s, positive, y)

    half = y * 0.5
    whole = s.equal(s.rint(y), y)
    odd = s.logical_and(whole, s.not_equal(s.rint(half), half))
    nothing, endless = s.equal(x, 0.0), s.equal(positive, np.inf)
    rises = s.logical_xor(s.less(y, 0.0), endless)
    found = s.where(s.logical_or(nothing, endless), s.where(rises, inf, zero), found)
    refused = s.logical_and(s.logical_and(s.less(x, 0.0), s.less(positive, np.inf)), ~whole)
    unknown = s.logical_or(s.logical_or(refused, s.isnan(x)), s.isnan(y))
    found = s.where(unknown, s.cast(np.nan, x.dtype), found)
    found = s.where(s.logical_or(s.equal(y, 0.0), s.equal(x, 1.0)), s.cast(1.0, x.dtype), found)
    return s.where(odd, s.copysign(found, x), found)


@leaf("cbrt")
def cbrt(s: Any, x: Any) -> Any:
    """The cube root.

    x = 2**(3 q + j) m with 1 <= m < 2; 2**q is added to the exponent, 2**(j / 3) is selected.
    """
    size = x.dtype.itemsize
    mantissa, bias, _, tiny = FORMATS[size]
    positive = s.abs(x)
    below = s.less(positive, tiny)
    lifted = 3 * ((mantissa + 3) // 3)
    bits = s.bits(s.where(below, positive * 2.0**lifted, positive))
    low = (1 << mantissa) - 1
    m = s.number((bits & low) | (bias << mantissa))
    carrier = 2.0**mantissa
    e = s.number(s.shifted("lshr", bits, mantissa) | ((mantissa + bias) << mantissa))
    e = e - (carrier + bias)
    third, places = rounded(s, e - 1.0, 1.0 / 3.0)
    j = s.fma(third, -3.0, e)  # 0, 1 or 2
    one, two = s.equal(j, 1.0), s.equal(j, 2.0)
    start = s.where(two, s.cast(4 ** (-1 / 3), x.dtype), s.cast(2 ** (-1 / 3), x.dtype))
    start = s.where(s.logical_or(one, two), start, s.cast(1.0, x.dtype))
    a = m * s.where(
        two, s.cast(4.0, x.dtype), s.where(one, s.cast(2.0, x.dtype), s.cast(1.0, x.dtype))
    )
    r = start * polynomial(s, m, _CBRT)
    off = s.fma(-(a * r), r * r, 1.0)
    step = s.fma(off, 14.0 / 81.0, 2.0 / 9.0) if size == 8 else s.cast(2.0 / 9.0, x.dtype)
    r = s.fma(r * off, s.fma(off, step, 1.0 / 3.0), r)
    y = a * (r * r)
    square = y * y
    left = s.fma(-y, square, a) - y * s.fma(y, y, -square)
    y = s.fma(left * (r * r), 1.0 / 3.0, y)
    exponent = s.shifted("shl", places - bias, mantissa)
    y = y * s.number(exponent)
    y = s.where(below, y * 2.0 ** -(lifted // 3), y)
    usual = s.logical_and(s.less(0.0, positive), s.less(positive, np.inf))
    return s.where(usual, s.copysign(y, x), x)


class FloatFormat(NamedTuple):
    """The format of a dtype."""

    mantissa: int
    bias: int
    root: int  # the bits of sqrt(1/2)
    tiny: float  # the smallest normal number


FORMATS = {
    8: FloatFormat(52, 1023, int(np.float64(math.sqrt(0.5)).view(np.int64)), 2.0**-1022),
    4: FloatFormat(23, 127, int(np.float32(math.sqrt(0.5)).view(np.int32)), 2.0**-126),
}
# (log(1 + f) - f + f**2 / 2) / f**3 for sqrt(1/2) <= 1 + f <= sqrt(2); relative to log(1 + f)
# within 2**-56.2 and 2**-30.1.
_LOG = {
    8: (
        0.3333333333333286, -0.24999999999988237, 0.2000000000015008, -0.16666666669791844,
        0.1428571427121641, -0.12499999689696879, 0.111111116198183, -0.10000015585652271,
        0.09090909759623629, -0.08332893855263603, 0.07691778210265217, -0.07149929819848572,
        0.06682133444519825, -0.06190165653976095, 0.05679867966391335, -0.05722254553647865,
        0.06498566746795634, -0.05858759759531989, 0.02512064288060545,
    ),
    4: (
        0.3333331, -0.25000015, 0.20002227, -0.16667727, 0.14217563, -0.124097474, 0.119054146,
        -0.11655138, 0.06684137,
    ),
}  # fmt: skip


class LogBase(NamedTuple):
    """The base of a logarithm: numbers as sums of two parts, k times the first being exact."""

    two: tuple[float, float]  # the logarithm of 2
    factor: tuple[float, float]  # the logarithm of e


_E = {
    8: LogBase((0.6931471803691238, 1.9082149292705877e-10), (1.0, 0.0)),
    4: LogBase((0.693145751953125, 1.428606765330187e-06), (1.0, 0.0)),
}
_TWO = {
    8: LogBase((1.0, 0.0), (1.4426950408889634, 2.0355273740931033e-17)),
    4: LogBase((1.0, 0.0), (1.4426950216293335, 1.925963033500011e-08)),
}
_TEN = {
    8: LogBase(
        (0.3010299955494702, 1.1451100898021838e-10), (0.4342944819032518, 1.098319650216765e-17)
    ),
    4: LogBase(
        (0.301025390625, 4.605039066518657e-06), (0.4342944920063019, -1.0103049952192578e-08)
    ),
}


def split(s: ScalarLanguage, bits: Any) -> tuple[Any, Any, Any]:
    """k, m, and bits whose exponent is that of 2**k, from the bits of x = 2**k m."""
    form = FORMATS[bits.dtype.itemsize]
    moved = bits + ((form.bias << form.mantissa) - form.root)
    low = (1 << form.mantissa) - 1
    m = s.number((moved & low) + form.root)
    exponent = s.shifted("lshr", moved, form.mantissa)
    carrier = 2.0**form.mantissa  # an integer stored in its low bits is added to it
    k = s.number(exponent | ((form.mantissa + form.bias) << form.mantissa))
    return k - (carrier + form.bias), m, moved


def _sum(s: ScalarLanguage, k: Scalar, f: Any, base: LogBase) -> Any:
    """k log 2 + log(1 + f)."""
    high, low = base.two
    half, tail = f * -0.5, f * polynomial(s, f, _LOG)
    square = f * f
    if base is _E[f.dtype.itemsize]:
        total = s.fma(k, high, f)
        rest = s.fma(k, low, s.fma(k, high, -total) + f)
        return total + s.fma(half, f, s.fma(square, tail, rest))
    first, second = base.factor
    product = f * first
    total = s.fma(k, high, product)
    rest = s.fma(k, low, s.fma(k, high, -total) + product)
    rest = rest + s.fma(f, second, s.fma(f, first, -product))
    return total + s.fma(s.fma(half, f, square * tail), first, rest)


def _logarithm(s: Any, x: Any, bases: dict[int, LogBase]) -> Any:
    size = x.dtype.itemsize
    form = FORMATS[size]
    below = s.less(x, form.tiny)
    scaled = s.where(below, x * 2.0 ** (form.mantissa + 2), x)
    k, m, _ = split(s, s.bits(scaled))
    k = k - s.where(below, s.cast(form.mantissa + 2, x.dtype), s.cast(0.0, x.dtype))
    y = _sum(s, k, m - 1.0, bases[size])
    return _with_ends(s, x, 0.0, y)


def _with_ends(s: Any, x: Any, pole: float, y: Scalar) -> Any:
    """The values at the pole and below it, at infinity, and for NaN."""
    outside = s.where(s.equal(x, pole), s.cast(-np.inf, x.dtype), s.cast(np.nan, x.dtype))
    y = s.where(s.less(pole, x), y, outside)
    return s.where(s.equal(x, np.inf), x, y)


@leaf("log")
def log(s: ScalarLanguage, x: Scalar) -> Any:
    """The natural logarithm."""
    return _logarithm(s, x, _E)


@leaf("log2")
def log2(s: ScalarLanguage, x: Scalar) -> Any:
    """The logarithm to base 2; exact for powers of two."""
    return _logarithm(s, x, _TWO)


@leaf("log10")
def log10(s: ScalarLanguage, x: Scalar) -> Any:
    """The logarithm to base 10; exact for powers of ten."""
    return _logarithm(s, x, _TEN)


@leaf("log1p")
def log1p(s: ScalarLanguage, x: Any) -> Any:
    """log(1 + x), to full relative precision near zero."""
    size = x.dtype.itemsize
    form = FORMATS[size]
    u = 1.0 + x
    lost = x - (u - 1.0)
    k, m, moved = split(s, s.bits(u))
    exponents = moved & -(1 << form.mantissa)
    power = s.number(((2 * form.bias + 1) << form.mantissa) - exponents)  # 2**(1 - k)
    y = _sum(s, k, s.fma(lost * 0.5, power, m - 1.0), _E[size])
    y = s.where(s.less(s.abs(x), 2.0 ** (-form.mantissa - 3)), x, y)
    return _with_ends(s, x, -1.0, y)

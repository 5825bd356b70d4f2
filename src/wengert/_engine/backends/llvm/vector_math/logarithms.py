"""Logarithms: log, log2, log10 and log1p without branches, for float32 and float64.

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

from .polynomial_evaluation import polynomial
from .registry import leaf


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

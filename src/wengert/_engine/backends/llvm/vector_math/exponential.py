"""Exponentials: exp, exp2 and expm1 without branches, for float32 and float64.

    x = n ln 2 + r,  |r| <= ln 2 / 2,     e**x = 2**n e**r

W. J. Cody and W. Waite, Software Manual for the Elementary Functions (1980), ch. 6: ln 2 is
subtracted in two parts, of which the first times n is exact.  e**r is a polynomial (coefficients:
docs/generate/leaf_coefficients.py).  A number is rounded to an integer by adding 1.5 * 2**52: the
integer is then in the low bits of the sum, at no cost.  2**n is multiplied in as two factors, so
that subnormal results are rounded once.

Measured errors: exp 0.88, exp2 1.0, expm1 1.4 ulp.

softplus and log_sigmoid.

With e = exp(-|x|) <= 1, softplus(x) = max(x, 0) + log1p(e).  The general logarithm has a division;
between 0 and 1 a polynomial for log1p(e) / e takes half the time.  Coefficients:
docs/generate/special_coefficients.py.
"""

from __future__ import annotations

import math
from typing import Any

from wengert._engine.core.types import Scalar, ScalarLanguage

from .registry import leaf, polynomial

# (e**r - 1 - r) / r**2 for |r| <= 0.34658; relative to e**r - 1 within 2**-61.5 and 2**-31.0.
_EXP = {
    8: (
        0.5, 0.16666666666666677, 0.0416666666666666, 0.008333333333321471, 0.0013888888888928335,
        0.0001984126988644756, 2.48015872275362e-05, 2.755724394340722e-06, 2.755736198488399e-07,
        2.510911475205194e-08, 2.088656947464544e-09,
    ),
    4: (0.5, 0.16666666, 0.041666478, 0.0083335675, 0.0013933688, 0.00019742423),
}  # fmt: skip
# (2**r - 1) / r for |r| <= 1/2; relative to 2**r within 2**-57.3 and 2**-28.1.
_EXP2 = {
    8: (
        0.6931471805599453, 0.24022650695910133, 0.05550410866482226, 0.009618129107593498,
        0.001333355814638066, 0.00015403530457765074, 1.525273380550484e-05, 1.3215435001044362e-06,
        1.0178086775543789e-07, 7.0738260641249834e-09, 4.4499551703768896e-10,
    ),
    4: (0.6931472, 0.24022645, 0.055503592, 0.009618841, 0.0013391137, 0.00015238005),
}  # fmt: skip
# ln 2: its leading bits (few enough that n times them is exact), and the rest.
_LN2 = {
    8: (0.6931471803691238, 1.9082149292705877e-10),
    4: (0.693145751953125, 1.4286068203094172e-06),
}
_MANTISSA = {8: 52, 4: 23}
_BIAS = {8: 1023, 4: 127}


def rounded(s: ScalarLanguage, x: Any, factor: float) -> tuple[Any, Any]:
    """x * factor rounded to an integer: its value, and bits that end with it."""
    size = x.dtype.itemsize
    shift = 1.5 * 2.0 ** _MANTISSA[size] + 2 * _BIAS[size]
    shifted = s.fma(x, factor, shift)
    return shifted - shift, s.bits(shifted)


def clipped(s: ScalarLanguage, x: Scalar, low: float, high: float) -> Any:
    """x clamped between two numbers; NaN is kept."""
    x = s.where(s.less(high, x), high, x)
    return s.where(s.less(x, low), low, x)


def without_lost(s: ScalarLanguage, x: Scalar, low: float, high: float) -> tuple[Any, Any]:
    """x clamped to at most `high`, and 0 if below `low`; and a mask of the latter.

    The exponential of those is set to zero: arithmetic that underflows takes a processor hundreds
    of cycles, and masks of -1e9 or -inf are common.
    """
    lost = s.less(x, low)
    x = s.where(s.less(high, x), high, x)
    return s.where(lost, 0.0, x), lost


def times_power(s: ScalarLanguage, y: Any, n: Scalar, bits: Scalar) -> Any:
    """y * 2**n, for the integer of `rounded` and its bits."""
    found = s.times_power(y, n)
    if found is not None:
        return found
    mantissa = _MANTISSA[y.dtype.itemsize]
    half = s.shifted("lshr", bits, 1)
    first, second = half << mantissa, (bits - half) << mantissa
    return y * s.number(first) * s.number(second)


def _less_multiples(s: ScalarLanguage, x: Any, n: Scalar) -> tuple[Any, Any]:
    """x - n ln 2 as a sum of two parts, the second being the rounding error of the first."""
    high, low = _LN2[x.dtype.itemsize]
    first = s.fma(n, -high, x)
    r = s.fma(n, -low, first)
    return r, s.fma(n, -low, first - r)


def power_of_two(s: ScalarLanguage, r: Scalar) -> Any:
    """2**r for |r| <= 1/2."""
    return s.fma(r, polynomial(s, r, _EXP2), 1.0)


@leaf("exp")
def exp(s: ScalarLanguage, x: Any) -> Any:
    """e**x."""
    ends = (-746.0, 710.0) if x.dtype.itemsize == 8 else (-104.0, 89.0)
    x, lost = without_lost(s, x, *ends)
    n, bits = rounded(s, x, 1.0 / math.log(2.0))
    r, rest = _less_multiples(s, x, n)
    y = 1.0 + (r + s.fma(r * r, polynomial(s, r, _EXP), rest))
    return s.where(lost, 0.0, times_power(s, y, n, bits))


@leaf("exp2")
def exp2(s: ScalarLanguage, x: Any) -> Any:
    """2**x."""
    ends = (-1076.0, 1025.0) if x.dtype.itemsize == 8 else (-151.0, 129.0)
    x, lost = without_lost(s, x, *ends)
    n, bits = rounded(s, x, 1.0)
    return s.where(lost, 0.0, times_power(s, power_of_two(s, x - n), n, bits))


@leaf("expm1")
def expm1(s: ScalarLanguage, x: Any) -> Any:
    """e**x - 1, to full relative precision near zero.

    It is 2 ((2**(n-1) - 1/2) + 2**(n-1) (e**r - 1)), so that n = 1024 does not overflow; r is
    a sum of two parts, and e**r - 1 = r + (a small correction).
    """
    size = x.dtype.itemsize
    mantissa, bias = _MANTISSA[size], _BIAS[size]
    z = clipped(s, x, *((-40.0, 710.0) if size == 8 else (-20.0, 89.0)))
    n, bits = rounded(s, z, 1.0 / math.log(2.0))
    r, rest = _less_multiples(s, z, n)
    small = s.fma(r * r, polynomial(s, r, _EXP), rest)
    power = s.number((bits - (bias + 1)) << mantissa)
    y = s.fma(power, small, s.fma(power, r, power - 0.5))
    return s.where(s.less(s.abs(x), 2.0 ** (-mantissa - 3)), x, y + y)


# log1p(e) / e, of 2 e - 1.
_SOFT = {
    8: (
        0.8109302162163288, -0.14426354954966195, 0.03315243843855036, -0.008461080413870717,
        0.0022882409077055153, -0.0006421503724691594, 0.00018490300163022868,
        -5.426089826990582e-05, 1.615695015952578e-05, -4.8668772103456945e-06,
        1.479864483737165e-06, -4.535439845012538e-07, 1.399117957915816e-07,
        -4.3312552216200575e-08, 1.34890352487438e-08, -4.337005695913596e-09,
        1.372655169835486e-09, -3.4178368252597885e-10, 1.034481878950777e-10,
        -7.321916847011107e-11, 2.4180116889647706e-11,
    ),
    4: (
        0.8109302, -0.14426355, 0.033152618, -0.008461003, 0.0022883986, -0.00064270635,
        0.00018263451, -5.286411e-05, 1.9740186e-05, -6.2846384e-06,
    ),
}  # fmt: skip


def _bend(s: ScalarLanguage, x: Scalar, start: Scalar) -> Any:
    """start + log1p(exp(-|x|))."""
    e = s.exp(-s.abs(x))
    return s.fma(e, polynomial(s, s.fma(e, 2.0, -1.0), _SOFT), start)


@leaf("softplus")
def softplus(s: ScalarLanguage, x: Scalar) -> Any:
    """log(1 + exp(x))."""
    return _bend(s, x, s.where(s.less(x, 0.0), 0.0, x))


@leaf("log_sigmoid")
def log_sigmoid(s: ScalarLanguage, x: Scalar) -> Any:
    """-log(1 + exp(-x))."""
    return -_bend(s, x, s.where(s.less(0.0, x), 0.0, -x))

"""Hyperbolic functions and their inverses.

    arcsinh    up to 0.52 a polynomial; beyond, log(|x| + sqrt(x**2 + 1))
    arccosh    up to 1.1276 sqrt(2 (x - 1)) times a polynomial; beyond, log(x + sqrt(x**2 - 1))
    arctanh    up to 1/2 a polynomial; beyond, log((1 + |x|) / (1 - |x|)) / 2

    tanh         up to 0.55, where it is about 1/2, a polynomial; beyond, 1 - 2 u / (1 + u), where u
                 is exp(-2 |x|)
    sech_squared its derivative, 4 u / (1 + u)**2
    sinh         up to 1 a polynomial; beyond, (exp(|x|) - exp(-|x|)) / 2
    cosh         (exp(|x|) + exp(-|x|)) / 2

The exponential is implemented here, so that scaling can be folded into it: it is left as 2**n times
a number near one, or divided by a power of two, so that results just below infinity are correct.
Reduction: Cody and Waite.  Polynomials: minimax (docs/generate/minimax_coefficients.py).
Measured errors: tanh 1.6, sinh 1.6, cosh 1.3 ulp.

The arguments of the logarithms are at least 1.6, so they are computed as k log(2) + 2 arctanh(q)
with k >= 1 and q = (m - 1) / (m + 1) for the remaining factor m near 1: rounding errors of q are
small compared to the sum.  Polynomials: minimax (docs/generate/minimax_coefficients.py).
Measured errors: arcsinh 1.7, arccosh 1.7, arctanh 1.2 ulp.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.types import Scalar

from ..ir.scalar_language import Language
from ..ir.simd_value import Lane
from .exponential import rounded, times_power
from .float_decomposition import nearest_whole, power_of_two, rounding, split, whole_as_float
from .registry import horner, leaf, polynomial

# (tanh(x) - x) / x**3 in x**2, x to 0.55.  Errors 2**-55.4 and 2**-29.6.
_TANGENT = {
    8: (
        -0.33333333333332316, 0.1333333333316901, -0.053968253876216746, 0.02186948597791237,
        -0.008863194544199947, 0.0035917200115606887, -0.0014532182768952817, 0.0005791414591486123,
        -0.00021030958581038644, 5.102641473482256e-05,
    ),
    4: (
        -0.33333316445350647, 0.133325457572937, -0.053848251700401306, 0.021055985242128372,
        -0.006253405008465052,
    ),
}  # fmt: skip

# (sinh(x) - x) / x**3 in x**2, x to 1.  Errors 2**-60.1 and 2**-31.6.
_SINE = {
    8: (
        0.16666666666666669, 0.008333333333332912, 0.00019841269841594335, 2.7557319106303514e-06,
        2.5052131097106485e-08, 1.6056649429798833e-10, 7.776958645572043e-13,
    ),
    4: (0.1666666716337204, 0.00833331048488617, 0.00019842895562760532, 2.7822202355309855e-06),
}  # fmt: skip

# (exp(r) - 1 - r) / r**2, r to log(2) / 2.  Errors 2**-56.7 and 2**-27.8.
_EXPONENTIAL = {
    8: (
        0.5000000000000012, 0.166666666666667, 0.041666666666521385, 0.008333333333307774,
        0.0013888888945710071, 0.00019841269916364833, 2.480149110688833e-05,
        2.7557217073364116e-06, 2.763091504550657e-07, 2.5117650273348267e-08,
    ),
    4: (0.5, 0.1666651964187622, 0.041666191071271896, 0.008368825539946556, 0.0013951425207778811),
}  # fmt: skip
# log(2), its rounding error, and its inverse.
_LOG_2 = {
    8: (0.6931471805599453, 2.3190468138462996e-17),
    4: (0.6931471824645996, -1.9046542121259336e-09),
}
_OVER_LOG_2 = {8: 1.4426950408889634, 4: 1.4426950216293335}
# From the first on tanh rounds to 1; from the second on sinh and cosh are infinite.
_ONE = {8: 20.0, 4: 10.0}
# From here on exp(-2 x) is zero.
_ZERO = {8: 373.0, 4: 52.5}
_INFINITE = {8: 711.0, 4: 90.0}


@leaf("tanh", "sech_squared", together=True)
def tanh(s: Language, x: Lane) -> Any:
    """The hyperbolic tangent, and its derivative 1 / cosh(x)**2.

    Both are quotients of u = exp(-2 |x|): 1 - 2 u / (1 + u) and 4 u / (1 + u)**2.
    """
    a = s.abs(x)
    square = a * a
    small = s.fma(a * square, horner(s, square, _TANGENT), a)
    u = _decaying(s, a)
    quotient = 1.0 / (1.0 + u)
    large = s.fma(u * -2.0, quotient, 1.0)
    value = s.copysign(s.where(s.less(a, 0.55), small, large), x)
    return value, (4.0 * u) * (quotient * quotient)


def _decaying(s: Language, a: Lane) -> Any:
    """exp(-2 a) for a >= 0, with gradual underflow to zero; NaN is kept."""
    size = a.dtype.itemsize
    lost = s.less(_ZERO[size], a)  # set to zero: underflow takes hundreds of cycles
    a = s.where(lost, 0.0, a)
    n, bits = rounded(s, a, -2.0 * _OVER_LOG_2[size])
    first, second = _LOG_2[size]
    r = s.fma(n, second * 0.5, s.fma(n, first * 0.5, a))
    whole = (1.0, 1.0, *_EXPONENTIAL[size])
    near = horner(s, r, [c * (-2.0) ** k for k, c in enumerate(whole)])
    return s.where(lost, 0.0, times_power(s, near, n, bits))


@leaf("sinh")
def sinh(s: Language, x: Lane) -> Any:
    """The hyperbolic sine."""
    a = s.abs(x)
    square = a * a
    small = s.fma(a * square, horner(s, square, _SINE), a)
    scale, near = _exponential(s, a, 1.0, _INFINITE[x.dtype.itemsize], 3)
    eighth = scale * near
    large = (eighth - 0.015625 / eighth) * 4.0
    return s.copysign(s.where(s.less(a, 1.0), small, large), x)


@leaf("cosh")
def cosh(s: Language, x: Lane) -> Any:
    """The hyperbolic cosine."""
    a = s.abs(x)
    scale, near = _exponential(s, a, 1.0, _INFINITE[x.dtype.itemsize], 3)
    eighth = scale * near
    return (eighth + 0.015625 / eighth) * 4.0


def _exponential(
    s: Language, a: Lane, factor: float, largest: float, less: int
) -> tuple[Lane, Lane]:
    """Two lanes whose product is exp(factor * min(a, largest)) / 2**less; factor is 1 or 2."""
    size = a.dtype.itemsize
    a = s.where(s.less(largest, a), largest, a)
    n, bits = nearest_whole(s, s.fma(a, factor * _OVER_LOG_2[size], rounding(a)))
    first, second = _LOG_2[size]
    r = s.fma(n, -second / factor, s.fma(n, -first / factor, a))
    # The factor is a power of two, so scaling the coefficients is exact.
    whole = (1.0, 1.0, *_EXPONENTIAL[size])
    near = horner(s, r, [c * factor**k for k, c in enumerate(whole)])
    return power_of_two(s, bits, less), near


# (arcsinh(x) - x) / x**3 in x**2, x to 0.5212.  Errors 2**-58.7 and 2**-28.9.
_ARCSINE = {
    8: (
        -0.1666666666666653, 0.07499999999965162, -0.04464285711190391, 0.030381943062292676,
        -0.02237212281061144, 0.017352155334949448, -0.013957978151417912, 0.011498431430559805,
        -0.009472349889232934, 0.0072997684636576295, -0.004492557281227051, 0.0015469831450145455,
    ),
    4: (
        -0.16666632890701294, 0.07498185336589813, -0.04432255029678345, 0.02785022370517254,
        -0.012678935192525387,
    ),
}  # fmt: skip

# (arccosh(1 + t) / sqrt(2 * t) - 1) / t, t to 0.1277.  Errors 2**-59.6 and 2**-34.2.
_COSINE = {
    8: (
        -0.08333333333333247, 0.018749999999778215, -0.005580357123443895, 0.0018988707054891478,
        -0.0006991106627702579, 0.00027087157422388535, -0.0001069649924065117,
        3.56654652328245e-05,
    ),
    4: (-0.083333320915699, 0.018749065697193146, -0.005558425094932318, 0.0016933921724557877),
}  # fmt: skip

# (arctanh(x) - x) / x**3 in x**2, x to 1/2.  Errors 2**-57.0 and 2**-29.4.
_ARCTANGENT = {
    8: (
        0.3333333333333399, 0.19999999999794502, 0.1428571430809582, 0.11111109885565158,
        0.09090948574650622, 0.07691493096994646, 0.0667796486326549, 0.05774223048124835,
        0.05983404276621065, 0.014525941256215409, 0.14502489711602448, -0.15303530292375664,
        0.22486637707585616,
    ),
    4: (
        0.33333301544189453, 0.2000245302915573, 0.14223769307136536, 0.11816641688346863,
        0.051590725779533386, 0.17640243470668793,
    ),
}  # fmt: skip

# (2 * arctanh(q) - 2 * q) / q**3 in q**2, q to 0.202.  Errors 2**-54.6 and 2**-27.3.
_LOGARITHM = {
    8: (
        0.6666666666667374, 0.3999999999560516, 0.28571429494453543, 0.22222130468180906,
        0.18186682198058596, 0.15243722759744918, 0.1541801050262684,
    ),
    4: (0.6666696667671204, 0.399558961391449, 0.30401769280433655),
}  # fmt: skip
# log(2) and its rounding error.
# From here on sqrt(x**2 +- 1) rounds to |x|.
_LARGE_ARGUMENT = {8: 2.0**28, 4: 2.0**13}


@leaf("arcsinh")
def arcsinh(s: Language, x: Lane) -> Any:
    """The inverse hyperbolic sine."""
    a = s.abs(x)
    square = a * a
    small = s.fma(a * square, polynomial(s, square, _ARCSINE), a)
    root = s.where(s.less(a, _LARGE_ARGUMENT[x.dtype.itemsize]), s.sqrt(s.fma(a, a, 1.0)), a)
    large = s.where(s.less(a, np.inf), _log_of_sum(s, root, a), a)
    return s.copysign(s.where(s.less(a, 0.5211), small, large), x)


@leaf("arccosh")
def arccosh(s: Language, x: Lane) -> Any:
    """The inverse hyperbolic cosine; NaN below 1."""
    near = s.less(x, 1.1276)
    beyond = x - 1.0
    root = s.sqrt(s.where(near, 2.0 * beyond, s.fma(x, x, -1.0)))
    series = polynomial(s, beyond, _COSINE)
    small = s.fma(root * beyond, series, root)
    other = s.where(s.less(x, _LARGE_ARGUMENT[x.dtype.itemsize]), root, x)
    large = s.where(s.less(x, np.inf), _log_of_sum(s, x, other), x)
    return s.where(near, small, large)


@leaf("arctanh")
def arctanh(s: Language, x: Lane) -> Any:
    """The inverse hyperbolic tangent; infinite at 1, NaN beyond."""
    a = s.abs(x)
    square = a * a
    small = s.fma(a * square, polynomial(s, square, _ARCTANGENT), a)
    # (1 + a) / (1 - a) = 2**-k * above / m.
    above = s.fma(a, 0.5, 0.5)
    below = s.fma(a, -0.5, 0.5)
    k, m = split(s, below, above)
    sum_of = _log_of_quotient(s, above - m, above + m, -whole_as_float(s, k, x.dtype))
    large = s.where(s.less(a, 1.0), 0.5 * sum_of, s.where(s.equal(a, 1.0), np.inf, np.nan))
    y = s.where(s.less(a, 0.5), small, s.where(s.isnan(x), x, large))
    return s.copysign(y, x)


def _log_of_sum(s: Language, larger: Scalar, smaller: Scalar) -> Any:
    """log(larger + smaller), for a sum of at least 1.6."""
    # The sum of halves is finite; Dekker's fast sum gives its rounding error.
    larger, smaller = 0.5 * larger, 0.5 * smaller
    total = larger + smaller
    lacks = smaller - (total - larger)
    k, m = split(s, total)
    rest = (lacks * 0.5) * power_of_two(s, -k, -1)
    return _log_of_quotient(s, (m - 1.0) + rest, m + 1.0, whole_as_float(s, k, total.dtype) + 1.0)


def _log_of_quotient(s: Language, difference: Lane, total: Lane, k: Lane) -> Any:
    """k log(2) + 2 arctanh(difference / total), k at least 1."""
    size = k.dtype.itemsize
    first, second = _LOG_2[size]
    q = difference / total
    square = q * q
    rest = s.fma(q * square, horner(s, square, _LOGARITHM), k * second)
    return s.fma(k, first, s.fma(q, 2.0, rest))

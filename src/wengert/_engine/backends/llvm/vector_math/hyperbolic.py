"""Hyperbolic functions.

    tanh         up to 0.55, where it is about 1/2, a polynomial; beyond, 1 - 2 u / (1 + u), where u
                 is exp(-2 |x|)
    sech_squared its derivative, 4 u / (1 + u)**2
    sinh         up to 1 a polynomial; beyond, (exp(|x|) - exp(-|x|)) / 2
    cosh         (exp(|x|) + exp(-|x|)) / 2

The exponential is implemented here, so that scaling can be folded into it: it is left as 2**n times
a number near one, or divided by a power of two, so that results just below infinity are correct.
Reduction: Cody and Waite.  Polynomials: minimax (docs/generate/minimax_coefficients.py).
Measured errors: tanh 1.6, sinh 1.6, cosh 1.3 ulp.
"""

from __future__ import annotations

from typing import Any

from ..ir.scalar_language import Language
from ..ir.simd_value import Lane
from .exponential import rounded, times_power
from .float_decomposition import nearest_whole, power_of_two, rounding
from .lane_loops import horner
from .registry import leaf

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

"""Inverse circular functions: arcsine, arccosine, arctangent, and the angle of a point.

    arcsin, arccos  up to 1/2 a polynomial; beyond, arcsin(x) = pi/2 - 2 arcsin(sqrt((1 - x) / 2))
    arctan          up to 1 a polynomial; beyond, arctan(x) = pi/2 - arctan(1/x)
    arctan2         the arctangent of the smaller by the larger part, moved to its octant

They are computed for |x|, and the sign is restored, so that -0 gives -0.  Outside of their domain
the square root is NaN.  Polynomials: minimax (docs/generate/minimax_coefficients.py).
Measured errors: arcsin 1.6, arccos 1.2, arctan 1.3, arctan2 1.4 ulp.
"""

from __future__ import annotations

from typing import Any

from ..ir.scalar_language import Language
from ..ir.simd_value import Lane
from .lane_loops import horner, polynomial
from .registry import leaf

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
_HALF_PI = {
    8: (1.5707963267948966, 6.123233995736766e-17),
    4: (1.5707963705062866, -4.371138828673793e-08),
}


@leaf("arcsin")
def arcsin(s: Language, x: Lane) -> Any:
    """The angle whose sine is x."""
    a = s.abs(x)
    large = s.less(0.5, a)
    t, rest = _half_angle(s, a, large)
    half, lacks = _HALF_PI[x.dtype.itemsize]
    y = t + (rest - s.where(large, 0.5 * lacks, 0.0))
    y = s.where(large, s.fma(y, -2.0, half), y)
    return s.copysign(y, x)


@leaf("arccos")
def arccos(s: Language, x: Lane) -> Any:
    """The angle whose cosine is x; small angles have a small relative error."""
    a = s.abs(x)
    large = s.less(0.5, a)
    t, rest = _half_angle(s, a, large)
    half, lacks = _HALF_PI[x.dtype.itemsize]
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
    half, lacks = _HALF_PI[x.dtype.itemsize]
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
    half, lacks = _HALF_PI[x.dtype.itemsize]
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

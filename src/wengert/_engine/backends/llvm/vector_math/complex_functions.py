"""Complex functions, as NumPy's ufuncs: exponentials, roots, circular functions and their inverses.

    computed            a ufunc with complex operands, arithmetic (complex_arithmetic.py) included
    polar               exp(x) (cos y + i sin y) without an early overflow
    log_of_size         log |z|, with all digits where |z| is close to 1
    sqrt                the root with non-negative real part

Every function takes the parts of its operands as float64 lanes and returns two lanes.  Functions of
complex64 are rounded once, so their special cases are those of complex128.  Branch cuts, signed
zeros and infinities follow Annex G of C99, as NumPy does.

The hyperbolic functions are implemented; sin z = -i sinh(iz), cos z = cosh(iz), and so on, are then
exchanges of parts.  Of the inverses, asin, acos, acosh and atanh are implemented, by W. Kahan's
formulas ("Branch cuts for complex elementary functions", 1987), which have no cancellation.  Beyond
|z| = 2**500, where 1 + z rounds to z, asin z = atan(x / |y|) + i log 2|z| with the sign of y.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, log, nan, pi
from typing import Any

from wengert._engine.core.types import Scalar, ScalarLanguage

from ..ir.llvm_types import BOOL, C128, Dtype, part_of
from ..ir.scalar_language import Language
from ..ir.simd_value import ComplexLane, Lane
from .complex_arithmetic import RULES, divide, whole_exponent, whole_power

_LN2, _LN10 = log(2.0), log(10.0)
_LN2_REST, _LN2_LAST = 2.3190468138462996e-17, 5.707708438416212e-34
Parts = tuple[Any, Any]


def polar(s: ScalarLanguage, x: Scalar, y: Scalar) -> Parts:
    """exp(x + i y)."""
    return _scaled(s, s.exp, 700.0, (x, y), (s.cos(y), s.sin(y)))


def _scaled(
    s: ScalarLanguage, exp: Callable[[Any], Any], largest: float, z: Parts, angle: Parts
) -> Parts:
    """exp(x) times the cosine and sine of an angle, in two steps if exp(x) may overflow."""
    (x, y), (cosine, sine) = z, angle
    steep = s.less(largest, x)
    size = exp(s.where(steep, x * 0.5, x))
    again = s.where(steep, size, 1.0)
    real, imag = size * cosine * again, size * sine * again
    wild = s.logical_not(s.isfinite(y))
    gone = s.logical_and(s.equal(x, -inf), wild)
    real = s.where(gone, 0.0, s.where(s.logical_and(s.equal(x, inf), wild), inf, real))
    imag = s.where(gone, s.copysign(s.cast(0.0, y.dtype), y), imag)
    level = s.equal(y, 0.0)
    return s.where(level, size * again, real), s.where(level, y, imag)


def _turned(cosine: Scalar, sine: Scalar, by_cosine: Scalar, by_sine: Scalar) -> Parts:
    """Cosine and sine of the sum of two angles."""
    return cosine * by_cosine - sine * by_sine, sine * by_cosine + cosine * by_sine


def _exp2(s: ScalarLanguage, x: Scalar, y: Scalar) -> Parts:
    # The angle y log 2 has a rounding error: it is a sum of three terms, each rounded once.
    angle, more = y * _LN2, y * _LN2_REST
    lost = s.fma(y, _LN2, -angle), s.fma(y, _LN2_REST, -more) + y * _LN2_LAST
    rest = s.where(s.isfinite(lost[0] + lost[1]), lost[0] + lost[1], 0.0)
    cosine, sine = _turned(s.cos(angle), s.sin(angle), s.cos(more), s.sin(more))
    cosine, sine = _turned(cosine, sine, s.cos(rest), s.sin(rest))
    return _scaled(s, s.exp2, 1000.0, (x, y), (cosine, sine))


def _expm1(s: ScalarLanguage, x: Scalar, y: Scalar) -> Parts:
    """expm1(x) cos y - 2 sin(y/2)**2, and the imaginary part of exp."""
    real, imag = polar(s, x, y)
    half = s.sin(y * 0.5)
    small = s.expm1(x)
    close = s.fma(small, s.cos(y), -2.0 * (half * half))
    real = s.where(s.less(s.abs(x), 40.0), close, real - 1.0)
    return s.where(s.equal(y, 0.0), small, real), imag


# ---- logarithms ------------------------------------------------------------------------------


def two_sum(a: Scalar, b: Scalar) -> Parts:
    """a + b and its rounding error (Knuth)."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def _square(s: ScalarLanguage, x: Scalar) -> Parts:
    product = x * x
    return product, s.fma(x, x, -product)


def _small_logarithm(s: ScalarLanguage, start: Scalar, x: Scalar, y: Scalar) -> Parts:
    """log1p(start + x*x + y*y) / 2, with the sum in twice the precision; and whether in range."""
    (one, lost_one), (two, lost_two) = _square(s, x), _square(s, y)
    total, rest_one = two_sum(one, start)
    total, rest_two = two_sum(total, two)
    # On the unit circle the total vanishes, and all digits come from the rounding errors.
    rest, last_one = two_sum(rest_one, rest_two)
    lost, last_two = two_sum(lost_one, lost_two)
    rest, last_three = two_sum(rest, lost)
    total, last_four = two_sum(total, rest)
    total = total + (last_four + (last_three + (last_one + last_two)))
    near = s.less(s.abs(total), 0.5)
    return 0.5 * s.log1p(s.where(near, total, 0.0)), near


def log_of_size(s: Any, x: Any, y: Any) -> Any:
    """log |x + i y|."""
    a, b = s.abs(x), s.abs(y)
    large, small = s.max(a, b), s.min(a, b)
    huge, tiny = s.less(2.0**500, large), s.less(large, 2.0**-400)
    factor = s.where(huge, 2.0**-600, s.where(tiny, 2.0**600, s.cast(1.0, x.dtype)))
    added = s.where(huge, 600 * _LN2, s.where(tiny, -600 * _LN2, s.cast(0.0, x.dtype)))
    one, two = large * factor, small * factor
    far = 0.5 * s.log(s.fma(one, one, two * two)) + added
    close, near = _small_logarithm(s, s.cast(-1.0, x.dtype), large, small)
    found = s.where(near, close, far)
    return s.where(s.logical_or(s.isinf(x), s.isinf(y)), inf, found)


def _log(s: ScalarLanguage, x: Scalar, y: Scalar) -> Parts:
    return log_of_size(s, x, y), s.arctan2(y, x)


def _log1p(s: ScalarLanguage, x: Scalar, y: Scalar) -> Parts:
    """|1 + z|**2 - 1 is 2 x + x*x + y*y."""
    close, near = _small_logarithm(s, x + x, x, y)
    moved = 1.0 + x
    return s.where(near, close, log_of_size(s, moved, y)), s.arctan2(y, moved)


# ---- roots and powers ------------------------------------------------------------------------


def sqrt(s: Any, x: Any, y: Any) -> Parts:
    """t = sqrt((|x| + |z|) / 2) and y / 2t, in this order for x >= 0, else reversed."""
    a, b = s.abs(x), s.abs(y)
    large = s.max(a, b)
    ones = s.cast(1.0, x.dtype)
    huge, tiny = s.less(2.0**500, large), s.less(large, 2.0**-400)
    factor = s.where(huge, 2.0**-600, s.where(tiny, 2.0**600, ones))
    back = s.where(huge, 2.0**300, s.where(tiny, 2.0**-300, ones))
    one, two = a * factor, b * factor
    size = s.sqrt(s.fma(one, one, two * two))
    t = s.sqrt(0.5 * (one + size)) * back
    other = b / (t + t)
    right = s.less_equal(0.0, x)
    real, imag = s.where(right, t, other), s.where(right, other, t)
    empty = s.equal(large, 0.0)
    real, imag = s.where(empty, 0.0, real), s.where(empty, 0.0, imag)
    endless, broken = s.isinf(x), s.isnan(y)
    real = s.where(endless, s.where(right, inf, s.where(broken, nan, s.cast(0.0, x.dtype))), real)
    imag = s.where(endless, s.where(right, s.where(broken, nan, s.cast(0.0, x.dtype)), inf), imag)
    upward = s.isinf(y)
    real, imag = s.where(upward, inf, real), s.where(upward, inf, imag)
    return real, s.copysign(imag, y)


def _power(s: Any, x: Any, y: Any, u: Any, v: Any) -> Parts:
    """exp(w log z); products for integers w below 100, as in NumPy; 0**0 is 1."""
    size, angle = _log(s, x, y)
    along = s.equal(v, 0.0)
    one, two = u * size - v * angle, u * angle + v * size
    # In C a product with an infinite number is infinite, even if one of its parts is NaN (Annex G).
    lost = s.logical_and(along, s.logical_and(s.isnan(one), s.isnan(two)))
    real, imag = polar(s, s.where(lost, u * size, one), s.where(lost, u * angle, two))
    count = s.abs(u)
    straight = s.logical_and(along, s.less(count, 100.0))
    straight = s.logical_and(straight, s.equal(s.floor(count), count))
    left = s.cast(s.where(straight, count, 0.0), "i8")
    few = s.logical_and(s.less(0.0, u), s.less(u, 4.0))
    (a, b), (p, q) = (s.cast(1.0, x.dtype), s.cast(0.0, x.dtype)), (x, y)
    for step in range(7):
        odd = s.not_equal((left >> step) & 1, 0)
        # NumPy starts from 1, so an infinite part becomes NaN, except for exponents 1, 2, 3.
        first = s.logical_and(few, s.equal(left & ((1 << step) - 1), 0))
        c, d = a * p - b * q, a * q + b * p
        c, d = s.where(first, p, c), s.where(first, q, d)
        a, b = s.where(odd, c, a), s.where(odd, d, b)
        p, q = p * p - q * q, p * q + q * p
    down = s.less(u, 0.0)
    inverse = divide(s, s.constant(1.0, C128), ComplexLane(s, a, b, C128))
    c, d = inverse.real, inverse.imag
    a, b = s.where(down, c, a), s.where(down, d, b)
    real, imag = s.where(straight, a, real), s.where(straight, b, imag)
    empty = s.logical_and(s.equal(x, 0.0), s.equal(y, 0.0))
    vanishes = s.where(s.less(0.0, u), 0.0, s.cast(nan, x.dtype))
    none = s.logical_and(s.equal(u, 0.0), s.equal(v, 0.0))
    real = s.where(none, 1.0, s.where(empty, vanishes, real))
    return real, s.where(none, 0.0, s.where(empty, vanishes, imag))


_FUNCTIONS: dict[str, Any] = {
    "exp": polar,
    "exp2": _exp2,
    "expm1": _expm1,
    "log": _log,
    "log2": lambda s, x, y: [part * (1.0 / _LN2) for part in _log(s, x, y)],
    "log10": lambda s, x, y: [part * (1.0 / _LN10) for part in _log(s, x, y)],
    "log1p": _log1p,
    "sqrt": sqrt,
    "power": _power,
    "float_power": _power,
}


# ---- circular and hyperbolic functions -----------------------------------------------------------


def _sizes(s: ScalarLanguage, x: Scalar) -> tuple[Any, Any, Any]:
    """A scale factor, and cosh x and sinh x divided by it, which do not overflow."""
    steep = s.less(700.0, s.abs(x))
    root = s.exp(s.where(steep, s.abs(x) * 0.5, 0.0))
    inner = s.where(steep, 0.0, x)
    cosh = s.where(steep, root * 0.5, s.cosh(inner))
    return s.where(steep, root, 1.0), cosh, s.where(steep, s.copysign(root * 0.5, x), s.sinh(inner))


def _sinh(s: ScalarLanguage, x: Scalar, y: Scalar) -> Parts:
    """sinh x cos y + i cosh x sin y."""
    again, cosh, sinh = _sizes(s, x)
    real, imag = sinh * s.cos(y) * again, cosh * s.sin(y) * again
    wild, level = s.logical_not(s.isfinite(y)), s.equal(y, 0.0)
    kept = s.logical_or(level, s.logical_and(wild, s.equal(x, 0.0)))
    real = s.where(s.logical_and(wild, s.isinf(x)), inf, s.where(kept, sinh * again, real))
    return real, s.where(level, y, imag)


def _cosh(s: Any, x: Any, y: Any) -> Parts:
    """cosh x cos y + i sinh x sin y."""
    again, cosh, sinh = _sizes(s, x)
    real, imag = cosh * s.cos(y) * again, sinh * s.sin(y) * again
    wild, upright = s.logical_not(s.isfinite(y)), s.equal(x, 0.0)
    real = s.where(s.logical_and(wild, s.isinf(x)), inf, real)
    level = s.equal(y, 0.0)
    real = s.where(level, cosh * again, real)
    signed = s.where(s.isnan(x), y, y * s.copysign(s.cast(1.0, x.dtype), x))
    flat = s.logical_or(level, s.logical_and(wild, upright))
    return real, s.where(flat, s.where(level, signed, 0.0), imag)


def _tanh(s: Any, x: Any, y: Any) -> Parts:
    """With t = tan y, b = 1 + t*t and h = sinh x: (b h sqrt(1 + h*h) + i t) / (1 + b h*h)."""
    size = s.abs(x)
    steep = s.less(22.0, size)
    t = s.tan(y)
    b = s.fma(t, t, 1.0)
    h = s.sinh(s.where(steep, 0.0, x))
    below = s.fma(b * h, h, 1.0)
    one = s.copysign(s.cast(1.0, x.dtype), x)
    real = s.where(steep, one, b * h * s.sqrt(s.fma(h, h, 1.0)) / below)
    imag = s.where(steep, 4.0 * (t / b) * s.exp(-2.0 * size), t / below)
    wild = s.logical_not(s.isfinite(y))
    endless = s.logical_and(wild, s.isinf(x))
    imag = s.where(endless, s.copysign(s.cast(0.0, y.dtype), y), imag)
    real = s.where(s.logical_and(wild, s.equal(x, 0.0)), x, real)
    real = s.where(
        s.logical_and(wild, s.logical_not(s.isinf(x))), s.where(s.equal(x, 0.0), x, t), real
    )
    return real, s.where(s.equal(y, 0.0), y, imag)


# ---- the inverses ----------------------------------------------------------------------------


def _is_far(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """Whether 1 + z rounds to z."""
    return s.logical_or(s.less(2.0**500, s.abs(x)), s.less(2.0**500, s.abs(y)))


def _far_size(s: ScalarLanguage, x: Scalar, y: Scalar) -> Any:
    """log 2|z|: the number whose cosh is |z|."""
    return log_of_size(s, x, y) + _LN2


def _arcsin(s: ScalarLanguage, x: Scalar, y: Scalar) -> Parts:
    far, size = _is_far(s, x, y), _far_size(s, x, y)
    (a, b), (c, d) = sqrt(s, 1.0 - x, -y), sqrt(s, 1.0 + x, y)
    real = s.arctan2(x, s.where(far, s.abs(y), a * c - b * d))
    imag = s.where(far, s.copysign(size, y), s.arcsinh(a * d - b * c))
    real = s.where(s.equal(x, 0.0), x, real)
    return real, s.where(s.equal(y, 0.0), s.copysign(imag, y), imag)


def _arccos(s: ScalarLanguage, x: Scalar, y: Scalar) -> Parts:
    far, size = _is_far(s, x, y), _far_size(s, x, y)
    (a, b), (c, d) = sqrt(s, 1.0 - x, -y), sqrt(s, 1.0 + x, y)
    angle = s.arctan2(s.where(far, s.abs(y), a), s.where(far, x, c))
    real = s.where(far, angle, angle + angle)
    imag = s.where(far, -s.copysign(size, y), s.arcsinh(c * b - d * a))
    real = s.where(s.equal(x, 0.0), pi / 2, real)
    return real, imag


def _arccosh(s: ScalarLanguage, x: Scalar, y: Scalar) -> Parts:
    far, size = _is_far(s, x, y), _far_size(s, x, y)
    (a, b), (c, d) = sqrt(s, x - 1.0, y), sqrt(s, 1.0 + x, y)
    real = s.where(far, size, s.arcsinh(a * c + b * d))
    angle = s.arctan2(s.where(far, y, b), s.where(far, x, c))
    imag = s.where(far, angle, angle + angle)
    quarter = s.logical_and(s.equal(x, 0.0), s.isnan(y))
    return real, s.where(quarter, pi / 2, imag)


def _arctanh(s: Any, x: Scalar, y: Any) -> Parts:
    a, b = s.abs(x), s.abs(y)
    far = _is_far(s, a, b)
    flat = s.less_equal(b, a)
    large, small = s.where(flat, a, b), s.where(flat, b, a)
    ratio = small / large
    beyond = s.where(flat, 1.0, ratio) / (large + small * ratio)
    beyond = s.where(s.logical_or(s.isinf(x), s.isinf(y)), 0.0, beyond)
    gap = 1.0 - a
    square = s.fma(gap, gap, b * b)
    real = 0.25 * s.log1p(4.0 * a / square)
    beside = s.logical_and(s.equal(gap, 0.0), s.less(b, 2.0**-500))
    real = s.where(beside, 0.5 * (_LN2 - s.log(b)), real)
    real = s.where(s.equal(a, 0.0), 0.0, s.where(far, beyond, real))
    imag = 0.5 * s.arctan2(y + y, gap * (1.0 + a) - b * b)
    quarter = s.where(s.isnan(y), y, s.copysign(s.cast(pi / 2, y.dtype), y))
    return s.copysign(real, x), s.where(far, quarter, imag)


# ---- a quarter turn --------------------------------------------------------------------------


def _rotated(function: Callable[..., Any]) -> Any:
    """-i f(iz): sin of sinh, tan of tanh, atan of atanh."""

    def rule(s: ScalarLanguage, x: Scalar, y: Scalar) -> Parts:
        real, imag = function(s, -y, x)
        return imag, -real

    return rule


def _sin(s: ScalarLanguage, x: Scalar, y: Scalar) -> Parts:
    real, imag = _rotated(_sinh)(s, x, y)
    endless = s.logical_and(s.isinf(y), s.logical_not(s.isfinite(x)))
    return real, s.where(endless, inf, imag)  # C's choice for an infinity without sign


def _arcsinh(s: ScalarLanguage, x: Scalar, y: Scalar) -> Parts:
    """i asin(-iz)."""
    real, imag = _arcsin(s, y, -x)
    return -imag, real


_FUNCTIONS |= {
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "sin": _sin,
    "cos": lambda s, x, y: _cosh(s, -y, x),
    "tan": _rotated(_tanh),
    "arcsin": _arcsin,
    "arccos": _arccos,
    "arccosh": _arccosh,
    "arctanh": _arctanh,
    "arctan": _rotated(_arctanh),
    "arcsinh": _arcsinh,
}


# ---- ufuncs --------------------------------------------------------------------------------------


def computed(s: Language, ufunc: str, outer: Dtype, operands: Sequence[Any]) -> Any:
    """A ufunc with complex operands, in the dtype of NumPy's loop."""
    if ufunc in RULES:
        return RULES[ufunc](s, *operands)
    if ufunc.startswith("logical"):
        return s.computed(ufunc, BOOL, *[s.cast(x, BOOL) for x in operands])
    if ufunc == "power":
        exponent = whole_exponent(operands[1])
        if exponent is not None:
            return whole_power(s, operands[0], exponent)
    if ufunc not in _FUNCTIONS:
        raise NotImplementedError(f"{ufunc} of {part_of(outer)} pairs")
    parts = [part for x in operands for part in _parts(s, x)]
    real, imag = _FUNCTIONS[ufunc](s, *parts)
    return s.cast(ComplexLane(s, real, imag, C128), outer)


def has_rule(ufunc: str) -> bool:
    """Whether a ufunc of complex numbers can be computed."""
    known = RULES, _FUNCTIONS, ("power",)
    return ufunc.startswith("logical") or any(ufunc in some for some in known)


def _parts(s: Language, x: ComplexLane) -> list[Lane]:
    """Both parts as float64; constant parts are computed too, so that they can be fused."""
    wide = s.cast(x, C128)
    section = wide.section
    if section is None:
        return [wide.real, wide.imag]
    return [
        s.lane(section, f"freeze double {part.name}", part.dtype, 1) if part.width == 0 else part
        for part in (wide.real, wide.imag)
    ]

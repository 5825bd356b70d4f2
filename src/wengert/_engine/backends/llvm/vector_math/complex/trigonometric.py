"""Circular and hyperbolic functions of complex numbers and their inverses, of float64 parts.

The hyperbolic functions are implemented; sin z = -i sinh(iz), cos z = cosh(iz), and so on, are then
exchanges of parts.  Of the inverses, asin, acos, acosh and atanh are implemented, by W. Kahan's
formulas ("Branch cuts for complex elementary functions", 1987), which have no cancellation.  Beyond
|z| = 2**500, where 1 + z rounds to z, asin z = atan(x / |y|) + i log 2|z| with the sign of y.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log, pi
from typing import Any

from wengert._engine.core.types import Scalar, ScalarLanguage

from .exponential import Parts, log_of_size, sqrt

_LN2 = log(2.0)


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


# ---- the inverses ------------------------------------------------------------------------------


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


# ---- a quarter turn ----------------------------------------------------------------------------


def _turned(function: Callable[..., Any]) -> Any:
    """-i f(iz): sin of sinh, tan of tanh, atan of atanh."""

    def rule(s: ScalarLanguage, x: Scalar, y: Scalar) -> Parts:
        real, imag = function(s, -y, x)
        return imag, -real

    return rule


def _sin(s: ScalarLanguage, x: Scalar, y: Scalar) -> Parts:
    real, imag = _turned(_sinh)(s, x, y)
    endless = s.logical_and(s.isinf(y), s.logical_not(s.isfinite(x)))
    return real, s.where(endless, inf, imag)  # C's choice for an infinity without sign


def _arcsinh(s: ScalarLanguage, x: Scalar, y: Scalar) -> Parts:
    """i asin(-iz)."""
    real, imag = _arcsin(s, y, -x)
    return -imag, real


FUNCTIONS: dict[str, Any] = {
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "sin": _sin,
    "cos": lambda s, x, y: _cosh(s, -y, x),
    "tan": _turned(_tanh),
    "arcsin": _arcsin,
    "arccos": _arccos,
    "arccosh": _arccosh,
    "arctanh": _arctanh,
    "arctan": _turned(_arctanh),
    "arcsinh": _arcsinh,
}

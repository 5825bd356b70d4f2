"""Double-double arithmetic: a number is the unevaluated sum of two floats.

    DoubleDouble   supports + - * / with other double-doubles and with floats
    log            logarithm
    two_sum        the rounded sum of two floats, and its rounding error
    two_product    the rounded product, and its rounding error

The precision is about 31 digits, for arrays and in native code (decimal_series.py has arbitrary
precision, but no native code).  T. J. Dekker, "A floating-point technique for extending the
available precision", Numerische Mathematik 18 (1971) 224-242; D. H. Bailey's double-double
arithmetic.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np

from .traced_loops import is_traced_scalar

__all__: list[str] = []

_SPLIT = 134217729.0  # 2^27 + 1
_LN2 = 0.6931471805599453, 2.3190468138462996e-17
_HALVINGS = 9


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """a + b, and its rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """a * b, and its rounding error."""
    total = a * b
    for x in (a, b):
        if is_traced_scalar(x):
            return total, x.writer.fused(a, b, -total)
    (p, q), (r, s) = _split(a), _split(b)
    return total, ((p * r - total) + p * s + q * r) + q * s


def _split(a: Any) -> tuple[Any, Any]:
    """Two floats with half of the digits each, whose sum is a."""
    c = _SPLIT * a
    high = c - (c - a)
    return high, a - high


class DoubleDouble:
    """The sum of two floats, arrays or traced scalars; `low` is at most half an ulp of `high`.

    Attributes
    ----------
    high, low : float or array
    """

    __slots__ = ("high", "low")
    __array_ufunc__ = None  # operators with arrays are those of this class

    def __init__(self, high: Any, low: Any = 0.0) -> None:
        self.high, self.low = high, low

    def __add__(self, other: Any) -> DoubleDouble:
        other = _as_double_double(other)
        total, rest = two_sum(self.high, other.high)
        below, lost = two_sum(self.low, other.low)
        total, rest = _normalized(total, rest + below)
        return DoubleDouble(*_normalized(total, rest + lost))

    def __neg__(self) -> DoubleDouble:
        return DoubleDouble(-self.high, -self.low)

    def __sub__(self, other: Any) -> DoubleDouble:
        return self + -_as_double_double(other)

    def __rsub__(self, other: Any) -> DoubleDouble:
        return _as_double_double(other) + -self

    def __mul__(self, other: Any) -> DoubleDouble:
        if isinstance(other, int) and abs(other) == 1:
            return self if other == 1 else -self
        other = _as_double_double(other)
        total, rest = two_product(self.high, other.high)
        return DoubleDouble(
            *_normalized(total, rest + (self.high * other.low + self.low * other.high))
        )

    def __truediv__(self, other: Any) -> DoubleDouble:
        other = _as_double_double(other)
        first = self.high / other.high
        left = self - other * first
        second = left.high / other.high
        third = (left - other * second).high / other.high
        return DoubleDouble(*_normalized(first, second)) + third

    __radd__, __rmul__ = __add__, __mul__


def _as_double_double(x: Any) -> DoubleDouble:
    return x if isinstance(x, DoubleDouble) else DoubleDouble(x)


def _normalized(a: Any, b: Any) -> tuple[Any, Any]:
    """The same sum, as a rounded sum and its rounding error; |a| >= |b|."""
    total = a + b
    return total, b - (total - a)


def log(x: DoubleDouble) -> DoubleDouble:
    """The logarithm: that of `high`, improved by a Newton step."""
    first = np.log(x.high)
    error = x * _exp(-first) - 1.0
    return DoubleDouble(first) + (error - error * error * 0.5)


def _exp(y: Any) -> DoubleDouble:
    """exp(y) for floats y, as a double-double."""
    power = np.rint(y / _LN2[0])
    rest = (DoubleDouble(y) - DoubleDouble(*_LN2) * power) * 0.5**_HALVINGS
    total = DoubleDouble(np.zeros_like(y))
    for k in range(9, 0, -1):
        total = (total + DoubleDouble(1.0) / float(factorial(k))) * rest
    for _ in range(_HALVINGS):  # from exp(r) - 1 to exp(2 r) - 1
        total = total * (total + 2.0)
    total = total + 1.0
    scale = np.exp2(power)
    return DoubleDouble(total.high * scale, total.low * scale)

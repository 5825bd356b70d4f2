"""Double-double arithmetic: a float and its rounding error, another float.

    Doubled     with + - * / among themselves and with floats
    log         the logarithm of one
    two_sum     the rounded sum of two floats, and what rounding took off
    two_product    so of a product

They have about 31 digits, in arrays and in native code (decimal_series.py has more, and is not
native).  T. J. Dekker, "A floating-point technique for extending the available precision",
Numerische Mathematik 18 (1971) 224-242; D. H. Bailey's double-double arithmetic.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np

from .traced_loops import is_element

__all__: list[str] = []

_SPLIT = 134217729.0  # 2^27 + 1
_LN2 = 0.6931471805599453, 2.3190468138462996e-17
_HALVINGS = 9


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """a + b, and what rounding took off."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """a * b, and what rounding took off."""
    total = a * b
    for x in (a, b):
        if is_element(x):
            return total, x.writer.fused(a, b, -total)
    (p, q), (r, s) = _halves(a), _halves(b)
    return total, ((p * r - total) + p * s + q * r) + q * s


def _halves(a: Any) -> tuple[Any, Any]:
    """Two floats of half the digits, whose sum it is."""
    c = _SPLIT * a
    high = c - (c - a)
    return high, a - high


class Doubled:
    """The sum of two floats (or arrays, or elements), the second smaller than the first's rounding.

    Attributes
    ----------
    high, low : float or array
    """

    __slots__ = ("high", "low")
    __array_ufunc__ = None  # arrays leave operators to this class

    def __init__(self, high: Any, low: Any = 0.0) -> None:
        self.high, self.low = high, low

    def __add__(self, other: Any) -> Doubled:
        other = _doubled(other)
        total, rest = two_sum(self.high, other.high)
        below, lost = two_sum(self.low, other.low)
        total, rest = _settled(total, rest + below)
        return Doubled(*_settled(total, rest + lost))

    def __neg__(self) -> Doubled:
        return Doubled(-self.high, -self.low)

    def __sub__(self, other: Any) -> Doubled:
        return self + -_doubled(other)

    def __rsub__(self, other: Any) -> Doubled:
        return _doubled(other) + -self

    def __mul__(self, other: Any) -> Doubled:
        if isinstance(other, int) and abs(other) == 1:
            return self if other == 1 else -self
        other = _doubled(other)
        total, rest = two_product(self.high, other.high)
        return Doubled(*_settled(total, rest + (self.high * other.low + self.low * other.high)))

    def __truediv__(self, other: Any) -> Doubled:
        other = _doubled(other)
        first = self.high / other.high
        left = self - other * first
        second = left.high / other.high
        third = (left - other * second).high / other.high
        return Doubled(*_settled(first, second)) + third

    __radd__, __rmul__ = __add__, __mul__


def _doubled(x: Any) -> Doubled:
    return x if isinstance(x, Doubled) else Doubled(x)


def _settled(a: Any, b: Any) -> tuple[Any, Any]:
    """The same sum, the first as large as it can be."""
    total = a + b
    return total, b - (total - a)


def log(x: Doubled) -> Doubled:
    """The logarithm: that of a float, bettered by Newton's step."""
    first = np.log(x.high)
    off = x * _exp(-first) - 1.0
    return Doubled(first) + (off - off * off * 0.5)


def _exp(y: Any) -> Doubled:
    """exp(y) of floats."""
    power = np.rint(y / _LN2[0])
    rest = (Doubled(y) - Doubled(*_LN2) * power) * 0.5**_HALVINGS
    total = Doubled(np.zeros_like(y))
    for k in range(9, 0, -1):
        total = (total + Doubled(1.0) / float(factorial(k))) * rest
    for _ in range(_HALVINGS):  # of exp(2r) - 1 from exp(r) - 1
        total = total * (total + 2.0)
    total = total + 1.0
    scale = np.exp2(power)
    return Doubled(total.high * scale, total.low * scale)

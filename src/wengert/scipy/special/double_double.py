"""Double-double arithmetic, and hypergeometric series in it: DLMF 13, 15, 16.

    DoubleDouble                    supports + - * / with other double-doubles and with floats
    log                             logarithm
    two_sum                         the rounded sum of two floats, and its rounding error
    two_product                     the rounded product, and its rounding error
    limit, kummer, gauss, struve    0F1, 1F1, 2F1, the series of Struve functions

The precision is about 31 digits, for arrays and in native code (decimal_series.py has arbitrary
precision, but no native code).  T. J. Dekker, "A floating-point technique for extending the
available precision", Numerische Mathematik 18 (1971) 224-242; D. H. Bailey's double-double
arithmetic.

decimal_series.py sums a series with as many digits as are needed.  Native code has 31, and
estimates how many are lost.  If fewer than 16 are left, or the series has too many
terms, it reports a failure (`fail_where`), and the interpreter sums the series with
decimals.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import Any

import numpy as np

from .decimal_series import Box, LinearParameter
from .series_and_quadrature import fail_where, is_traced_scalar, repeat

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


_MAX_TERMS = 20_000
_NEGLIGIBLE = 1e-33  # a term relative to the largest one
_MAX_CANCELLATION = 1e15  # the largest term relative to the sum


def box_of(orders: Sequence[int], like: Any) -> Any:
    """A box with double-double coefficients, for elements like `like`."""
    return Box(orders, lambda x: DoubleDouble(np.full_like(like, float(x)), np.zeros_like(like)))


def _sum_series(
    box: Any,
    numerator: Sequence[LinearParameter],
    denominator: Sequence[LinearParameter],
    x: Any,
    start: Any,
) -> Any:
    """The sum over n of start (a)_n ... / ((b)_n ...) x^n / n!, and the largest term."""
    size = box.size

    def series(parts: Sequence[Any]) -> list[Any]:
        return [DoubleDouble(high, low) for high, low in zip(parts[::2], parts[1::2], strict=True)]

    def parts(series: Sequence[Any]) -> list[Any]:
        return [part for c in series for part in (c.high, c.low)]

    def step(n: Any, _: Any, small_terms: Any, *state: Any) -> Any:
        term, total = series(state[: 2 * size]), series(state[2 * size : 4 * size])
        for p in numerator:
            term = box.times(term, p.plus(n))
        for p in denominator:
            term = box.over(term, p.plus(n))
        ratio = x / (n + 1.0)
        term = [c * ratio for c in term]
        largest = [
            np.maximum(m, np.abs(c.high)) for m, c in zip(state[4 * size :], term, strict=True)
        ]
        small, positive = largest[0] >= 0.0, largest[0] >= 0.0
        for c, m in zip(term, largest, strict=True):
            small = small & (np.abs(c.high) <= _NEGLIGIBLE * m)
        for p in (*numerator, *denominator):  # terms may grow again while p + n < 0
            constant: Any = p.constant
            positive = positive & (constant.high + n > 0.0)
        small_terms = np.where(small, small_terms + 1.0, 0.0)
        done = np.where((small_terms > 2.0) & positive, 1.0, 0.0)
        total = [a + b for a, b in zip(total, term, strict=True)]
        return done, small_terms, *parts(term), *parts(total), *largest

    zero = np.zeros_like(x.high)
    first = [*parts(start), *parts(start), *[np.abs(c.high) for c in start]]
    done, _, *state = repeat(step, (zero, zero, *first), _MAX_TERMS, lambda done, *_: done < 0.5)
    fail_where(done < 0.5, lambda: "a hypergeometric series has too many terms")
    return series(state[2 * size : 4 * size]), state[-1]


def _check_digits(total: Any, largest: Any) -> Any:
    """The highest coefficient, if enough digits are left."""
    found = total.high + total.low
    accurate = (
        np.isfinite(found)
        & (largest <= _MAX_CANCELLATION * np.abs(found))
        & (np.abs(found) > 1e-280)
    )
    fail_where(
        ~(accurate | (largest == 0.0)), lambda: "a hypergeometric series has lost too many digits"
    )
    return found


def limit(
    box: Any,
    start: Any,
    p: Sequence[LinearParameter],
    x: Any,
    numerator: Sequence[LinearParameter] = (),
) -> Any:
    """The series with the parameters p in the denominator: 0F1 unless `numerator` is given."""
    total, largest = _sum_series(box, numerator, p, DoubleDouble(x), start)
    return _check_digits(total[-1], largest)


def kummer(box: Any, start: Any, p: Sequence[LinearParameter], x: Any) -> Any:
    """1F1; for negative x by Kummer's transformation, DLMF 13.2.39, to avoid cancellation."""
    out, below = np.zeros_like(x), x < 0.0
    for mask, sign in ((~below, 1.0), (below, -1.0)):
        y, first = x[mask], _select_series(start, mask)
        a, b = [_select_parameter(q, mask) for q in p]
        if sign < 0.0:
            a = LinearParameter(b.constant - a.constant, _minus(b.slopes, a.slopes))
        total, largest = _sum_series(box, (a,), (b,), DoubleDouble(sign * y), first)
        found = _check_digits(total[-1], largest)
        out[mask] = found if sign > 0.0 else found * np.exp(y)
    return out


def gauss(box: Any, start: Any, p: Sequence[LinearParameter], x: Any) -> Any:
    """2F1 for x < 1, or a polynomial; DLMF 15.2.1, and for x < -0.6 Pfaff's 15.8.1."""
    out, below = np.zeros_like(x), x < -0.6
    right = ~below
    first = _select_series(start, right)
    a, b, c = [_select_parameter(q, right) for q in p]
    total, largest = _sum_series(box, (a, b), (c,), DoubleDouble(x[right]), first)
    out[right] = _check_digits(total[-1], largest)
    y, first = x[below], _select_series(start, below)
    a, b, c = [_select_parameter(q, below) for q in p]
    one_minus_y = DoubleDouble(1.0 - 0.0 * y) - y
    rate = -log(one_minus_y)
    exponent = a.constant * rate
    first = box.product(box.exponential(rate, a.slopes), first)
    other = LinearParameter(c.constant - b.constant, _minus(c.slopes, b.slopes))
    total, largest = _sum_series(box, (a, other), (c,), DoubleDouble(y) / -one_minus_y, first)
    scale = np.exp(exponent.high) * (1.0 + exponent.low)
    out[below] = _check_digits(total[-1], largest) * scale
    return out


def struve(box: Any, start: Any, p: Sequence[LinearParameter], x: Any, m: int) -> Any:
    """1F2(1; 3/2, b; x) with m added to all parameters."""
    fixed = (0,) * len(p[0].slopes)
    one, half = [LinearParameter(box.number(v), fixed) for v in (1.0, 1.5)]
    for n in range(m):
        start = box.over(box.times(start, one.plus(n)), half.plus(n))
    return limit(box, start, (half.plus(m), p[0]), x, (one.plus(m),))


def _minus(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(s - t for s, t in zip(x, y, strict=True))


def _select_series(series: Sequence[Any], mask: Any) -> list[Any]:
    return [DoubleDouble(c.high[mask], c.low[mask]) for c in series]


def _select_parameter(p: LinearParameter, mask: Any) -> LinearParameter:
    constant: Any = p.constant
    return LinearParameter(DoubleDouble(constant.high[mask], constant.low[mask]), p.slopes)  # type: ignore[arg-type]

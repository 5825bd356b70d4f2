"""Hypergeometric series in double-double arithmetic, for native code: DLMF 13, 15, 16.

decimal_series.py sums a series with as many digits as it takes.  Native code has 31
(double_double.py), and counts how many are lost: where less than 16 are left, or a series does not
end soon, it refuses (traced_loops.py), and the interpreter sums it with decimals.

    limit, kummer, gauss, struve    0F1, 1F1, 2F1, the series of Struve's functions
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .decimal_series import Box, LinearParameter
from .double_double import Doubled, log
from .traced_loops import refuse, repeat

__all__: list[str] = []

_TERMS = 20_000
_NOTHING = 1e-33  # of the largest term
_LOST = 1e15  # a largest term that many times the sum has taken too many digits


def box_of(orders: Sequence[int], like: Any) -> Any:
    """A box whose coefficients are numbers of twice the digits, for elements as this one."""
    return Box(orders, lambda x: Doubled(np.full_like(like, float(x)), np.zeros_like(like)))


def _summed(
    box: Any, over: Sequence[LinearParameter], under: Sequence[LinearParameter], x: Any, start: Any
) -> Any:
    """The sum of start (a)_n ... / ((b)_n ...) x^n / n!, a series in the steps."""
    size = box.size

    def series(parts: Sequence[Any]) -> list[Any]:
        return [Doubled(high, low) for high, low in zip(parts[::2], parts[1::2], strict=True)]

    def parts(series: Sequence[Any]) -> list[Any]:
        return [part for c in series for part in (c.high, c.low)]

    def step(n: Any, _: Any, calm: Any, *state: Any) -> Any:
        term, total = series(state[: 2 * size]), series(state[2 * size : 4 * size])
        for p in over:
            term = box.times(term, p.plus(n))
        for p in under:
            term = box.over(term, p.plus(n))
        ratio = x / (n + 1.0)
        term = [c * ratio for c in term]
        largest = [
            np.maximum(m, np.abs(c.high)) for m, c in zip(state[4 * size :], term, strict=True)
        ]
        small, ahead = largest[0] >= 0.0, largest[0] >= 0.0
        for c, m in zip(term, largest, strict=True):
            small = small & (np.abs(c.high) <= _NOTHING * m)
        for p in (*over, *under):  # one that is still negative may let terms grow again
            constant: Any = p.constant
            ahead = ahead & (constant.high + n > 0.0)
        calm = np.where(small, calm + 1.0, 0.0)
        done = np.where((calm > 2.0) & ahead, 1.0, 0.0)
        total = [a + b for a, b in zip(total, term, strict=True)]
        return done, calm, *parts(term), *parts(total), *largest

    none = np.zeros_like(x.high)
    first = [*parts(start), *parts(start), *[np.abs(c.high) for c in start]]
    done, _, *state = repeat(step, (none, none, *first), _TERMS, lambda done, *_: done < 0.5)
    refuse(done < 0.5, lambda: "a hypergeometric series has too many terms")
    return series(state[2 * size : 4 * size]), state[-1]


def _checked(total: Any, largest: Any) -> Any:
    """The highest coefficient, where it has kept enough digits."""
    found = total.high + total.low
    kept = np.isfinite(found) & (largest <= _LOST * np.abs(found)) & (np.abs(found) > 1e-280)
    refuse(~(kept | (largest == 0.0)), lambda: "a hypergeometric series has lost its digits")
    return found


def limit(
    box: Any, start: Any, p: Sequence[LinearParameter], x: Any, over: Sequence[LinearParameter] = ()
) -> Any:
    """The series with these parameters below the line, and none above it or those of `over`."""
    total, largest = _summed(box, over, p, Doubled(x), start)
    return _checked(total[-1], largest)


def kummer(box: Any, start: Any, p: Sequence[LinearParameter], x: Any) -> Any:
    """1F1, for negative x by Kummer's transformation, DLMF 13.2.39, which has no cancellation."""
    out, below = np.zeros_like(x), x < 0.0
    for chosen, sign in ((~below, 1.0), (below, -1.0)):
        y, first = x[chosen], _picked(start, chosen)
        a, b = [_chosen(q, chosen) for q in p]
        if sign < 0.0:
            a = LinearParameter(b.constant - a.constant, _less(b.slopes, a.slopes))
        total, largest = _summed(box, (a,), (b,), Doubled(sign * y), first)
        found = _checked(total[-1], largest)
        out[chosen] = found if sign > 0.0 else found * np.exp(y)
    return out


def gauss(box: Any, start: Any, p: Sequence[LinearParameter], x: Any) -> Any:
    """2F1 for x < 1, or where it ends; DLMF 15.2.1, left of -0.6 by Pfaff's 15.8.1."""
    out, below = np.zeros_like(x), x < -0.6
    right = ~below
    first = _picked(start, right)
    a, b, c = [_chosen(q, right) for q in p]
    total, largest = _summed(box, (a, b), (c,), Doubled(x[right]), first)
    out[right] = _checked(total[-1], largest)
    y, first = x[below], _picked(start, below)
    a, b, c = [_chosen(q, below) for q in p]
    less = Doubled(1.0 - 0.0 * y) - y
    rate = -log(less)
    exponent = a.constant * rate
    first = box.product(box.exponential(rate, a.slopes), first)
    other = LinearParameter(c.constant - b.constant, _less(c.slopes, b.slopes))
    total, largest = _summed(box, (a, other), (c,), Doubled(y) / -less, first)
    scale = np.exp(exponent.high) * (1.0 + exponent.low)
    out[below] = _checked(total[-1], largest) * scale
    return out


def struve(box: Any, start: Any, p: Sequence[LinearParameter], x: Any, m: int) -> Any:
    """1F2(1; 3/2, b; x), where all parameters are more by m."""
    fixed = (0,) * len(p[0].slopes)
    one, half = [LinearParameter(box.number(v), fixed) for v in (1.0, 1.5)]
    for n in range(m):
        start = box.over(box.times(start, one.plus(n)), half.plus(n))
    return limit(box, start, (half.plus(m), p[0]), x, (one.plus(m),))


def _less(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(s - t for s, t in zip(x, y, strict=True))


def _picked(series: Sequence[Any], chosen: Any) -> list[Any]:
    return [Doubled(c.high[chosen], c.low[chosen]) for c in series]


def _chosen(p: LinearParameter, chosen: Any) -> LinearParameter:
    constant: Any = p.constant
    return LinearParameter(Doubled(constant.high[chosen], constant.low[chosen]), p.slopes)  # type: ignore[arg-type]

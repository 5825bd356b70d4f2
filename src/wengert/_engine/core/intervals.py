"""Intervals: bounds of traced integers that are computed from the counters of loops.

interval    the minimum and maximum of an integer; None if unbounded
Interval    the type of the pair

The counters of loops have bounds (`NodeInfo.interval`), from which those of expressions in them
follow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .handle import Handle
from .node import Node
from .symbolic.dim import Dim, bounds

Interval = tuple[int | None, int | None]
_DEPTH = 16  # limits the search in long expressions


def interval(x: object) -> Interval:
    """The minimum and maximum of an integer, as far as they are known."""
    return _of(x.node if isinstance(x, Handle) else x, _DEPTH)


def _of(x: object, depth: int) -> Interval:
    if isinstance(x, Dim):
        low, high = bounds(x)
        return low, high
    if not isinstance(x, Node):
        return (int(x), int(x)) if isinstance(x, int | np.integer) else (None, None)
    if x.value is not None:
        value = x.value
        is_number = np.ndim(value) == 0 and np.asarray(value).dtype.kind in "biu"
        return (int(value), int(value)) if is_number else (None, None)
    if x.info is not None and x.info.interval is not None:
        return x.info.interval
    if "size" in x.params:
        return _of(x.params["size"], depth)
    if depth == 0 or not x.args:
        return None, None
    rule = _RULES.get(x.op.name)
    return (None, None) if rule is None else rule(*[_of(a, depth - 1) for a in x.args])


def _add(a: Interval, b: Interval) -> Interval:
    return _sum(a[0], b[0]), _sum(a[1], b[1])


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _negative(a: Interval) -> Interval:
    return None if a[1] is None else -a[1], None if a[0] is None else -a[0]


def _multiply(a: Interval, b: Interval) -> Interval:
    if None not in (*a, *b):
        ends = [p * q for p in a for q in b if p is not None and q is not None]
        return min(ends), max(ends)
    if a[0] is not None and b[0] is not None and a[0] >= 0 and b[0] >= 0:
        return a[0] * b[0], None
    return None, None


def _union(a: Interval, b: Interval) -> Interval:
    low = None if a[0] is None or b[0] is None else min(a[0], b[0])
    return low, None if a[1] is None or b[1] is None else max(a[1], b[1])


def _maximum(a: Interval, b: Interval) -> Interval:
    lows = [x for x in (a[0], b[0]) if x is not None]
    high = None if a[1] is None or b[1] is None else max(a[1], b[1])
    return max(lows, default=None), high


def _minimum(a: Interval, b: Interval) -> Interval:
    return _negative(_maximum(_negative(a), _negative(b)))


def _remainder(a: Interval, b: Interval) -> Interval:
    """Of a positive divisor; the result has its sign."""
    if b[0] is None or b[0] <= 0:
        return None, None
    if None not in a and a[0] >= 0 and a[1] < b[0]:  # type: ignore[operator]
        return a
    return 0, None if b[1] is None else b[1] - 1


def _floor_divide(a: Interval, b: Interval) -> Interval:
    """Of a positive divisor."""
    if b[0] is None or b[0] <= 0:
        return None, None
    ends = [x // y for x in a for y in b if x is not None and y is not None]
    if None not in (*a, *b):
        return min(ends), max(ends)
    low = None if a[0] is None else min(0, a[0])
    return low, None if a[1] is None else max(0, a[1])


_RULES: dict[str, Any] = {
    "add": _add,
    "subtract": lambda a, b: _add(a, _negative(b)),
    "negative": _negative,
    "multiply": _multiply,
    "maximum": _maximum,
    "minimum": _minimum,
    "remainder": _remainder,
    "floor_divide": _floor_divide,
    "where": lambda _, a, b: _union(a, b),
    "cast": lambda a: a,
    "positive": lambda a: a,
    "stop_gradient": lambda a: a,
}

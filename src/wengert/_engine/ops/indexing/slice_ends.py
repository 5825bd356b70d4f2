"""Start and stop of slices with traced bounds.

SliceRange       start and stop of a slice, clipped to the axis
forward_range    the range of a slice with step 1
StridedRange     first element, step and number of elements of a slice with another step
strided_range    those of a slice
range_within     the range of a slice of a slice
position_in      the position in the axis for an index into a slice
is_same          whether two integers are known to be equal
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.core.handle import Handle, is_traced, shape_of, value_of, wrap
from wengert._engine.core.intervals import interval
from wengert._engine.core.node import Node, constant
from wengert._engine.core.op import lookup
from wengert._engine.core.runtime_checks import RuntimeChecks
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.tracing import size_value
from wengert.errors import at, user_line

from ..elementwise.selection import where

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand, Size

_NODES_COMPARED = 12  # maximum depth of expressions that are compared


class SliceRange(NamedTuple):
    """Start and stop of a window along its axis.

    start, stop : int, Dim or Tensor, in the range from 0 to the length of the axis.
    """

    start: Any
    stop: Any


def forward_range(part: slice, n: Size) -> SliceRange:
    """The range of a slice with step 1 of an axis of length `n`."""
    start = 0 if part.start is None else end_of(part.start, n)
    stop = n if part.stop is None else end_of(part.stop, n)
    return SliceRange(start, stop)


class StridedRange(NamedTuple):
    """The elements of a slice with a step: ``first + k * step`` for ``k < count``."""

    first: Any
    step: Any
    count: Any

    def after(self, start: object) -> StridedRange:
        """The same elements, counted from an earlier position."""
        return self._replace(first=as_value(start) + as_value(self.first))


def strided_range(part: slice, n: Size | Array) -> StridedRange:
    """The elements of a slice of an axis of length `n`; the step may be traced."""
    step, length = part.step, as_value(n)
    if is_traced(step):
        RuntimeChecks.add(step == 0, ValueError(f"slice step cannot be zero{at(user_line())}"))
    elif int(step) == 0:
        raise ValueError(f"slice step cannot be zero{at(user_line())}")
    else:
        step = int(step)
    forward = step > 0
    low, high = _either(forward, 0, -1), _either(forward, length, length - 1)
    first = _either(forward, 0, length - 1) if part.start is None else _clipped_end(
        part.start, length, low, high
    )  # fmt: skip
    after = _either(forward, length, -1) if part.stop is None else _clipped_end(
        part.stop, length, low, high
    )  # fmt: skip
    sign = _either(forward, 1, -1)
    span = (after - first) * sign + step * sign - 1
    count = lookup("maximum")(lookup("floor_divide")(span, step * sign), 0)
    return StridedRange(first, step, count)


def _either(condition: object, a: Operand, b: Operand) -> Any:
    """One of two integers."""
    if isinstance(condition, Handle):
        return where(condition, a, b)
    return a if condition else b


def _clipped_end(bound: object, length: Any, low: object, high: object) -> Any:
    """A bound of a slice, counted from the start and clipped."""
    end = as_value(bound)
    if isinstance(end, Handle) or isinstance(length, Handle):
        end = where(end < 0, end + length, end)
    elif end < 0:
        end += length
    return clipped(end, low, high)


def end_of(end: Any, n: Size) -> Any:
    """A bound of a slice, counted from the start and clipped to the axis."""
    if isinstance(end, Handle) and not is_traced(end):
        end = value_of(end).item()
    low, high = interval(end)
    if low is None or low < 0:
        if high is not None and high < 0:
            end = as_value(end) + as_value(n)
        else:
            end = where(as_value(end) < 0, as_value(end) + as_value(n), as_value(end))
        end = lookup("maximum")(end, 0)
        high = None
    if high is None or type(n) is not int or high > n:
        end = end if is_same(end, n) else lookup("minimum")(as_value(end), as_value(n))
    return end


def range_within(r: SliceRange, part: slice, length: Operand) -> SliceRange:
    """The range of a slice of a window."""
    start = r.start if part.start is None else as_value(r.start) + clamped(part.start, length)
    stop = r.stop if part.stop is None else as_value(r.start) + clamped(part.stop, length)
    return SliceRange(start, stop)


def clamped(end: Any, length: Operand) -> Any:
    """A bound of a slice of a window, counted from the start of the window and clipped."""
    low = interval(end)[0]
    if low is None or low < 0:
        end = lookup("maximum")(where(as_value(end) < 0, as_value(end) + length, as_value(end)), 0)
    return lookup("minimum")(as_value(end), length)


def position_in(index: Any, r: SliceRange, length: Operand, used: Any = None) -> Any:
    """The position along the whole axis that an index into a slice refers to.

    With `used`, only these elements of an index array are checked.
    """
    low, high = interval(index)
    if low is not None and low >= 0:
        position = as_value(r.start) + as_value(index)
    elif high is not None and high < 0:
        position = as_value(r.stop) + as_value(index)
    else:
        position = where(index < 0, as_value(r.stop) + index, as_value(r.start) + index)
    is_out_of_bounds = lookup("logical_or")(
        position < as_value(r.start), position >= as_value(r.stop)
    )
    if used is not None:
        is_out_of_bounds = lookup("logical_and")(used, is_out_of_bounds)
    if shape_of(is_out_of_bounds):
        is_out_of_bounds = lookup("any")(is_out_of_bounds, axis=None)
    RuntimeChecks.add(
        is_out_of_bounds, IndexError(f"index is out of bounds of a slice{at(user_line())}")
    )
    return lookup("maximum")(position, 0)


def span_of(r: SliceRange) -> Any:
    """The length of a slice."""
    span = as_value(r.stop) if is_same(r.start, 0) else as_value(r.stop) - as_value(r.start)
    low = interval(span)[0]
    return span if low is not None and low >= 0 else lookup("maximum")(span, 0)


def taken(x: Any, indices: Any, axis: int) -> Any:
    """The elements of an array at positions along an axis."""
    x = x if isinstance(x, Handle) else wrap(constant(np.asarray(x)))
    return x[(slice(None),) * (axis % len(shape_of(x))) + (indices,)]


def clipped(x: object, low: Any, high: Any) -> Any:
    return lookup("minimum")(lookup("maximum")(x, low), high)


def as_value(x: object) -> Any:
    return size_value(x) if isinstance(x, Dim) else x


def is_number(x: object, number: int) -> bool:
    return isinstance(x, int | np.integer) and int(x) == number


def is_same(a: object, b: object) -> bool:
    """Whether two integers are known to be equal: equal numbers, or the same expressions."""
    if a is b:
        return True
    if not isinstance(a, Handle) and not isinstance(b, Handle):
        return bool(a == b) if type(a) is type(b) else False
    if isinstance(a, Handle) and isinstance(b, Handle):
        return is_same_node(a.node, b.node)
    handle, other = (a, b) if isinstance(a, Handle) else (b, a)
    low, high = interval(handle)
    return isinstance(other, int) and low is not None and low == high == other


def is_same_node(a: object, b: object, depth: int = _NODES_COMPARED) -> bool:
    """Whether two nodes compute the same from the same values."""
    if a is b:
        return True
    if not (isinstance(a, Node) and isinstance(b, Node)):
        return (
            not isinstance(a, Node)
            and not isinstance(b, Node)
            and type(a) is type(b)
            and bool(np.all(a == b))
        )
    if a.value is not None or b.value is not None:
        return (
            a.value is not None and b.value is not None and bool(np.array_equal(a.value, b.value))
        )
    if a.op is not b.op or not a.args or depth == 0 or len(a.args) != len(b.args):
        return False
    if a.params != b.params:
        return False
    return all(is_same_node(p, q, depth - 1) for p, q in zip(a.args, b.args, strict=True))

"""Reading and writing slices with traced bounds.

read_window    x[index] for an index with such a slice, or with a window of positions
write_window   x[index] = v for such an index
write_into     x[index] = v for an index of known lengths and a window as value
is_stored      whether x[index] = v has no effect
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert._engine.core.handle import shape_of
from wengert.errors import TraceError, at, user_line

from .slice_ends import (
    SliceRange,
    backward_range,
    forward_range,
    is_number,
    is_same,
    is_same_node,
    reversed_range,
    span_of,
    taken,
)
from .window_operators import stored
from .windows import Window, index_parts, is_dynamic


def read_window(x: Any, index: object) -> Any:
    """``x[index]`` for an index with a slice whose bounds are traced, or with a window.

    Raises
    ------
    TraceError
        The slice has a step other than 1 and -1, or the index also has arrays.
    """
    if isinstance(x, Window):
        return x[index]
    parts = index_parts(index, len(shape_of(x)))
    if any(isinstance(p, Window) for p in parts):
        return _gathered(x, parts)
    static_index, ranges, flips = _static(x, parts)
    result = x[tuple(static_index)]
    for axis, r in flips.items():
        result = reversed_range(result, axis, r)
    return Window(result, ranges)


def _static(
    x: Any, parts: Sequence[Any]
) -> tuple[list[Any], dict[int, SliceRange], dict[int, SliceRange]]:
    """The index with full slices for traced ones; ranges, and reversed ranges, by result axis."""
    static_index: list[Any] = []
    ranges: dict[int, SliceRange] = {}
    flips: dict[int, SliceRange] = {}
    axis = out = 0
    for part in parts:
        if part is None:
            static_index.append(None)
            out += 1
            continue
        if isinstance(part, slice):
            if is_dynamic(part):
                n = shape_of(x)[axis]
                if is_number(part.step, -1):
                    flips[out] = backward_range(part, n)
                    ranges[out] = SliceRange(0, span_of(flips[out]))
                elif part.step is None or is_number(part.step, 1):
                    ranges[out] = forward_range(part, n)
                else:
                    raise TraceError(
                        f"the step of a slice with traced bounds must be 1 or -1, got {part.step}"
                        f"{at(user_line())}."
                    )
                static_index.append(slice(None))
            else:
                static_index.append(part)
            out += 1
        else:
            if shape_of(part) != ():
                raise TraceError(
                    "a slice with traced bounds cannot be combined with an index array. Apply one "
                    f"index after the other{at(user_line())}."
                )
            static_index.append(part)
        axis += 1
    return static_index, ranges, flips


def _gathered(x: Any, parts: Sequence[Any]) -> Any:
    """``x[..., window, ...]`` for one window of positions."""
    (k,) = [k for k, p in enumerate(parts) if isinstance(p, Window)]
    window = parts[k]
    if (
        window.ndim != 1
        or window.dtype.kind not in "iu"
        or any(
            not (isinstance(p, slice) and p == slice(None)) for j, p in enumerate(parts) if j != k
        )
    ):
        raise window.refusal("this kind of index")
    return Window(taken(x, window.filled(0), axis=k), {k: window.ranges[0]})


def write_window(x: Any, index: object, v: Any) -> tuple[Any, Any]:
    """``x[index] = v`` as a store to whole axes: the index and the value.

    Raises
    ------
    TraceError
        As `read_window`.
    """
    parts = [p for p in index_parts(index, len(shape_of(x))) if p is not None]
    if any(isinstance(p, Window) for p in parts):
        raise TraceError(
            "cannot assign to positions given by a slice with traced bounds: their number is not "
            f"known while a graph is built. Write a loop over the positions{at(user_line())}."
        )
    static_index, ranges, flips = _static(x, parts)
    if flips:
        raise TraceError(f"cannot assign to a reversed slice with traced bounds{at(user_line())}.")
    target = Window(x[tuple(static_index)], ranges)
    return tuple(static_index), stored(target, v)


def write_into(x: Any, index: object, v: Window) -> Any:
    """The value of ``x[index] = v`` for an index of known lengths."""
    part = x[index]
    ndim = len(shape_of(part))
    ranges = {k + ndim - v.ndim: SliceRange(0, shape_of(part)[k + ndim - v.ndim]) for k in v.ranges}
    return stored(Window(part, ranges), v)


def is_stored(x: Any, index: object, v: Any) -> bool:
    """Whether `v` is the slice x[index], which has been modified: x[:k] += 1 assigns it again."""
    link = getattr(v.whole, "_link", None) if isinstance(v, Window) else None
    if link is None or link[0] is not x:
        return False
    parts = [p for p in index_parts(index, len(shape_of(x))) if p is not None]
    static_index, ranges, flips = _static(x, parts)
    fresh = x[tuple(static_index)]
    same = v.ranges.keys() == ranges.keys() and not flips and all(
        is_same(a, b) for k in ranges for a, b in zip(ranges[k], v.ranges[k], strict=True)
    )  # fmt: skip
    return same and is_same_node(fresh.node, v.whole.node)

"""Reading and writing parts of unknown length: slices with traced bounds, and unknown masks.

An index is applied in two stages.  The first takes slices and new axes, and gives a view; slices
with a step become positions in the axis.  The second takes integers, index arrays and masks:

    x[a:b]           a window of the whole axis
    x[a:b:s]         the elements at a + s * p, as a view; p counts positions of the axis
    A[i, mask]       the elements at the positions where the mask is true (masks.py)

read_window    x[index] for an index with such a part; `x` may be a window itself
write_window   x after x[index] = v for such an index
write_into     x[index] = v for an index of known lengths and a window as value
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.core.handle import Handle, dtype_of, is_traced, link, shape_of, wrap
from wengert._engine.core.node import constant
from wengert._engine.core.op import lookup
from wengert._engine.core.runtime_checks import RuntimeChecks
from wengert._engine.core.spec import Spec
from wengert._engine.core.uniform_arrays import zeros
from wengert.errors import TraceError, at, user_line

from ..casts import astype
from ..creation import positions
from ..elementwise.selection import where
from ..joining import stacked
from .masks import rank_of_true, true_positions
from .slice_ends import (
    SliceRange,
    StridedRange,
    as_value,
    clipped,
    forward_range,
    is_number,
    is_same,
    position_in,
    range_within,
    strided_range,
    taken,
)
from .window_operators import aligned, length_check, stored, without_selection
from .windows import Window, index_parts, is_dynamic

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Size

_FULL = slice(None)


class _View(NamedTuple):
    """The first stage of an index.

    Attributes
    ----------
    whole : Tensor
        A view with whole axes instead of slices of unknown length.
    ranges : dict
        The range along each of its axes that is sliced.
    picks : list
        For each of its axes, an integer, an index array, a window of positions, or None.
    masks : dict
        For an axis with the positions of a mask of one axis, the mask, and the range of the axis.
    """

    whole: Any
    ranges: dict[int, SliceRange]
    picks: list[Any]
    masks: dict[int, Any]


def read_window(x: Array | Window, index: object) -> Any:
    """``x[index]`` for an index with a part of unknown length.

    Parameters
    ----------
    x : array, Tensor or Window
    index : object

    Returns
    -------
    Window or Tensor
    """
    view = _viewed(x, index)
    if all(p is None for p in view.picks):
        return Window(view.whole, view.ranges) if view.ranges else view.whole
    return _picked(view)


def _viewed(x: Any, index: object) -> _View:
    given, base_ranges = (x.whole, x.ranges) if isinstance(x, Window) else (x, {})
    whole: Any = given if isinstance(given, Handle) else wrap(constant(np.asarray(given)))
    parts, masks = _without_masks(index, len(shape_of(whole)), shape_of(whole), base_ranges)
    first: list[Any] = []
    ranges: dict[int, SliceRange] = {}
    strided: dict[int, StridedRange] = {}
    picks: list[Any] = []
    masks_by_axis: dict[int, Any] = {}
    axis = 0
    for part in parts:
        if part is None:
            first.append(None)
            picks.append(None)
            continue
        n, r = shape_of(whole)[axis], base_ranges.get(axis)
        out = len(picks)
        first.append(_FULL)
        if isinstance(part, slice):
            picks.append(None)
            if r is None and not is_dynamic(part):
                first[-1] = part
            elif part.step is None or is_number(part.step, 1):
                length: Any = None if r is None else x.length(axis)
                ranges[out] = (
                    forward_range(part, n)
                    if r is None
                    else r
                    if part == _FULL
                    else range_within(r, part, length)
                )
            else:
                strided[out] = strided_range(part, n if r is None else x.length(axis))
                if r is not None:
                    strided[out] = strided[out].after(r.start)
                ranges[out] = SliceRange(0, strided[out].count)
        else:
            picks.append(part if r is None else _position(part, r, x.length(axis)))
            if axis in masks:
                masks_by_axis[out] = masks[axis], r
        axis += 1
    is_whole = all(isinstance(p, slice) and p == _FULL for p in first)
    result = whole[...] if is_whole else whole[tuple(first)]
    for out, s in strided.items():
        result = _strided_view(result, out, s)
    return _View(result, ranges, picks, masks_by_axis)


def _without_masks(
    index: object, ndim: int, shape: Sequence[Any], ranges: dict[int, SliceRange]
) -> tuple[list[Any], dict[int, Any]]:
    """The parts of an index, one for each axis and each new axis, with positions for masks.

    Returns
    -------
    parts : list
    masks : dict
        The mask of each axis that a mask of one axis indexes.
    """
    given = list(index) if type(index) is tuple else [index]
    given = [_as_array(p) for p in given]
    used = sum(p is not None and p is not Ellipsis for p in given)
    used += sum(max(_ndim(p) - 1, 0) for p in given if _is_mask(p))
    if used > ndim:
        raise IndexError(
            f"too many indices: the array has {ndim} axes, but {used} were indexed"
            f"{at(user_line())}."
        )
    parts: list[Any] = []
    masks: dict[int, Any] = {}
    axis = 0
    for part in index_parts(tuple(given), ndim, used):
        if _is_mask(part):
            count = _ndim(part)
            if count == 0:
                raise TraceError(
                    "an index with a boolean number, whose value is not known while a graph is "
                    f"built. Use np.where(condition, x, y){at(user_line())}."
                )
            _check_mask(part, shape, axis, ranges)
            parts += true_positions(part)
            if count == 1:
                masks[axis] = part
            axis += count
            continue
        parts.append(part)
        axis += part is not None
    return parts, masks


def _as_array(part: Any) -> Any:
    """A part of an index, with arrays instead of lists, and windows instead of selections."""
    if isinstance(part, list):
        return stacked(part) if any(isinstance(p, Handle) for p in part) else np.asarray(part)
    return part.compacted() if getattr(type(part), "is_window", False) else part


def _ndim(part: object) -> int:
    return part.ndim if isinstance(part, Window) else len(shape_of(part))


def _is_mask(part: object) -> bool:
    is_array = isinstance(part, Handle | Window | np.ndarray | np.bool_ | bool)
    return is_array and (part.dtype if isinstance(part, Window) else dtype_of(part)).kind == "b"


def _check_mask(
    mask: Array | Window, shape: Sequence[Any], axis: int, ranges: dict[int, SliceRange]
) -> None:
    """Check that a mask has the shape of the axes that it indexes."""
    lengths = mask.shape if isinstance(mask, Window) else shape_of(mask)
    for k, n in enumerate(lengths, start=axis):
        expected = as_value(ranges[k].stop) - as_value(ranges[k].start) if k in ranges else shape[k]
        if isinstance(n, int) and isinstance(expected, int):
            if n != expected:
                raise IndexError(
                    f"boolean index did not match indexed array along axis {k}; size of axis is "
                    f"{expected} but size of corresponding boolean axis is {n}{at(user_line())}."
                )
        elif k in ranges or isinstance(mask, Window):
            length_check(n, expected)


def _position(part: Array | Window, r: SliceRange, length: Array) -> Any:
    """Positions in the whole axis for an index into a window."""
    if isinstance(part, Window):
        inside = part.mask()
        whole = where(inside, part.whole, 0) if inside is not None else part.whole
        return Window(position_in(whole, r, length, inside), part.ranges)
    return position_in(part, r, length)


def _strided_view(x: Handle, axis: int, s: StridedRange) -> Any:
    """The elements of a slice with a step, moved to the start of the axis; a view."""
    n = shape_of(x)[axis]
    last = as_value(n) - 1
    places = clipped(as_value(s.first) + positions(n) * s.step, 0, last)
    ndim = len(shape_of(x))

    def take(base: Any) -> Any:
        return taken(base, places, axis=axis)

    def put(base: Any, view: Any) -> Any:
        distance = positions(n) - as_value(s.first)
        k = lookup("floor_divide")(distance, s.step)
        inside = lookup("logical_and")(k * s.step == distance, k >= 0)
        inside = lookup("logical_and")(inside, k < as_value(s.count))
        moved = taken(view, clipped(k, 0, last), axis=axis)
        return where(_along(inside, axis, ndim), moved, base)

    view = take(x)
    link(view, x, take, put, shares=True)
    return view


def _along(mask: Array, axis: int, ndim: int) -> Any:
    """An array of one axis that broadcasts along an axis of an array."""
    return mask.reshape((-1,) + (1,) * (ndim - axis - 1))


# ---- integers, index arrays and positions ------------------------------------------------------


def _picked(view: _View) -> Any:
    """The second stage of an index."""
    arrays = _same_ranges(view.picks)
    index = [_FULL if p is None else _filled(p) for p in arrays]
    result = view.whole[tuple(index)]
    ranges = _ranges_after(view, arrays)
    return Window(result, ranges) if ranges else result


def _same_ranges(picks: Sequence[Any]) -> list[Any]:
    """The picks, with windows of positions of the same ranges."""
    arrays = [p for p in picks if p is not None]
    if any(isinstance(p, Window) for p in arrays):
        arrays = aligned(arrays)
    remaining = iter(arrays)
    return [None if p is None else next(remaining) for p in picks]


def _filled(pick: object) -> Any:
    return pick.filled(0) if isinstance(pick, Window) else pick


def _ranges_after(view: _View, arrays: Sequence[Any]) -> dict[int, SliceRange]:
    """The ranges of the result of the second stage."""
    axes = [k for k, p in enumerate(arrays) if p is not None]
    ndim = max(_ndim(arrays[k]) for k in axes)
    is_adjacent = axes == list(range(axes[0], axes[-1] + 1))
    place = axes[0] if is_adjacent or ndim == 0 else 0
    ranges: dict[int, SliceRange] = {}
    for k in axes:
        pick = arrays[k]
        if isinstance(pick, Window):
            ranges.update({place + ndim - pick.ndim + j: r for j, r in pick.ranges.items()})
    kept = [k for k, p in enumerate(arrays) if p is None]
    for number, k in enumerate(kept):
        if k in view.ranges:
            ranges[number if number < place else number + ndim] = view.ranges[k]
    return ranges


# ---- writing -----------------------------------------------------------------------------------


def write_window(x: Array, index: object, v: object) -> Any:
    """`x` after ``x[index] = v`` for an index with a part of unknown length."""
    fresh = wrap(x.node) if isinstance(x, Handle) else wrap(constant(np.asarray(x)))
    write_through(fresh, index, v)
    return fresh


def write_through(x: Array | Window, index: object, v: object) -> None:
    """``x[index] = v`` for a tensor or window `x`, which is modified, with the arrays it views."""
    view = _viewed(x, index)
    v = stacked(v) if isinstance(v, list | tuple) else without_selection(v)
    picked = [k for k, p in enumerate(view.picks) if p is not None]
    if not picked:
        view.whole[...] = stored(Window(view.whole, view.ranges), v)
        return
    if all(_ndim(view.picks[k]) == 0 for k in picked):
        static = tuple(_FULL if p is None else p for p in view.picks)
        part = view.whole[static]
        ranges = _ranges_after(view, view.picks)
        view.whole[static] = stored(Window(part, ranges), v) if ranges else v
        return
    others = [k for k in picked if k not in view.masks]
    is_one_mask = len(picked) - len(others) == 1
    is_one_mask = is_one_mask and all(_ndim(view.picks[k]) == 0 for k in others)
    if is_one_mask and (_is_adjacent(picked) or _ndim_of_value(v) == 0):
        _write_masked(view, others, v)
        return
    _scatter(view, v)


def _is_adjacent(axes: Sequence[int]) -> bool:
    return list(axes) == list(range(axes[0], axes[-1] + 1))


def _ndim_of_value(v: object) -> int:
    return v.ndim if isinstance(v, Window) else len(shape_of(v))


def _write_masked(view: _View, others: Sequence[int], v: Any) -> None:
    """A store to the elements of one axis that a mask selects: where(mask, v, x)."""
    ((axis, (mask, r)),) = view.masks.items()
    static = tuple(view.picks[k] if k in others else _FULL for k in range(len(view.picks)))
    part = view.whole[static] if others else view.whole
    place = axis - sum(k < axis for k in others)
    dropped = [k for k in range(len(view.picks)) if k not in others]
    ranges = {dropped.index(k): r for k, r in view.ranges.items()}
    ndim = len(shape_of(part))
    n = shape_of(part)[place]
    inside = _mask_of_axis(mask, r, n)
    rank, count = rank_of_true(inside)
    if _ndim_of_value(v) >= ndim - place and not _is_one(v, place - ndim):
        packed = _from_start(v, place - ndim, count, n)
        moved = taken(
            packed.whole, clipped(rank, 0, as_value(n) - 1), axis=packed.ndim + place - ndim
        )
        packed_ranges = {k: r for k, r in packed.ranges.items() if k != packed.ndim + place - ndim}
        v = Window(moved, packed_ranges) if packed_ranges else moved
    if ranges:
        v = stored(Window(part, ranges), v)
    v = astype(v, dtype_of(part)) if dtype_of(v) != dtype_of(part) else v
    new = where(_along(inside, place, ndim), v, part)
    if others:
        view.whole[static] = new
    else:
        view.whole[...] = new


def _mask_of_axis(mask: Array | Window, r: SliceRange | None, n: Size) -> Any:
    """A mask as an array of the whole axis of length `n`, of which it indexes the range `r`."""
    if r is None and not isinstance(mask, Window):
        return mask
    start = mask.ranges.get(0, SliceRange(0, n)).start if isinstance(mask, Window) else 0
    whole = mask.filled(False) if isinstance(mask, Window) else mask
    first = 0 if r is None else r.start
    if is_same(start, first) and is_same(shape_of(whole)[0], n):
        return whole
    places = positions(n) + (as_value(start) - as_value(first))
    last = as_value(shape_of(whole)[0]) - 1
    inside = lookup("logical_and")(places >= 0, places <= last)
    return lookup("logical_and")(inside, taken(whole, clipped(places, 0, last), axis=0))


def _is_one(v: Array | Window, axis: int) -> bool:
    n = (v.shape if isinstance(v, Window) else shape_of(v))[axis]
    return type(n) is int and n == 1


def _from_start(v: Array | Window, axis: int, count: Array, n: Size) -> Window:
    """A value with its elements at the first of `n` positions of an axis."""
    empty = zeros(Spec((n, *(1,) * (-axis - 1)), _dtype_of_value(v)))
    target = Window(empty, {0: SliceRange(0, count)})
    result: Window = aligned([v, target])[0]
    return result


def _dtype_of_value(v: object) -> np.dtype[Any]:
    return v.dtype if isinstance(v, Window) else dtype_of(v)


def _scatter(view: _View, v: Any) -> None:
    """A store to positions, of which some windows have an unknown number."""
    arrays = _same_ranges(view.picks)
    ranges = _ranges_after(view, arrays)
    windows = [k for k, p in enumerate(arrays) if isinstance(p, Window)]
    shape = shape_of(view.whole)
    padded = view.whole
    index: list[Any] = [_FULL] * len(arrays)
    for k, pick in enumerate(arrays):
        if pick is None:
            continue
        index[k] = pick
        if k not in windows:
            continue
        n = shape[k]
        inside, places = pick.mask(), pick.filled(0)
        places = where(places < 0, places + as_value(n), places)
        outside = lookup("logical_or")(places < 0, places >= as_value(n))
        RuntimeChecks.add(lookup("any")(outside), IndexError(
            f"index is out of bounds for axis {k}{at(user_line())}"
        ))  # fmt: skip
        # Elements outside of the window are stored in one more row, which is dropped.
        index[k] = places if inside is None else where(inside, places, as_value(n))
        row = zeros(Spec((*shape_of(padded)[:k], 1, *shape_of(padded)[k + 1 :]), dtype_of(padded)))
        padded = lookup("concatenate")(padded, row, axis=k)
    part = padded[tuple(index)]
    value = stored(Window(part, ranges), v)
    padded = wrap(padded.node)
    padded[tuple(index)] = value
    kept = tuple(slice(0, shape[k]) if k in windows else _FULL for k in range(len(arrays)))
    view.whole[...] = padded[kept]


def write_into(x: Array, index: object, v: Window) -> Any:
    """The value of ``x[index] = v`` for an index of known lengths."""
    part = x[index]
    ndim = len(shape_of(part))
    ranges = {k + ndim - v.ndim: SliceRange(0, shape_of(part)[k + ndim - v.ndim]) for k in v.ranges}
    return stored(Window(part, ranges), v)


def is_unknown_mask(part: object) -> bool:
    """Whether a part of an index is a mask whose values are not known."""
    return isinstance(part, Handle) and is_traced(part) and dtype_of(part).kind == "b"


setattr(Window, "__getitem__", read_window)  # noqa: B010
setattr(Window, "__setitem__", write_through)  # noqa: B010

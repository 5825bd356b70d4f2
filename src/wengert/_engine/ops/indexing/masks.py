"""Masks in an index, while a graph is built, and the positions at which they are true.

    expanded          replaces a known mask by the positions where it is true
    is_mask_of        whether an index is one mask
    broadcasts        whether x[mask] = v stores the same values at all elements
    chosen            such a store for an unknown mask: `where(mask, v, x)`
    mask              F T T F T
    rank              0 0 1 1 2      cumsum(mask) - 1: the number of each true element
    positions         1 2 4 0 0      a window of length 3
    true_positions    the positions along each axis of a mask, as windows
    rank_of_true      the rank of each element, and the number of true elements
    compacted         the elements of an array that a mask selects, as a window

The number of elements that a mask selects must be known, since it is the length of the result:

Reading with an unknown mask of the shape of the array gives a `Selection` (selection.py), with any
other unknown mask a `Window` (window_access.py).

They are the first elements of an array of the length of the mask:
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle, dtype_of, is_traced, link, shape_of, value_of
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import spelled
from wengert._engine.core.uniform_arrays import zeros
from wengert.errors import ShapeError, TraceError, at, user_line

from ..casts import astype, broadcast_to
from ..creation import positions
from ..elementwise.selection import where
from .slice_ends import SliceRange, as_value, clipped
from .template import IndexSlot
from .window_operators import moved_to_start
from .windows import Window

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


def has_masks(operands: Sequence[Array]) -> bool:
    """Whether one of the arrays of an index is a mask."""
    return any(dtype_of(o).kind == "b" for o in operands)


def expanded(x: Any, template: Any, operands: Any, slot_class: Any) -> tuple[Any, tuple[Any, ...]]:
    """The index with masks replaced by positions.

    Raises
    ------
    TraceError
        A mask is not known.
    ShapeError
        The shape of a mask does not match its axes.
    """
    parts = template if isinstance(template, tuple) else (template,)
    is_slot = [isinstance(p, slot_class) for p in parts]
    single = sum(is_slot) == 1
    expanded_parts: list[Any] = []
    expanded_operands: list[Any] = []
    for i, part in enumerate(parts):
        if not is_slot[i]:
            expanded_parts.append(part)
            continue
        operand = operands[part.k]
        if dtype_of(operand).kind != "b":
            expanded_parts.append(slot_class(len(expanded_operands)))
            expanded_operands.append(operand)
            continue
        if is_traced(operand):
            raise _unknown(x, operand)
        mask = np.asarray(value_of(operand))
        if mask.ndim == 0:
            # Combined with an integer it counts as an index array, which moves axes.
            if not (single and mask) or any(isinstance(p, int) for p in parts):
                raise _unknown(x, operand)
            expanded_parts.append(None)
            continue
        axis = _axis(x, parts, operands, i, slot_class)
        _check(x, mask, axis)
        for axis_positions in np.nonzero(mask):
            expanded_parts.append(slot_class(len(expanded_operands)))
            expanded_operands.append(axis_positions)
    return tuple(expanded_parts), tuple(expanded_operands)


def _unknown(x: Array, mask: Array) -> TraceError:
    return TraceError(
        f"indexing an array of shape {spelled(shape_of(x))} with a mask of shape "
        f"{spelled(shape_of(mask))}: the number of elements depends on values, which are not "
        "known while a graph is built. Select with np.where(mask, x, 0), which keeps the shape "
        "(for x[mask] += v: x = np.where(mask, x + v, x)), or read a fixed number of positions "
        f"(np.argsort, np.take){at(user_line())}."
    )


def _axis(
    x: Array, parts: tuple[Any, ...], operands: list[Array], i: int, slot_class: type[Any]
) -> int:
    """The first axis that part `i` of an index refers to."""

    def axes(part: Any) -> int:
        if part is None or part is Ellipsis:
            return 0
        if isinstance(part, slot_class) and dtype_of(operands[part.k]).kind == "b":
            return len(shape_of(operands[part.k]))
        return 1

    if any(p is Ellipsis for p in parts[:i]):
        return len(shape_of(x)) - sum(map(axes, parts[i:]))
    return sum(map(axes, parts[:i]))


def _check(x: Any, mask: Any, axis: int) -> None:
    if mask.shape != shape_of(x)[axis : axis + mask.ndim]:
        raise ShapeError(
            f"a mask of shape {mask.shape} in an index of an array of shape {spelled(shape_of(x))}:"
            f" the mask must have the shape of the axes that it indexes{at(user_line())}."
        )


def is_mask_of(x: Array, template: object, operands: Sequence[Any]) -> bool:
    """Whether an index is one mask, of the shape of an array or of its first axes."""
    is_only_part = not isinstance(template, tuple) or len(template) == 1
    if not is_only_part or len(operands) != 1 or dtype_of(operands[0]).kind != "b":
        return False
    shape = shape_of(operands[0])
    return bool(shape) and shape_of(x)[: len(shape)] == shape


def broadcasts(x: Array, v: object, mask: Array) -> bool:
    """Whether a value has no axis, or one of length one, for the elements that a mask selects."""
    rest, shape = len(shape_of(x)) - len(shape_of(mask)), shape_of(v)
    return len(shape) <= rest or (
        len(shape) == rest + 1 and type(shape[0]) is int and shape[0] == 1
    )


def chosen(x: Array, v: Any, mask: Array) -> Any:
    """`x` after ``x[mask] = v`` for a mask of unknown values, if `v` broadcasts."""
    rest = len(shape_of(x)) - len(shape_of(mask))
    if len(shape_of(v)) > rest:
        v = v[0]
    shape = shape_of(v)
    if rest:
        mask = mask.reshape((*shape_of(mask), *(1,) * rest))
    v = v if isinstance(v, Handle) else np.asarray(v)
    if dtype_of(v) != dtype_of(x):
        v = astype(v, dtype_of(x))
    if shape:
        v = broadcast_to(v, shape=shape_of(x))
    return where(mask, v, x)


_INTEGER = np.dtype(np.int64)


def rank_of_true(mask: Array) -> tuple[Any, Any]:
    """The rank of each element of a mask of one axis, and the number of true elements."""
    mask = value_of(mask)
    ranks = lookup("cumsum")(lookup("cast")(mask, dtype=_INTEGER), axis=0) - 1
    return ranks, lookup("sum")(mask, axis=None)


def true_positions(mask: Array | Window) -> list[Window]:
    """The positions along each axis of a mask at which it is true.

    Parameters
    ----------
    mask : Tensor, array or Window
        Of booleans; nonzero numbers count as true.
    """
    if isinstance(mask, Window):
        for axis in mask.ranges:
            mask = moved_to_start(mask, axis)
        mask = mask.filled(False)
    mask = mask if isinstance(mask, np.ndarray) else value_of(mask)
    shape = shape_of(mask)
    flat = mask.reshape((-1,))
    if flat.dtype.kind != "b":
        flat = flat != 0
    n = shape_of(flat)[0]
    ranks, count = rank_of_true(flat)
    target = where(flat, ranks, as_value(n))
    ordered = lookup("setitem")(
        zeros(Spec((n + 1,), _INTEGER)), positions(n), target, index=IndexSlot(0)
    )[:n]
    found = []
    for k, length in enumerate(shape):
        inner = math.prod(shape[k + 1 :])
        places = ordered if isinstance(inner, int) and inner == 1 else ordered // as_value(inner)
        found.append(places if k == 0 else places % as_value(length))
    return [Window(p, {0: SliceRange(0, count)}) for p in found]


def compacted(x: Any, mask: Array) -> Window:
    """The elements of an array that a mask of its shape selects, in order; a view of the array."""
    flat = mask.reshape((-1,))
    (places,) = true_positions(flat)
    ranks, _ = rank_of_true(flat)
    last = as_value(shape_of(flat)[0]) - 1

    def take(base: Array) -> Any:
        return base.reshape((-1,))[places.whole]

    def put(base: Array, view: Array) -> Any:
        moved = view[clipped(ranks, 0, last)].reshape(shape_of(base))
        return where(mask, moved, base)

    view = take(x)
    link(view, x, take, put, shares=True)
    return Window(view, places.ranges)

"""Masks in an index, while a graph is built.

The number of elements that a mask selects must be known, since it is the length of the result:

    expanded     replaces a known mask by the positions where it is true
    is_mask_of   whether an index is one mask
    broadcasts   whether x[mask] = v stores the same values at all elements
    chosen       such a store for an unknown mask: `where(mask, v, x)`

Reading with an unknown mask of the shape of the array gives a `Selection` (selection.py), with any
other unknown mask a `Window` (window_access.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle, dtype_of, is_traced, shape_of, value_of
from wengert._engine.core.symbolic.dim import spelled
from wengert.errors import ShapeError, TraceError, at, user_line

from ..casts import astype, broadcast_to
from ..elementwise.selection import where

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

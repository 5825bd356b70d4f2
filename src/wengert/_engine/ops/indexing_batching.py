"""Batching rules of indexing: getitem, setitem, scatter and scatter_add.

NumPy moves the axes of index arrays to the front if slices separate them, so with a leading batch
axis they may be at other positions than for one element.  A rule therefore returns the index for
the batch and a permutation of the axes of its result:

    only the array is batched    x[:, index]            slices and arrays unchanged
    an index array is batched    x[arange(n), index]    one index per batch element
    the array is not batched     x[index]               the index arrays have the batch axis

Reading with a batched mask is an error, because each batch element selects a different number of
elements; writing with one is `where(mask, v, x)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.core.dispatch import apply
from wengert._engine.core.handle import Handle, dtype_of, shape_of
from wengert._engine.core.op import lookup
from wengert._engine.kinds.batching import deepened, fronted, ndim_of, row_ranks
from wengert.errors import ShapeError, at, user_line

from .casts import astype
from .elementwise.selection import where
from .indexing.getitem import IndexSlot, getitem, scatter, setitem
from .indexing.scatter_add import scatter_add
from .shapes import inverse_order, reshape, transpose

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand, Size

Axes = tuple[int, ...]


class ElementIndex(NamedTuple):
    """The axes of the result of indexing one batch element.

    arrays : the number of axes that come from index arrays
    position : the first of these axes
    ndim : the number of axes of the result
    """

    arrays: int
    position: int
    ndim: int


class BatchedIndex(NamedTuple):
    """An index for the batch: template, operands, and the order of the result's axes."""

    template: tuple[Any, ...]
    operands: list[Any]
    order: Axes | None


def array_axes_of(
    parts: Sequence[Any], depths: Sequence[int], masks: Sequence[bool], ndim: int
) -> ElementIndex:
    """The position of the axes from index arrays in NumPy's result.

    Parameters
    ----------
    parts : sequence
        Parts of the index template of one batch element.
    depths, masks : sequence
        For each operand of the index, its number of axes and whether it is a mask.
    ndim : int
        The number of axes of one batch element.
    """
    counts = [d if mask else 1 for d, mask in zip(depths, masks, strict=True)]
    consuming = [p for p in parts if p is not None and p is not Ellipsis]
    used = sum(counts[p.k] if isinstance(p, IndexSlot) else 1 for p in consuming)
    has_arrays = any(isinstance(p, IndexSlot) for p in parts)
    preceding, seen_array, after_gap, axes = 0, False, False, 0
    position = None
    for part in parts:
        if part is None or isinstance(part, slice) or part is Ellipsis:
            preceding += ndim - used if part is Ellipsis else 1
            after_gap = seen_array
            continue
        if not has_arrays:
            continue
        if position is None:
            position = preceding
        elif after_gap:
            position = 0
        seen_array, after_gap = True, False
        if isinstance(part, IndexSlot):
            axes = max(axes, 1 if masks[part.k] else depths[part.k])
    remaining = 0 if any(p is Ellipsis for p in parts) else ndim - used
    return ElementIndex(axes, position or 0, preceding + remaining + axes)


def batched_index(
    index: Any,
    operands: Sequence[Any],
    batched: Sequence[bool],
    x_ndim: int,
    x_batched: bool,
    size: Size,
) -> tuple[BatchedIndex, ElementIndex]:
    """The index for a batch of arrays, each of `x_ndim` axes.

    Raises
    ------
    ShapeError
        A mask is batched.
    """
    parts = index if isinstance(index, tuple) else (index,)
    masks = [dtype_of(o).kind == "b" for o in operands]
    if any(m and b for m, b in zip(masks, batched, strict=True)):
        raise ShapeError(
            "vmap: a mask that differs between batch elements selects a different number of "
            "elements in each, so the results do not form an array. Select with "
            f"np.where(mask, x, 0){at(user_line())}."
        )
    depths = row_ranks(operands, batched)
    element_index = array_axes_of(parts, depths, masks, x_ndim)
    array_axes, position, ndim = element_index
    deepened_operands = [
        deepened(o, array_axes) if b else o for o, b in zip(operands, batched, strict=True)
    ]
    if x_batched and not any(batched):
        order = None
        if position == 0 and _are_separated(parts):
            order = (array_axes, *range(array_axes), *range(array_axes + 1, ndim + 1))
        return BatchedIndex(
            (slice(None), *parts), deepened_operands, _unless_same(order)
        ), element_index
    if x_batched:
        batch_index = reshape(_batch_indices(size), shape=(size, *((1,) * array_axes)))
        order = (
            0,
            *range(1 + array_axes, 1 + array_axes + position),
            *range(1, 1 + array_axes),
            *range(1 + array_axes + position, ndim + 1),
        )
        return BatchedIndex(
            (IndexSlot(len(deepened_operands)), *parts),
            [*deepened_operands, batch_index],
            _unless_same(order),
        ), element_index
    order = (position, *range(position), *range(position + 1, ndim + 1))
    return BatchedIndex(parts, deepened_operands, _unless_same(order)), element_index


def _are_separated(parts: Sequence[Any]) -> bool:
    """Whether there is a slice between the index arrays and integers."""
    if not any(isinstance(p, IndexSlot) for p in parts):
        return False
    selecting = [i for i, p in enumerate(parts) if not _keeps_axis(p)]
    return selecting[-1] - selecting[0] + 1 != len(selecting)


def _keeps_axis(part: Any) -> bool:
    return part is None or part is Ellipsis or isinstance(part, slice)


def _unless_same(order: Axes | None) -> Axes | None:
    return None if order == tuple(range(len(order or ()))) else order


def _batch_indices(size: Size) -> Any:
    if isinstance(size, int):
        return np.arange(size)
    return lookup("arange").record(start=0, stop=size, step=1, dtype=np.dtype(np.int64))


def _read(x: Array, operands: Sequence[Any], index: tuple[Any, ...]) -> Any:
    args = (x, *operands)
    if any(isinstance(a, Handle) for a in args):
        return apply(getitem, args, {"index": index})  # not linked as a view: never written to
    return getitem(*args, index=index)


@getitem.batch
def _getitem_batch(args: list[Array], batched: list[bool], size: Size, *, index: Any) -> Any:
    x, *operands = args
    depth = ndim_of(x) - batched[0]
    batch, _ = batched_index(index, operands, batched[1:], depth, batched[0], size)
    out = _read(x, batch.operands, batch.template)
    return out if batch.order is None else transpose(out, axes=batch.order)


def _ordered(values: Any, batch: BatchedIndex) -> Any:
    """Values with their axes permuted to match the index for the batch."""
    return values if batch.order is None else transpose(values, axes=inverse_order(batch.order))


@scatter.batch
def _scatter_batch(
    args: list[Array], batched: list[bool], size: int, *, index: Any, shape: tuple[int, ...]
) -> Any:
    t, *operands = args
    batch, _ = batched_index(index, operands, batched[1:], len(shape), True, size)
    t = _ordered(fronted(t, batched[0], size), batch)
    return scatter(t, *batch.operands, index=batch.template, shape=(size, *shape))


@scatter_add.batch
def _scatter_add_batch(args: list[Array], batched: list[bool], size: int, *, index: Any) -> Any:
    x, t, *operands = args
    x = fronted(x, batched[0], size)
    batch, _ = batched_index(index, operands, batched[2:], ndim_of(x) - 1, True, size)
    t = _ordered(fronted(t, batched[1], size), batch)
    return scatter_add(x, t, *batch.operands, index=batch.template)


@setitem.batch
def _setitem_batch(args: list[Operand], batched: list[bool], size: Size, *, index: Any) -> Any:
    x, v, *operands = args
    x = fronted(x, batched[0], size)
    masks = [dtype_of(o).kind == "b" for o in operands]
    if any(m and b for m, b in zip(masks, batched[2:], strict=True)):
        return _masked_assignment(x, v, batched[1], operands, index)
    batch, element = batched_index(index, operands, batched[2:], ndim_of(x) - 1, True, size)
    depth = ndim_of(v) - batched[1]
    if depth > element.ndim:  # NumPy drops leading axes of length one when it assigns
        shape = shape_of(v)
        lead = shape[: batched[1]]
        v = reshape(v, shape=(*lead, *shape[len(lead) + depth - element.ndim :]))
    if batched[1] or batch.order is not None:
        v = deepened(v if batched[1] else reshape(v, shape=(1, *shape_of(v))), element.ndim)
        v = _ordered(v, batch)
    return setitem(x, v, *batch.operands, index=batch.template)


def _masked_assignment(x: Any, v: Any, v_batched: bool, operands: Sequence[Any], index: Any) -> Any:
    """x[mask] = v with a mask for each batch element."""
    (mask, *other_operands) = operands
    inner = ndim_of(x) - ndim_of(mask)
    depth = ndim_of(v) - v_batched
    if (
        other_operands
        or not (isinstance(index, IndexSlot) or index == (IndexSlot(0),))
        or depth > inner
    ):
        raise ShapeError(
            "vmap: x[mask] = v with a mask that differs between batch elements requires a v that "
            "is the same for all selected elements. Use np.where(mask, v, x) with a v of the shape "
            f"of x{at(user_line())}."
        )
    mask = reshape(mask, shape=(*shape_of(mask), *((1,) * inner)))
    if v_batched:
        v = deepened(v, ndim_of(x) - 1)
    out = where(mask, v, x)
    return out if dtype_of(out) == dtype_of(x) else astype(out, dtype_of(x))

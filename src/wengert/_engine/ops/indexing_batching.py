"""The batching rules of indexing: getitem, setitem and scatter.

With a leading batch axis NumPy may put the axes of index arrays at other positions than for one
element, because it moves them to the front if slices are between them.  So a rule finds the index
for the batch, and the order in which the axes of its result are read:

    only the array is batched    x[:, index]            slices and arrays unchanged
    an index array is batched    x[arange(n), index]    each element has its own
    the array is not batched     x[index]               the index arrays have the batch axis

A batched mask selects different numbers of elements, so that the results are not an array; but
writing through it is a selection, `where(mask, v, x)`.
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
from .shapes import inverse_order, reshape, transpose

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand, Size

Axes = tuple[int, ...]


class RowIndex(NamedTuple):
    """The axes of the result of an index of one element.

    arrays : the number of axes from index arrays
    position : of these axes
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


def place_of(
    parts: Sequence[Any], depths: Sequence[int], masks: Sequence[bool], ndim: int
) -> RowIndex:
    """The position of the axes from index arrays in NumPy's result.

    Parameters
    ----------
    parts : sequence
        Of the template of one element's index.
    depths, masks : sequence
        The number of axes of each of its operands, and whether it is a mask.
    ndim : int
        The number of axes of one element.
    """
    counts = [d if mask else 1 for d, mask in zip(depths, masks, strict=True)]
    plain = [p for p in parts if p is not None and p is not Ellipsis]
    used = sum(counts[p.k] if isinstance(p, IndexSlot) else 1 for p in plain)
    has_arrays = any(isinstance(p, IndexSlot) for p in parts)
    before, seen, gap, axes = 0, False, False, 0
    position = None
    for part in parts:
        if part is None or isinstance(part, slice) or part is Ellipsis:
            before += ndim - used if part is Ellipsis else 1
            gap = seen
            continue
        if not has_arrays:
            continue
        if position is None:
            position = before
        elif gap:
            position = 0
        seen, gap = True, False
        if isinstance(part, IndexSlot):
            axes = max(axes, 1 if masks[part.k] else depths[part.k])
    rest = 0 if any(p is Ellipsis for p in parts) else ndim - used
    return RowIndex(axes, position or 0, before + rest + axes)


def index_of_rows(
    index: Any,
    operands: Sequence[Any],
    batched: Sequence[bool],
    x_ndim: int,
    x_batched: bool,
    size: Size,
) -> tuple[BatchedIndex, RowIndex]:
    """The index for a batch whose elements have `x_ndim` axes.

    Raises
    ------
    ShapeError
        A mask is batched.
    """
    parts = index if isinstance(index, tuple) else (index,)
    masks = [dtype_of(o).kind == "b" for o in operands]
    if any(m and b for m, b in zip(masks, batched, strict=True)):
        raise ShapeError(
            "vmap: a mask that differs from row to row chooses another number of elements in each, "
            "and no array holds rows of different lengths. Choose with np.where(mask, x, 0)"
            f"{at(user_line())}."
        )
    depths = row_ranks(operands, batched)
    place = place_of(parts, depths, masks, x_ndim)
    k, p, ndim = place
    deep = [deepened(o, k) if b else o for o, b in zip(operands, batched, strict=True)]
    if x_batched and not any(batched):
        order = None
        if p == 0 and _is_apart(parts):
            order = (k, *range(k), *range(k + 1, ndim + 1))
        return BatchedIndex((slice(None), *parts), deep, _unless_same(order)), place
    if x_batched:
        first = reshape(_counted(size), shape=(size, *((1,) * k)))
        order = (0, *range(1 + k, 1 + k + p), *range(1, 1 + k), *range(1 + k + p, ndim + 1))
        return BatchedIndex(
            (IndexSlot(len(deep)), *parts), [*deep, first], _unless_same(order)
        ), place
    order = (p, *range(p), *range(p + 1, ndim + 1))
    return BatchedIndex(parts, deep, _unless_same(order)), place


def _is_apart(parts: Sequence[Any]) -> bool:
    """Whether there is a slice between the index arrays (and numbers)."""
    if not any(isinstance(p, IndexSlot) for p in parts):
        return False
    chosen = [i for i, p in enumerate(parts) if not _is_kept(p)]
    return chosen[-1] - chosen[0] + 1 != len(chosen)


def _is_kept(part: Any) -> bool:
    return part is None or part is Ellipsis or isinstance(part, slice)


def _unless_same(order: Axes | None) -> Axes | None:
    return None if order == tuple(range(len(order or ()))) else order


def _counted(size: Size) -> Any:
    if isinstance(size, int):
        return np.arange(size)
    return lookup("arange").record(start=0, stop=size, step=1, dtype=np.dtype(np.int64))


def _read(x: Array, operands: Sequence[Any], index: tuple[Any, ...]) -> Any:
    args = (x, *operands)
    if any(isinstance(a, Handle) for a in args):
        return apply(getitem, args, {"index": index})  # not linked: it is not written to
    return getitem(*args, index=index)


@getitem.batch
def _getitem_rows(args: list[Array], batched: list[bool], size: Size, *, index: Any) -> Any:
    x, *operands = args
    depth = ndim_of(x) - batched[0]
    rows, _ = index_of_rows(index, operands, batched[1:], depth, batched[0], size)
    out = _read(x, rows.operands, rows.template)
    return out if rows.order is None else transpose(out, axes=rows.order)


def _ordered(values: Any, rows: BatchedIndex) -> Any:
    """Values with their axes in the order of the index for the batch."""
    return values if rows.order is None else transpose(values, axes=inverse_order(rows.order))


@scatter.batch
def _scatter_rows(
    args: list[Array], batched: list[bool], size: int, *, index: Any, shape: tuple[int, ...]
) -> Any:
    t, *operands = args
    rows, _ = index_of_rows(index, operands, batched[1:], len(shape), True, size)
    t = _ordered(fronted(t, batched[0], size), rows)
    return scatter(t, *rows.operands, index=rows.template, shape=(size, *shape))


@setitem.batch
def _setitem_rows(args: list[Operand], batched: list[bool], size: Size, *, index: Any) -> Any:
    x, v, *operands = args
    x = fronted(x, batched[0], size)
    masks = [dtype_of(o).kind == "b" for o in operands]
    if any(m and b for m, b in zip(masks, batched[2:], strict=True)):
        return _chosen(x, v, batched[1], operands, index)
    rows, place = index_of_rows(index, operands, batched[2:], ndim_of(x) - 1, True, size)
    depth = ndim_of(v) - batched[1]
    if depth > place.ndim:  # NumPy drops leading axes of length one when it assigns
        shape = shape_of(v)
        lead = shape[: batched[1]]
        v = reshape(v, shape=(*lead, *shape[len(lead) + depth - place.ndim :]))
    if batched[1] or rows.order is not None:
        v = deepened(v if batched[1] else reshape(v, shape=(1, *shape_of(v))), place.ndim)
        v = _ordered(v, rows)
    return setitem(x, v, *rows.operands, index=rows.template)


def _chosen(x: Any, v: Any, v_batched: bool, operands: Sequence[Any], index: Any) -> Any:
    """x[mask] = v with a mask for each batch element."""
    (mask, *others) = operands
    inner = ndim_of(x) - ndim_of(mask)
    depth = ndim_of(v) - v_batched
    if others or not (isinstance(index, IndexSlot) or index == (IndexSlot(0),)) or depth > inner:
        raise ShapeError(
            "vmap: x[mask] = v with a mask that differs from row to row needs a v that is the same "
            "for all elements of a row. Write np.where(mask, v, x), with a v of the shape of x"
            f"{at(user_line())}."
        )
    mask = reshape(mask, shape=(*shape_of(mask), *((1,) * inner)))
    if v_batched:
        v = deepened(v, ndim_of(x) - 1)
    out = where(mask, v, x)
    return out if dtype_of(out) == dtype_of(x) else astype(out, dtype_of(x))

"""Stores to a computed position of each row of a batch: `x[k] = v` under `vmap`.

The index of the batch is its own number, and one position for each of the next axes:

    out[row] = x[row];  out[row, k[row], ...] = v[row]        (or += v[row])

    RowStore     such a store
    row_store    the store that a call is, or None
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wengert._engine.ops.indexing.template import IndexSlot

from ..llvm.ir.index_analysis import Length, counters
from ..llvm.lowering.gathers import RowGather, known
from ..llvm.lowering.loop_ir import Expr
from ..llvm.schedule.scheduling import owner_of

_WHOLE = slice(None)
_STORES = {"setitem": False, "scatter_add": True}  # and whether it adds


# Types in memory of what is added.
ADDED = {"f4": "float", "f8": "double", "i4": "i32", "i8": "i64"}


@dataclass(frozen=True)
class RowStore:
    """A store.

    Attributes
    ----------
    stage : Expr
        The call, whose operands are the array, the values, and index arrays.
    positions : tuple of Expr
        The index arrays of the axes after the batch.
    is_number : bool
        Whether the same number is stored everywhere.
    adds : bool
        Whether values are added.
    """

    stage: Expr
    positions: tuple[Expr, ...]
    is_number: bool
    adds: bool


def row_store(stage: Expr, rows: Length, kinds: Sequence[Any]) -> RowStore | None:
    """The store that a call is, or None."""
    node = stage.node
    adds = _STORES.get(node.op.name)
    if adds is None:
        return None
    template = node.params["index"]
    template = template if isinstance(template, tuple) else (template,)
    x, v, *arrays = stage.operands
    parts = list(template)
    while parts and (parts[-1] == _WHOLE or parts[-1] is Ellipsis):
        parts.pop()
    if len(parts) < 2 or len(parts) > len(x.shape):
        return None
    if not all(isinstance(p, IndexSlot) for p in parts):
        return None
    first, *others = [arrays[p.k] for p in parts]
    if any(a.shape != (rows,) or a.dtype.kind not in "iu" for a in (first, *others)):
        return None
    if not _counts_rows(first, rows) or x.shape[:1] != (rows,) or v.dtype != x.dtype:
        return None
    is_number = not v.shape
    if not is_number and v.shape != (rows, *x.shape[len(parts) :]):
        return None
    if {k.name for k in kinds} & {"PARTIAL", "STACK"}:
        return None
    if adds and x.dtype.str[1:] not in ADDED:
        return None
    return RowStore(stage, tuple(others), is_number, adds)


def _counts_rows(x: Expr, rows: Length) -> bool:
    """Whether an index array has the number of each row."""
    index = counters(x.shape)
    place = known(RowGather(owner_of(x), index, rows))
    return bool(place == index[0])

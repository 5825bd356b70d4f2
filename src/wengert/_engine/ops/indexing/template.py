"""Indices as data: a static template and arrays.

The parts of an index that are arrays are operands of the operation (without derivative); integers,
slices, ellipsis and None form the template, a parameter.

    IndexSlot      the position of an operand in a template
    split_index    splits an index into template and operands; `join_index` is the inverse
    is_unique      whether no element can be selected twice
    add_at         z[index] += t, with sums over duplicate indices
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle, dtype_of, is_traced, value_of
from wengert.errors import DtypeError, TraceError, at, user_line

from ..joining import stacked

if TYPE_CHECKING:
    from wengert._engine.core.spec import Spec
    from wengert._engine.core.types import Array, Operand


class IndexSlot:
    """Placeholder in an index template for operand number `k`."""

    __slots__ = ("k",)

    def __init__(self, k: int) -> None:
        self.k = k

    def __repr__(self) -> str:
        return f"#{self.k}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IndexSlot) and other.k == self.k

    def __hash__(self) -> int:
        return hash((IndexSlot, self.k))


def split_index(index: Any) -> tuple[Any, tuple[Any, ...]]:
    """An index as (template, operands)."""
    if type(index) is int or index is None or index is Ellipsis:
        return index, ()
    if type(index) is tuple and all(type(part) is int for part in index):
        return index, ()
    parts = index if isinstance(index, tuple) else (index,)
    template: list[Any] = []
    operands: list[Any] = []
    for part in parts:
        if isinstance(part, slice):
            part = slice(*(_plain_int(b) for b in (part.start, part.stop, part.step)))
        elif isinstance(part, Handle | list | tuple | range | np.ndarray | bool | np.bool_):
            template.append(IndexSlot(len(operands)))
            operands.append(_whole(part))
            continue
        elif isinstance(part, np.generic):
            part = part.item()
        template.append(part)
    return (tuple(template) if isinstance(index, tuple) else template[0]), tuple(operands)


def _plain_int(bound: Any) -> Any:
    if isinstance(bound, np.integer):
        return bound.item()
    if not isinstance(bound, Handle):
        return bound
    if not is_traced(bound):
        return value_of(bound).item()
    if "size" in bound.node.params:  # a symbolic size whose value is known
        return bound.node.params["size"]
    raise TraceError(
        "a slice with a bound that is computed from the inputs: how many elements it gives is not "
        "known while a graph is built. Choose with np.where and np.arange, which keeps the shape, "
        f"or take a fixed number of elements from a position, x[i + np.arange(n)]{at(user_line())}."
    )


def _whole(part: Any) -> Any:
    """The array of an index part, if it has integers or booleans; True is a 0-d array."""
    if isinstance(part, list | tuple):
        part = stacked(part)
    if not isinstance(part, Handle):
        part = np.asarray(part)
    dtype = dtype_of(part)
    if dtype.kind not in "biu":
        if not isinstance(part, Handle) and part.size == 0:
            return part.astype(np.intp)
        raise DtypeError(
            f"an index of dtype {dtype}: positions are integers, or a boolean mask. Cast it, "
            f"index.astype(int){at(user_line())}."
        )
    return part


def join_index(template: Any, operands: Sequence[Array | Spec]) -> Any:
    """The index in NumPy's form."""
    if not operands:
        return template
    if isinstance(template, tuple):
        return tuple(operands[p.k] if isinstance(p, IndexSlot) else p for p in template)
    return operands[template.k]


def is_unique(index: Operand | slice | tuple[Any, ...]) -> bool:
    """Whether no element can be selected twice: no integer arrays in the index."""
    parts = index if isinstance(index, tuple) else (index,)
    return not any(isinstance(p, np.ndarray) and p.dtype != bool for p in parts)


def add_at(z: np.ndarray[Any, Any], index: Any, t: Any) -> None:
    """``z[index] += t``, with sums over duplicate indices."""
    if type(index) is int or is_unique(index):
        z[index] += t
    elif z.ndim > 1 and z.flags.c_contiguous and np.size(t) * 8 > z.size:
        # NumPy's ufunc.at is several times faster along one axis than along more.
        positions = np.arange(z.size).reshape(z.shape)[index]
        np.add.at(z.reshape(-1), positions.ravel(), np.broadcast_to(t, positions.shape).ravel())
    else:
        np.add.at(z, index, t)

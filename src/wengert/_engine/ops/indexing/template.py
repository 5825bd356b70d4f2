"""Indices as a static template and arrays.

The arrays of an index are operands of the operation (without derivative); integers, slices,
ellipsis and None form the template, a static parameter.

    IndexSlot      the position of an operand in a template
    split_index    splits an index into template and operands; `join_index` is the inverse
    is_unique      whether no element can be selected twice
    add_at         z[index] += t, accumulating repeated indices

Indices that may be out of bounds inside of a ``try`` statement that expects this.

    try: v = x[k]            # in a compiled program the index is checked when it runs
    except IndexError: v = 0.0

refuse_caught    refuse computed indices that are not known to be in range
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle, dtype_of, is_traced, shape_of, value_of
from wengert._engine.core.runtime_checks import may_be_caught
from wengert._engine.core.symbolic.dim import Dim, is_open
from wengert._engine.ops.joining import stacked
from wengert.errors import DtypeError, TraceError, at, user_line

from .slice_ends import linear
from .traced_slices import (
    DynamicSlice,
    axis_length,
    constant_slice,
    has_local_axis,
    is_computed,
    is_inside,
    named_slice,
    unknown_length,
)

if TYPE_CHECKING:
    from wengert._engine.core.spec import Spec
    from wengert._engine.core.types import Array, Operand

_INDEX_ARRAYS = (Handle, list, tuple, range, np.ndarray, bool, np.bool_)


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


def split_index(index: Any, x: Any = None) -> tuple[Any, tuple[Any, ...]]:
    """An index of `x` as (template, operands)."""
    if x is not None and has_local_axis(x):
        index = _with_computed_lengths(index, x)
    if type(index) is int or index is None or index is Ellipsis:
        return index, ()
    if type(index) is tuple and all([type(part) is int for part in index]):
        return index, ()
    parts = index if isinstance(index, tuple) else (index,)
    template: list[Any] = []
    operands: list[Any] = []
    for k, part in enumerate(parts):
        if isinstance(part, slice):
            if x is not None and is_computed(part):
                part = named_slice(part, axis_length(x, parts, k))
            part = slice(*(_plain_int(b) for b in (part.start, part.stop, part.step)))
        elif isinstance(part, _INDEX_ARRAYS):
            template.append(IndexSlot(len(operands)))
            operands.append(_index_array(part))
            continue
        elif isinstance(part, np.generic):
            part = part.item()
        elif getattr(type(part), "is_window", False):
            raise DynamicSlice(
                "an index with positions whose number is not known while a graph is built. Read or "
                "assign with it, x[i] and x[i] = v, or write a loop over the positions"
                f"{at(user_line())}."
            )
        elif hasattr(type(part), "__array__"):  # of pandas, for example
            template.append(IndexSlot(len(operands)))
            operands.append(_index_array(np.array(part)))  # a copy: it may be modified later
            continue
        template.append(part)
    if operands and x is not None:
        refuse_caught(x, operands)
    return (tuple(template) if isinstance(index, tuple) else template[0]), tuple(operands)


def _with_computed_lengths(index: Any, x: Any) -> Any:
    """An index with constants that may be out of range as computed ones.

    The lengths of some axes are known only within a step of a loop.
    """
    parts = list(index) if isinstance(index, tuple) else [index]
    for k, part in enumerate(parts):
        is_slice = isinstance(part, slice)
        if not is_slice and (isinstance(part, bool) or not isinstance(part, int | np.integer)):
            continue
        length = axis_length(x, parts, k)
        if not is_open(length):
            continue
        if not is_slice:
            if not is_inside(int(part), length):
                parts[k] = np.asarray(part)
        elif not is_computed(part):
            bounds = [_plain_int(b) for b in (part.start, part.stop, part.step)]
            if not any(isinstance(b, Dim) for b in bounds):
                parts[k] = constant_slice(slice(*bounds), length)
    return tuple(parts) if isinstance(index, tuple) else parts[0]


def _plain_int(bound: Any) -> Any:
    if isinstance(bound, np.integer):
        return bound.item()
    if not isinstance(bound, Handle):
        return bound
    if not is_traced(bound):
        return value_of(bound).item()
    if "size" in bound.node.params:  # a symbolic size whose value is known
        return bound.node.params["size"]
    raise unknown_length()


def _index_array(part: Any) -> Any:
    """An index part as an array of integers or booleans; True is a 0-d array."""
    if isinstance(part, list | tuple):
        part = stacked(part)
    if not isinstance(part, Handle):
        part = np.asarray(part)
    dtype = dtype_of(part)
    if dtype.kind not in "biu":
        if not isinstance(part, Handle) and part.size == 0:
            return part.astype(np.intp)
        raise DtypeError(
            f"index arrays must have integers or booleans, got {dtype}. Cast with index.astype(int)"
            f"{at(user_line())}."
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
    """Whether no element can be selected twice, as the index has no integer arrays."""
    parts = index if isinstance(index, tuple) else (index,)
    return not any(isinstance(p, np.ndarray) and p.dtype != bool for p in parts)


def add_at(z: np.ndarray[Any, Any], index: Any, t: Any) -> None:
    """``z[index] += t``, accumulating repeated indices."""
    if type(index) is int or is_unique(index):
        z[index] += t
    elif z.ndim > 1 and z.flags.c_contiguous and np.size(t) * 8 > z.size:
        # NumPy's ufunc.at is several times faster along one axis than along several.
        positions = np.arange(z.size).reshape(z.shape)[index]
        np.add.at(z.reshape(-1), positions.ravel(), np.broadcast_to(t, positions.shape).ravel())
    else:
        np.add.at(z, index, t)


def detached(part: np.ndarray[Any, Any]) -> Any:
    """A copy of a small view, which would keep the memory of a large array alive.

    Strides determine which operations return views, so noncontiguous arrays of more than one axis
    are not copied.
    """
    if part.flags.c_contiguous:
        return part.copy()
    if part.ndim != 1:
        return part
    spaced_copy = np.empty(2 * part.size, part.dtype)[:: 2 if part.strides[0] > 0 else -2]
    spaced_copy[...] = part
    return spaced_copy


def refuse_caught(x: Any, operands: Sequence[Any]) -> None:
    """Refuse computed indices whose IndexError a try statement of the user's would catch.

    Raises
    ------
    TraceError
    """
    if not operands or not any(map(is_traced, operands)):
        return
    if not may_be_caught(IndexError, by_name=True):
        return
    shape = shape_of(x)
    if len(operands) == 1 and not shape_of(operands[0]) and shape:
        form = linear(operands[0])
        if form.is_at_least_zero() and linear(shape[0] - 1).plus(form, -1).is_at_least_zero():
            return
    raise TraceError(
        "a try statement catches IndexError, and whether an index is out of bounds depends on "
        "values that are not known while a graph is built. Compare it with the length, "
        f"if 0 <= i < len(x): ... else: ...{at(user_line())}."
    )

"""Joining and splitting arrays, with NumPy's names.

    joining      concatenate, concat, stack, vstack, row_stack, hstack, dstack, column_stack, block
    longer       append, insert, delete, tile, repeat
    splitting    split, array_split, hsplit, vsplit, dsplit, unstack

The pieces of a split are views, as in NumPy.  `insert` and `delete` are gathers, whose indices are
computed by applying NumPy's function to an index array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wengert._engine.core import loop_rows
from wengert._engine.core.handle import Handle, shape_of
from wengert._engine.core.node_properties import sizes_of
from wengert._engine.core.symbolic.dim import Dim, bounds, divided, is_symbolic
from wengert._engine.ops import casts, joining
from wengert._engine.ops.indexing import getitem
from wengert._engine.tensor.numpy_dispatch import as_array, counterpart, lengths, spread
from wengert._engine.tensor.numpy_protocols import deliver
from wengert._engine.tensor.operand_conversion import length, needed

from ..errors import DtypeError, ShapeError, TraceError, at, user_line
from .shape_manipulation import atleast_1d, atleast_2d, atleast_3d, ravel

__all__ = [
    "concatenate", "concat", "stack", "vstack", "row_stack", "hstack", "dstack", "column_stack",
    "block", "append", "insert", "delete", "tile", "repeat", "split", "array_split", "hsplit",
    "vsplit", "dsplit", "unstack",
]  # fmt: skip


# ---- joining -----------------------------------------------------------------------------------


def _pieces(arrays: Any) -> list[Any]:
    """The operands of a join: along the first axis of a tensor, or the items of a list."""
    if isinstance(arrays, Handle):
        return [getitem.read(arrays, i) for i in range(len(arrays))]  # type: ignore[arg-type]
    return [as_array(a) for a in arrays]


def _with_options(result: Any, pieces: Sequence[Any], out: Any, dtype: Any, casting: Any) -> Any:
    """`dtype=` and `out=` of a join."""
    if dtype is not None:
        for a in pieces:
            if not np.can_cast(a.dtype, dtype, casting):
                raise DtypeError(
                    f"concatenate: {a.dtype} cannot be cast to {np.dtype(dtype)} with casting="
                    f"{casting!r}. Cast it first, or pass another casting{at(user_line())}."
                )
        result = casts.astype(result, dtype)
    return result if out is None else deliver(result, out)


@counterpart(np.concatenate, np.concat)
def concatenate(
    arrays: Any, /, axis: int | None = 0, out: Any = None, *, dtype: Any = None,
    casting: Any = "same_kind",
) -> Any:  # fmt: skip
    """Concatenate arrays along an existing axis; see `numpy.concatenate`.

    Parameters
    ----------
    arrays : sequence of array_like
        Of equal shape except along the axis.
    axis : int or None, default 0
        None to flatten them first.
    out : array or Tensor, optional
    dtype : dtype, optional
        Dtype of the result; by default the common dtype.
    casting : str
        The casts that are allowed for `dtype`.

    Examples
    --------
    >>> import wengert as wg, wengert.numpy as wnp
    >>> wnp.concatenate([wg.tensor([1.0]), [2.0, 3.0]])
    Tensor([1., 2., 3.], dtype=float64)
    """
    if axis == 0 and not isinstance(arrays, Handle):
        found = loop_rows.whole(arrays)
        if found is not None and found.ndim > 1:
            shape = found.shape
            made = found.reshape((shape[0] * shape[1], *shape[2:]))
            return _with_options(made, [made], out, dtype, casting)
    pieces = _pieces(arrays)
    if axis is None:
        pieces, axis = [ravel(a) for a in pieces], 0
    return _with_options(joining.concatenate(*pieces, axis=axis), pieces, out, dtype, casting)


concat = concatenate


@counterpart(np.stack)
def stack(
    arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Any:
    """Stack arrays of equal shape along a new axis; see `numpy.stack`."""
    found = None if isinstance(arrays, Handle) else loop_rows.whole(arrays)
    if found is not None:
        return _with_options(np.moveaxis(found, 0, axis), [found], out, dtype, casting)
    pieces = _pieces(arrays)
    return _with_options(joining.stack(*pieces, axis=axis), pieces, out, dtype, casting)


@counterpart(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """Stack arrays vertically; see `numpy.vstack`."""
    found = None if isinstance(tup, Handle) else loop_rows.whole(tup)
    if found is not None and found.ndim < 3:
        made = found.reshape((-1, 1)) if found.ndim == 1 else found
        return _with_options(made, [made], None, dtype, casting)
    return concatenate([atleast_2d(a) for a in _pieces(tup)], dtype=dtype, casting=casting)


row_stack = vstack


@counterpart(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """Stack arrays horizontally; see `numpy.hstack`."""
    pieces = [atleast_1d(a) for a in _pieces(tup)]
    axis = 0 if pieces and pieces[0].ndim == 1 else 1
    return concatenate(pieces, axis, dtype=dtype, casting=casting)


@counterpart(np.dstack)
def dstack(tup: Any) -> Any:
    """Stack arrays along the third axis; see `numpy.dstack`."""
    return concatenate([atleast_3d(a) for a in _pieces(tup)], 2)


@counterpart(np.column_stack)
def column_stack(tup: Any) -> Any:
    """Stack 1-d arrays as columns; see `numpy.column_stack`."""
    return concatenate([a if a.ndim > 1 else a.reshape((-1, 1)) for a in _pieces(tup)], 1)


@counterpart(np.block)
def block(arrays: Any) -> Any:
    """A matrix from nested lists of blocks; see `numpy.block`."""
    if isinstance(arrays, Handle):
        return arrays.copy()  # type: ignore[attr-defined]
    # NumPy checks the nesting and the shapes, of placeholders without memory.
    shapes = [shape_of(a) for a in _leaves(arrays)]
    if not any(map(is_symbolic, shapes)):
        np.block(_nested(arrays, lambda a: np.broadcast_to(np.False_, shape_of(a))))
    depth = _depth(arrays)
    ndim = max(depth, *map(len, shapes))
    return _block(arrays, depth, ndim)


def _nested(x: Any, f: Any) -> Any:
    return [_nested(item, f) for item in x] if isinstance(x, list) else f(x)


def _leaves(x: Any) -> list[Any]:
    return [leaf for item in x for leaf in _leaves(item)] if isinstance(x, list) else [x]


def _depth(x: Any) -> int:
    return 1 + _depth(x[0]) if isinstance(x, list) else 0


def _block(x: Any, depth: int, ndim: int) -> Any:
    if not isinstance(x, list):
        a = as_array(x)
        return a.reshape((1,) * (ndim - a.ndim) + a.shape)
    return joining.concatenate(*[_block(item, depth - 1, ndim) for item in x], axis=-depth)


# ---- longer and shorter ------------------------------------------------------------------------


@counterpart(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """Append values; see `numpy.append`."""
    arr, values = as_array(arr), as_array(values)
    if axis is None:
        arr, values, axis = ravel(arr), ravel(values), 0
    return joining.concatenate(arr, values, axis=axis)


@counterpart(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """Insert values before given positions; see `numpy.insert`."""
    arr = as_array(arr)
    if axis is None:
        arr, axis = ravel(arr), 0
    axis = normalize_axis_index(axis, arr.ndim)
    obj = _positions(obj, "np.insert")
    n = arr.shape[axis]
    values = as_array(values)
    if isinstance(n, Dim):
        return _inserted(arr, _single(obj, n, n + 1, "np.insert"), values, axis)
    one = np.ndim(obj) == 0 and not isinstance(obj, slice)
    if np.size(np.arange(n)[obj] if isinstance(obj, slice) else obj) == 1:
        values = values.reshape((1,) * (arr.ndim - values.ndim) + values.shape)
        if one:
            values = np.moveaxis(values, 0, axis)
        k = values.shape[axis]
    else:
        k = np.insert(np.arange(n), obj, -1).size - n
    shape = (*arr.shape[:axis], k, *arr.shape[axis + 1 :])
    added = spread(values, shape)
    added = casts.astype(added, arr.dtype)
    source = np.insert(np.arange(n), obj, n + np.arange(k))
    both = joining.concatenate(arr, added, axis=axis)
    return getitem.read(both, (*[slice(None)] * axis, source))


def _positions(obj: Any, what: str) -> Any:
    """Positions, which must be concrete, as an int, a slice or an array."""
    remedy = "Pass concrete positions, or select with np.where"
    obj = needed(obj, what, "the positions in the result", remedy)
    return obj if isinstance(obj, slice | int) else _whole(obj)


def _whole(numbers: Any) -> Any:
    """The numbers as an array; an empty list becomes integers, as in NumPy."""
    array = np.asarray(numbers)
    empty = array.size == 0 and isinstance(numbers, list | tuple)
    return array.astype(np.intp) if empty else array


def _single(obj: Any, n: Any, end: Any, what: str) -> Any:
    """A single position along an axis of length n, below `end`, as a nonnegative number."""
    place = int(obj) if isinstance(obj, int) or getattr(obj, "ndim", 1) == 0 else None
    room = None if place is None or place < -1 else bounds(end - max(place, 0) - 1)[0]
    if place is None or room is None or room < 0:
        raise TraceError(
            f"{what} along an axis of length {n}: for a symbolic length the position must be a "
            "number that is valid for all lengths (0 or -1). Use np.concatenate of slices instead"
            f"{at(user_line())}."
        )
    return place if place >= 0 else place + n


def _inserted(arr: Any, place: Any, values: Any, axis: int) -> Any:
    values = values.reshape((1,) * (arr.ndim - values.ndim) + values.shape)
    values = np.moveaxis(values, 0, axis)
    shape = (*arr.shape[:axis], values.shape[axis], *arr.shape[axis + 1 :])
    added = casts.astype(spread(values, shape), arr.dtype)
    before = (slice(None),) * axis
    low = getitem.read(arr, (*before, slice(0, place)))
    high = getitem.read(arr, (*before, slice(place, arr.shape[axis])))
    return joining.concatenate(low, added, high, axis=axis)


@counterpart(np.delete)
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """The array without the elements at the given positions; see `numpy.delete`."""
    arr = as_array(arr)
    if axis is None:
        arr, axis = ravel(arr), 0
    axis = normalize_axis_index(axis, arr.ndim)
    obj, n = _positions(obj, "np.delete"), arr.shape[axis]
    if isinstance(n, Dim):
        k, before = _single(obj, n, n, "np.delete"), (slice(None),) * axis
        parts = [getitem.read(arr, (*before, s)) for s in (slice(0, k), slice(k + 1, n))]
        return joining.concatenate(*parts, axis=axis)
    kept = np.delete(np.arange(n), obj)
    return getitem.read(arr, (*[slice(None)] * axis, kept))


@counterpart(np.tile)
def tile(A: Any, reps: Any) -> Any:
    """The array repeated along its axes; see `numpy.tile`."""
    A = as_array(A)
    reps = lengths(reps)
    ndim = max(A.ndim, len(reps))
    shape = (1,) * (ndim - A.ndim) + A.shape
    reps = (1,) * (ndim - len(reps)) + reps
    lined = A.reshape(tuple(m for n in shape for m in (1, n)))
    full = spread(lined, tuple(m for r, n in zip(reps, shape, strict=True) for m in (r, n)))
    return full.reshape(tuple(r * n for r, n in zip(reps, shape, strict=True))).copy()


@counterpart(np.repeat)
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """Each element several times; see `numpy.repeat`."""
    a = as_array(a)
    if axis is None:
        a, axis = ravel(a), 0
    axis = normalize_axis_index(axis, a.ndim)
    k, n = repeats, a.shape[axis]
    if not isinstance(repeats, Dim):
        many = "how many elements there are"
        repeats = needed(repeats, "np.repeat", many, "Pass concrete numbers of repeats")
        counts = _whole(repeats)
        if counts.size != 1:
            if isinstance(n, Dim):
                raise ShapeError(
                    f"np.repeat with {counts.size} counts along an axis of length {n}: whether "
                    f"these are equal is unknown. Use a concrete length{at(user_line())}."
                )
            source = np.repeat(np.arange(n), counts)
            return getitem.read(a, (*[slice(None)] * axis, source))
        k = int(counts.ravel()[0])
        np.repeat(np.empty(0), counts)  # raises where NumPy does
    before, after = a.shape[:axis], a.shape[axis + 1 :]
    repeated = casts.broadcast_to(a.reshape((*before, n, 1, *after)), shape=(*before, n, k, *after))
    return repeated.reshape((*before, n * k, *after)).copy()


# ---- splitting ---------------------------------------------------------------------------------


def _cut(ary: Any, sections: Any, axis: int, how: Any) -> list[Any]:
    """Pieces whose lengths are computed by NumPy, by splitting 0, 1, 2, ..."""
    before = (slice(None),) * axis
    n = ary.shape[axis]
    remedy = "Pass them as numbers"
    sections = needed(sections, f"np.{how.__name__}", "how many pieces there are", remedy)
    if isinstance(n, Dim) or sizes_of(sections):
        ends = _ends(n, sections)
        slices = [slice(a, b) for a, b in zip([0, *ends], [*ends, n], strict=True)]
        return [getitem.read(ary, (*before, s)) for s in slices]
    pieces = []
    for part in how(np.arange(n), sections):
        start = int(part[0]) if part.size else 0
        pieces.append(getitem.read(ary, (*before, slice(start, start + part.size))))
    return pieces


def _ends(n: Any, sections: Any) -> list[Any]:
    """The split positions of an axis of symbolic length."""
    if not isinstance(sections, int | np.integer):
        return [
            length(k) for k in (sections if isinstance(sections, list | tuple) else [*sections])
        ]
    k = int(sections)
    if k <= 0:
        raise ValueError("number sections must be larger than 0.")
    each = divided(n, k)
    if each is None:
        raise TraceError(
            f"a split of an axis of length {n} into {k}: whether the pieces are equal depends on "
            f"the size, which is unknown while a graph is built. Use the symbolic size '{k}*m', or "
            f"a concrete length{at(user_line())}."
        )
    return [each * i for i in range(1, k)]


@counterpart(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Equal pieces, or pieces between given positions; see `numpy.split`."""
    ary = as_array(ary)
    axis = normalize_axis_index(axis, ary.ndim)
    return _cut(ary, indices_or_sections, axis, np.split)


@counterpart(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Pieces as equal as possible; see `numpy.array_split`."""
    ary = as_array(ary)
    axis = normalize_axis_index(axis, ary.ndim)
    return _cut(ary, indices_or_sections, axis, np.array_split)


def _split_along(name: str, axis: int, ary: Any, sections: Any) -> list[Any]:
    if ary.ndim < axis + 1:
        raise ValueError(f"{name} only works on arrays of {axis + 1} or more dimensions")
    return split(ary, sections, axis)


@counterpart(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Split along the second axis, or the only one; see `numpy.hsplit`."""
    ary = as_array(ary)
    return _split_along("hsplit", 0 if ary.ndim == 1 else 1, ary, indices_or_sections)


@counterpart(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Split along the first axis; see `numpy.vsplit`."""
    ary = as_array(ary)
    if ary.ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(ary, indices_or_sections, 0)


@counterpart(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Split along the third axis; see `numpy.dsplit`."""
    ary = as_array(ary)
    return _split_along("dsplit", 2, ary, indices_or_sections)


@counterpart(np.unstack)
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The slices along an axis, without it; see `numpy.unstack`."""
    x = as_array(x)
    if x.ndim == 0:
        raise ValueError("Input array must be at least 1-d.")
    axis = normalize_axis_index(axis, x.ndim)
    before = (slice(None),) * axis
    return tuple(getitem.read(x, (*before, i)) for i in range(x.shape[axis]))

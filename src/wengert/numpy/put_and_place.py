"""Writing: NumPy's functions that assign to elements of an array.

put, put_along_axis   at positions
place, putmask        where a mask is true
copyto                all elements, or where a mask is true

All are x[index] = v; the last write to a position wins.  For traced positions the flattened array
is written to; traced masks become selections (`where`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, is_traced, shape_of
from wengert._engine.core.symbolic.dim import is_symbolic
from wengert._engine.ops import casts, shapes
from wengert._engine.ops.elementwise import selection
from wengert._engine.ops.indexing import getitem
from wengert._engine.tensor.numpy_dispatch import (
    as_array,
    counterpart,
    dtype_of,
    numbers,
    plain,
    spread,
    values,
    write,
)

from .indexing import along, checked_along, in_range
from .shape_manipulation import own_copy, ravel

__all__ = ["put", "put_along_axis", "place", "putmask", "copyto"]


@counterpart(np.put)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write to positions of the flattened array; see `numpy.put`."""
    positions = in_range(values(ind), a.size, mode).ravel()
    new = shapes.reshape(as_array(v), shape=(-1,))
    if positions.size == 0 or new.size == 0:
        return
    if new.size != positions.size:
        new = getitem.read(new, numbers(positions.size) % new.size)
    if is_traced(positions) or is_symbolic(shape_of(a)):
        _write_flat(a, positions, new, "put")
        return
    if positions.min() < -a.size or positions.max() >= a.size:
        bad = positions[(positions < -a.size) | (positions >= a.size)][0]
        raise IndexError(f"index {bad} is out of bounds for axis 0 with size {a.size}")
    write(a, np.unravel_index(positions % a.size, a.shape), new, "put")


def _write_flat(a: Any, positions: Any, new: Any, what: str) -> None:
    """Write to positions of the flattened array, if they or its lengths are unknown."""
    flat = shapes.reshape(own_copy(as_array(a)), shape=(-1,))
    written = getitem.written(flat, positions, new)
    write(a, Ellipsis, shapes.reshape(written, shape=shape_of(a)), what)


@counterpart(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """Write to positions along an axis, for each 1-D slice; see `numpy.put_along_axis`."""
    if axis is None:
        if is_traced(indices) or is_symbolic(shape_of(arr)):
            _write_flat(arr, as_array(indices), values, "put_along_axis")
            return
        write(arr, np.unravel_index(plain(indices) % arr.size, arr.shape), values, "put_along_axis")
        return
    _, indices, axis = checked_along(arr, indices, axis)
    chosen = indices if is_traced(indices) else plain(indices)
    write(arr, along(arr.shape, chosen, axis), values, "put_along_axis")


@counterpart(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write the values in sequence where the mask is true; see `numpy.place`."""
    new = as_array(vals)
    if is_traced(mask) or is_symbolic(shape_of(arr)):
        chosen = values(mask).astype(bool)
        before = np.cumsum(chosen).reshape(chosen.shape) - 1
        _choose_into(arr, chosen, ravel(new), before, "place")
        return
    where_to = np.flatnonzero(plain(mask))
    if where_to.size and new.size == 0:
        raise ValueError("Cannot insert from an empty array!")
    put(arr, where_to, new) if isinstance(arr, Handle) else write(
        arr, np.unravel_index(where_to, arr.shape), new, "place"
    )


def _choose_into(arr: Any, mask: Any, new: Any, which: Any, what: str) -> None:
    """Write `new[which]`, with wrap-around, where an unknown mask is true."""
    if new.size == 0:
        raise ValueError("Cannot insert from an empty array!")
    fitting = casts.astype(getitem.read(new, which % new.size), arr.dtype)
    write(arr, Ellipsis, selection.where(mask, fitting, arr), what)


@counterpart(np.putmask)
def putmask(a: Any, /, mask: Any, values: Any) -> None:
    """Write values at the same positions where the mask is true; see `numpy.putmask`."""
    flat = shapes.reshape(as_array(values), shape=(-1,))
    if is_traced(mask) or is_symbolic(shape_of(a)):
        if flat.size:
            which = numbers(as_array(a).size).reshape(shape_of(a))
            chosen = mask if is_traced(mask) else plain(mask)
            _choose_into(a, casts.astype(chosen, bool), flat, which, "putmask")
        return
    where_to = np.flatnonzero(plain(mask))
    if where_to.size and flat.size:
        chosen = getitem.read(flat, where_to % flat.size)
        write(a, np.unravel_index(where_to, a.shape), chosen, "putmask")


@counterpart(np.copyto)
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Write an array into another; see `numpy.copyto`."""
    src = as_array(src)
    given = dtype_of(src)
    if not isinstance(given, np.dtype):  # a Python number, whose dtype is weak
        given = np.result_type(given, dst.dtype)
    if not np.can_cast(given, dst.dtype, casting):
        raise TypeError(
            f"Cannot cast array data from {given!r} to {dst.dtype!r} according to the rule "
            f"{casting!r}"
        )
    if where is True:
        write(dst, Ellipsis, src, "copyto")
        return
    mask = spread(values(where), dst.shape)
    if is_traced(mask) or is_symbolic(dst.shape):
        fitting = casts.astype(spread(src, dst.shape), dst.dtype)
        write(dst, Ellipsis, selection.where(mask, fitting, dst), "copyto")
        return
    write(dst, mask, getitem.read(spread(src, dst.shape), mask), "copyto")

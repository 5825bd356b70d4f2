"""Shape manipulation: NumPy's functions that rearrange elements.

    order of axes      transpose, permute_dims, moveaxis, swapaxes, rollaxis, matrix_transpose
    number of axes     reshape, ravel, squeeze, expand_dims, atleast_1d/2d/3d, resize
    order of elements  flip, fliplr, flipud, rot90, roll
    repetition         broadcast_to, broadcast_arrays
    diagonals          diagonal, diag, diagflat, tril, triu, trace, fill_diagonal
    type and memory    copy, astype, trim_zeros

If NumPy returns a view, the result is a tensor that is a view in the same sense: a write to one
changes the other, also for derivatives.  `pad` is in padding.py.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from wengert._engine.core.handle import (
    Handle,
    is_contiguous,
    is_traced,
    note_unknown_layout,
    shape_of,
    wrap,
)
from wengert._engine.core.node import Node
from wengert._engine.core.recording import current_trace
from wengert._engine.core.symbolic.dim import Dim, is_symbolic, spelled
from wengert._engine.ops import casts, shapes
from wengert._engine.ops.creation import triangle_mask
from wengert._engine.ops.elementwise import selection
from wengert._engine.ops.indexing import getitem
from wengert._engine.tensor.numpy_dispatch import (
    as_array,
    broadcast_shapes,
    check_device,
    counterpart,
    lengths,
    numbers,
    plain,
    spread,
    write,
)
from wengert._engine.tensor.numpy_protocols import deliver
from wengert._engine.tensor.operand_conversion import length, needed
from wengert.errors import ShapeError, TraceError, at, user_line

__all__ = [
    "reshape", "ravel", "transpose", "permute_dims", "moveaxis", "swapaxes", "rollaxis",
    "matrix_transpose", "squeeze", "expand_dims", "atleast_1d", "atleast_2d", "atleast_3d",
    "resize", "flip", "fliplr", "flipud", "rot90", "roll", "broadcast_to", "broadcast_arrays",
    "diagonal", "diag", "diagflat", "tril", "triu", "trace", "fill_diagonal", "copy", "astype",
    "trim_zeros",
]  # fmt: skip


# ---- number of axes ----------------------------------------------------------------------------


def order_in_memory(a: Any, order: str) -> str:
    """Replace order A by C or F according to the layout of the value, as NumPy does."""
    if order in ("A", "a"):
        if len(shape_of(a)) < 2:
            return "C"
        _layout(a, f"order={order!r}")
        flags = plain(a).flags
        return "F" if flags.f_contiguous and not flags.c_contiguous else "C"
    return order.upper()


def _layout(a: Any, what: str) -> None:
    """Raise an error if the result depends on an unknown memory layout."""
    if is_traced(a):
        raise TraceError(
            f"{what} depends on the memory layout of {a.node.spec}, which is unknown while a graph "
            f"is built. Pass order='C' or order='F'{at(user_line())}."
        )


@counterpart(np.reshape)
def reshape(a: Any, /, shape: Any, order: Any = "C", *, copy: bool | None = None) -> Any:
    """The same elements in another shape; see `numpy.reshape`.

    Parameters
    ----------
    a : array_like
    shape : int or tuple of int
        One length may be -1.
    order : {"C", "F", "A"}
    copy : bool, optional
        True always copies; False raises an error if a view is impossible.

    Examples
    --------
    >>> import wengert as wg, wengert.numpy as wnp
    >>> wnp.reshape(wg.tensor([1.0, 2.0, 3.0, 4.0]), (2, 2))
    Tensor([[1., 2.],
            [3., 4.]], dtype=float64)
    """
    order = order_in_memory(a, order)
    if copy is False:
        _layout(a, "copy=False")
        np.reshape(plain(a), shape, order, copy=False)  # raises where NumPy does
    out = shapes.reshape(a, shape=lengths(shape), order=order)
    return own_copy(out) if copy else out


@counterpart(np.ravel)
def ravel(a: Any, order: Any = "C") -> Any:
    """The flattened array, a view where NumPy returns one; see `numpy.ravel`."""
    if order in ("K", "k") and len(shape_of(a)) < 2:
        order = "C"
    if order in ("K", "k"):
        _layout(a, f"order={order!r}")
        strides = [abs(n) for n in plain(a).strides]
        if strides != sorted(strides, reverse=True):
            a = shapes.transpose(a, axes=tuple(np.argsort([-n for n in strides], kind="stable")))
        order = "C"
    out = shapes.reshape(a, shape=(-1,), order=order_in_memory(a, order))
    if is_traced(out):
        if len(shape_of(a)) and not (order == "C" and is_contiguous(a.node)):
            note_unknown_layout(out)  # unlike reshape, it copies a vector that is not contiguous
        return out
    return out if plain(out).flags.contiguous else own_copy(out)


@counterpart(np.squeeze)
def squeeze(a: Any, axis: Any = None) -> Any:
    """Remove axes of length one, all or the given ones; see `numpy.squeeze`."""
    return shapes.squeeze(a, axis=axis if axis is None else lengths(axis))


@counterpart(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Any:
    """Insert axes of length one at the given positions; see `numpy.expand_dims`."""
    return shapes.expand_dims(a, axis=lengths(axis))


def _each(f: Any, arys: tuple[Any, ...]) -> Any:
    out = tuple(f(as_array(a)) for a in arys)
    return out[0] if len(out) == 1 else out


@counterpart(np.atleast_1d)
def atleast_1d(*arys: Any) -> Any:
    """At least one axis; see `numpy.atleast_1d`."""
    return _each(lambda a: a.reshape((1,)) if a.ndim == 0 else a, arys)


@counterpart(np.atleast_2d)
def atleast_2d(*arys: Any) -> Any:
    """At least two axes, new ones in front; see `numpy.atleast_2d`."""
    return _each(lambda a: a.reshape((1,) * (2 - a.ndim) + a.shape) if a.ndim < 2 else a, arys)


@counterpart(np.atleast_3d)
def atleast_3d(*arys: Any) -> Any:
    """At least three axes: (N,) becomes (1, N, 1); see `numpy.atleast_3d`."""

    def three(a: Any) -> Any:
        if a.ndim == 0:
            return a.reshape((1, 1, 1))
        if a.ndim == 1:
            return a[None, :, None]
        return a[:, :, None] if a.ndim == 2 else a

    return _each(three, arys)


@counterpart(np.resize)
def resize(a: Any, new_shape: Any) -> Any:
    """The elements, repeated to fill a shape; see `numpy.resize`."""
    shape = lengths(new_shape)
    if a.size == 0:
        return np.zeros_like(a, shape=shape)
    if is_symbolic((a.size, *shape)):
        chosen = (numbers(prod(shape)) % a.size).reshape(shape)
    else:
        chosen = np.resize(np.arange(a.size), shape)
    return getitem.read(shapes.reshape(a, shape=(-1,)), chosen)


# ---- order of axes -----------------------------------------------------------------------------


@counterpart(np.transpose, np.permute_dims)
def transpose(a: Any, axes: Any = None) -> Any:
    """Permute the axes, by default in reverse order; see `numpy.transpose`."""
    return shapes.transpose(a, axes=None if axes is None else lengths(axes))


permute_dims = transpose


@counterpart(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Move axes to other positions; see `numpy.moveaxis`."""
    numbers = np.moveaxis(_axes_as_shape(a.ndim), source, destination).shape
    return shapes.transpose(a, axes=numbers)


def _axes_as_shape(ndim: int) -> Any:
    """An array without memory of shape 0, 1, 2, ..., to which NumPy applies axis permutations."""
    return np.broadcast_to(np.empty(()), tuple(range(ndim)))


@counterpart(np.swapaxes)
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """Swap two axes; see `numpy.swapaxes`."""
    return shapes.transpose(a, axes=np.swapaxes(_axes_as_shape(a.ndim), axis1, axis2).shape)


@counterpart(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """Move an axis before `start`; see `numpy.rollaxis`."""
    return shapes.transpose(a, axes=np.rollaxis(_axes_as_shape(a.ndim), axis, start).shape)


@counterpart(np.matrix_transpose, np.linalg.matrix_transpose)
def matrix_transpose(x: Any, /) -> Any:
    """Swap the last two axes; see `numpy.matrix_transpose`."""
    if x.ndim < 2:
        raise ShapeError(
            f"matrix_transpose needs at least two axes, this has {x.ndim}{at(user_line())}."
        )
    return swapaxes(x, -1, -2)


# ---- order of elements -------------------------------------------------------------------------


@counterpart(np.flip)
def flip(m: Any, axis: Any = None) -> Any:
    """Reverse the order of elements along axes, by default all; see `numpy.flip`."""
    return shapes.flip(m, axis=axis if axis is None else normalize_axis_tuple(axis, m.ndim))


@counterpart(np.fliplr)
def fliplr(m: Any) -> Any:
    """Reverse the order of columns; see `numpy.fliplr`."""
    if m.ndim < 2:
        raise ShapeError(f"fliplr needs at least two axes, this has {m.ndim}{at(user_line())}.")
    return shapes.flip(m, axis=(1,))


@counterpart(np.flipud)
def flipud(m: Any) -> Any:
    """Reverse the order of rows; see `numpy.flipud`."""
    if m.ndim < 1:
        raise ShapeError(f"flipud needs at least one axis, this has none{at(user_line())}.")
    return shapes.flip(m, axis=(0,))


@counterpart(np.rot90)
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """Rotate by k quarter turns in the plane of two axes; see `numpy.rot90`."""
    np.rot90(_axes_as_shape(m.ndim), 1, axes)  # raises where NumPy does
    first, second = (int(i) % m.ndim for i in axes)
    k %= 4
    if k == 0:
        return getitem.read(m, Ellipsis)
    if k == 2:
        return shapes.flip(m, axis=(first, second))
    if k == 1:
        return swapaxes(shapes.flip(m, axis=(second,)), first, second)
    return shapes.flip(swapaxes(m, first, second), axis=(second,))


@counterpart(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Shift elements cyclically along axes; see `numpy.roll`."""
    what = "by how much elements move"
    shift = needed(shift, "np.roll", what, "Read them, np.take(x, (np.arange(n) - shift) % n)")
    shift = np.asarray(shift).tolist() if isinstance(shift, np.ndarray) else shift
    shift = tuple(shift) if isinstance(shift, list | tuple) else length(shift)
    return shapes.roll(a, shift=shift, axis=tuple(axis) if isinstance(axis, list) else axis)


# ---- repetition --------------------------------------------------------------------------------


@counterpart(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """Broadcast an array to a shape; see `numpy.broadcast_to`."""
    target = lengths(shape)
    if is_symbolic(target) and not isinstance(array, Handle):
        return spread(array, target)
    return casts.broadcast_to(array, shape=target)


@counterpart(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    """Broadcast arrays to their common shape; see `numpy.broadcast_arrays`."""
    arrays = tuple(map(as_array, args))
    shape = broadcast_shapes(*[a.shape for a in arrays])
    return tuple(a if a.shape == shape else spread(a, shape) for a in arrays)


# ---- diagonals ---------------------------------------------------------------------------------


@counterpart(np.diagonal)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonal of the matrices in two axes; see `numpy.diagonal`."""
    if a.ndim < 2:
        raise ShapeError(f"diagonal needs at least two axes, this has {a.ndim}{at(user_line())}.")
    axis1, axis2 = (normalize_axis_index(i, a.ndim) for i in (axis1, axis2))
    return shapes.diagonal(a, offset=int(offset), axis1=axis1, axis2=axis2)


@counterpart(np.diag)
def diag(v: Any, k: int = 0) -> Any:
    """A matrix with a given diagonal, or the diagonal of a matrix; see `numpy.diag`."""
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise ShapeError(f"diag takes one or two axes, this has {v.ndim}{at(user_line())}.")
    n = v.size + abs(k)
    if isinstance(n, Dim):
        rows, columns = numbers(v.size) + max(-k, 0), numbers(v.size) + max(k, 0)
        at_ = (getitem.IndexSlot(0), getitem.IndexSlot(1))
        added: Any = getitem.scatter
        return added(v, rows, columns, index=at_, shape=(n, n))
    start = k if k >= 0 else -k * n
    place = slice(start, start + (n + 1) * v.size, n + 1)
    return shapes.reshape(getitem.scatter(v, index=place, shape=(n * n,)), shape=(n, n))


@counterpart(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Any:
    """A matrix with all elements on its diagonal; see `numpy.diagflat`."""
    return diag(shapes.reshape(v, shape=(-1,)), k)


@counterpart(np.tril)
def tril(m: Any, k: int = 0) -> Any:
    """Zero above the k-th diagonal; see `numpy.tril`."""
    return _triangle(m, lambda rows, columns: triangle_mask(rows, columns, k))


@counterpart(np.triu)
def triu(m: Any, k: int = 0) -> Any:
    """Zero below the k-th diagonal; see `numpy.triu`."""
    return _triangle(m, lambda rows, columns: ~triangle_mask(rows, columns, k - 1))


def _triangle(m: Any, mask: Any) -> Any:
    if m.ndim == 0:
        raise ShapeError(f"tril and triu need at least one axis{at(user_line())}.")
    rows, columns = m.shape[-2:] if m.ndim > 1 else m.shape * 2
    return selection.where(mask(rows, columns), m, np.zeros(1, m.dtype))


@counterpart(np.trace)
def trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Any:
    """The sum along a diagonal; see `numpy.trace`."""
    total = np.sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)
    return total if out is None else deliver(total, out)


@counterpart(np.linalg.trace)
def _matrix_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return trace(x, offset, -2, -1, dtype)


@counterpart(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Assign to the diagonal in place; see `numpy.fill_diagonal`."""
    if is_symbolic(a.shape):
        _fill_of_sizes(a, val, wrap)
        return
    marks = np.zeros(a.shape, bool)
    np.fill_diagonal(marks, True, wrap)
    places = np.unravel_index(np.flatnonzero(marks), a.shape)
    n = places[0].size
    values = shapes.reshape(as_array(val), shape=(-1,))
    if values.size != 1:
        values = resize(values, (n,))
    write(a, tuple(places), values, "fill_diagonal")


def _fill_of_sizes(a: Any, val: Any, wrap: bool) -> None:
    """`fill_diagonal` by selection, for symbolic sizes."""
    if wrap or a.ndim != 2:
        raise TraceError(
            f"np.fill_diagonal of shape {spelled(a.shape)}: for symbolic sizes it supports only "
            f"matrices, without wrap=True{at(user_line())}."
        )
    rows = as_array(numbers(a.shape[0]).reshape((-1, 1)))
    values = shapes.reshape(as_array(val), shape=(-1,))
    if not (type(values.size) is int and values.size == 1):
        values = getitem.read(values, rows % values.size)
    place = rows == numbers(a.shape[1])
    write(a, Ellipsis, selection.where(place, casts.astype(values, a.dtype), a), "fill_diagonal")


# ---- type and memory ---------------------------------------------------------------------------


def own_copy(a: Any, order: Any = "K") -> Any:
    """A new handle on the same value; differentiable."""
    if not isinstance(a, Handle):
        return np.array(a, order=order)  # type: ignore[call-overload]
    node = a.node
    if type(node) is Node and not node.args:
        return shapes.copy(a, order=order)  # the gradient of a leaf belongs to its handle
    opened = current_trace()
    if opened is not None and opened.isolated and node.serial < opened.since:
        return shapes.copy(a, order=order)  # else writes would change the captured tensor
    shared = type(node.value) is not np.ndarray or shapes.is_compact(node.value, order)
    return wrap(node) if shared else shapes.copy(a, order=order)


@counterpart(np.copy)
def copy(a: Any, order: Any = "K", subok: bool = False) -> Any:
    """A copy, independent of writes to `a`; see `numpy.copy`."""
    return own_copy(a, order)


@counterpart(np.astype)
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """Convert the dtype; integers and booleans have no derivative.  See `numpy.astype`."""
    check_device(device)
    return x.astype(dtype, copy=copy)


@counterpart(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """Remove leading and trailing zeros; see `numpy.trim_zeros`."""
    kept = needed(filt, "np.trim_zeros", "how many are left", "Choose a fixed part, x[start:stop]")
    marks = np.asarray(kept) != 0
    places = np.nonzero(marks)
    axes = range(filt.ndim) if axis is None else normalize_axis_tuple(axis, filt.ndim)
    window: list[Any] = [slice(None)] * filt.ndim
    for i in axes:
        if places[i].size == 0:
            window[i] = slice(0, 0)
            continue
        low = int(places[i].min()) if "f" in trim.lower() else None
        high = int(places[i].max()) + 1 if "b" in trim.lower() else None
        window[i] = slice(low, high)
    return getitem.read(filt, tuple(window))

"""Shape operations: reshape, transpose, expand_dims, squeeze, flip, roll, diagonal, copy.

All are linear and only move elements.  Where NumPy returns a view, so do these, and a handle of the
result stays linked to its base (core/handle.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import shape_of
from wengert._engine.core.op_facts import SELECTS, Differentiation, facts
from wengert._engine.kinds.batching import elementwise_batching, flattened, ndim_of, row_axis
from wengert._engine.kinds.linear_map import linear

from .creation import positions
from .indexing.getitem import IndexSlot, scatter

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Size


@linear(view=True, may_copy=True, oracle="numpy")
def reshape(x: Any, *, shape: Any, order: Any = "C") -> Any:
    """x in another shape; one length may be -1."""
    return np.reshape(x, shape, order=order)


@reshape.transpose
def _reshape_back(t: Array, x: Array, *, shape: tuple[Size, ...], order: str = "C") -> Any:
    return reshape(t, shape=tuple(x.shape), order=order)


@reshape.batch
def _reshape_batch(
    args: list[Array], batched: list[bool], size: Size, *, shape: tuple[int, ...], order: str = "C"
) -> Any:
    (x,) = args
    if order == "F":  # C order of the reversed axes
        return _axes_reversed(reshape(_axes_reversed(x), shape=(size, *reversed(shape))))
    if -1 in shape and size == 0:  # NumPy cannot infer -1 for an empty array
        count = math.prod(shape_of(x)[1:]) // -math.prod(shape)
        shape = tuple(count if n == -1 else n for n in shape)
    return reshape(x, shape=(size, *shape))


def _axes_reversed(x: Array) -> Any:
    """`x` with the axes after the batch axis reversed."""
    return transpose(x, axes=(0, *range(ndim_of(x) - 1, 0, -1)))


@reshape.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 6)),), {"shape": (3, 4)}
    yield (rng.normal(size=(2, 0)),), {"shape": (0,)}


@reshape.put
def _reshape_put(base: Array, view: Array, *, shape: tuple[int, ...], order: str = "C") -> Any:
    return reshape(view, shape=tuple(base.shape), order=order)


@linear(view=True, oracle="numpy")
def transpose(x: Any, *, axes: Any = None) -> Any:
    """x with its axes permuted; reversed if None."""
    return np.transpose(x, axes)


def inverse_order(axes: Sequence[int] | None) -> Any:
    """The inverse of a permutation of axes; None, which reverses the axes, is its own inverse."""
    if axes is None:
        return None
    n = len(axes)
    return tuple(int(i) for i in np.argsort([a % n for a in axes]))


@transpose.transpose
def _transpose_back(t: Array, x: Array, *, axes: tuple[int, ...] | None = None) -> Any:
    return transpose(t, axes=inverse_order(axes))


@transpose.put
def _transpose_put(base: Array, view: Array, *, axes: tuple[int, ...] | None = None) -> Any:
    return transpose(view, axes=inverse_order(axes))


@transpose.batch
def _transpose_batch(
    args: list[Array], batched: list[bool], size: Size, *, axes: tuple[int, ...] | None = None
) -> Any:
    (x,) = args
    ndim = ndim_of(x) - 1
    order = range(ndim - 1, -1, -1) if axes is None else axes
    return transpose(x, axes=(0, *[row_axis(a, ndim) for a in order]))


@transpose.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 3, 4)),), {}
    yield (rng.normal(size=(2, 3, 4)),), {"axes": (1, -1, 0)}
    yield (rng.normal(size=()),), {}


@linear(view=True, oracle="numpy")
def expand_dims(x: Array, *, axis: int | tuple[int, ...]) -> Any:
    """x with new axes of length one."""
    return np.expand_dims(x, axis)


@expand_dims.batch
def _expand_batch(
    args: list[Array], batched: list[bool], size: int, *, axis: tuple[int, ...]
) -> Any:
    axes = axis if isinstance(axis, tuple) else (axis,)
    ndim = ndim_of(args[0]) - 1 + len(axes)
    return expand_dims(args[0], axis=tuple(row_axis(a, ndim) for a in axes))


@expand_dims.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 3)),), {"axis": 1}
    yield (rng.normal(size=(2,)),), {"axis": (0, -1)}


@linear(view=True, oracle="numpy")
def squeeze(x: Array, *, axis: tuple[int, ...] | None = None) -> Any:
    """x without its axes of length one, or without the given ones of these."""
    return np.squeeze(x, axis)


@squeeze.batch
def _squeeze_batch(
    args: Any, batched: Any, size: Size, *, axis: int | tuple[int, ...] | None = None
) -> Any:
    (x,) = args
    lengths = shape_of(x)[1:]
    if axis is None:
        axis = tuple(i for i, n in enumerate(lengths) if type(n) is int and n == 1)
    axes = axis if isinstance(axis, tuple) else (axis,)
    return squeeze(x, axis=tuple(row_axis(a, len(lengths)) for a in axes)) if axes else x


@squeeze.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(1, 3, 1)),), {}
    yield (rng.normal(size=(1, 3, 1)),), {"axis": 2}
    yield (rng.normal(size=(1, 1)),), {}


def _same_elements(t: Array, x: Array, **_: Any) -> Any:
    return reshape(t, shape=tuple(x.shape))


def _same_elements_put(base: Array, view: Array, **_: Any) -> Any:
    return reshape(view, shape=tuple(base.shape))


for _op in (expand_dims, squeeze):
    _op.transpose(_same_elements)
    _op.put(_same_elements_put)


@linear(view=True, oracle="numpy")
def flip(x: Array, *, axis: int | tuple[int, ...] | None = None) -> Any:
    """x with its elements in reverse order along the given axes, or all."""
    return np.flip(x, axis)


@flip.transpose
def _flip_back(t: Array, x: Array, *, axis: tuple[int, ...] | None = None) -> Any:
    return flip(t, axis=axis)


@flip.put
def _flip_put(base: Any, view: Any, *, axis: int | tuple[int, ...] | None = None) -> Any:
    return flip(view, axis=axis)


@flip.batch
def _flip_batch(
    args: Any, batched: Any, size: Size, *, axis: int | tuple[int, ...] | None = None
) -> Any:
    ndim = ndim_of(args[0]) - 1
    axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return flip(args[0], axis=tuple(row_axis(a, ndim) for a in axes))


@flip.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 3)),), {}
    yield (rng.normal(size=(2, 3)),), {"axis": (0,)}
    yield (rng.normal(size=(0, 3)),), {"axis": 1}


@linear(oracle="numpy")
def roll(x: Any, *, shift: Any, axis: Any = None) -> Any:
    """x with its elements shifted cyclically along axes."""
    return np.roll(x, shift, axis)


@roll.transpose
def _roll_back(
    t: Array, x: Array, *, shift: int | tuple[Size, ...], axis: tuple[int, ...] | None = None
) -> Any:
    back = tuple(-n for n in shift) if isinstance(shift, tuple) else -shift
    return roll(t, shift=back, axis=axis)


@roll.batch
def _roll_batch(
    args: Any, batched: Any, size: Size, *, shift: Any, axis: int | tuple[int, ...] | None = None
) -> Any:
    (x,) = args
    if axis is None:
        return reshape(roll(flattened(x), shift=shift, axis=1), shape=shape_of(x))
    ndim = ndim_of(x) - 1
    if isinstance(axis, tuple):
        return roll(x, shift=shift, axis=tuple(row_axis(a, ndim) for a in axis))
    return roll(x, shift=shift, axis=row_axis(axis, ndim))


@roll.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 3)),), {"shift": 2}
    yield (rng.normal(size=(2, 3)),), {"shift": (1, -2), "axis": (0, 1)}
    yield (rng.normal(size=(0,)),), {"shift": 1}


@linear(oracle="numpy")
def copy(x: Any, *, order: Any = "K") -> Any:
    """A copy of x: writing to either does not change the other."""
    # Values are immutable, so memory is shared if the layout is that of NumPy's copy.
    return x if type(x) is not np.ndarray or is_compact(x, order) else x.copy(order)


@copy.transpose
def _copy_back(t: Array, x: Array, *, order: str = "K") -> Any:
    return t


elementwise_batching(copy)


@copy.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 3)),), {}
    yield (rng.normal(size=(2, 3)).T,), {"order": "C"}
    yield (rng.normal(size=(2, 3)),), {"order": "F"}


def is_compact(x: np.ndarray[Any, Any], order: str = "K") -> bool:
    """Whether a copy of the array in that order would have the same memory layout."""
    if order == "C" or (order == "A" and not x.flags.f_contiguous):
        return x.flags.c_contiguous
    if order in ("F", "A"):
        return x.flags.f_contiguous
    return x.flags.c_contiguous or x.strides == np.empty_like(x).strides


@facts(zero_slope=SELECTS)
@linear(view=True, oracle="numpy")
def diagonal(x: Array, *, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonal of the matrices in two axes, as a new last axis; read-only, as in NumPy."""
    return np.diagonal(x, offset, axis1, axis2)


@diagonal.transpose
def _diagonal_back(t: Array, x: Array, *, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    rows, columns = x.shape[axis1], x.shape[axis2]
    n = t.shape[-1]
    i = positions(n) + max(-offset, 0)
    j = positions(n) + max(offset, 0)
    z = scatter(
        t, i, j, index=(Ellipsis, IndexSlot(0), IndexSlot(1)), shape=(*t.shape[:-1], rows, columns)
    )
    order = [k for k in range(x.ndim) if k not in (axis1 % x.ndim, axis2 % x.ndim)]
    order += [axis1 % x.ndim, axis2 % x.ndim]
    return transpose(z, axes=inverse_order(order))


@diagonal.batch
def _diagonal_batch(
    args: list[Array],
    batched: list[bool],
    size: int,
    *,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
) -> Any:
    (x,) = args
    ndim = ndim_of(x) - 1
    return diagonal(x, offset=offset, axis1=row_axis(axis1, ndim), axis2=row_axis(axis2, ndim))


diagonal.differentiation = Differentiation(masks=True)


@diagonal.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(3, 4)),), {"offset": 1}
    yield (rng.normal(size=(3, 4)),), {"offset": -2}
    yield (rng.normal(size=(3, 2, 3)),), {"axis1": 2, "axis2": 0}
    yield (rng.normal(size=(2, 2)),), {"offset": 5}

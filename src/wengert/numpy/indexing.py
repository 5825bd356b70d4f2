"""Indexing: NumPy's functions that read elements (for writing see put_and_place.py).

    reading    take, take_along_axis, compress, extract, choose, select, where, piecewise,
               sliding_window_view
    grids      ix_, meshgrid
    loops      apply_along_axis, apply_over_axes, vectorize

All are x[index] with an index computed here; gradients of repeated indices accumulate.  Indices and
masks have no derivative.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wengert._engine.core.handle import Handle, is_traced, link, shape_of, value_of
from wengert._engine.core.handle import dtype_of as dtype_itself
from wengert._engine.ops import casts, joining, shapes
from wengert._engine.ops.elementwise import selection
from wengert._engine.ops.indexing import getitem as indexing
from wengert._engine.ops.indexing.windows import Window
from wengert._engine.tensor.numpy_dispatch import (
    as_array,
    broadcast_shapes,
    counterpart,
    dtype_of,
    numbers,
    plain,
    spread,
    values,
    write,
)
from wengert._engine.tensor.numpy_protocols import deliver

from ..errors import ShapeError, at, user_line
from .minmax_norms import NOTHING
from .shape_manipulation import broadcast_arrays

__all__ = [
    "take", "take_along_axis", "compress", "extract", "choose", "select", "where", "piecewise",
    "ix_", "meshgrid", "apply_along_axis",
    "apply_over_axes", "vectorize",
]  # fmt: skip


# ---- reading -----------------------------------------------------------------------------------


def in_range(indices: Any, n: int, mode: str) -> Any:
    """Wrap or clip positions according to `mode`; "raise" is handled by the indexing itself."""
    if mode == "raise":
        return indices if isinstance(indices, Handle | Window) else plain(indices).astype(np.intp)
    positions = values(indices).astype(np.intp)
    if type(n) is int and n == 0:
        if positions.size:
            raise IndexError(f"cannot index an axis of length 0{at(user_line())}.")
        return positions
    return positions % n if mode == "wrap" else np.minimum(np.maximum(positions, 0), n - 1)


@counterpart(np.take)
def take(
    a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise"
) -> Any:
    """Elements at positions along an axis; see `numpy.take`.

    Parameters
    ----------
    a : array_like
    indices : array_like of int
    axis : int, optional
        The flattened array if not given.
    out : array or Tensor, optional
    mode : {"raise", "wrap", "clip"}
        How to handle positions out of range.

    Examples
    --------
    The gradients of repeated positions are summed:

    >>> import numpy as np, wengert as wg, wengert.numpy as wnp
    >>> wg.grad(lambda x: wnp.take(x, [0, 0, 2]).sum())(np.ones(3))
    array([2., 0., 1.])
    """
    a = as_array(a)
    if axis is None:
        a, axis = shapes.reshape(a, shape=(-1,)), 0
    axis = normalize_axis_index(axis, a.ndim)
    chosen = in_range(indices, a.shape[axis], mode)
    result = indexing.read(a, (*[slice(None)] * axis, chosen))
    return result if out is None else deliver(result, out)


@counterpart(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    """All windows of a shape, as ``numpy.lib.stride_tricks.sliding_window_view``.

    Read-only, as in NumPy; the gradients of an element in several windows are summed.

    Parameters
    ----------
    x : array or Tensor
    window_shape : int or tuple of int
    axis : int or tuple of int, optional
        The axes of the window; by default all.
    writeable : bool
        Not supported for tensors: a write would change several windows.

    Raises
    ------
    ShapeError
        A window is longer than its axis, or the numbers of lengths and axes differ.
    """
    lengths = (window_shape,) if np.ndim(window_shape) == 0 else tuple(window_shape)
    if axis is None:
        axes = tuple(range(x.ndim))
    else:
        axes = tuple([normalize_axis_index(a, x.ndim) for a in np.atleast_1d(axis).tolist()])
    if writeable or len(axes) != len(lengths):
        raise ShapeError(
            f"windows of lengths {lengths} along the axes {axes} of shape {x.shape}, "
            f"writeable={writeable}: pass a length for each axis, and write to a copy"
            f"{at(user_line())}."
        )
    room = list(x.shape)
    for n, a in zip(lengths, axes, strict=True):
        room[a] = room[a] - n + 1
        if n < 0 or room[a] < 1:
            raise ShapeError(
                f"windows of length {n} along axis {a} of shape {x.shape}: they cannot be longer "
                f"than the axis{at(user_line())}."
            )
    windows = _windows(x, lengths, axes)
    link(windows, x, lambda base: _windows(base, lengths, axes), None, shares=True)
    return windows


def _windows(x: Any, lengths: Sequence[int], axes: Sequence[int]) -> Any:
    """A copy of all windows, whose axes are the last ones of the result."""
    for n, a in zip(lengths, axes, strict=True):
        starts = np.arange(x.shape[a] - n + 1)[:, None] + np.arange(n)
        x = np.moveaxis(take(x, starts, axis=a), a + 1, -1)
    return x


def along(shape: Sequence[int], indices: Any, axis: int) -> tuple[Any, ...]:
    """The equivalent index of `take_along_axis`."""
    grid: list[Any] = []
    for i, n in enumerate(shape):
        if i == axis:
            grid.append(indices)
        else:
            grid.append(numbers(n).reshape((1,) * i + (n,) + (1,) * (len(shape) - i - 1)))
    return tuple(grid)


def checked_along(arr: Any, indices: Any, axis: int | None) -> tuple[Any, Any, int]:
    if axis is None:
        return shapes.reshape(arr, shape=(-1,)), indices, 0
    axis = normalize_axis_index(axis, arr.ndim)
    if len(shape_of(indices)) != arr.ndim:
        raise ShapeError(
            f"take_along_axis: indices have {len(shape_of(indices))} axes, the array "
            f"{arr.ndim}. The numbers must be equal{at(user_line())}."
        )
    return arr, indices, axis


@counterpart(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    """Elements at positions along an axis, for each 1-D slice; see `numpy.take_along_axis`."""
    arr, indices, axis = checked_along(as_array(arr), indices, axis)
    indices = indices if isinstance(indices, Handle) else plain(indices)
    return indexing.read(arr, along(arr.shape, indices, axis))


@counterpart(np.compress)
def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    """The slices along an axis where the condition is true; see `numpy.compress`."""
    if is_traced(condition):
        return take(as_array(a), np.flatnonzero(condition), axis, out)
    return take(as_array(a), np.flatnonzero(plain(condition)), axis, out)


@counterpart(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    """The elements where the condition is true; see `numpy.extract`."""
    condition = condition if is_traced(condition) else plain(condition)
    return take(as_array(arr), np.flatnonzero(condition))


@counterpart(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """Each element from the array with index `a`; see `numpy.choose`."""
    if isinstance(choices, Handle):
        choices = [indexing.read(choices, i) for i in range(len(choices))]  # type: ignore[arg-type]
    which, *arrays = broadcast_arrays(values(a), *choices)
    which = in_range(which, len(arrays), mode)
    if is_traced(which):  # a negative one is out of range too
        which = np.where(which < 0, len(arrays), which)
    else:
        which = plain(which)
        np.choose(which, [np.zeros(())] * len(arrays), mode="raise")  # raises where NumPy does
    whole = joining.stack(*arrays, axis=0)
    result = indexing.read(whole, along(whole.shape, which[None], 0))
    result = indexing.read(result, 0)
    return result if out is None else deliver(result, out)


@counterpart(np.where)
def where(condition: Any, x: Any = NOTHING, y: Any = NOTHING, /) -> Any:
    """Elements of x where the condition is true, else of y; without x and y, `nonzero`.

    Parameters
    ----------
    condition : array_like of bool
    x, y : array_like, optional
        Both or neither.

    Returns
    -------
    array or Tensor, or tuple of index arrays if only the condition is given

    Notes
    -----
    Where x is not selected its cotangent is zero, even if the derivative of the computation of x
    is infinite there.

    Examples
    --------
    >>> import numpy as np, wengert as wg, wengert.numpy as wnp
    >>> wg.grad(lambda x: wnp.where(x > 0, np.sqrt(x), 0.0).sum())(np.array([4.0, 0.0]))
    array([0.25, 0.  ])
    """
    if x is NOTHING and y is NOTHING:
        return np.nonzero(condition)
    if x is NOTHING or y is NOTHING:
        raise ValueError("either both or neither of x and y should be given")
    operands = map(joining.stacked, (condition, x, y))
    return selection.where(*[np.asarray(a) if isinstance(a, list | tuple) else a for a in operands])


@counterpart(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Each element from the first choice whose condition is true; see `numpy.select`."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if len(condlist) == 0:
        raise ValueError("select with an empty condition list is not possible")
    for i, condition in enumerate(condlist):
        if dtype_itself(condition) != np.bool_:
            raise TypeError(f"invalid entry {i} in condlist: should be boolean ndarray")
    dtype = np.result_type(*[dtype_of(c) for c in choicelist], dtype_of(default))
    shape = broadcast_shapes(*map(shape_of, (*condlist, *choicelist, default)))
    result = casts.astype(default, dtype)
    for condition, chosen in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = selection.where(values(condition), casts.astype(chosen, dtype), result)
    return spread(result, shape) if result.shape != shape else result


@counterpart(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """A piecewise function, each piece computed only where selected; see `numpy.piecewise`."""
    x = as_array(x)
    conditions = value_of(condlist)
    if np.isscalar(conditions) or (
        not isinstance(conditions[0], list | np.ndarray | Handle) and x.ndim != 0
    ):
        conditions = [conditions]
    masks = [spread(values(c).astype(bool), x.shape) for c in conditions]
    traced = is_traced(x) or any(map(is_traced, masks))
    if len(masks) == len(funclist) - 1:
        masks.append(~functools.reduce(np.logical_or, masks))
    if len(masks) != len(funclist):
        raise ValueError(
            f"with {len(masks)} condition(s), either {len(masks)} or {len(masks) + 1} functions "
            "are expected"
        )
    if traced:
        return _chosen_pieces(x, masks, funclist, args, kw)
    y = np.zeros_like(x)
    for mask, f in zip(masks, funclist, strict=True):
        if not callable(f):
            write(y, mask, f, "piecewise")
        elif mask.any():
            write(y, mask, f(indexing.read(x, mask), *args, **kw), "piecewise")
    return y


def _chosen_pieces(x: Any, masks: Any, funclist: Any, args: Any, kw: Any) -> Any:
    """`piecewise` for traced conditions: all pieces are computed everywhere."""
    y = np.zeros_like(x)
    for mask, f in zip(masks, funclist, strict=True):
        piece = f(x, *args, **kw) if callable(f) else f
        y = selection.where(mask, casts.astype(as_array(piece), y.dtype), y)
    return y


# ---- grids -------------------------------------------------------------------------------------


@counterpart(np.ix_)
def ix_(*args: Any) -> tuple[Any, ...]:
    """Index arrays for a sub-grid; see `numpy.ix_`."""
    if not any(map(is_traced, args)):
        return np.ix_(*[plain(a) for a in args])
    n = len(args)
    grids = []
    for k, a in enumerate(args):
        a = np.flatnonzero(a) if dtype_itself(a).kind == "b" else a
        a = a if isinstance(a, Window) else as_array(a)
        grids.append(a[(None,) * k + (slice(None),) + (None,) * (n - k - 1)])
    return tuple(grids)


@counterpart(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Coordinates of a grid; see `numpy.meshgrid`."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    n = len(xi)
    lines = []
    for i, x in enumerate(xi):
        place = 1 - i if indexing == "xy" and n > 1 and i < 2 else i
        lines.append(as_array(x).reshape((1,) * place + (-1,) + (1,) * (n - place - 1)))
    grids = list(lines) if sparse else list(broadcast_arrays(*lines))
    return tuple(g.copy() if copy else g for g in grids)


# ---- loops -------------------------------------------------------------------------------------


@counterpart(np.apply_along_axis)
def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Any:
    """A function of each 1-D slice along an axis; see `numpy.apply_along_axis`."""
    arr = as_array(arr)
    axis = normalize_axis_index(axis, arr.ndim)
    others = arr.shape[:axis] + arr.shape[axis + 1 :]
    if 0 in others:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    results = []
    for where_ in np.ndindex(*map(operator.index, others)):
        line = indexing.read(arr, (*where_[:axis], slice(None), *where_[axis:]))
        results.append(as_array(func1d(line, *args, **kwargs)))
    whole = joining.stack(*results, axis=0)
    inner = results[0].shape
    whole = whole.reshape(others + inner)
    order = [*range(axis), *range(len(others), whole.ndim), *range(axis, len(others))]
    return shapes.transpose(whole, axes=tuple(order))


@counterpart(np.apply_over_axes)
def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    """A function of the array and one axis, repeatedly; see `numpy.apply_over_axes`."""
    value = as_array(a)
    n = value.ndim
    for axis in plain(axes).ravel().tolist():
        result = func(value, axis % n if axis < 0 else axis)
        if result.ndim != value.ndim:
            result = shapes.expand_dims(result, axis=axis)
            if result.ndim != value.ndim:
                raise ValueError("function is not returning an array of the correct shape")
        value = result
    return value


class vectorize(np.vectorize):
    """A function of scalars as a function of arrays and tensors; see `numpy.vectorize`.

    Examples
    --------
    >>> import numpy as np, wengert as wg, wengert.numpy as wnp
    >>> relu = wnp.vectorize(lambda v: v if v > 0 else 0.0)
    >>> wg.grad(lambda x: relu(x).sum())(np.array([-1.0, 2.0]))
    array([0., 1.])
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function for each element and stack the results."""
        if not any(isinstance(a, Handle) for a in (*args, *kwargs.values())):
            return super().__call__(*args, **kwargs)
        if self.signature is not None:
            raise ShapeError(
                "vectorize with a signature does not support tensors. Write a loop over the outer "
                f"axes, or use apply_along_axis{at(user_line())}."
            )
        fixed = {k: kwargs.pop(k) for k in list(kwargs) if k in self.excluded}
        fun = functools.partial(self.pyfunc, **fixed)
        held = {i: a for i, a in enumerate(args) if i in self.excluded}
        free = [a for i, a in enumerate(args) if i not in self.excluded]
        arrays = broadcast_arrays(*free, *kwargs.values())
        places = np.ndindex(*map(operator.index, arrays[0].shape))
        results = [self._once(fun, arrays, i, held, kwargs) for i in places]
        if not results:
            raise ValueError("cannot call `vectorize` on size 0 inputs")
        if not isinstance(results[0], tuple):
            return joining.stacked(results).reshape(arrays[0].shape)
        columns = zip(*results, strict=True)
        return tuple(as_array(list(c)).reshape(arrays[0].shape) for c in columns)

    @staticmethod
    def _once(fun: Any, arrays: Any, index: Any, held: Any, named: Any) -> Any:
        numbers = [indexing.read(a, index) for a in arrays]
        free = numbers[: len(numbers) - len(named)]
        for i in sorted(held):
            free.insert(i, held[i])
        return fun(*free, **dict(zip(named, numbers[len(numbers) - len(named) :], strict=True)))

"""Padding: numpy.pad in all its modes.

Axes are padded in sequence, as in NumPy, so that corners agree.  For modes that repeat elements,
NumPy pads the indices 0, 1, 2, ... in the same mode, which gives the source of each element; for
other modes borders are concatenated to the array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core.node_properties import sizes_of
from wengert._engine.core.symbolic.dim import Dim, is_symbolic
from wengert._engine.core.tracing import size_value
from wengert._engine.ops import casts, joining, shapes
from wengert._engine.ops.indexing import getitem
from wengert._engine.tensor.numpy_dispatch import as_array, counterpart, numbers, spread
from wengert._engine.tensor.operand_conversion import length, needed

from ..errors import ShapeError, at, user_line
from .ranges_and_windows import linspace
from .shape_manipulation import own_copy

__all__ = ["pad"]

STATISTICS: dict[str, Callable[..., Any]] = {
    "maximum": np.max,
    "minimum": np.min,
    "mean": np.mean,
    "median": np.median,
}
ALLOWED: dict[str, set[str]] = {
    "constant": {"constant_values"},
    "edge": set(),
    "empty": set(),
    "linear_ramp": {"end_values"},
    "maximum": {"stat_length"},
    "mean": {"stat_length"},
    "median": {"stat_length"},
    "minimum": {"stat_length"},
    "reflect": {"reflect_type"},
    "symmetric": {"reflect_type"},
    "wrap": set(),
}


@counterpart(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """Pad an array; see `numpy.pad`.

    Parameters
    ----------
    array : array_like
    pad_width : int, pair, sequence of pairs, or dict from axis to these
        The number of elements before and after, for each axis.
    mode : str or callable
        "constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect",
        "symmetric", "wrap", "empty", or a function that modifies each padded vector in place.
    **kwargs
        constant_values, end_values, stat_length, reflect_type, as in NumPy; the first two may be
        tensors.

    Examples
    --------
    >>> import numpy as np, wengert as wg, wengert.numpy as wnp
    >>> wg.grad(lambda x: wnp.pad(x, 1, mode="edge").sum())(np.ones(3))
    array([2., 1., 2.])
    """
    array = as_array(array)
    widths = _widths(pad_width, array.ndim)
    if callable(mode):
        return _by_function(array, widths, mode, kwargs)
    if mode not in ALLOWED:
        raise ValueError(f"mode '{mode}' is not supported")
    unknown = set(kwargs) - ALLOWED[mode]
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    for axis, (before, after) in enumerate(widths):
        if before or after or (mode == "empty"):
            array = _padded(array, axis, before, after, mode, kwargs)
    return own_copy(array)


def _widths(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    if isinstance(pad_width, dict):
        full = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            pair = (width, width) if np.ndim(width) == 0 else tuple(width)
            full[axis] = pair
        pad_width = full
    if sizes_of(pad_width):
        return _widths_of_sizes(pad_width, ndim)
    remedy = "Pass concrete widths"
    given = np.asarray(needed(pad_width, "np.pad", "the shape of the result", remedy))
    if given.dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    if given.size and given.min() < 0:
        raise ValueError("index can't contain negative values")
    return [(int(a), int(b)) for a, b in np.broadcast_to(given, (ndim, 2)).tolist()]


def _widths_of_sizes(pad_width: Any, ndim: int) -> list[tuple[Any, Any]]:
    """The same for symbolic widths."""
    if isinstance(pad_width, Dim):
        return [(pad_width, pad_width)] * ndim
    given = list(pad_width)
    if len(given) == 2 and not isinstance(given[0], list | tuple):
        return [(length(given[0]), length(given[1]))] * ndim
    pairs = [tuple(map(length, w)) if isinstance(w, list | tuple) else (w, w) for w in given]
    if len(pairs) == 1:
        pairs = pairs * ndim
    if len(pairs) != ndim or any(len(pair) != 2 for pair in pairs):
        raise ShapeError(
            f"np.pad of {ndim} axes with the widths {pad_width}: pass a pair for each axis, or one "
            f"for all{at(user_line())}."
        )
    return pairs  # type: ignore[return-value]


def _pair(values: Any, axis: int, ndim: int) -> tuple[Any, Any]:
    """The values for the two sides of an axis, from an argument that may be given for all axes."""
    values = as_array(values)
    whole = spread(values, (ndim, 2))
    return getitem.read(whole, (axis, 0)), getitem.read(whole, (axis, 1))


def _padded(array: Any, axis: int, before: int, after: int, mode: str, options: Any) -> Any:
    if mode in ("constant", "empty"):
        low, high = _pair(options.get("constant_values", 0), axis, array.ndim)
        return _joined(
            _filled(array, axis, before, low), array, _filled(array, axis, after, high), axis
        )
    if mode == "linear_ramp":
        low, high = _pair(options.get("end_values", 0), axis, array.ndim)
        return _joined(
            _ramp(array, axis, before, low, first=True),
            array,
            _ramp(array, axis, after, high, first=False),
            axis,
        )
    if mode in STATISTICS:
        low, high = _statistics(array, axis, mode, options.get("stat_length"))
        return _joined(
            _filled(array, axis, before, low), array, _filled(array, axis, after, high), axis
        )
    if options.get("reflect_type", "even") == "odd":
        return _odd(array, axis, before, after, mode)
    return _gathered(array, axis, before, after, mode)


def _joined(low: Any, array: Any, high: Any, axis: int) -> Any:
    return joining.concatenate(low, array, high, axis=axis)


def _filled(array: Any, axis: int, width: int, value: Any) -> Any:
    shape = (*array.shape[:axis], width, *array.shape[axis + 1 :])
    return spread(_rounded(value, array.dtype), shape)


def _rounded(value: Any, dtype: Any) -> Any:
    if np.dtype(dtype).kind in "iu" and value.dtype.kind == "f":
        value = np.round(value)
    return casts.astype(value, dtype) if value.dtype != dtype else value


def _ramp(array: Any, axis: int, width: int, end: Any, first: bool) -> Any:
    at = 0 if first else -1
    edge = getitem.read(array, (*[slice(None)] * axis, at))
    ramp = linspace(end, edge, width, endpoint=False, dtype=array.dtype, axis=axis)
    return ramp if first else shapes.flip(ramp, axis=(axis,))


def _statistics(array: Any, axis: int, mode: str, length: Any) -> tuple[Any, Any]:
    n = array.shape[axis]
    lows, highs = (n, n)
    if length is not None:
        lengths = np.broadcast_to(np.asarray(length), (array.ndim, 2))
        lows, highs = (min(int(k), n) for k in lengths[axis])
    if (lows == 0 or highs == 0) and mode in ("maximum", "minimum"):
        raise ValueError("stat_length of 0 yields no value for padding")
    before = (slice(None),) * axis
    summary = STATISTICS[mode]
    low = summary(getitem.read(array, (*before, slice(0, lows))), axis=axis, keepdims=True)
    high = summary(getitem.read(array, (*before, slice(n - highs, n))), axis=axis, keepdims=True)
    return low, high


def _gathered(array: Any, axis: int, before: int, after: int, mode: Any) -> Any:
    n = array.shape[axis]
    if is_symbolic((n, before, after)):
        source = _sources(n, before, after, mode)
    else:
        source = np.pad(np.arange(n), (before, after), mode)
    return getitem.read(array, (*[slice(None)] * axis, source))


def _sources(n: Dim, before: int, after: int, mode: str) -> Any:
    """The source of each element, along an axis of symbolic length."""
    place = numbers(n + before + after) - before
    if mode == "edge":
        return np.minimum(np.maximum(place, 0), n - 1)
    if mode == "wrap":
        return place % n
    last = n - 1 if mode == "reflect" else n
    turned = place % np.maximum(size_value(2 * n) - 2 * (n - last), 1)
    return np.minimum(turned, 2 * last - turned if mode == "reflect" else 2 * n - 1 - turned)


def _odd(array: Any, axis: int, before: int, after: int, mode: Any) -> Any:
    """Odd reflection, 2 * edge - reflected, by its matrix, computed with NumPy."""
    unit = np.eye(array.shape[axis])
    matrix = np.pad(unit, ((0, 0), (before, after)), mode, reflect_type="odd")
    moved = np.moveaxis(array, axis, -1)
    return np.moveaxis(np.matmul(moved, matrix.astype(array.dtype)), -1, axis)


def _by_function(array: Any, widths: Any, function: Callable[..., Any], options: Any) -> Any:
    """Pad with zeros, then apply the user's function to each padded vector, in place."""
    for axis, (before, after) in enumerate(widths):
        array = _padded(array, axis, before, after, "constant", {})
    array = array.copy()
    for axis, width in enumerate(widths):
        others = array.shape[:axis] + array.shape[axis + 1 :]
        for where in np.ndindex(*others):
            function(array[(*where[:axis], slice(None), *where[axis:])], width, axis, options)
    return array

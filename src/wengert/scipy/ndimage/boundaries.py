"""What is beyond the borders of an array: SciPy's modes.

extended    an array with elements before and after it, along one axis
arguments   one value for each axis, from a number or a sequence
axes_of     the axes that a filter works on
operand     an array in double precision
result      the dtype of a result, from SciPy's argument `output`
staged      the same for a filter of one axis, before that of the next
MODES       the names of modes
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from wengert._engine.core.handle import describe
from wengert._engine.ops import casts
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import ArgumentError, at, user_line
from wengert.numpy.padding import pad

from ..dispatch import floating, known_length

# The canonical name of each mode of filters.
MODES = {
    "reflect": "reflect",
    "grid-mirror": "reflect",
    "constant": "constant",
    "grid-constant": "constant",
    "nearest": "nearest",
    "mirror": "mirror",
    "wrap": "wrap",
    "grid-wrap": "wrap",
}


def mode_of(mode: Any) -> str:
    """The canonical name of a mode of filters."""
    if not isinstance(mode, str):
        raise RuntimeError("A sequence of modes is not supported")
    if mode not in MODES:
        raise RuntimeError("boundary mode not supported")
    return MODES[mode]


def source_positions(positions: Any, n: int, mode: str) -> Any:
    """The positions of the elements that a mode other than 'constant' has at any positions."""
    if mode == "nearest" or n == 1:
        return np.clip(positions, 0, n - 1)
    if mode == "wrap":
        return positions % n
    if mode == "reflect":
        inside = positions % (2 * n)
        return np.where(inside < n, inside, 2 * n - 1 - inside)
    inside = positions % (2 * n - 2)
    return np.where(inside < n, inside, 2 * n - 2 - inside)


def extended(x: Any, axis: int, before: int, after: int, mode: str, cval: Any) -> Any:
    """An array with further elements along an axis.

    Parameters
    ----------
    x : array or Tensor
    axis : int
    before, after : int
        The numbers of elements.
    mode : str
        A canonical name.
    cval : number or Tensor
        The value of elements outside, for 'constant'.
    """
    if not (before or after):
        return x
    if mode == "constant":
        widths = [(0, 0)] * x.ndim
        widths[axis] = (before, after)
        return pad(x, widths, constant_values=cval)
    n = known_length(x.shape[axis], "a filter")
    if n == 0:
        return x
    positions = source_positions(np.arange(-before, n + after), n, mode)
    take = np.take
    parts = [x]
    if before:
        parts.insert(0, take(x, positions[:before], axis=axis))
    if after:
        parts.append(take(x, positions[before + n :], axis=axis))
    return np.concatenate(parts, axis=axis)


def arguments(value: Any, count: int, what: str = "sequence argument") -> list[Any]:
    """One value for each axis, from one for all or a sequence."""
    ndim: int = getattr(value, "ndim", 0)
    if not (ndim or isinstance(value, list | tuple)):
        return [value] * count
    values = list(value)
    if len(values) != count:
        raise RuntimeError(f"{what} must have length equal to input rank")
    return values


def axes_of(axes: Any, ndim: int) -> tuple[int, ...]:
    """The axes that a filter works on."""
    if axes is None:
        return tuple(range(ndim))
    if np.ndim(axes) == 0:
        return (normalize_axis_index(axes, ndim),)
    return tuple(normalize_axis_tuple(axes, ndim))


def operand(x: Any) -> tuple[Any, np.dtype[Any]]:
    """An operand in double precision, in which SciPy computes, and its dtype."""
    x = as_array(x)
    dtype = describe(x).dtype
    x = floating(x)
    wide = np.dtype(np.complex128 if dtype.kind == "c" else np.float64)
    return (x if x.dtype == wide else casts.astype(x, wide)), dtype


def staged(y: Any, dtype: np.dtype[Any], output: Any, name: str) -> Any:
    """An intermediate result, which SciPy stores in the dtype of the result."""
    stored = result(y, dtype, output, name)
    return y if stored is y else casts.astype(stored, y.dtype)


def result(y: Any, dtype: np.dtype[Any], output: Any, name: str) -> Any:
    """A result with SciPy's dtype: that of the input, or `output`.

    Raises
    ------
    ArgumentError
        `output` is an array.
    """
    if output is not None:
        if isinstance(output, np.ndarray) or hasattr(output, "node"):
            raise ArgumentError(
                f"{name} with an array as output: not supported with tensors. Use the result"
                f"{at(user_line())}."
            )
        dtype = np.dtype(output)
    if y.dtype.kind == "c" and dtype.kind != "c":
        dtype = np.result_type(dtype, np.complex64)
    return y if y.dtype == dtype else casts.astype(y, dtype)

"""Correlations and convolutions of arrays, and moving averages.

correlate1d convolve1d          along one axis
correlate convolve              of all axes
uniform_filter1d uniform_filter  means of windows
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.ndimage
from numpy.lib.array_utils import normalize_axis_index

from wengert._engine.core.handle import Handle, describe
from wengert._engine.ops import casts
from wengert._engine.tensor.numpy_dispatch import as_array

from ..dispatch import counterpart
from .windows import arguments, axes_of, extended, mode_of, operand, result, staged, windowed

__all__ = [
    "convolve",
    "convolve1d",
    "correlate",
    "correlate1d",
    "uniform_filter",
    "uniform_filter1d",
]


def _weights(weights: Any) -> Any:
    """Weights in double precision."""
    weights = weights if isinstance(weights, Handle) else np.asarray(weights)
    wide = np.complex128 if describe(weights).dtype.kind == "c" else np.float64
    return casts.astype(weights, np.dtype(wide))


def correlated(x: Any, weights: Any, axis: int, mode: str, cval: Any = 0.0, origin: int = 0) -> Any:
    """The correlation along one axis, without conjugation, in double precision."""
    m = weights.shape[0]
    if not -(m // 2) <= origin <= (m - 1) // 2:
        raise ValueError(
            "Invalid origin; origin must satisfy -(len(weights) // 2) <= origin <= "
            "(len(weights)-1) // 2"
        )
    before = m // 2 + origin
    around = extended(x, axis, before, m - 1 - before, mode_of(mode), cval)
    shape = [1] * x.ndim
    shape[axis] = m
    return windowed(around, weights.reshape(shape))


@counterpart(scipy.ndimage.correlate1d)
def correlate1d(
    input: Any,
    weights: Any,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """The correlation along one axis, as ``scipy.ndimage.correlate1d``.

    Parameters
    ----------
    input : array or Tensor
    weights : vector
    axis : int
    output : dtype, optional
        The dtype of the result; an array is not supported with tensors.
    mode : str
        What is beyond the borders: all of SciPy's.
    cval : number or Tensor
        The value outside, for 'constant'.
    origin : int

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import correlate1d
    >>> wg.grad(lambda x: correlate1d(x, [1.0, 2.0, 4.0])[0])(np.ones(4))
    array([3., 4., 0., 0.])
    """
    x, dtype = operand(input)
    weights = _weights(weights)
    if weights.ndim != 1 or weights.shape[0] < 1:
        raise RuntimeError("no filter weights given")
    if weights.dtype.kind == "c":
        weights = np.conj(weights)
    axis = normalize_axis_index(axis, x.ndim)
    return result(correlated(x, weights, axis, mode, cval, origin), dtype, output, "correlate1d")


@counterpart(scipy.ndimage.convolve1d)
def convolve1d(
    input: Any,
    weights: Any,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """The convolution along one axis, as ``scipy.ndimage.convolve1d``.

    Parameters
    ----------
    input, weights, axis, output, mode, cval, origin
        As for `correlate1d`.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import convolve1d
    >>> wg.grad(lambda x: convolve1d(x, [1.0, 2.0, 4.0])[0])(np.ones(4))
    array([6., 1., 0., 0.])
    """
    weights = as_array(weights)[::-1]
    if weights.dtype.kind == "c":
        weights = np.conj(weights)
    origin = -origin - (1 - weights.shape[0] % 2)
    return correlate1d(input, weights, axis, output, mode, cval, origin)


@counterpart(scipy.ndimage.correlate)
def correlate(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The correlation of arrays, as ``scipy.ndimage.correlate``.

    Parameters
    ----------
    input : array or Tensor
    weights : array or Tensor
        With an axis for each of `axes`.
    output, mode, cval
        As for `correlate1d`.
    origin : int or sequence of int
    axes : tuple of int, optional

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import correlate
    >>> x = np.arange(9.0).reshape(3, 3)
    >>> wg.grad(lambda w: correlate(x, w)[1, 1])(np.zeros((2, 2)))
    array([[0., 1.],
           [3., 4.]])
    """
    weights = _weights(weights)
    if weights.dtype.kind == "c":
        weights = np.conj(weights)
    return _of_axes(input, weights, output, mode, cval, origin, axes, "correlate")


@counterpart(scipy.ndimage.convolve)
def convolve(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The convolution of arrays, as ``scipy.ndimage.convolve``.

    Parameters
    ----------
    input, weights, output, mode, cval, origin, axes
        As for `correlate`.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import convolve
    >>> x = np.arange(9.0).reshape(3, 3)
    >>> wg.grad(lambda w: convolve(x, w)[1, 1])(np.zeros((2, 2)))
    array([[8., 7.],
           [5., 4.]])
    """
    weights = _weights(weights)
    origins = [
        -o - (1 - m % 2)
        for o, m in zip(arguments(origin, weights.ndim), weights.shape, strict=True)
    ]
    weights = weights[(slice(None, None, -1),) * weights.ndim]
    return _of_axes(input, weights, output, mode, cval, origins, axes, "convolve")


def _of_axes(
    input: Any, weights: Any, output: Any, mode: str, cval: Any, origin: Any, axes: Any, name: str
) -> Any:
    x, dtype = operand(input)
    axes = axes_of(axes, x.ndim)
    if weights.ndim != len(axes):
        raise RuntimeError(f"weights.ndim ({weights.ndim}) must match len(axes) ({len(axes)})")
    shape = [1] * x.ndim
    for axis, m, start in zip(axes, weights.shape, arguments(origin, len(axes)), strict=True):
        if not -(m // 2) <= start <= (m - 1) // 2:
            raise ValueError(
                "Invalid origin; origin must satisfy -(weights.shape[k] // 2) <= origin[k] <= "
                "(weights.shape[k]-1) // 2"
            )
        before, shape[axis] = m // 2 + start, m
        x = extended(x, axis, before, m - 1 - before, mode_of(mode), cval)
    order = tuple(int(k) for k in np.argsort(axes))
    weights = weights if order == tuple(range(len(axes))) else weights.transpose(order)
    return result(windowed(x, weights.reshape(shape)), dtype, output, name)


@counterpart(scipy.ndimage.uniform_filter1d)
def uniform_filter1d(
    input: Any,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """The means of windows along one axis, as ``scipy.ndimage.uniform_filter1d``.

    Parameters
    ----------
    input : array or Tensor
    size : int
        The length of the window.
    axis, output, mode, cval, origin
        As for `correlate1d`.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import uniform_filter1d
    >>> wg.grad(lambda x: uniform_filter1d(x, 4)[2])(np.ones(5))
    array([0.25, 0.25, 0.25, 0.25, 0.  ])
    """
    x, dtype = operand(input)
    axis = normalize_axis_index(axis, x.ndim)
    y = _mean(x, size, axis, mode, cval, origin)
    return result(y, dtype, output, "uniform_filter1d")


def _mean(x: Any, size: int, axis: int, mode: str, cval: Any, origin: int) -> Any:
    if size < 1:
        raise RuntimeError("incorrect filter size")
    if not 0 <= size // 2 + origin < size:
        raise ValueError("invalid origin")
    return correlated(x, np.ones(size), axis, mode, cval, origin) / size


@counterpart(scipy.ndimage.uniform_filter)
def uniform_filter(
    input: Any,
    size: Any = 3,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The means of windows, as ``scipy.ndimage.uniform_filter``.

    Parameters
    ----------
    input : array or Tensor
    size : int or sequence of int
    output, cval
        As for `correlate1d`.
    mode, origin
        The same, or one for each axis.
    axes : tuple of int, optional

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import uniform_filter
    >>> wg.grad(lambda x: uniform_filter(x, 2)[1, 1])(np.ones((2, 2)))
    array([[0.25, 0.25],
           [0.25, 0.25]])
    """
    x, dtype = operand(input)
    axes = axes_of(axes, x.ndim)
    each = [arguments(v, len(axes)) for v in (size, origin, mode)]
    for axis, length, start, how in zip(axes, *each, strict=True):
        if length > 1:
            x = _mean(x, int(length), axis, how, cval, start)
            x = staged(x, dtype, output, "uniform_filter")
    return result(x, dtype, output, "uniform_filter")

"""Filters that are differences of neighbors.

sobel prewitt                 the difference along one axis, smoothed along the others
laplace generic_laplace       sums of second differences
generic_gradient_magnitude    the length of a gradient
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.ndimage
from numpy.lib.array_utils import normalize_axis_index

from ..dispatch import counterpart
from .convolutions import correlated
from .gaussian import length_of
from .windows import arguments, axes_of, operand, result, staged

__all__ = ["generic_gradient_magnitude", "generic_laplace", "laplace", "prewitt", "sobel"]


def _smoothed_difference(
    input: Any, axis: int, output: Any, mode: Any, cval: Any, weights: list[float], name: str
) -> Any:
    x, dtype = operand(input)
    axis = normalize_axis_index(axis, x.ndim)
    modes, stored = arguments(mode, x.ndim), (dtype, output, name)
    x = staged(correlated(x, np.array([-1.0, 0.0, 1.0]), axis, modes[axis], cval), *stored)
    for k in range(x.ndim):
        if k != axis:
            x = staged(correlated(x, np.array(weights), k, modes[k], cval), *stored)
    return result(x, dtype, output, name)


@counterpart(scipy.ndimage.sobel)
def sobel(
    input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0
) -> Any:
    """A Sobel filter, as ``scipy.ndimage.sobel``.

    Parameters
    ----------
    input : array or Tensor
    axis : int
        Of the differences.
    output, cval
        As for `correlate1d`.
    mode : str or sequence of str

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import sobel
    >>> wg.grad(lambda x: sobel(x)[1, 1])(np.zeros((3, 3)))
    array([[-1.,  0.,  1.],
           [-2.,  0.,  2.],
           [-1.,  0.,  1.]])
    """
    return _smoothed_difference(input, axis, output, mode, cval, [1.0, 2.0, 1.0], "sobel")


@counterpart(scipy.ndimage.prewitt)
def prewitt(
    input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0
) -> Any:
    """A Prewitt filter, as ``scipy.ndimage.prewitt``.

    Parameters
    ----------
    input, axis, output, mode, cval
        As for `sobel`.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import prewitt
    >>> wg.grad(lambda x: prewitt(x, 0)[1, 1])(np.zeros((3, 3)))
    array([[-1., -1., -1.],
           [ 0.,  0.,  0.],
           [ 1.,  1.,  1.]])
    """
    return _smoothed_difference(input, axis, output, mode, cval, [1.0, 1.0, 1.0], "prewitt")


@counterpart(scipy.ndimage.laplace)
def laplace(
    input: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    *,
    axes: Any = None,
) -> Any:
    """The Laplacian by second differences, as ``scipy.ndimage.laplace``.

    Parameters
    ----------
    input : array or Tensor
    output, cval
        As for `correlate1d`.
    mode : str or sequence of str
    axes : tuple of int, optional

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import laplace
    >>> wg.grad(lambda x: laplace(x)[2])(np.zeros(5))
    array([ 0.,  1., -2.,  1.,  0.])
    """
    x, dtype = operand(input)
    axes = axes_of(axes, x.ndim)
    parts = [
        correlated(x, np.array([1.0, -2.0, 1.0]), axis, how, cval)
        for axis, how in zip(axes, arguments(mode, len(axes)), strict=True)
    ]
    total = x if not parts else parts[0]
    for part in parts[1:]:
        total = total + part
    return result(total, dtype, output, "laplace")


def _parts(
    x: Any,
    dtype: Any,
    derivative: Callable[..., Any],
    mode: Any,
    cval: Any,
    arguments_of: tuple[Any, ...],
    keywords: dict[str, Any] | None,
    axes: Any,
) -> list[Any]:
    axes = axes_of(axes, x.ndim)
    modes = arguments(mode, len(axes))
    return [
        derivative(x, axis, dtype, how, cval, *arguments_of, **(keywords or {}))
        for axis, how in zip(axes, modes, strict=True)
    ]


@counterpart(scipy.ndimage.generic_laplace)
def generic_laplace(
    input: Any,
    derivative2: Callable[..., Any],
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    extra_arguments: tuple[Any, ...] = (),
    extra_keywords: dict[str, Any] | None = None,
    *,
    axes: Any = None,
) -> Any:
    """A sum of second derivatives, as ``scipy.ndimage.generic_laplace``.

    Parameters
    ----------
    input : array or Tensor
    derivative2 : callable
        ``derivative2(input, axis, output, mode, cval, *extra_arguments, **extra_keywords)``; its
        `output` is a dtype.
    output, mode, cval, axes
        As for `laplace`.
    extra_arguments, extra_keywords
        Passed to `derivative2`.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import ndimage
    >>> def second(x, axis, output, mode, cval):
    ...     return ndimage.correlate1d(x, [1, -2, 1], axis, output, mode, cval)
    >>> wg.grad(lambda x: ndimage.generic_laplace(x, second)[1])(np.zeros(3))
    array([ 1., -2.,  1.])
    """
    x, dtype = operand(input)
    parts = _parts(x, x.dtype, derivative2, mode, cval, extra_arguments, extra_keywords, axes)
    total = x if not parts else parts[0]
    for part in parts[1:]:
        total = total + part
    return result(total, dtype, output, "generic_laplace")


@counterpart(scipy.ndimage.generic_gradient_magnitude)
def generic_gradient_magnitude(
    input: Any,
    derivative: Callable[..., Any],
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    extra_arguments: tuple[Any, ...] = (),
    extra_keywords: dict[str, Any] | None = None,
    *,
    axes: Any = None,
) -> Any:
    """The length of a gradient, as ``scipy.ndimage.generic_gradient_magnitude``.

    Parameters
    ----------
    input : array or Tensor
    derivative : callable
        As `derivative2` of `generic_laplace`.
    output, mode, cval, extra_arguments, extra_keywords, axes
        As for `generic_laplace`.

    Returns
    -------
    array or Tensor
        Its derivative is zero where the gradient vanishes.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import ndimage
    >>> x = np.arange(9.0).reshape(3, 3)
    >>> wg.vjp(lambda x: ndimage.generic_gradient_magnitude(x, ndimage.sobel)[1, 1], x)[0].round(3)
    np.float64(25.298)
    """
    x, dtype = operand(input)
    parts = _parts(x, x.dtype, derivative, mode, cval, extra_arguments, extra_keywords, axes)
    if not parts:
        return result(x, dtype, output, "generic_gradient_magnitude")
    squares = parts[0] * parts[0]
    for part in parts[1:]:
        squares = squares + part * part
    return result(length_of(squares), dtype, output, "generic_gradient_magnitude")

"""Filters that select an element of each window.

    maximum_filter minimum_filter maximum_filter1d minimum_filter1d
    median_filter percentile_filter rank_filter

The derivative is that of the selected element; of equal maxima it is divided, as for `np.maximum`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.ndimage
from numpy.lib.array_utils import normalize_axis_index

from ..dispatch import counterpart
from .windows import arguments, axes_of, extended, mode_of, operand, result

__all__ = [
    "maximum_filter",
    "maximum_filter1d",
    "median_filter",
    "minimum_filter",
    "minimum_filter1d",
    "percentile_filter",
    "rank_filter",
]

Choose = Callable[[Any, Any], Any]


def _real(input: Any) -> tuple[Any, np.dtype[Any]]:
    x, dtype = operand(input)
    if dtype.kind == "c":
        raise TypeError("Complex type not supported")
    return x, dtype


def _extreme(
    x: Any, size: int, axis: int, mode: str, cval: Any, origin: int, choose: Choose
) -> Any:
    """The extremes of windows along one axis, by pairs of halves."""
    if size < 1:
        raise RuntimeError("incorrect filter size")
    if not 0 <= size // 2 + origin < size:
        raise ValueError("invalid origin")
    n, before = x.shape[axis], size // 2 + origin
    around = extended(x, axis, before, size - 1 - before, mode_of(mode), cval)
    length = 1  # each element of `around` is the extreme of so many

    def part(start: int, count: int) -> Any:
        index = [slice(None)] * x.ndim
        index[axis] = slice(start, start + count)
        return around[tuple(index)]

    total = n + size - 1
    while length < size:
        step = min(length, size - length)
        total -= step
        around = choose(part(0, total), part(step, total))
        length += step
    return around


@counterpart(scipy.ndimage.maximum_filter1d)
def maximum_filter1d(
    input: Any,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """The maximum of windows along one axis, as ``scipy.ndimage.maximum_filter1d``.

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
    >>> from wengert.scipy.ndimage import maximum_filter1d
    >>> wg.grad(lambda x: np.sum(maximum_filter1d(x, 3)))(np.array([1.0, 3.0, 2.0, 0.0]))
    array([0., 3., 1., 0.])
    """
    x, dtype = _real(input)
    y = _extreme(x, size, normalize_axis_index(axis, x.ndim), mode, cval, origin, np.maximum)
    return result(y, dtype, output, "maximum_filter1d")


@counterpart(scipy.ndimage.minimum_filter1d)
def minimum_filter1d(
    input: Any,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """The minimum of windows along one axis, as ``scipy.ndimage.minimum_filter1d``.

    Parameters
    ----------
    input, size, axis, output, mode, cval, origin
        As for `maximum_filter1d`.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import minimum_filter1d
    >>> wg.grad(lambda x: np.sum(minimum_filter1d(x, 3)))(np.array([1.0, 3.0, 2.0, 0.0]))
    array([2., 0., 0., 2.])
    """
    x, dtype = _real(input)
    y = _extreme(x, size, normalize_axis_index(axis, x.ndim), mode, cval, origin, np.minimum)
    return result(y, dtype, output, "minimum_filter1d")


def _footprint(size: Any, footprint: Any, count: int) -> Any:
    """The window as an array of booleans."""
    if size is not None and footprint is not None:
        warnings.warn("ignoring size because footprint is set", UserWarning, stacklevel=4)
    if footprint is None:
        if size is None:
            raise RuntimeError("no footprint or filter size provided")
        return np.ones([int(n) for n in arguments(size, count)], bool)
    footprint = np.asarray(footprint, bool)
    if not footprint.any():
        raise ValueError("All-zero footprint is not supported.")
    if footprint.ndim != count:
        raise RuntimeError(f"footprint.ndim ({footprint.ndim}) must match len(axes) ({count})")
    return footprint


def _windows(
    x: Any, footprint: Any, axes: tuple[int, ...], mode: str, cval: Any, origin: Any
) -> list[Any]:
    """The elements of each window, an array for each element of the footprint."""
    shape = x.shape
    for axis, m, start in zip(axes, footprint.shape, arguments(origin, len(axes)), strict=True):
        if not 0 <= m // 2 + start < m:
            raise ValueError("invalid origin")
        before = m // 2 + start
        x = extended(x, axis, before, m - 1 - before, mode_of(mode), cval)
    windows = []
    for position in np.argwhere(footprint):
        index = [slice(None)] * x.ndim
        for axis, k in zip(axes, position, strict=True):
            index[axis] = slice(int(k), int(k) + shape[axis])
        windows.append(x[tuple(index)])
    return windows


def _by_extremes(
    input: Any,
    size: Any,
    footprint: Any,
    output: Any,
    mode: Any,
    cval: Any,
    origin: Any,
    axes: Any,
    choose: Choose,
    name: str,
) -> Any:
    x, dtype = _real(input)
    axes = axes_of(axes, x.ndim)
    window = _footprint(size, footprint, len(axes))
    if window.all():
        each = [arguments(v, len(axes)) for v in (origin, mode)]
        for axis, m, start, how in zip(axes, window.shape, *each, strict=True):
            if m > 1:
                x = _extreme(x, m, axis, how, cval, start, choose)
        return result(x, dtype, output, name)
    windows = _windows(x, window, axes, mode, cval, origin)
    while len(windows) > 1:
        pairs = [choose(*windows[k : k + 2]) for k in range(0, len(windows) - 1, 2)]
        windows = pairs + windows[2 * len(pairs) :]
    return result(windows[0], dtype, output, name)


@counterpart(scipy.ndimage.maximum_filter)
def maximum_filter(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The maximum of windows, as ``scipy.ndimage.maximum_filter``.

    Parameters
    ----------
    input : array or Tensor
    size : int or sequence of int, optional
    footprint : array of bool, optional
        Which elements of a window count.
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
    >>> from wengert.scipy.ndimage import maximum_filter
    >>> x = np.array([[1.0, 5.0], [4.0, 2.0]])
    >>> wg.grad(lambda x: np.sum(maximum_filter(x, 3)))(x)
    array([[0., 4.],
           [0., 0.]])
    """
    return _by_extremes(
        input, size, footprint, output, mode, cval, origin, axes, np.maximum, "maximum_filter"
    )


@counterpart(scipy.ndimage.minimum_filter)
def minimum_filter(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The minimum of windows, as ``scipy.ndimage.minimum_filter``.

    Parameters
    ----------
    input, size, footprint, output, mode, cval, origin, axes
        As for `maximum_filter`.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import minimum_filter
    >>> x = np.array([[1.0, 5.0], [4.0, 2.0]])
    >>> wg.grad(lambda x: np.sum(minimum_filter(x, 3)))(x)
    array([[4., 0.],
           [0., 0.]])
    """
    return _by_extremes(
        input, size, footprint, output, mode, cval, origin, axes, np.minimum, "minimum_filter"
    )


def _ranked(
    input: Any,
    rank_of: Callable[[int], int],
    size: Any,
    footprint: Any,
    output: Any,
    mode: Any,
    cval: Any,
    origin: Any,
    axes: Any,
    name: str,
) -> Any:
    x, dtype = _real(input)
    of_filter = axes_of(axes, x.ndim)
    window = _footprint(size, footprint, len(of_filter))
    count = int(window.sum())
    rank = rank_of(count)
    rank = rank + count if rank < 0 else rank
    if not 0 <= rank < count:
        raise RuntimeError("rank not within filter footprint size")
    if rank in (0, count - 1):
        choose = np.minimum if rank == 0 else np.maximum
        return _by_extremes(
            input, None, window, output, mode, cval, origin, of_filter, choose, name
        )
    windows = _windows(x, window, of_filter, mode, cval, origin)
    ordered = np.sort(np.stack(windows, axis=-1), axis=-1)
    return result(ordered[..., rank], dtype, output, name)


@counterpart(scipy.ndimage.rank_filter)
def rank_filter(
    input: Any,
    rank: int,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The element of a given rank in each window, as ``scipy.ndimage.rank_filter``.

    Parameters
    ----------
    input : array or Tensor
    rank : int
        0 is the smallest, -1 the largest.
    size, footprint, output, mode, cval, origin, axes
        As for `maximum_filter`.

    Returns
    -------
    array or Tensor

    Notes
    -----
    *Cost.* Memory for all windows.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import rank_filter
    >>> wg.grad(lambda x: np.sum(rank_filter(x, 1, 3)))(np.array([1.0, 5.0, 4.0, 2.0]))
    array([1., 0., 2., 1.])
    """
    return _ranked(
        input, lambda _: rank, size, footprint, output, mode, cval, origin, axes, "rank_filter"
    )


@counterpart(scipy.ndimage.median_filter)
def median_filter(
    input: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The median of each window, as ``scipy.ndimage.median_filter``.

    Parameters
    ----------
    input, size, footprint, output, mode, cval, origin, axes
        As for `rank_filter`.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import median_filter
    >>> wg.grad(lambda x: median_filter(x, 3)[1])(np.array([1.0, 5.0, 4.0, 2.0]))
    array([0., 0., 1., 0.])
    """
    return _ranked(
        input, lambda n: n // 2, size, footprint, output, mode, cval, origin, axes, "median_filter"
    )


@counterpart(scipy.ndimage.percentile_filter)
def percentile_filter(
    input: Any,
    percentile: float,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """A percentile of each window, as ``scipy.ndimage.percentile_filter``.

    Parameters
    ----------
    input : array or Tensor
    percentile : float
        From -100 to 100.
    size, footprint, output, mode, cval, origin, axes
        As for `rank_filter`.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.ndimage import percentile_filter
    >>> wg.grad(lambda x: percentile_filter(x, 40, 3)[1])(np.array([1.0, 5.0, 4.0, 2.0]))
    array([0., 0., 1., 0.])
    """

    def rank_of(count: int) -> int:
        part = percentile + 100.0 if percentile < 0.0 else percentile
        if not 0 <= part <= 100:
            raise RuntimeError("invalid percentile")
        return count - 1 if part == 100.0 else int(float(count) * part / 100.0)

    return _ranked(
        input, rank_of, size, footprint, output, mode, cval, origin, axes, "percentile_filter"
    )

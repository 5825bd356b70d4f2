"""Median filters and the Wiener filter.

    medfilt medfilt2d    the median of the window around each element
    wiener               local mean plus the deviation from it, scaled by the estimated signal power

Inputs are padded with zeros, as in SciPy.  The derivative of a median is that of the selected
element (docs/conventions.md, 2.4).
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import scipy.signal

from wengert._engine.core.handle import shape_of, value_of
from wengert._engine.ops.elementwise.selection import where as choose
from wengert.errors import ArgumentError, at, user_line
from wengert.numpy.padding import pad

from ..dispatch import counterpart, floating

__all__ = ["medfilt", "medfilt2d", "wiener"]


def _windows(x: Any, size: Any, name: str) -> tuple[Any, tuple[int, ...]]:
    """The elements of each window along a new first axis, and the lengths of a window."""
    ndim = len(shape_of(x))
    size = 3 if size is None else size
    lengths = (int(size),) * ndim if np.ndim(size) == 0 else tuple(int(n) for n in size)
    if len(lengths) != ndim or any(n < 1 or n % 2 == 0 for n in lengths):
        raise ArgumentError(
            f"{name} with a window of size {size}: give an odd length for each of {ndim} axes, or "
            f"one for all{at(user_line())}."
        )
    padded = pad(x, [(n // 2, n // 2) for n in lengths])
    shifted = [
        padded[tuple(slice(i, i + m) for i, m in zip(start, shape_of(x), strict=True))]
        for start in product(*map(range, lengths))
    ]
    return np.stack(shifted), lengths


@counterpart(scipy.signal.medfilt)
def medfilt(volume: Any, kernel_size: Any = None) -> Any:
    """Apply a median filter, as ``scipy.signal.medfilt``.

    Parameters
    ----------
    volume : array or Tensor
    kernel_size : int or sequence of int, optional
        The lengths of the window, which must be odd; 3 by default.

    Returns
    -------
    array or Tensor

    Raises
    ------
    ArgumentError
        A length is even, or the number of lengths is not that of the axes.

    Notes
    -----
    *Cost.* Time and memory are proportional to the size of `volume` times that of the window.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.signal import medfilt
    >>> wg.grad(lambda x: medfilt(x)[1])(np.array([3.0, 1.0, 2.0]))
    array([0., 0., 1.])
    """
    windows, _ = _windows(floating(volume), kernel_size, "medfilt")
    return np.median(windows, axis=0)


@counterpart(scipy.signal.medfilt2d)
def medfilt2d(input: Any, kernel_size: Any = 3) -> Any:
    """Apply a median filter to a matrix, as ``scipy.signal.medfilt2d``.

    Parameters
    ----------
    input : array or Tensor
        Shape (m, n).
    kernel_size : int or sequence of int
        The lengths of the window, which must be odd.

    Returns
    -------
    array or Tensor

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.signal import medfilt2d
    >>> wg.grad(lambda x: medfilt2d(x)[1, 1])(np.arange(9.0).reshape(3, 3))[1]
    array([0., 1., 0.])
    """
    return medfilt(input, kernel_size)


@counterpart(scipy.signal.wiener)
def wiener(im: Any, mysize: Any = None, noise: Any = None) -> Any:
    """Apply a Wiener filter, as ``scipy.signal.wiener``.

    Parameters
    ----------
    im : array or Tensor
    mysize : int or sequence of int, optional
        The lengths of the window, which must be odd; 3 by default.
    noise : float or Tensor, optional
        The variance of the noise; by default the mean of the local variances.

    Returns
    -------
    array or Tensor

    Notes
    -----
    J. S. Lim, Two-Dimensional Signal and Image Processing (1990), 548. Where the local variance is
    less than `noise`, the result is the local mean; the derivative is that of the selected branch.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.signal import wiener
    >>> x = np.array([1.0, 2.0, 4.0, 1.0])
    >>> wg.grad(lambda x: np.sum(wiener(x, 3, 0.0)))(x)
    array([1., 1., 1., 1.])
    """
    im = floating(im)
    windows, lengths = _windows(im, mysize, "wiener")
    count = prod(lengths)
    mean = np.sum(windows, axis=0) / count
    variance = np.sum(windows * windows, axis=0) / count - mean * mean
    noise = np.mean(variance) if noise is None else noise
    only_noise = value_of(variance) < value_of(noise)
    divisor = choose(only_noise, 1.0, choose(value_of(variance) == 0, 1.0, variance))
    return choose(only_noise, mean, mean + (im - mean) * (1.0 - noise / divisor))

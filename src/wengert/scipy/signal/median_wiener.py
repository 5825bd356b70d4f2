"""Local filters: medians and the Wiener filter.

    medfilt medfilt2d    the median of a window about each element
    wiener               the mean of a window, and as much of the rest as is more than noise

Beyond the ends there are zeros, as in SciPy.  The median chooses an element, and its derivative is
that of the choice (docs/conventions.md, 2.4).
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


def _windows(x: Any, size: Any, what: str) -> tuple[Any, tuple[int, ...]]:
    """The neighbors of each element along a new first axis, and the lengths of a window."""
    count = len(shape_of(x))
    size = 3 if size is None else size
    lengths = (int(size),) * count if np.ndim(size) == 0 else tuple(int(n) for n in size)
    if len(lengths) != count or any(n < 1 or n % 2 == 0 for n in lengths):
        raise ArgumentError(
            f"{what} with a window of {size}: it has an odd length for each of {count} axes"
            f"{at(user_line())}."
        )
    wide = pad(x, [(n // 2, n // 2) for n in lengths])
    moved = [
        wide[tuple(slice(i, i + m) for i, m in zip(start, shape_of(x), strict=True))]
        for start in product(*map(range, lengths))
    ]
    return np.stack(moved), lengths


@counterpart(scipy.signal.medfilt)
def medfilt(volume: Any, kernel_size: Any = None) -> Any:
    """The median of a window about each element, as ``scipy.signal.medfilt``.

    Parameters
    ----------
    volume : array or Tensor
    kernel_size : int or sequence of int, optional
        Odd lengths; 3 by default.

    Returns
    -------
    array or Tensor

    Raises
    ------
    ArgumentError
        A length is even, or there are not as many as axes.

    Notes
    -----
    Cost: the number of elements times that of a window, in time and memory.

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
    """The median of a window about each element of a matrix, as ``scipy.signal.medfilt2d``.

    Parameters
    ----------
    input : array or Tensor
        (m, n).
    kernel_size : int or sequence of int
        Odd lengths.

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
    """Wiener's filter of local means and variances, as ``scipy.signal.wiener``.

    Parameters
    ----------
    im : array or Tensor
    mysize : int or sequence of int, optional
        Odd lengths of the window; 3 by default.
    noise : float or Tensor, optional
        The variance of noise; by default the mean of local variances.

    Returns
    -------
    array or Tensor

    Notes
    -----
    J. S. Lim, Two-Dimensional Signal and Image Processing (1990), 548. Where the local variance is
    below the noise the result is the local mean: a choice.

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
    level = np.mean(variance) if noise is None else noise
    calm = value_of(variance) < value_of(level)
    some = choose(calm, 1.0, choose(value_of(variance) == 0, 1.0, variance))
    return choose(calm, mean, mean + (im - mean) * (1.0 - level / some))

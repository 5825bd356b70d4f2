"""Pooling functions with PyTorch's names and orders of arguments.

    max_pool1d     max_pool2d     max_pool3d        the largest element of each window
    avg_pool1d     avg_pool2d     avg_pool3d        the mean of each window

As many windows as are asked for: adaptive_pools.py.  What they have in common, and how it is
computed, is in pool.py.
"""

from __future__ import annotations

from typing import Any

from .pooling_nd import averaged, largest
from .window_options import Option

__all__ = [
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
]


def max_pool1d(
    x: Any,
    kernel_size: Option,
    stride: Option | None = None,
    padding: Option = 0,
    dilation: Option = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window over one axis.

    The gradient goes to the first of equal elements, as in PyTorch; a NaN counts as largest.

    Parameters
    ----------
    x : array or Tensor, shape (samples, channels, length)
        Or one sample, without the first axis.
    kernel_size : int or tuple
    stride : int or tuple, optional
        By default `kernel_size`, so that windows do not overlap.
    padding : int or tuple, default 0
        How many elements, smaller than all others, stand on each side; at most half of a window.
    dilation : int or tuple, default 1
        How far apart the elements of a window are.
    ceil_mode : bool, default False
        Whether a last window that only partly fits counts.
    return_indices : bool, default False
        Whether to return the positions too, counted along all spatial axes together.

    Returns
    -------
    array or Tensor, or a pair of them

    Raises
    ------
    ShapeError, ArgumentError
        An axis is shorter than a window; an option outside what it can be.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.max_pool1d(np.ones((2, 3, 8)), 2).shape
    (2, 3, 4)
    """
    given = (kernel_size, stride, padding, dilation, ceil_mode, return_indices)
    return largest(x, *given, 1, "max_pool1d")


def max_pool2d(
    x: Any,
    kernel_size: Option,
    stride: Option | None = None,
    padding: Option = 0,
    dilation: Option = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window over two axes.

    Parameters, result and errors are those of `max_pool1d`, but `x` has the shape
    (samples, channels, height, width).

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.max_pool2d(np.ones((2, 3, 8, 6)), 2).shape
    (2, 3, 4, 3)
    """
    given = (kernel_size, stride, padding, dilation, ceil_mode, return_indices)
    return largest(x, *given, 2, "max_pool2d")


def max_pool3d(
    x: Any,
    kernel_size: Option,
    stride: Option | None = None,
    padding: Option = 0,
    dilation: Option = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window over three axes.

    Parameters, result and errors are those of `max_pool1d`, but `x` has the shape
    (samples, channels, depth, height, width).

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.max_pool3d(np.ones((1, 2, 4, 4, 6)), 2).shape
    (1, 2, 2, 2, 3)
    """
    given = (kernel_size, stride, padding, dilation, ceil_mode, return_indices)
    return largest(x, *given, 3, "max_pool3d")


def avg_pool1d(
    x: Any,
    kernel_size: Option,
    stride: Option | None = None,
    padding: Option = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    """The mean of each window over one axis.

    Parameters
    ----------
    x : array or Tensor, shape (samples, channels, length)
        Or one sample, without the first axis.
    kernel_size : int or tuple
    stride : int or tuple, optional
        By default `kernel_size`, so that windows do not overlap.
    padding : int or tuple, default 0
        How many zeros stand on each side; at most half of a window.
    ceil_mode : bool, default False
        Whether a last window that only partly fits counts.
    count_include_pad : bool, default True
        Whether these zeros are among what is counted.

    Returns
    -------
    array or Tensor

    Raises
    ------
    ShapeError, ArgumentError
        An axis is shorter than a window; an option outside what it can be.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.avg_pool1d(np.ones((2, 3, 8)), 2).shape
    (2, 3, 4)
    """
    given = (kernel_size, stride, padding, ceil_mode, count_include_pad, None)
    return averaged(x, *given, 1, "avg_pool1d")


def avg_pool2d(
    x: Any,
    kernel_size: Option,
    stride: Option | None = None,
    padding: Option = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """The mean of each window over two axes.

    Parameters, result and errors are those of `avg_pool1d`, but `x` has the shape
    (samples, channels, height, width).

    Parameters
    ----------
    divisor_override : int, optional
        What sums are divided by, in place of the number of elements.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.avg_pool2d(np.ones((2, 3, 8, 6)), 2).shape
    (2, 3, 4, 3)
    """
    given = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return averaged(x, *given, 2, "avg_pool2d")


def avg_pool3d(
    x: Any,
    kernel_size: Option,
    stride: Option | None = None,
    padding: Option = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """The mean of each window over three axes.

    Parameters, result and errors are those of `avg_pool2d`, but `x` has the shape
    (samples, channels, depth, height, width).

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.avg_pool3d(np.ones((1, 2, 4, 4, 6)), 2).shape
    (1, 2, 2, 2, 3)
    """
    given = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return averaged(x, *given, 3, "avg_pool3d")

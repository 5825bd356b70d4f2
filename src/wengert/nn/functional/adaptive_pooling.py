"""Adaptive pooling: as many windows as are asked for, with PyTorch's names.

    adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d     the largest element of each
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d     the mean of each

What they have in common, and how it is computed, is in pool.py.
"""

from __future__ import annotations

from typing import Any

from .pooling_nd import adaptive_averaged, adaptive_largest

__all__ = [
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
]


def adaptive_max_pool1d(x: Any, output_size: Any, return_indices: bool = False) -> Any:
    """The largest element of each of as many windows as are asked for, over one axis.

    Of n elements window i of m goes from floor(i n / m) to before ceil((i + 1) n / m).

    Parameters
    ----------
    x : array or Tensor, shape (samples, channels, length)
        Or one sample, without the first axis.
    output_size : int, None, or a tuple of them
        How many windows each axis has; None keeps its length.
    return_indices : bool, default False
        Whether to return the positions too, counted along all spatial axes together.

    Returns
    -------
    array or Tensor, or a pair of them

    Raises
    ------
    ShapeError, ArgumentError
        Not the axes that it takes; an `output_size` that is none.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.adaptive_max_pool1d(np.ones((2, 3, 8)), 3).shape
    (2, 3, 3)
    """
    return adaptive_largest(x, output_size, return_indices, 1, "adaptive_max_pool1d")


def adaptive_max_pool2d(x: Any, output_size: Any, return_indices: bool = False) -> Any:
    """The largest element of each of as many windows as are asked for, over two axes.

    Parameters, result and errors are those of `adaptive_max_pool1d`, but `x` has the shape
    (samples, channels, height, width).

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.adaptive_max_pool2d(np.ones((2, 3, 8, 6)), (3, None)).shape
    (2, 3, 3, 6)
    """
    return adaptive_largest(x, output_size, return_indices, 2, "adaptive_max_pool2d")


def adaptive_max_pool3d(x: Any, output_size: Any, return_indices: bool = False) -> Any:
    """The largest element of each of as many windows as are asked for, over three axes.

    Parameters, result and errors are those of `adaptive_max_pool1d`, but `x` has the shape
    (samples, channels, depth, height, width).

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.adaptive_max_pool3d(np.ones((1, 2, 4, 4, 6)), 2).shape
    (1, 2, 2, 2, 2)
    """
    return adaptive_largest(x, output_size, return_indices, 3, "adaptive_max_pool3d")


def adaptive_avg_pool1d(x: Any, output_size: Any) -> Any:
    """The mean of each of as many windows as are asked for, over one axis.

    Of n elements window i of m goes from floor(i n / m) to before ceil((i + 1) n / m).

    Parameters
    ----------
    x : array or Tensor, shape (samples, channels, length)
        Or one sample, without the first axis.
    output_size : int, None, or a tuple of them
        How many windows each axis has; None keeps its length.

    Returns
    -------
    array or Tensor

    Raises
    ------
    ShapeError, ArgumentError
        Not the axes that it takes; an `output_size` that is none.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.adaptive_avg_pool1d(np.ones((2, 3, 8)), 3).shape
    (2, 3, 3)
    """
    return adaptive_averaged(x, output_size, 1, "adaptive_avg_pool1d")


def adaptive_avg_pool2d(x: Any, output_size: Any) -> Any:
    """The mean of each of as many windows as are asked for, over two axes.

    Parameters, result and errors are those of `adaptive_avg_pool1d`, but `x` has the shape
    (samples, channels, height, width).

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.adaptive_avg_pool2d(np.ones((2, 3, 8, 6)), (3, None)).shape
    (2, 3, 3, 6)
    """
    return adaptive_averaged(x, output_size, 2, "adaptive_avg_pool2d")


def adaptive_avg_pool3d(x: Any, output_size: Any) -> Any:
    """The mean of each of as many windows as are asked for, over three axes.

    Parameters, result and errors are those of `adaptive_avg_pool1d`, but `x` has the shape
    (samples, channels, depth, height, width).

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.adaptive_avg_pool3d(np.ones((1, 2, 4, 4, 6)), 2).shape
    (1, 2, 2, 2, 2)
    """
    return adaptive_averaged(x, output_size, 3, "adaptive_avg_pool3d")

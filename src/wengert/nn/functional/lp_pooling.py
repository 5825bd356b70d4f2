"""Power-average pooling, with the names and argument orders of PyTorch.

    lp_pool1d, lp_pool2d, lp_pool3d

The result is (sum of x**p)**(1/p) over each window.  As in PyTorch x is not made positive: for odd
or fractional p give nonnegative inputs.
"""

from __future__ import annotations

from math import prod
from typing import Any

from wengert.errors import ArgumentError, at, user_line

from .by_dimension import by_dimension
from .pooling import avg_pool_nd
from .window_options import Option, per_axis

__all__ = ["lp_pool1d", "lp_pool2d", "lp_pool3d"]


def lp_pool_nd(
    axes: int,
    op_name: str,
    x: Any,
    norm_type: float,
    kernel_size: Option,
    stride: Option | None = None,
    ceil_mode: bool = False,
) -> Any:
    """(sum of x**p)**(1/p) of each window over <over>.

    Parameters
    ----------
    x : array or Tensor, shape (batch, channels, <space>)
        Or one sample, without the batch axis.
    norm_type : float
        The power p, above 0.
    kernel_size : int or tuple
    stride : int or tuple, optional
        Default `kernel_size`: windows do not overlap.
    ceil_mode : bool, default False
        Whether to include a last window that fits only partly; its sum is scaled to a whole one.

    Returns
    -------
    array or Tensor

    Raises
    ------
    ShapeError, ArgumentError
        An axis is shorter than a window, or an option is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.lp_pool<n>d(np.ones((2, 3, <8>)), 2.0, 2).shape
    (2, 3, <4>)
    """
    if not norm_type > 0:
        raise ArgumentError(
            f"{op_name}: norm_type must be above 0, got {norm_type!r}{at(user_line())}."
        )
    count = prod(per_axis(kernel_size, axes, "kernel_size"))
    mean = avg_pool_nd(axes, op_name, x**norm_type, kernel_size, stride, 0, ceil_mode)
    return (mean * count) ** (1.0 / norm_type)


lp_pool1d, lp_pool2d, lp_pool3d = by_dimension(lp_pool_nd)

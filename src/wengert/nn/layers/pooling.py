"""Pooling layers over 1, 2 and 3 axes, and those that undo max pooling.

    MaxPool            the maximum of each window
    AvgPool            the mean of each window
    AdaptiveMaxPool    the maximum of each of a given number of windows
    AdaptiveAvgPool    the mean of each of a given number of windows
    LPPool             the sum of powers of each window, and its root
    MaxUnpool          values at the positions of the maxima, zeros elsewhere

Names, orders of arguments and reprs are PyTorch's.  The computation is in
functional/pooling.py and functional/resampling.py (unpooling).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..functional.conv import Option, per_axis
from ..functional.pooling import (
    adaptive_avg_pool_nd,
    adaptive_max_pool_nd,
    avg_pool_nd,
    lp_pool_nd,
    max_pool_nd,
)
from ..functional.resampling import max_unpool_nd
from .conv import Spatial

__all__ = """
    AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d
    AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d LPPool1d LPPool2d LPPool3d MaxPool1d
    MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d
""".split()


class _MaxPool(Spatial):
    """The maximum of each window.

    Parameters
    ----------
    kernel_size : int or tuple
    stride : int or tuple, optional
        Default `kernel_size`.
    padding : int or tuple, default 0
        The number of elements of value -inf on each side; at most half of `kernel_size`.
    dilation : int or tuple, default 1
    return_indices : bool, default False
        Whether to return also the flat indices over all spatial axes.
    ceil_mode : bool, default False
        Whether to include a last window that fits only partly.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.MaxPool<n>d(2)
    >>> layer
    MaxPool<n>d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)
    >>> layer(np.ones((2, 3, <8>))).shape
    (2, 3, <4>)
    """

    def __init__(
        self,
        kernel_size: Option,
        stride: Option | None = None,
        padding: Option = 0,
        dilation: Option = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        per_axis(kernel_size, self.axes, "kernel_size")
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, x: Any) -> Any:
        """The maximum of each window; with `return_indices`, a pair with the indices."""
        given = (self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)
        return max_pool_nd(self.axes, repr(self), x, *given, self.return_indices)

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class _AvgPool(Spatial):
    """The mean of each window.

    Parameters
    ----------
    kernel_size : int or tuple
    stride : int or tuple, optional
        Default `kernel_size`.
    padding : int or tuple, default 0
        The number of zeros on each side; at most half of `kernel_size`.
    ceil_mode : bool, default False
        Whether to include a last window that fits only partly.
    count_include_pad : bool, default True
        Whether the padding is included in the mean.
    divisor_override : int, optional
        The divisor, instead of the number of elements; not for `AvgPool1d`.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.AvgPool<n>d(2)
    >>> layer
    AvgPool<n>d(kernel_size=2, stride=2, padding=0)
    >>> layer(np.ones((2, 3, <8>))).shape
    (2, 3, <4>)
    """

    def __init__(
        self,
        kernel_size: Option,
        stride: Option | None = None,
        padding: Option = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        per_axis(kernel_size, self.axes, "kernel_size")
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def forward(self, x: Any) -> Any:
        """The mean of each window."""
        given = (self.kernel_size, self.stride, self.padding, self.ceil_mode)
        options = (self.count_include_pad, self.divisor_override)
        return avg_pool_nd(self.axes, repr(self), x, *given, *options)

    def extra_repr(self) -> str:
        """The options."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AdaptiveMaxPool(Spatial):
    """The maximum of each of `output_size` windows.

    Parameters
    ----------
    output_size : int, None, or a tuple of them
        The number of windows along each axis; None for the length of the axis.
    return_indices : bool, default False
        Whether to return also the flat indices over all spatial axes.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.AdaptiveMaxPool<n>d(3)
    >>> layer
    AdaptiveMaxPool<n>d(output_size=3)
    >>> layer(np.ones((2, 3, <8>))).shape
    (2, 3, <3>)
    """

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, x: Any) -> Any:
        """The maximum of each window; with `return_indices`, a pair with the indices."""
        return adaptive_max_pool_nd(self.axes, repr(self), x, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        """The output size."""
        return f"output_size={self.output_size}"


class _AdaptiveAvgPool(Spatial):
    """The mean of each of `output_size` windows.

    Parameters
    ----------
    output_size : int, None, or a tuple of them
        The number of windows along each axis; None for the length of the axis.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.AdaptiveAvgPool<n>d(3)
    >>> layer
    AdaptiveAvgPool<n>d(output_size=3)
    >>> layer(np.ones((2, 3, <8>))).shape
    (2, 3, <3>)
    """

    def __init__(self, output_size: Any) -> None:
        self.output_size = output_size

    def forward(self, x: Any) -> Any:
        """The mean of each window."""
        return adaptive_avg_pool_nd(self.axes, repr(self), x, self.output_size)

    def extra_repr(self) -> str:
        """The output size."""
        return f"output_size={self.output_size}"


class _LPPool(Spatial):
    """(sum of x**p)**(1/p) of each window.

    Parameters
    ----------
    norm_type : float
        The power p.
    kernel_size : int or tuple
    stride : int or tuple, optional
        Default `kernel_size`.
    ceil_mode : bool, default False
        Whether to include a last window that fits only partly.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> nn.LPPool<n>d(2.0, 2)(np.ones((2, 3, <8>))).shape
    (2, 3, <4>)
    """

    def __init__(
        self,
        norm_type: float,
        kernel_size: Option,
        stride: Option | None = None,
        ceil_mode: bool = False,
    ) -> None:
        per_axis(kernel_size, self.axes, "kernel_size")
        self.norm_type, self.kernel_size = norm_type, kernel_size
        self.stride, self.ceil_mode = stride, ceil_mode

    def forward(self, x: Any) -> Any:
        """The root of the sum of powers of each window."""
        given = (self.norm_type, self.kernel_size, self.stride, self.ceil_mode)
        return lp_pool_nd(self.axes, repr(self), x, *given)

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """`functional.max_pool1d` as a layer."""

    axes = 1


class MaxPool2d(_MaxPool):
    """`functional.max_pool2d` as a layer."""

    axes = 2


class MaxPool3d(_MaxPool):
    """`functional.max_pool3d` as a layer."""

    axes = 3


class AvgPool1d(_AvgPool):
    """`functional.avg_pool1d` as a layer."""

    axes = 1


class AvgPool2d(_AvgPool):
    """`functional.avg_pool2d` as a layer."""

    axes = 2


class AvgPool3d(_AvgPool):
    """`functional.avg_pool3d` as a layer."""

    axes = 3


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """`functional.adaptive_max_pool1d` as a layer."""

    axes = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """`functional.adaptive_max_pool2d` as a layer."""

    axes = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """`functional.adaptive_max_pool3d` as a layer."""

    axes = 3


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """`functional.adaptive_avg_pool1d` as a layer."""

    axes = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """`functional.adaptive_avg_pool2d` as a layer."""

    axes = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """`functional.adaptive_avg_pool3d` as a layer."""

    axes = 3


class LPPool1d(_LPPool):
    """`functional.lp_pool1d` as a layer."""

    axes = 1


class LPPool2d(_LPPool):
    """`functional.lp_pool2d` as a layer."""

    axes = 2


class LPPool3d(_LPPool):
    """`functional.lp_pool3d` as a layer."""

    axes = 3


class _MaxUnpool(Spatial):
    """The inverse of `MaxPool<n>d`.

    Parameters
    ----------
    kernel_size : int or tuple
    stride : int or tuple, optional
        Default `kernel_size`.
    padding : int or tuple, default 0

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> x = np.random.default_rng(0).normal(size=(2, 3, <8>))
    >>> largest, where = nn.MaxPool<n>d(2, return_indices=True)(x)
    >>> nn.MaxUnpool<n>d(2)(largest, where).shape
    (2, 3, <8>)
    """

    def __init__(
        self, kernel_size: Option, stride: Option | None = None, padding: Option = 0
    ) -> None:
        per_axis(kernel_size, self.axes, "kernel_size")
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding

    def forward(self, x: Any, indices: Any, output_size: Sequence[int] | None = None) -> Any:
        """The values at their positions; `output_size` has the lengths of the spatial axes."""
        given = (self.kernel_size, self.stride, self.padding, output_size)
        return max_unpool_nd(self.axes, repr(self), x, indices, *given)

    def extra_repr(self) -> str:
        """The options."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """`functional.max_unpool1d` as a layer."""

    axes = 1


class MaxUnpool2d(_MaxUnpool):
    """`functional.max_unpool2d` as a layer."""

    axes = 2


class MaxUnpool3d(_MaxUnpool):
    """`functional.max_unpool3d` as a layer."""

    axes = 3

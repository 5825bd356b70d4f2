"""Layers of pooling, over 1, 2 and 3 axes; they have no parameters.

    MaxPool             the largest element of each window
    AvgPool             the mean of each window
    AdaptiveMaxPool     the same, of as many windows as are asked for
    AdaptiveAvgPool

PyTorch's names, orders of arguments and text.  What they compute is in pool.py.
"""

from __future__ import annotations

from typing import Any

from ..functional.pooling_nd import adaptive_averaged, adaptive_largest, averaged, largest
from ..functional.window_options import Option, per_axis
from ..module import Module


class _MaxPool(Module):
    """The largest element of each window.

    Parameters
    ----------
    kernel_size : int or tuple
    stride : int or tuple, optional
        By default `kernel_size`.
    padding : int or tuple, default 0
        At most half of a window; never the largest.
    dilation : int or tuple, default 1
    return_indices : bool, default False
        Whether to return where they stand, too.
    ceil_mode : bool, default False
        Whether a last window that only partly fits counts.
    """

    axes: int

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
        """The largest element of each window; a pair with where they stand, if asked for."""
        return largest(
            *(x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode),
            *(self.return_indices, self.axes, repr(self)),
        )

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class _AvgPool(Module):
    """The mean of each window.

    Parameters
    ----------
    kernel_size : int or tuple
    stride : int or tuple, optional
        By default `kernel_size`.
    padding : int or tuple, default 0
        How many zeros stand on each side; at most half of a window.
    ceil_mode : bool, default False
        Whether a last window that only partly fits counts.
    count_include_pad : bool, default True
        Whether these zeros are among what is counted.
    divisor_override : int, optional
        What sums are divided by, in place of the number of elements; not of one axis.
    """

    axes: int

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
        return averaged(
            *(x, self.kernel_size, self.stride, self.padding, self.ceil_mode),
            *(self.count_include_pad, self.divisor_override, self.axes, repr(self)),
        )

    def extra_repr(self) -> str:
        """The options."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AdaptiveMaxPool(Module):
    """The largest element of each of as many windows as are asked for.

    Parameters
    ----------
    output_size : int, None, or a tuple of them
        How many windows each axis has; None keeps its length.
    return_indices : bool, default False
        Whether to return where they stand, too.
    """

    axes: int

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, x: Any) -> Any:
        """The largest element of each window; a pair with where they stand, if asked for."""
        return adaptive_largest(x, self.output_size, self.return_indices, self.axes, repr(self))

    def extra_repr(self) -> str:
        """How many windows."""
        return f"output_size={self.output_size}"


class _AdaptiveAvgPool(Module):
    """The mean of each of as many windows as are asked for.

    Parameters
    ----------
    output_size : int, None, or a tuple of them
        How many windows each axis has; None keeps its length.
    """

    axes: int

    def __init__(self, output_size: Any) -> None:
        self.output_size = output_size

    def forward(self, x: Any) -> Any:
        """The mean of each window."""
        return adaptive_averaged(x, self.output_size, self.axes, repr(self))

    def extra_repr(self) -> str:
        """How many windows."""
        return f"output_size={self.output_size}"


class MaxPool1d(_MaxPool):
    """The largest element of each window over one axis.

    What it computes is ``functional.max_pool1d``; its options are that function's.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.MaxPool1d(2)
    >>> layer
    MaxPool1d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)
    >>> layer(np.ones((2, 3, 8))).shape
    (2, 3, 4)
    """

    axes = 1


class MaxPool2d(_MaxPool):
    """The largest element of each window over two axes.

    What it computes is ``functional.max_pool2d``; its options are that function's.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.MaxPool2d(2)
    >>> layer
    MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)
    >>> layer(np.ones((2, 3, 8, 6))).shape
    (2, 3, 4, 3)
    """

    axes = 2


class MaxPool3d(_MaxPool):
    """The largest element of each window over three axes.

    What it computes is ``functional.max_pool3d``; its options are that function's.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.MaxPool3d(2)
    >>> layer
    MaxPool3d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)
    >>> layer(np.ones((1, 2, 4, 4, 6))).shape
    (1, 2, 2, 2, 3)
    """

    axes = 3


class AvgPool1d(_AvgPool):
    """The mean of each window over one axis.

    What it computes is ``functional.avg_pool1d``; its options are that function's.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.AvgPool1d(2)
    >>> layer
    AvgPool1d(kernel_size=2, stride=2, padding=0)
    >>> layer(np.ones((2, 3, 8))).shape
    (2, 3, 4)
    """

    axes = 1


class AvgPool2d(_AvgPool):
    """The mean of each window over two axes.

    What it computes is ``functional.avg_pool2d``; its options are that function's.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.AvgPool2d(2)
    >>> layer
    AvgPool2d(kernel_size=2, stride=2, padding=0)
    >>> layer(np.ones((2, 3, 8, 6))).shape
    (2, 3, 4, 3)
    """

    axes = 2


class AvgPool3d(_AvgPool):
    """The mean of each window over three axes.

    What it computes is ``functional.avg_pool3d``; its options are that function's.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.AvgPool3d(2)
    >>> layer
    AvgPool3d(kernel_size=2, stride=2, padding=0)
    >>> layer(np.ones((1, 2, 4, 4, 6))).shape
    (1, 2, 2, 2, 3)
    """

    axes = 3


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest element of each of `output_size` windows over one axis.

    What it computes is ``functional.adaptive_max_pool1d``; its options are that function's.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.AdaptiveMaxPool1d(3)
    >>> layer
    AdaptiveMaxPool1d(output_size=3)
    >>> layer(np.ones((2, 3, 8))).shape
    (2, 3, 3)
    """

    axes = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest element of each of `output_size` windows over two axes.

    What it computes is ``functional.adaptive_max_pool2d``; its options are that function's.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.AdaptiveMaxPool2d(3)
    >>> layer
    AdaptiveMaxPool2d(output_size=3)
    >>> layer(np.ones((2, 3, 8, 6))).shape
    (2, 3, 3, 3)
    """

    axes = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest element of each of `output_size` windows over three axes.

    What it computes is ``functional.adaptive_max_pool3d``; its options are that function's.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.AdaptiveMaxPool3d(3)
    >>> layer
    AdaptiveMaxPool3d(output_size=3)
    >>> layer(np.ones((1, 2, 4, 4, 6))).shape
    (1, 2, 3, 3, 3)
    """

    axes = 3


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The mean of each of `output_size` windows over one axis.

    What it computes is ``functional.adaptive_avg_pool1d``; its options are that function's.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.AdaptiveAvgPool1d(3)
    >>> layer
    AdaptiveAvgPool1d(output_size=3)
    >>> layer(np.ones((2, 3, 8))).shape
    (2, 3, 3)
    """

    axes = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The mean of each of `output_size` windows over two axes.

    What it computes is ``functional.adaptive_avg_pool2d``; its options are that function's.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.AdaptiveAvgPool2d(3)
    >>> layer
    AdaptiveAvgPool2d(output_size=3)
    >>> layer(np.ones((2, 3, 8, 6))).shape
    (2, 3, 3, 3)
    """

    axes = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The mean of each of `output_size` windows over three axes.

    What it computes is ``functional.adaptive_avg_pool3d``; its options are that function's.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.AdaptiveAvgPool3d(3)
    >>> layer
    AdaptiveAvgPool3d(output_size=3)
    >>> layer(np.ones((1, 2, 4, 4, 6))).shape
    (1, 2, 3, 3, 3)
    """

    axes = 3

"""Layers that change the sizes of images, or rearrange their elements.

    Upsample UpsamplingNearest2d UpsamplingBilinear2d    interpolation
    PixelShuffle PixelUnshuffle ChannelShuffle           channels and positions
    Fold Unfold                                          windows as columns, and back

The functions are in functional/resampling.py and functional/padding_rearrangement.py.
"""

from __future__ import annotations

from typing import Any

from wengert.errors import ArgumentError, at, user_line

from .. import functional as F
from ..functional.conv import Option
from ..module import Module

__all__ = [
    "ChannelShuffle",
    "Fold",
    "PixelShuffle",
    "PixelUnshuffle",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]


class Upsample(Module):
    """`functional.interpolate` as a module: resampling of spatial axes.

    Parameters
    ----------
    size : int or sequence of int, optional
        The new lengths.
    scale_factor : float or sequence of float, optional
        Alternative to `size`: the ratio of new and old lengths.
    mode : str, default "nearest"
        "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear" or "area".
    align_corners : bool, optional
        Whether the first and last points keep their positions; default False.
    recompute_scale_factor : bool, optional
        Whether positions are computed from the new lengths instead of `scale_factor`.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> nn.Upsample(scale_factor=2, mode="bicubic")(np.ones((1, 3, 4, 4))).shape
    (1, 3, 8, 8)
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        if (size is None) == (scale_factor is None):
            raise ArgumentError(
                f"{type(self).__name__}(size={size}, scale_factor={scale_factor}): give exactly "
                f"one of the two{at(user_line())}."
            )
        self.size, self.scale_factor = size, scale_factor
        self.mode, self.align_corners = mode, align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, x: Any) -> Any:
        """x resampled."""
        options = (self.mode, self.align_corners, self.recompute_scale_factor)
        return F.interpolate(x, self.size, self.scale_factor, *options)

    def extra_repr(self) -> str:
        """Sizes and mode."""
        sizes = f"size={self.size}" if self.size else f"scale_factor={self.scale_factor}"
        return f"{sizes}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` with nearest neighbors over two axes.

    Parameters
    ----------
    size : int or pair of int, optional
    scale_factor : float or pair of float, optional
        Alternative to `size`.
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` with bilinear interpolation; the corners keep their positions.

    Parameters
    ----------
    size : int or pair of int, optional
    scale_factor : float or pair of float, optional
        Alternative to `size`.
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(Module):
    """`functional.pixel_shuffle` as a module: channels rearranged to spatial positions.

    Parameters
    ----------
    upscale_factor : int
    """

    def __init__(self, upscale_factor: int) -> None:
        self.upscale_factor = upscale_factor

    def forward(self, x: Any) -> Any:
        """(..., c r r, h, w) as (..., c, h r, w r)."""
        return F.pixel_shuffle(x, self.upscale_factor)

    def extra_repr(self) -> str:
        """The factor."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """`functional.pixel_unshuffle` as a module: the inverse of `PixelShuffle`.

    Parameters
    ----------
    downscale_factor : int
    """

    def __init__(self, downscale_factor: int) -> None:
        self.downscale_factor = downscale_factor

    def forward(self, x: Any) -> Any:
        """(..., c, h r, w r) as (..., c r r, h, w)."""
        return F.pixel_unshuffle(x, self.downscale_factor)

    def extra_repr(self) -> str:
        """The factor."""
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """`functional.channel_shuffle` as a module: channels of different groups side by side.

    Parameters
    ----------
    groups : int
    """

    def __init__(self, groups: int) -> None:
        self.groups = groups

    def forward(self, x: Any) -> Any:
        """x with its channels in the other order."""
        return F.channel_shuffle(x, self.groups)

    def extra_repr(self) -> str:
        """The number of groups."""
        return f"groups={self.groups}"


class Unfold(Module):
    """`functional.unfold` as a module: windows as columns.

    Parameters
    ----------
    kernel_size, dilation, padding, stride : int or pair of int

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> nn.Unfold((2, 3))(np.ones((2, 5, 3, 4))).shape
    (2, 30, 4)
    """

    def __init__(
        self, kernel_size: Option, dilation: Option = 1, padding: Option = 0, stride: Option = 1
    ) -> None:
        self.kernel_size, self.dilation = kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, x: Any) -> Any:
        """The windows of x as columns."""
        return F.unfold(x, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """The options."""
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Fold(Unfold):
    """`functional.fold` as a module: sums of columns at the positions of windows.

    Parameters
    ----------
    output_size : int or pair of int
        Height and width of the images.
    kernel_size, dilation, padding, stride : int or pair of int

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> nn.Fold((4, 5), 2)(np.ones((1, 12, 12))).shape
    (1, 3, 4, 5)
    """

    def __init__(
        self,
        output_size: Option,
        kernel_size: Option,
        dilation: Option = 1,
        padding: Option = 0,
        stride: Option = 1,
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, x: Any) -> Any:
        """The images."""
        options = (self.kernel_size, self.dilation, self.padding, self.stride)
        return F.fold(x, self.output_size, *options)

    def extra_repr(self) -> str:
        """The options."""
        return f"output_size={self.output_size}, {super().extra_repr()}"

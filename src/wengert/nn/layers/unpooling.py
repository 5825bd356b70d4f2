"""Layers that undo max pooling over 1, 2 and 3 axes.

    MaxUnpool   values at the positions of the maxima, zeros elsewhere

The computation is in functional/unpooling.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..functional.unpooling import max_unpool_nd
from ..functional.window_options import Option, per_axis
from .spatial import Spatial

__all__ = ["MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d"]


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

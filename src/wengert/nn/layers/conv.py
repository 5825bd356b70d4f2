"""Layers over 1, 2 and 3 dimensions from one class; convolution layers and their transposes.

    class _MaxPool(Spatial): ...          parameters and behavior, with a docstring template
    class MaxPool1d(_MaxPool): axes = 1   a number of dimensions; completes the docstring

The placeholders of templates are described in functional/conv.py.

For convolutions, names, orders of arguments, initial values and parameters are PyTorch's, so that
its state_dicts load: weight of shape (out_channels, in_channels / groups, *kernel), for transposed
convolutions (in_channels, out_channels / groups, *kernel), and bias of shape (out_channels,).
Options are checked when a layer is made, shapes when it is called.  The computation is in
functional/conv.py.
"""

from __future__ import annotations

from math import prod, sqrt
from typing import Any

import numpy as np

from wengert._engine.core.handle import shape_of
from wengert._engine.core.symbolic.dim import spelled
from wengert.errors import ArgumentError, ShapeError, at, user_line

from .. import init
from ..functional.conv import AXES, Option, conv_nd, conv_transpose_nd, documented, pads, per_axis
from ..module import Module
from ..parameter import Parameter

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class Spatial(Module):
    """Base of layers over `axes` dimensions; fills in the docstring template of its subclasses."""

    axes: Any
    _template = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__
        if "<n>" in (own.get("__doc__") or ""):
            cls._template, cls.__doc__ = cls.__doc__ or "", None
        elif "axes" in own and cls.__mro__[1].__dict__.get("_template"):
            sections = cls._template.partition("\n\n")[2]
            cls.__doc__ = f"{cls.__doc__}\n\n{documented(sections, cls.axes)}"


_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


class _Conv(Spatial):
    """Cross-correlation over <over>, with a weight and a bias.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size : int or tuple
    stride : int or tuple, default 1
    padding : int, tuple, "same" or "valid", default 0
    dilation : int or tuple, default 1
    groups : int, default 1
        Must divide both numbers of channels.
    bias : bool, default True
    padding_mode : str, default "zeros"
        "zeros", "reflect", "replicate" or "circular".
    rng : int or numpy.random.Generator, optional
        Source of the initial values.
    dtype : dtype, default float64

    Attributes
    ----------
    weight : Parameter, shape (out_channels, in_channels / groups, *kernel_size)
    bias : Parameter, shape (out_channels,), or None

    Notes
    -----
    Both are initialized as in PyTorch: uniform in [-b, b], where b = 1 / sqrt(fan_in).

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.Conv<n>d(3, 8, 3, padding=1, rng=0)
    >>> layer(np.ones((2, 3, <6>))).shape
    (2, 8, <6>)
    """

    is_transposed = False
    padding: Any
    output_padding: tuple[int, ...] = ()

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Option,
        stride: Option = 1,
        padding: Any = 0,
        dilation: Option = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        rng: Any = None,
        dtype: Any = float,
    ) -> None:
        channels = in_channels, out_channels
        axes, name = self.axes, type(self).__name__
        self.in_channels, self.out_channels = channels
        self.kernel_size = per_axis(kernel_size, axes, "kernel_size")
        self.stride = per_axis(stride, axes, "stride")
        self.dilation = per_axis(dilation, axes, "dilation")
        self.padding = (
            padding if isinstance(padding, str) else per_axis(padding, axes, "padding", 0)
        )
        self._pads = pads(padding, self.kernel_size, self.stride, self.dilation)
        if groups < 1 or any(n % groups or n < 1 for n in channels):
            raise ArgumentError(
                f"{name}: in_channels={channels[0]} and out_channels={channels[1]} must both "
                f"be divisible by groups={groups}. Choose multiples of groups{at(user_line())}."
            )
        if padding_mode not in _MODES:
            raise ArgumentError(
                f"{name}: padding_mode must be one of {', '.join(_MODES)}, got {padding_mode!r}"
                f"{at(user_line())}."
            )
        self.groups, self.padding_mode = int(groups), padding_mode
        first, second = reversed(channels) if not self.is_transposed else channels
        shape = (first, second // groups, *self.kernel_size)
        rng = np.random.default_rng(rng)
        bound = 1.0 / sqrt(prod(shape[1:]))  # kaiming_uniform with a = sqrt(5)
        self.weight = Parameter(init.uniform(shape, bound, rng, dtype))
        start = init.uniform((channels[1],), bound, rng, dtype) if bias else None
        self.bias = None if start is None else Parameter(start)

    def _checked(self, x: Any) -> None:
        shape = shape_of(x)
        if len(shape) not in (self.axes + 1, self.axes + 2) or (
            shape[-1 - self.axes] != self.in_channels
        ):
            raise ShapeError(
                f"{self!r} was given shape {spelled(shape)}: expected (samples, "
                f"{self.in_channels}, {AXES[self.axes]}), or one sample without the first axis. "
                f"Reshape the input, or change the layer{at(user_line())}."
            )

    def forward(self, x: Any) -> Any:
        """The cross-correlation of x with the weight, plus the bias."""
        self._checked(x)
        given: Any = self.padding
        if self.padding_mode != "zeros":
            mode: Any = _MODES[self.padding_mode]
            before: Any = [(0, 0)] * (len(shape_of(x)) - self.axes)
            x = np.pad(x, [*before, *self._pads], mode=mode)
            given = 0
        options = (self.stride, given, self.dilation, self.groups)
        return conv_nd(self.axes, repr(self), x, self.weight, self.bias, *options)

    def extra_repr(self) -> str:
        """Sizes, and options that are not the defaults."""
        parts = [f"{self.in_channels}, {self.out_channels}"]
        parts += [f"kernel_size={self.kernel_size}, stride={self.stride}"]
        if isinstance(self.padding, str) or any(self.padding):
            parts.append(f"padding={self.padding}")
        if any(d != 1 for d in self.dilation):
            parts.append(f"dilation={self.dilation}")
        if any(self.output_padding):
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _ConvTranspose(_Conv):
    """Transposed convolution over <over>, with a weight and a bias.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size : int or tuple
    stride, padding, output_padding : int or tuple, default 1, 0 and 0
    groups : int, default 1
        Must divide both numbers of channels.
    bias : bool, default True
    dilation : int or tuple, default 1
    padding_mode : str
        Only "zeros".
    rng : int or numpy.random.Generator, optional
        Source of the initial values.
    dtype : dtype, default float64

    Attributes
    ----------
    weight : Parameter, shape (in_channels, out_channels / groups, *kernel_size)
    bias : Parameter, shape (out_channels,), or None

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.ConvTranspose<n>d(8, 3, 2, stride=2, rng=0)
    >>> layer(np.ones((2, 8, <5>))).shape
    (2, 3, <10>)
    """

    is_transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Option,
        stride: Option = 1,
        padding: Any = 0,
        output_padding: Option = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Option = 1,
        padding_mode: str = "zeros",
        rng: Any = None,
        dtype: Any = float,
    ) -> None:
        if padding_mode != "zeros":
            raise ArgumentError(
                f"{type(self).__name__}: padding_mode={padding_mode!r} is not supported; a "
                f'transposed convolution supports only "zeros"{at(user_line())}.'
            )
        if isinstance(padding, str):
            raise ArgumentError(
                f"{type(self).__name__}: padding must be the number of elements removed on each "
                f"side, got {padding!r}{at(user_line())}."
            )
        self.output_padding = per_axis(output_padding, self.axes, "output_padding", 0)
        given = (in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias)
        super().__init__(*given, padding_mode, rng, dtype)

    def forward(self, x: Any, output_size: Any = None) -> Any:
        """The transposed convolution of x with the weight, plus the bias.

        `output_size` selects one of the lengths that the stride allows, for each axis.
        """
        self._checked(x)
        more = self.output_padding
        if output_size is not None:
            more = self._more(shape_of(x)[-self.axes :], tuple(output_size)[-self.axes :])
        options = (self.stride, self.padding, more, self.groups, self.dilation)
        return conv_transpose_nd(self.axes, repr(self), x, self.weight, self.bias, *options)

    def _more(self, lengths: Any, wanted: Any) -> tuple[int, ...]:
        sizes = zip(
            *(lengths, self.kernel_size, self.stride, self.dilation, self._pads), strict=True
        )
        minimum = [(n - 1) * s + d * (k - 1) + 1 - 2 * p for n, k, s, d, (p, _) in sizes]
        more = tuple([w - n for w, n in zip(wanted, minimum, strict=False)])
        if len(more) != self.axes or any(
            not 0 <= m < s for m, s in zip(more, self.stride, strict=True)
        ):
            maximum = tuple([n + s - 1 for n, s in zip(minimum, self.stride, strict=True)])
            raise ArgumentError(
                f"{self!r}: output_size={wanted}: for an input of {spelled(tuple(lengths))} it "
                f"must be from {spelled(tuple(minimum))} to {spelled(maximum)}{at(user_line())}."
            )
        return more


class Conv1d(_Conv):
    """`functional.conv1d` as a layer, with a weight and a bias."""

    axes = 1


class Conv2d(_Conv):
    """`functional.conv2d` as a layer, with a weight and a bias."""

    axes = 2


class Conv3d(_Conv):
    """`functional.conv3d` as a layer, with a weight and a bias."""

    axes = 3


class ConvTranspose1d(_ConvTranspose):
    """`functional.conv_transpose1d` as a layer, with a weight and a bias."""

    axes = 1


class ConvTranspose2d(_ConvTranspose):
    """`functional.conv_transpose2d` as a layer, with a weight and a bias."""

    axes = 2


class ConvTranspose3d(_ConvTranspose):
    """`functional.conv_transpose3d` as a layer, with a weight and a bias."""

    axes = 3

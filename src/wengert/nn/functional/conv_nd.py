"""What convolutions over any number of axes have in common.

    convolve    what conv1d, conv2d, conv3d (convolutions.py) and the layers call
    transposed  its transpose: what conv_transpose1d, conv_transpose2d, conv_transpose3d call

The operations are in _engine/ops/neural/convolution.py; here are the options, the bias, and what is
said of shapes that do not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, shape_of
from wengert._engine.core.symbolic.dim import spelled
from wengert._engine.ops.neural.convolution import convolution, convolution_input
from wengert.errors import ArgumentError, ShapeError, at, user_line

from .window_options import AXES, Option, array_of, pads, per_axis, with_samples


def convolve(
    x: Any,
    weight: Any,
    bias: Any,
    stride: Option,
    padding: Any,
    dilation: Option,
    groups: int,
    axes: int,
    who: str,
) -> Any:
    """The cross-correlation over `axes` axes; `who` is named where something does not fit."""
    (x, alone), weight = with_samples(x, axes, who), array_of(weight)
    lengths = shape_of(x)[2:]
    kernel = _kernel(weight, axes, who)
    _check_groups(groups, shape_of(weight)[0], who)
    inputs = shape_of(weight)[1] * groups
    _check_channels(x, weight, inputs, axes, who)
    strides = per_axis(stride, axes, "stride")
    dilations = per_axis(dilation, axes, "dilation")
    pairs = pads(padding, kernel, strides, dilations)
    _check_room(lengths, pairs, kernel, dilations, who)
    x, weight = _alike(x, weight)
    y = convolution(
        x, weight, stride=strides, padding=pairs, dilation=dilations, groups=int(groups)
    )
    y = _biased(y, bias, axes)
    return y[0] if alone else y


def transposed(
    x: Any,
    weight: Any,
    bias: Any,
    stride: Option,
    padding: Option,
    output_padding: Option,
    groups: int,
    dilation: Option,
    axes: int,
    who: str,
) -> Any:
    """The transpose of `convolve` by its input, over `axes` axes."""
    (x, alone), weight = with_samples(x, axes, who), array_of(weight)
    kernel = _kernel(weight, axes, who)
    inputs = shape_of(weight)[0]
    _check_groups(groups, inputs, who)
    _check_channels(x, weight, inputs, axes, who)
    strides = per_axis(stride, axes, "stride")
    dilations = per_axis(dilation, axes, "dilation")
    pad = per_axis(padding, axes, "padding", 0)
    more = per_axis(output_padding, axes, "output_padding", 0)
    size = []
    for n, k, s, d, p, e in zip(
        shape_of(x)[2:], kernel, strides, dilations, pad, more, strict=True
    ):
        if e >= max(s, d):
            raise ArgumentError(
                f"{who}: output_padding={output_padding!r} must be less than the stride "
                f"{strides} or the dilation {dilations}. Choose it smaller{at(user_line())}."
            )
        size.append((n - 1) * s + d * (k - 1) + 1 - 2 * p + e)
    if any(isinstance(n, int) and n < 1 for n in size):
        raise ShapeError(
            f"{who} was given shape {spelled(shape_of(x))}: with padding {pad} nothing is left of "
            f"its result, {spelled(tuple(size))}. Choose less padding{at(user_line())}."
        )
    x, weight = _alike(x, weight)
    y = convolution_input(
        x,
        weight,
        size=tuple(size),
        stride=strides,
        padding=tuple([(p, p - e) for p, e in zip(pad, more, strict=True)]),
        dilation=dilations,
        groups=int(groups),
    )
    y = _biased(y, bias, axes)
    return y[0] if alone else y


def _alike(x: Any, weight: Any) -> tuple[Any, Any]:
    """Both in the dtype of the result, for which there is native code."""
    one, two = dtype_of(x), dtype_of(weight)
    if one == two:
        return x, weight
    both = np.result_type(one, two)
    return (x if one == both else x.astype(both)), (weight if two == both else weight.astype(both))


def _kernel(weight: Any, axes: int, who: str) -> tuple[int, ...]:
    shape = shape_of(weight)
    if len(shape) != axes + 2:
        raise ShapeError(
            f"{who} was given a weight of shape {spelled(shape)}: it has {axes + 2} axes, two of "
            f"channels and {AXES[axes]}. Reshape it{at(user_line())}."
        )
    return tuple(shape[2:])


def _check_channels(x: Any, weight: Any, inputs: Any, axes: int, who: str) -> None:
    if shape_of(x)[1] != inputs:
        raise ShapeError(
            f"{who} was given {shape_of(x)[1]} channels, in shape {spelled(shape_of(x))}: its "
            f"weight of shape {spelled(shape_of(weight))} takes (samples, {inputs}, "
            f"{AXES[axes]}). Reshape the input, or change the weight{at(user_line())}."
        )


def _check_groups(groups: Any, channels: Any, who: str) -> None:
    whole = isinstance(groups, int | np.integer)
    if not whole or groups < 1 or channels % groups:
        raise ArgumentError(
            f"{who}: groups={groups!r} is no whole number that divides the {channels} channels of "
            f"the weight's first axis. Choose one that does{at(user_line())}."
        )


def _check_room(
    lengths: Sequence[Any], pairs: Any, kernel: Sequence[int], dilation: Sequence[int], who: str
) -> None:
    room = [n + low + high for n, (low, high) in zip(lengths, pairs, strict=True)]
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    if any(isinstance(n, int) and n < k for n, k in zip(room, spans, strict=True)):
        raise ShapeError(
            f"{who} was given {spelled(tuple(lengths))} elements along its axes, "
            f"{spelled(tuple(room))} with padding, which is less than the {spelled(tuple(spans))} "
            f"that its kernel spans. Give larger inputs or more padding{at(user_line())}."
        )


def _biased(y: Any, bias: Any, axes: int) -> Any:
    return y if bias is None else y + np.reshape(bias, (-1, *([1] * axes)))

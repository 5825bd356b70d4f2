"""Window options: kernel sizes, strides, padding and dilations, as layers and functions take them.

A number stands for all spatial axes, a tuple has one for each.  Padding may also be "same" or
"valid".  What is given is checked here, once, so that the message names who was given it.

    per_axis      an option as a tuple with a number for each axis
    pads          padding as pairs, before and behind
    array_of      nested lists as an array
    with_samples  an input with an axis of samples, and whether it had one
    Option        what such an argument may be
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import shape_of
from wengert._engine.core.symbolic.dim import spelled
from wengert.errors import ArgumentError, ShapeError, at, user_line

Option = int | Sequence[int]
Pairs = tuple[tuple[int, int], ...]
AXES = {1: "length", 2: "height, width", 3: "depth, height, width"}


def per_axis(value: Any, axes: int, name: str, least: int = 1) -> tuple[int, ...]:
    """One integer for each axis.

    Raises
    ------
    ArgumentError
        It is not such a number or tuple, or less than `least`.
    """
    many = list(value) if isinstance(value, list | tuple) else [value] * axes
    if len(many) == 1:
        many = many * axes
    whole = all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in many)
    if len(many) != axes or not whole:
        raise ArgumentError(
            f"{name}={value!r} is neither an integer nor one for each of {axes} axes. "
            f"Give one of these{at(user_line())}."
        )
    if min(many) < least:
        raise ArgumentError(
            f"{name}={value!r} is less than {least}. Choose integers from {least} on"
            f"{at(user_line())}."
        )
    return tuple([int(n) for n in many])


def pads(
    padding: Any,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
) -> Pairs:
    """Padding before and behind each axis; "same" keeps the lengths, "valid" is none.

    Raises
    ------
    ArgumentError
        Another word, a negative number, or "same" with a stride.
    """
    if not isinstance(padding, str):
        return tuple([(n, n) for n in per_axis(padding, len(kernel), "padding", 0)])
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding != "same":
        raise ArgumentError(
            f'padding={padding!r} is not known. Choose a number, a tuple, "same" or "valid"'
            f"{at(user_line())}."
        )
    if any(s != 1 for s in stride):
        raise ArgumentError(
            f'padding="same" with stride={tuple(stride)}: it keeps lengths, which only a stride of '
            f"1 does. Give the padding as a number{at(user_line())}."
        )
    totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    return tuple([(t // 2, t - t // 2) for t in totals])


def array_of(x: Any) -> Any:
    """Nested lists as an array; anything else as it is."""
    return np.asarray(x) if isinstance(x, list | tuple) else x


def with_samples(x: Any, axes: int, who: str) -> tuple[Any, bool]:
    """`x` as (samples, channels, *axes), and whether the samples' axis had to be added.

    Raises
    ------
    ShapeError
        It has neither as many axes, nor one less.
    """
    x = array_of(x)
    shape = shape_of(x)
    if len(shape) == axes + 2:
        return x, False
    if len(shape) == axes + 1:
        return np.expand_dims(x, 0), True
    raise ShapeError(
        f"{who} was given shape {spelled(shape)}: it takes (samples, channels, {AXES[axes]}), or "
        f"one sample without the first axis. Reshape the input{at(user_line())}."
    )

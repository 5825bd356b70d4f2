"""Padding, and rearrangement of the elements of images.

    pad                             constant, reflected, replicated or periodic elements at the ends
                                    of the last axes
    pixel_shuffle, pixel_unshuffle  channels to spatial positions, and back
    channel_shuffle                 channels of different groups side by side
    unfold, fold                    windows as columns, and the sum of columns at their positions

Widths are in pairs (before, after), those of the last axis first.

`fold` is the transpose of `unfold`: both are one indexing operation with known positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, shape_of
from wengert._engine.core.symbolic.dim import spelled
from wengert._engine.ops.indexing.getitem import scatter
from wengert._engine.ops.indexing.template import split_index
from wengert.errors import ArgumentError, ShapeError, at, user_line

from .conv import Option, array_of, per_axis, with_samples

__all__ = ["channel_shuffle", "fold", "pad", "pixel_shuffle", "pixel_unshuffle", "unfold"]

MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def pad(x: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Any:
    """Add elements at the ends of the last axes; negative widths remove elements.

    Parameters
    ----------
    x : array or Tensor
    pad : sequence of int
        Pairs of widths (before, after), of the last axis, the one before it, and so on.
    mode : {"constant", "reflect", "replicate", "circular"}
        What is added: `value`; the elements reflected at the first and last one; the first and last
        one; or those of the other end. All but "constant" are for the spatial axes of (batch,
        channels, ...) or (channels, ...).
    value : float, optional
        For "constant"; default 0.

    Raises
    ------
    ArgumentError
        The widths are not pairs of integers, the mode is unknown or does not have a value.
    ShapeError
        There are more pairs than axes, or an axis is too short.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn import functional as F
    >>> F.pad(np.array([[1.0, 2.0, 3.0]]), (1, 2))
    array([[0., 1., 2., 3., 0., 0.]])
    >>> F.pad(np.array([[1.0, 2.0, 3.0]]), (2, 1), "reflect")
    array([[3., 2., 1., 2., 3., 2.]])
    """
    x = array_of(x)
    shape = shape_of(x)
    pairs = _pairs(pad, shape)
    if mode not in MODES:
        raise ArgumentError(
            f"pad: mode must be one of {', '.join(MODES)}, got {mode!r}{at(user_line())}."
        )
    if mode != "constant":
        if value not in (None, 0, 0.0):
            raise ArgumentError(
                f"pad: value={value!r} is an option of the mode constant; leave it out for "
                f"mode={mode!r}{at(user_line())}."
            )
        _check_lengths(pairs, shape, mode)
    crop = tuple([slice(max(-low, 0), None if high >= 0 else high) for low, high in pairs])
    x = x[crop] if any(c != slice(0, None) for c in crop) else x
    widths = [(max(low, 0), max(high, 0)) for low, high in pairs]
    if not any(map(any, widths)):
        return x
    if mode != "constant":
        return np.pad(x, widths, mode=MODES[mode])  # type: ignore[call-overload]
    fill = np.asarray(0 if value is None else value, dtype_of(x))
    return np.pad(x, widths, constant_values=fill)


def _pairs(given: Any, shape: Any) -> list[tuple[int, int]]:
    """Widths (before, after) of all axes, in order."""
    numbers: list[Any] = list(given) if isinstance(given, list | tuple) else [None]
    whole = all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in numbers)
    if not whole or len(numbers) % 2:
        raise ArgumentError(
            f"pad: widths must be pairs of integers (before, after), the last axis first, got "
            f"{given!r}{at(user_line())}."
        )
    if len(numbers) > 2 * len(shape):
        raise ShapeError(
            f"pad: {len(numbers) // 2} pairs of widths for the {len(shape)} axes of shape "
            f"{spelled(shape)}{at(user_line())}."
        )
    last = [(int(numbers[k]), int(numbers[k + 1])) for k in range(0, len(numbers), 2)]
    return [(0, 0)] * (len(shape) - len(last)) + last[::-1]


def _check_lengths(pairs: Any, shape: Any, mode: str) -> None:
    """Check that reflected and periodic elements exist."""
    for n, (low, high) in zip(shape, pairs, strict=True):
        most = n - 1 if mode == "reflect" else n
        if isinstance(n, int) and max(low, high) > (
            most if mode != "replicate" else max(low, high)
        ):
            raise ShapeError(
                f"pad: widths {(low, high)} in mode {mode!r} must be at most {most} for an axis of "
                f"length {n}, of shape {spelled(shape)}{at(user_line())}."
            )


# ---- rearrangement -----------------------------------------------------------------------------


def pixel_shuffle(x: Any, upscale_factor: int) -> Any:
    """Rearrange channels to spatial positions: (..., c r r, h, w) becomes (..., c, h r, w r).

    References
    ----------
    .. [1] W. Shi et al., "Real-time single image and video super-resolution", CVPR 2016,
       arXiv:1609.05158.
    """
    shape, r = shape_of(x), upscale_factor
    if len(shape) < 3 or r < 1 or shape[-3] % (r * r):
        raise ShapeError(
            f"pixel_shuffle by {r} of shape {spelled(shape)}: the number of channels (axis -3) "
            f"must be a multiple of {r * r}{at(user_line())}."
        )
    lead, (c, h, w) = shape[:-3], shape[-3:]
    k = len(lead)
    parts = np.reshape(x, (*lead, c // (r * r), r, r, h, w))
    order = (*range(k), k, k + 3, k + 1, k + 4, k + 2)
    return np.reshape(np.transpose(parts, order), (*lead, c // (r * r), h * r, w * r))


def pixel_unshuffle(x: Any, downscale_factor: int) -> Any:
    """The inverse of `pixel_shuffle`."""
    shape, r = shape_of(x), downscale_factor
    if len(shape) < 3 or r < 1 or shape[-1] % r or shape[-2] % r:
        raise ShapeError(
            f"pixel_unshuffle by {r} of shape {spelled(shape)}: height and width must be "
            f"multiples of {r}{at(user_line())}."
        )
    lead, (c, h, w) = shape[:-3], shape[-3:]
    k = len(lead)
    parts = np.reshape(x, (*lead, c, h // r, r, w // r, r))
    order = (*range(k), k, k + 2, k + 4, k + 1, k + 3)
    return np.reshape(np.transpose(parts, order), (*lead, c * r * r, h // r, w // r))


def channel_shuffle(x: Any, groups: int) -> Any:
    """Channels of different groups side by side: channel g c + k becomes channel k groups + g.

    Here c is the number of channels of a group.

    Parameters
    ----------
    x : array or Tensor, shape (batch, channels, ...)
        With at least one spatial axis.
    groups : int
        A divisor of the number of channels.

    References
    ----------
    .. [1] X. Zhang et al., "ShuffleNet: an extremely efficient convolutional neural network for
       mobile devices", CVPR 2018, arXiv:1707.01083.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn import functional as F
    >>> F.channel_shuffle(np.arange(6.0).reshape(1, 6, 1), 2)[0, :, 0]
    array([0., 3., 1., 4., 2., 5.])
    """
    shape = shape_of(x)
    if len(shape) < 3:
        raise ShapeError(
            f"channel_shuffle: expected shape (batch, channels, ...) with at least one spatial "
            f"axis, got {spelled(shape)}{at(user_line())}."
        )
    if groups < 1 or shape[1] % groups:
        raise ArgumentError(
            f"channel_shuffle: groups must divide the {shape[1]} channels (axis 1) of shape "
            f"{spelled(shape)}, got {groups}{at(user_line())}."
        )
    parts = np.reshape(x, (shape[0], groups, shape[1] // groups, *shape[2:]))
    return np.reshape(np.swapaxes(parts, 1, 2), shape)


# ---- windows as columns ------------------------------------------------------------------------


def unfold(
    x: Any, kernel_size: Option, dilation: Option = 1, padding: Option = 0, stride: Option = 1
) -> Any:
    """The windows of images as columns.

    Parameters
    ----------
    x : array or Tensor, shape (batch, channels, height, width)
        Or one image, without the batch axis.
    kernel_size, dilation, padding, stride : int or pair of int
        As in a convolution; the padding is zeros.

    Returns
    -------
    array or Tensor, shape (batch, channels * kernel height * kernel width, windows)

    Raises
    ------
    ShapeError
        There is no window, or `x` has another number of axes.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn import functional as F
    >>> F.unfold(np.arange(6.0).reshape(1, 1, 2, 3), 2)[0]
    array([[0., 1.],
           [1., 2.],
           [3., 4.],
           [4., 5.]])
    """
    x, single = with_samples(x, 2, "unfold")
    batch, channels, *space = shape_of(x)
    pad = per_axis(padding, 2, "padding", 0)
    places, count = _positions("unfold", space, kernel_size, dilation, pad, stride)
    wide = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in pad]]) if any(pad) else x
    flat = np.reshape(wide, (batch, channels, -1))
    columns = flat[:, :, places]
    columns = np.reshape(columns, (batch, channels * (places.size // count), count))
    return columns[0] if single else columns


def fold(
    x: Any,
    output_size: Option,
    kernel_size: Option,
    dilation: Option = 1,
    padding: Option = 0,
    stride: Option = 1,
) -> Any:
    """Sums of columns at the positions of windows in an image: the transpose of `unfold`.

    Parameters
    ----------
    x : array or Tensor, shape (batch, channels * kernel height * kernel width, windows)
        Or one sample, without the batch axis.
    output_size : int or pair of int
        Height and width of the image.
    kernel_size, dilation, padding, stride : int or pair of int
        Those of `unfold`.

    Returns
    -------
    array or Tensor, shape (batch, channels, height, width)

    Raises
    ------
    ShapeError
        The numbers of windows or of channels do not match.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn import functional as F
    >>> F.fold(F.unfold(np.ones((1, 1, 2, 3)), 2), (2, 3), 2)[0, 0]
    array([[1., 2., 1.],
           [1., 2., 1.]])
    """
    x, single = with_samples(x, 1, "fold")
    batch, rows, windows = shape_of(x)
    space = per_axis(output_size, 2, "output_size")
    pad = per_axis(padding, 2, "padding", 0)
    places, count = _positions("fold", space, kernel_size, dilation, pad, stride)
    each = places.size // count
    if rows % each or windows != count:
        raise ShapeError(
            f"fold was given shape {spelled(shape_of(x))}: for output_size={space} and "
            f"kernel_size={kernel_size} axis 1 must be a multiple of {each}, and axis 2 {count}"
            f"{at(user_line())}."
        )
    channels = rows // each
    high, wide = [n + 2 * p for n, p in zip(space, pad, strict=True)]
    template, operands = split_index((slice(None), slice(None), places))
    columns = np.reshape(x, (batch, channels, places.size))
    flat = scatter(columns, *operands, index=template, shape=(batch, channels, high * wide))
    image = np.reshape(flat, (batch, channels, high, wide))
    image = image[:, :, pad[0] : high - pad[0], pad[1] : wide - pad[1]] if any(pad) else image
    return image[0] if single else image


def _positions(
    op_name: str, space: Any, kernel_size: Any, dilation: Any, pad: Any, stride: Any
) -> tuple[Any, int]:
    """Flat positions in the padded image, ordered by kernel element, and the number of windows."""
    kernel = per_axis(kernel_size, 2, "kernel_size")
    dilations, strides = per_axis(dilation, 2, "dilation"), per_axis(stride, 2, "stride")
    if not all(isinstance(n, int) for n in space):
        raise ShapeError(
            f"{op_name}: spatial axes of lengths {spelled(tuple(space))}, which are not known "
            f"while tracing. Trace with fixed lengths{at(user_line())}."
        )
    lines = []
    for n, k, d, p, s in zip(space, kernel, dilations, pad, strides, strict=True):
        count = (n + 2 * p - d * (k - 1) - 1) // s + 1
        if count < 1:
            raise ShapeError(
                f"{op_name}: an axis of length {n} with padding {p} is shorter than its window, "
                f"which spans {d * (k - 1) + 1}. Give more padding or a smaller kernel_size"
                f"{at(user_line())}."
            )
        lines.append(np.add.outer(np.arange(k) * d, np.arange(count) * s))
    rows, columns = lines
    width = space[1] + 2 * pad[1]
    places = rows[:, None, :, None] * width + columns[None, :, None, :]
    return places.ravel(), rows.shape[1] * columns.shape[1]

"""Resampling of spatial axes.

    interpolate                      nearest-neighbor and multilinear interpolation
    pixel_shuffle, pixel_unshuffle   channels rearranged to spatial positions, and back

Multilinear interpolation is linear interpolation along one axis after the other.  Positions are
PyTorch's: output i of m is at (i + 1/2) n / m - 1/2 of n inputs (with 1 / scale_factor instead of
n / m if that is given), or with `align_corners` at i (n - 1) / (m - 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, shape_of
from wengert._engine.core.symbolic.dim import spelled
from wengert.errors import ArgumentError, ShapeError, at, user_line

__all__ = ["interpolate", "pixel_shuffle", "pixel_unshuffle"]

MODES = {"nearest": None, "linear": 1, "bilinear": 2, "trilinear": 3}


def interpolate(
    x: Any,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool = False,
) -> Any:
    """Resample the spatial axes to other lengths.

    Parameters
    ----------
    x : array or Tensor, shape (batch, channels, ...)
        With one to three spatial axes.
    size : int or sequence of int, optional
        The new length of all spatial axes, or of each.
    scale_factor : float or sequence of float, optional
        Alternative to `size`: the ratio of new and old length; lengths are rounded down.
    mode : {"nearest", "linear", "bilinear", "trilinear"}
        The last three are for one, two and three spatial axes.
    align_corners : bool, default False
        Whether the first and last points keep their positions.

    Raises
    ------
    ArgumentError
        Both or neither of `size` and `scale_factor` are given, the mode is unknown, or a new length
        is less than 1.
    ShapeError
        The mode does not match the number of spatial axes.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn.functional import interpolate
    >>> x = np.array([[[0.0, 1.0]]])
    >>> interpolate(x, scale_factor=2)
    array([[[0., 0., 1., 1.]]])
    >>> interpolate(x, size=4, mode="linear")
    array([[[0.  , 0.25, 0.75, 1.  ]]])
    """
    shape = shape_of(x)
    space = shape[2:]
    if mode not in MODES:
        raise ArgumentError(
            f"interpolate: mode must be one of {', '.join(MODES)}, got {mode!r}{at(user_line())}."
        )
    if len(space) != (MODES[mode] or len(space)) or not 1 <= len(space) <= 3:
        raise ShapeError(
            f"interpolate: mode={mode!r} does not support the {max(0, len(space))} spatial axes "
            f"(after batch and channels) of shape {spelled(shape)}{at(user_line())}."
        )
    for k, (n, m) in enumerate(zip(space, _sizes(space, size, scale_factor), strict=True)):
        ratio = n / m if scale_factor is None else 1.0 / _each(scale_factor, len(space))[k]
        if mode == "nearest":
            places = np.minimum((np.arange(m) * ratio).astype(int), n - 1)
            x = np.take(x, places, axis=k + 2)
        elif m != n:
            position = (np.arange(m) + 0.5) * ratio - 0.5
            if align_corners:
                position = np.arange(m) * ((n - 1) / max(1, m - 1))
            x = _lines(x, k + 2, n, np.clip(position, 0.0, n - 1))
    return x


def _each(given: Any, count: int) -> list[Any]:
    return [given] * count if np.ndim(given) == 0 else list(given)


def _sizes(space: tuple[Any, ...], size: Any, scale_factor: Any) -> list[int]:
    if (size is None) == (scale_factor is None):
        raise ArgumentError(
            f"interpolate(size={size}, scale_factor={scale_factor}): give exactly one of the two"
            f"{at(user_line())}."
        )
    if not all(isinstance(n, int) for n in space):
        raise ShapeError(
            f"interpolate: spatial axes of shape {spelled(space)}, whose sizes are not known while "
            f"tracing. Trace with fixed lengths{at(user_line())}."
        )
    given = _each(scale_factor if size is None else size, len(space))
    if len(given) != len(space):
        raise ArgumentError(
            f"interpolate: {len(given)} sizes for {len(space)} spatial axes{at(user_line())}."
        )
    sizes = [int(n * g) if size is None else int(g) for n, g in zip(space, given, strict=True)]
    if min(sizes) < 1:
        raise ArgumentError(
            f"interpolate: new lengths must be at least 1, got {sizes} for spatial axes of shape "
            f"{space}{at(user_line())}."
        )
    return sizes


def _lines(x: Any, axis: int, n: int, position: Any) -> Any:
    """Linear interpolation along an axis of length n, at the given positions."""
    left = np.minimum(position.astype(int), n - 1)
    right = np.minimum(left + 1, n - 1)
    kind = dtype_of(x)
    along = (-1,) + (1,) * (len(shape_of(x)) - axis - 1)
    share = (position - left).astype(kind if kind.kind == "f" else float).reshape(along)
    return np.take(x, left, axis=axis) * (1.0 - share) + np.take(x, right, axis=axis) * share


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

"""Resampling of spatial axes, and the inverse of max pooling.

    interpolate  nearest neighbors, piecewise linear and cubic interpolation, means of areas
    upsample     the same, PyTorch's older name
    max_unpool1d, max_unpool2d, max_unpool3d   the inverse of max pooling

All modes of interpolation are applied along one axis after the other.  Positions are PyTorch's:
output i of m is at (i + 1/2) n / m - 1/2 of n inputs (with 1 / scale_factor instead of n / m if
that is given), or with `align_corners` at i (n - 1) / (m - 1).  Cubic interpolation is Keys' with a
= -3/4.  With `antialias` the kernel is stretched by the ratio of the lengths where an axis becomes
shorter, and its weights are divided by their sum; then a = -1/2.

By unpooling values are written to the positions that ``max_pool(..., return_indices=True)`` has
returned, and all other elements are zero.  If windows overlap, a position can occur several times;
one of its values is written, and has the derivative.

References
----------
.. [1] R. G. Keys, "Cubic convolution interpolation for digital image processing", IEEE Transactions
   on Acoustics, Speech, and Signal Processing 29(6), 1981.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, is_traced, shape_of, value_of
from wengert._engine.core.op import lookup
from wengert._engine.core.symbolic.dim import spelled
from wengert._engine.ops.indexing.template import split_index
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line
from wengert.numpy import arange, zeros

from .conv import Option, array_of, by_dimension, per_axis, with_samples
from .pooling import adaptive_avg_pool_nd

__all__ = ["interpolate", "max_unpool1d", "max_unpool2d", "max_unpool3d", "upsample"]

# The number of spatial axes of each mode; None for one to three.
MODES = {
    "nearest": None,
    "nearest-exact": None,
    "linear": 1,
    "bilinear": 2,
    "bicubic": 2,
    "trilinear": 3,
    "area": None,
}
_SMOOTH = ("linear", "bilinear", "bicubic", "trilinear")
_A, _A_ANTIALIAS = -0.75, -0.5  # the parameter of Keys' kernel


def interpolate(
    x: Any,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
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
    mode : str, default "nearest"
        "nearest", "nearest-exact" (at the centers of elements), "linear", "bilinear", "trilinear"
        (for one, two and three spatial axes), "bicubic" (for two), or "area" (`adaptive_avg_pool`).
    align_corners : bool, optional
        Whether the first and last points keep their positions; not for "nearest", "nearest-exact"
        and "area".
    recompute_scale_factor : bool, optional
        Whether positions are computed from the new lengths instead of `scale_factor`.
    antialias : bool, default False
        Whether axes that become shorter are smoothed; for "bilinear" and "bicubic".

    Raises
    ------
    ArgumentError
        Both or neither of `size` and `scale_factor` are given, the mode is unknown or does not have
        the option, or a new length is less than 1.
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
    space = _checked_axes(shape_of(x), mode, align_corners, antialias)
    sizes = _sizes(space, size, scale_factor)
    if recompute_scale_factor and scale_factor is None:
        raise ArgumentError(
            f"interpolate: recompute_scale_factor needs scale_factor, but size={size} is given"
            f"{at(user_line())}."
        )
    if mode == "area":
        return adaptive_avg_pool_nd(len(space), "interpolate", x, sizes)
    given = None if scale_factor is None or recompute_scale_factor else scale_factor
    ratios: list[Any] = [None if g is None else 1.0 / g for g in _each(given, len(space))]
    for k, (n, m, ratio) in enumerate(zip(space, sizes, ratios, strict=True)):
        x = _along(x, k + 2, n, m, ratio, mode, bool(align_corners), antialias)
    return x


def upsample(
    x: Any,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Any:
    """`interpolate` under PyTorch's older name."""
    return interpolate(x, size, scale_factor, mode, align_corners)


def _checked_axes(shape: Any, mode: str, align_corners: Any, antialias: bool) -> Any:
    """The lengths of the spatial axes, after checking the options."""
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
    if align_corners is not None and mode not in _SMOOTH:
        raise ArgumentError(
            f"interpolate: align_corners={align_corners} is an option of the modes "
            f"{', '.join(_SMOOTH)}; leave it out for mode={mode!r}{at(user_line())}."
        )
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ArgumentError(
            f"interpolate: antialias is an option of the modes bilinear and bicubic; leave it out "
            f"for mode={mode!r}{at(user_line())}."
        )
    return space


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


# ---- one axis ----------------------------------------------------------------------------------


def _along(
    x: Any, axis: int, n: int, m: int, ratio: Any, mode: str, align: bool, antialias: bool
) -> Any:
    """x resampled along an axis of length n to length m; `ratio` is 1 / scale_factor, or None."""
    if mode in ("nearest", "nearest-exact"):
        places = _nearest(n, m, ratio, mode == "nearest-exact")
        return np.take(x, np.minimum(places, n - 1), axis=axis)
    if m == n and ratio in (None, 1.0):
        return x
    step = n / m if ratio is None else ratio
    if align:
        step = (n - 1) / (m - 1) if m > 1 else 0.0
    if antialias:
        kernel, reach = (_cubic(_A_ANTIALIAS), 2) if mode == "bicubic" else (_triangle, 1)
        return _weighted(x, axis, antialias_weights(n, m, step, kernel, reach))
    position = np.arange(m) * step if align else (np.arange(m) + 0.5) * step - 0.5
    if mode == "bicubic":
        return _cubic_lines(x, axis, n, position)
    return _lines(x, axis, n, np.clip(position, 0.0, n - 1))


def _nearest(n: int, m: int, ratio: Any, exact: bool) -> Any:
    """The nearest inputs: floor(i n / m), or with `exact` those of centers.

    The ratio of a scale factor is rounded to single precision, as in PyTorch: with 1.2, a number
    that is a little larger than 6 / 5, output 18 is then input 15, and not 14.
    """
    i = np.arange(m)
    if ratio is None:  # without rounding errors
        return (2 * i + 1) * n // (2 * m) if exact else i * n // m
    centers = (i + 0.5 * exact).astype(np.float32)
    return np.floor(centers * np.float32(ratio)).astype(int)


def _beside(x: Any, axis: int, weights: Any) -> Any:
    """Weights along an axis, in the dtype of x, or in float64 for integers."""
    kind = dtype_of(x)
    along = (-1,) + (1,) * (len(shape_of(x)) - axis - 1)
    return weights.astype(kind if kind.kind == "f" else float).reshape(along)


def _lines(x: Any, axis: int, n: int, position: Any) -> Any:
    """Linear interpolation along an axis of length n, at the given positions."""
    left = np.minimum(position.astype(int), n - 1)
    right = np.minimum(left + 1, n - 1)
    share = _beside(x, axis, position - left)
    return np.take(x, left, axis=axis) * (1.0 - share) + np.take(x, right, axis=axis) * share


def _cubic_lines(x: Any, axis: int, n: int, position: Any) -> Any:
    """Cubic interpolation along an axis of length n; elements outside are those of the ends."""
    first = np.floor(position).astype(int)
    share = position - first
    kernel, total = _cubic(_A), None
    for k in range(-1, 3):
        part = np.take(x, np.clip(first + k, 0, n - 1), axis=axis)
        part = part * _beside(x, axis, kernel(share - k))
        total = part if total is None else total + part
    return total


def _triangle(t: Any) -> Any:
    return np.maximum(0.0, 1.0 - np.abs(t))


def _cubic(a: float) -> Callable[[Any], Any]:
    """Keys' kernel with parameter a."""

    def kernel(t: Any) -> Any:
        t = np.abs(t)
        near = ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0
        far = ((t - 5.0) * t + 8.0) * t * a - 4.0 * a
        return np.where(t < 1.0, near, np.where(t < 2.0, far, 0.0))

    return kernel


def antialias_weights(n: int, m: int, step: float, kernel: Callable[[Any], Any], reach: int) -> Any:
    """The matrix, m by n, of a resampling with a kernel that is nonzero up to `reach`."""
    stretch = max(step, 1.0)
    center = step * (np.arange(m) + 0.5)
    first = np.maximum((center - reach * stretch + 0.5).astype(int), 0)
    stop = np.minimum((center + reach * stretch + 0.5).astype(int), n)
    element = np.arange(n)
    weights = kernel((element - center[:, None] + 0.5) / stretch)
    inside = (element >= first[:, None]) & (element < stop[:, None])
    weights = np.where(inside, weights, 0.0)
    return weights / np.sum(weights, axis=1, keepdims=True)


def _weighted(x: Any, axis: int, matrix: Any) -> Any:
    """The product of a matrix with x along an axis, -1 or -2."""
    kind = dtype_of(x)
    matrix = matrix.astype(kind if kind.kind == "f" else float)
    if axis == len(shape_of(x)) - 1:
        return np.matmul(x, matrix.T)
    return np.matmul(matrix, x)


# ---- unpooling ---------------------------------------------------------------------------------


def max_unpool_nd(
    axes: int,
    op_name: str,
    x: Any,
    indices: Any,
    kernel_size: Option,
    stride: Option | None = None,
    padding: Option = 0,
    output_size: Sequence[int] | None = None,
) -> Any:
    """The inverse of max pooling over <over>: maxima at their positions, zeros elsewhere.

    Parameters
    ----------
    x : array or Tensor, shape (batch, channels, <space>)
        Or one sample, without the batch axis.
    indices : array of int
        Flat positions over all spatial axes, of the shape of `x`, from ``max_pool<n>d(...,
        return_indices=True)``.
    kernel_size : int or tuple
    stride : int or tuple, optional
        Default `kernel_size`.
    padding : int or tuple, default 0
    output_size : sequence of int, optional
        The lengths of the result's spatial axes (or its whole shape), which several lengths of the
        pooled array can have; by default (n - 1) stride - 2 padding + kernel_size.

    Returns
    -------
    array or Tensor, shape (batch, channels, <space>)

    Raises
    ------
    ShapeError
        The shapes of `x` and `indices` differ, or `output_size` is not possible.
    ArgumentError
        A position is outside of the result.
    DtypeError
        `indices` are not integers.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> x = np.random.default_rng(0).normal(size=(2, 3, <8>))
    >>> largest, where = F.max_pool<n>d(x, 2, return_indices=True)
    >>> F.max_unpool<n>d(largest, where, 2).shape
    (2, 3, <8>)
    """
    indices = array_of(indices)
    if shape_of(indices) != shape_of(array_of(x)):
        raise ShapeError(
            f"{op_name}: values of shape {spelled(shape_of(array_of(x)))} and indices of shape "
            f"{spelled(shape_of(indices))} must have the same shape{at(user_line())}."
        )
    if dtype_of(indices).kind not in "iu":
        raise DtypeError(
            f"{op_name}: indices must be integers, got {dtype_of(indices)}{at(user_line())}."
        )
    (x, single), (indices, _) = [with_samples(a, axes, op_name) for a in (x, indices)]
    batch, channels, *lengths = shape_of(x)
    size = _output_size(op_name, axes, lengths, kernel_size, stride, padding, output_size)
    total = prod(size)
    _check_positions(op_name, indices, total)
    places = np.reshape(indices, (batch, channels, -1))
    rows, columns = arange(batch)[:, None, None], np.arange(channels)[:, None]
    template, operands = split_index((rows, columns, places))
    flat = zeros((batch, channels, total), dtype_of(x))
    values = np.reshape(x, (batch, channels, -1))
    flat = lookup("setitem")(flat, values, *operands, index=template)
    y = np.reshape(flat, (batch, channels, *size))
    return y[0] if single else y


max_unpool1d, max_unpool2d, max_unpool3d = by_dimension(max_unpool_nd)


def _output_size(
    op_name: str, axes: int, lengths: Any, kernel_size: Any, stride: Any, padding: Any, given: Any
) -> tuple[int, ...]:
    """The lengths of the result's spatial axes."""
    kernel = per_axis(kernel_size, axes, "kernel_size")
    strides = kernel if stride is None else per_axis(stride, axes, "stride")
    pad = per_axis(padding, axes, "padding", 0)
    if not all(isinstance(n, int) for n in lengths):
        raise ShapeError(
            f"{op_name}: spatial axes of lengths {spelled(tuple(lengths))}, which are not known "
            f"while tracing. Trace with fixed lengths{at(user_line())}."
        )
    usual = tuple(
        [(n - 1) * s - 2 * p + k for n, k, s, p in zip(lengths, kernel, strides, pad, strict=True)]
    )
    if given is None:
        return usual
    size = tuple(given)
    if len(size) == axes + 2:
        size = size[2:]
    if len(size) != axes:
        raise ShapeError(
            f"{op_name}: output_size must have {axes} lengths, or {axes + 2} with batch and "
            f"channels, got {tuple(given)}{at(user_line())}."
        )
    if any(not u - s < n < u + s for n, u, s in zip(size, usual, strides, strict=True)):
        raise ShapeError(
            f"{op_name}: output_size={size} must differ from {usual} by less than the stride "
            f"{strides} along each axis{at(user_line())}."
        )
    return tuple(map(int, size))


def _check_positions(op_name: str, indices: Any, total: int) -> None:
    """Check that known positions are in the result; compiled code checks them when it runs."""
    if is_traced(indices):
        return
    places = np.asarray(value_of(indices))
    if places.size and not (places.min() >= 0 and places.max() < total):
        wrong = places[(places < 0) | (places >= total)].flat[0]
        raise ArgumentError(
            f"{op_name}: position {wrong} is outside of the {total} elements of a channel of the "
            f"result. Give the output_size that was pooled{at(user_line())}."
        )

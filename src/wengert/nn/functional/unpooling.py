"""The inverse of max pooling, with the names and argument orders of PyTorch.

    max_unpool1d, max_unpool2d, max_unpool3d

Values are written to the positions that ``max_pool(..., return_indices=True)`` has returned, and
all other elements are zero.  If windows overlap, a position can occur several times; one of its
values is written, and has the derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, is_traced, shape_of, value_of
from wengert._engine.core.op import lookup
from wengert._engine.core.symbolic.dim import spelled
from wengert._engine.ops.indexing.template import split_index
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line
from wengert.numpy import arange, zeros

from .window_options import Option, array_of, by_dimension, per_axis, with_samples

__all__ = ["max_unpool1d", "max_unpool2d", "max_unpool3d"]


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

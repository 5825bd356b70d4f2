"""Pooling functions with the names and argument orders of PyTorch.

    max_pool1d             avg_pool1d              windows of a given size; also 2d and 3d
    adaptive_max_pool1d    adaptive_avg_pool1d     a given number of windows; also 2d and 3d
    lp_pool1d, lp_pool2d, lp_pool3d

The operations are in _engine/ops/neural/pooling.py.  A mean is a sum times a constant, so that
padding may be included or excluded.  Adaptive windows have equal sizes if the output length divides
the input length.  Otherwise a mean is computed by a matrix product for each axis, and a maximum
from a copy in which windows do not overlap.

The result of lp_pool is (sum of x**p)**(1/p) over each window.  As in PyTorch x is not made
positive: for odd or fractional p give nonnegative inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from wengert._engine.core.handle import shape_of
from wengert._engine.core.symbolic.dim import Dim, spelled
from wengert._engine.ops.neural.pooling import max_pool, max_pool_indices, sum_pool
from wengert.errors import ArgumentError, ShapeError, at, user_line
from wengert.numpy import take

from .conv import Option, by_dimension, per_axis, with_samples

__all__ = """
    max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_max_pool1d
    adaptive_max_pool2d adaptive_max_pool3d adaptive_avg_pool1d adaptive_avg_pool2d
    adaptive_avg_pool3d lp_pool1d lp_pool2d lp_pool3d
""".split()


Pairs = tuple[tuple[int, int], ...]


def _frame(
    x: Any,
    window: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil: bool,
    axes: int,
    op_name: str,
) -> dict[str, Any]:
    """Windows, strides, padding and dilation; `ceil` adds padding at the end."""
    windows = per_axis(window, axes, "kernel_size")
    strides = windows if stride is None else per_axis(stride, axes, "stride")
    dilations = per_axis(dilation, axes, "dilation")
    pad = per_axis(padding, axes, "padding", 0)
    if any(2 * p > w for p, w in zip(pad, windows, strict=True)):
        raise ArgumentError(
            f"{op_name}: padding={padding!r} must be at most half of kernel_size={window!r}; else "
            f"windows could have padding only{at(user_line())}."
        )
    pairs = []
    for n, w, s, d, p in zip(shape_of(x)[2:], windows, strides, dilations, pad, strict=True):
        span = d * (w - 1) + 1
        if isinstance(n, int) and n + 2 * p < span:
            raise ShapeError(
                f"{op_name} was given spatial axes of lengths {spelled(shape_of(x)[2:])}; with "
                f"padding {pad} an axis is shorter than its window, which spans {span}. Give "
                f"larger inputs, or a smaller kernel_size{at(user_line())}."
            )
        behind = p
        if p and d > 1 and isinstance(n, int):
            _check_inside(n, w, s, d, p, op_name)
        if ceil:
            count = -(-(n + 2 * p - span) // s) + 1
            if (count - 1) * s >= n + p:  # the last window would begin after the input
                count -= 1
            behind = max(p, (count - 1) * s + span - n - p)
        pairs.append((p, behind))
    return {"window": windows, "stride": strides, "padding": tuple(pairs), "dilation": dilations}


def _check_inside(n: int, w: int, s: int, d: int, p: int, op_name: str) -> None:
    """Check that each window has an element that is not padding."""
    for first in range(-p, n + p - d * (w - 1), s):
        if not any(0 <= first + j * d < n for j in range(w)):
            raise ShapeError(
                f"{op_name}: with padding {p} and dilation {d} a window along an axis of length "
                f"{n} has padding only. Choose less padding{at(user_line())}."
            )


def max_pool_nd(
    axes: int,
    op_name: str,
    x: Any,
    kernel_size: Option,
    stride: Option | None = None,
    padding: Option = 0,
    dilation: Option = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window over <over>.

    The gradient goes to the first of equal elements, as in PyTorch; NaN counts as the maximum.

    Parameters
    ----------
    x : array or Tensor, shape (batch, channels, <space>)
        Or one sample, without the batch axis.
    kernel_size : int or tuple
    stride : int or tuple, optional
        Default `kernel_size`: windows do not overlap.
    padding : int or tuple, default 0
        The number of elements of value -inf on each side; at most half of `kernel_size`.
    dilation : int or tuple, default 1
        The distance between the elements of a window.
    ceil_mode : bool, default False
        Whether to include a last window that fits only partly.
    return_indices : bool, default False
        Whether to return also the flat indices over all spatial axes.

    Returns
    -------
    array or Tensor, or a pair of them

    Raises
    ------
    ShapeError, ArgumentError
        An axis is shorter than a window, or an option is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.max_pool<n>d(np.ones((2, 3, <8>)), 2).shape
    (2, 3, <4>)
    """
    x, single = with_samples(x, axes, op_name)
    frame = _frame(x, kernel_size, stride, padding, dilation, ceil_mode, axes, op_name)
    y = max_pool(x, **frame)
    y = y[0] if single else y
    if not return_indices:
        return y
    where = max_pool_indices(x, **frame)
    return y, where[0] if single else where


max_pool1d, max_pool2d, max_pool3d = by_dimension(max_pool_nd)


def avg_pool_nd(
    axes: int,
    op_name: str,
    x: Any,
    kernel_size: Option,
    stride: Option | None = None,
    padding: Option = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """The mean of each window over <over>.

    Parameters
    ----------
    x : array or Tensor, shape (batch, channels, <space>)
        Or one sample, without the batch axis.
    kernel_size : int or tuple
    stride : int or tuple, optional
        Default `kernel_size`: windows do not overlap.
    padding : int or tuple, default 0
        The number of zeros on each side; at most half of `kernel_size`.
    ceil_mode : bool, default False
        Whether to include a last window that fits only partly.
    count_include_pad : bool, default True
        Whether the padding is included in the mean.
    divisor_override : int, optional
        The divisor, instead of the number of elements; `avg_pool1d` does not have it.

    Returns
    -------
    array or Tensor

    Raises
    ------
    ShapeError, ArgumentError
        An axis is shorter than a window, or an option is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.avg_pool<n>d(np.ones((2, 3, <8>)), 2).shape
    (2, 3, <4>)
    """
    x, single = with_samples(x, axes, op_name)
    frame = _frame(x, kernel_size, stride, padding, 1, ceil_mode, axes, op_name)
    del frame["dilation"]
    if divisor_override == 0:
        raise ArgumentError(f"{op_name}: divisor_override must not be 0{at(user_line())}.")
    pad = [low for low, _ in frame["padding"]]
    total = sum_pool(x, **frame)
    if divisor_override is not None:
        y = total / divisor_override
    elif not any(map(any, frame["padding"])) or (
        count_include_pad and all(low == high for low, high in frame["padding"])
    ):
        y = total / prod(frame["window"])
    else:
        counts = _counts(shape_of(x)[2:], shape_of(total)[2:], frame, pad, count_include_pad)
        y = total * np.asarray(1.0 / counts, x.dtype)
    return y[0] if single else y


def avg_pool1d(
    x: Any,
    kernel_size: Option,
    stride: Option | None = None,
    padding: Option = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    """The mean of each window over one axis: `avg_pool2d` without `divisor_override`."""
    given = (kernel_size, stride, padding, ceil_mode, count_include_pad)
    return avg_pool_nd(1, "avg_pool1d", x, *given)


avg_pool2d, avg_pool3d = by_dimension(avg_pool_nd, 2, 3)


def _counts(
    lengths: Sequence[int], places: Sequence[int], frame: Any, pad: Sequence[int], all_count: bool
) -> Any:
    """The number of elements of each window."""
    found: Any = np.ones(())
    for n, m, w, s, p in zip(lengths, places, frame["window"], frame["stride"], pad, strict=True):
        first = np.arange(m) * s - p
        stop = np.minimum(first + w, n + p if all_count else n)
        found = np.multiply.outer(found, stop - (first if all_count else np.maximum(first, 0)))
    return found


# ---- adaptive ----------------------------------------------------------------------------------


def _sizes(x: Any, output_size: Any, axes: int, op_name: str) -> list[tuple[Any, Any]]:
    """For each axis, its length and its number of windows."""
    lengths = shape_of(x)[2:]
    given = output_size if isinstance(output_size, list | tuple) else [output_size] * axes
    counts = [n if m is None else m for n, m in zip(lengths, given, strict=False)]
    numbers = [m for m in counts if not isinstance(m, Dim)]
    per_axis(numbers or 1, len(numbers) or 1, f"{op_name}: output_size")
    if len(given) != axes:
        raise ArgumentError(
            f"{op_name}: output_size must be an integer or one length for each of {axes} axes, got "
            f"{output_size!r}{at(user_line())}."
        )
    return list(zip(lengths, counts, strict=True))


def _even(sizes: Sequence[tuple[Any, Any]]) -> dict[str, Any] | None:
    """The options of equal, adjacent windows; None if they are not equal."""
    if any(m == 0 or n % m or n < m for n, m in sizes):
        return None
    window = tuple([n // m for n, m in sizes])
    return {"window": window, "stride": window, "padding": ((0, 0),) * len(window)}


def _bounds(n: int, m: int) -> list[tuple[int, int]]:
    """Begin and end of m windows over n elements; they overlap if m does not divide n."""
    return [(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]


def adaptive_avg_pool_nd(axes: int, op_name: str, x: Any, output_size: Any) -> Any:
    """The mean of each of `output_size` windows over <over>.

    Window i of m over n elements is [floor(i n / m), ceil((i + 1) n / m)).

    Parameters
    ----------
    x : array or Tensor, shape (batch, channels, <space>)
        Or one sample, without the batch axis.
    output_size : int, None, or a tuple of them
        The number of windows along each axis; None for the length of the axis.

    Returns
    -------
    array or Tensor

    Raises
    ------
    ShapeError, ArgumentError
        The number of axes is wrong, or `output_size` is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.adaptive_avg_pool<n>d(np.ones((2, 3, <8>)), 3).shape
    (2, 3, <3>)
    """
    x, single = with_samples(x, axes, op_name)
    sizes = _sizes(x, output_size, axes, op_name)
    even = _even(sizes)
    if all(m == 1 for _, m in sizes):
        y = np.mean(x, axis=tuple(range(2, 2 + axes)), keepdims=True)
    elif even is not None:
        y = sum_pool(x, **even) / prod(even["window"])
    else:
        shares = []
        for n, m in sizes:
            share = np.zeros((m, n))
            for row, (first, stop) in zip(share, _bounds(n, m), strict=True):
                row[first:stop] = 1.0 / (stop - first)
            shares.append(share.astype(x.dtype))
        own, others = "cde"[:axes], "pqr"[:axes]
        subscripts = ",".join(b + a for a, b in zip(own, others, strict=True))
        y = np.einsum(f"ab{own},{subscripts}->ab{others}", x, *shares)
    return y[0] if single else y


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = by_dimension(adaptive_avg_pool_nd)


def adaptive_max_pool_nd(
    axes: int, op_name: str, x: Any, output_size: Any, return_indices: bool = False
) -> Any:
    """The maximum of each of `output_size` windows over <over>.

    Window i of m over n elements is [floor(i n / m), ceil((i + 1) n / m)).

    Parameters
    ----------
    x : array or Tensor, shape (batch, channels, <space>)
        Or one sample, without the batch axis.
    output_size : int, None, or a tuple of them
        The number of windows along each axis; None for the length of the axis.
    return_indices : bool, default False
        Whether to return also the flat indices over all spatial axes.

    Returns
    -------
    array or Tensor, or a pair of them

    Raises
    ------
    ShapeError, ArgumentError
        The number of axes is wrong, or `output_size` is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.adaptive_max_pool<n>d(np.ones((2, 3, <8>)), 3).shape
    (2, 3, <3>)
    """
    x, single = with_samples(x, axes, op_name)
    sizes = _sizes(x, output_size, axes, op_name)
    frame = _even(sizes)
    numbers = None
    if frame is None:  # pad shorter windows with their last element: never the first maximum
        lengths = [n for n, _ in sizes]
        numbers = np.arange(prod(lengths)).reshape(lengths)
        window = []
        for axis, (n, m) in enumerate(sizes):
            bounds = _bounds(n, m)
            longest = max(stop - first for first, stop in bounds)
            places = [min(a + k, b - 1) for a, b in bounds for k in range(longest)]
            x = np.take(x, places, axis=axis + 2)
            numbers = np.take(numbers, places, axis=axis)
            window.append(longest)
        frame = {"window": tuple(window), "stride": tuple(window), "padding": ((0, 0),) * axes}
    ones = (1,) * axes
    y = max_pool(x, **frame, dilation=ones)
    if not return_indices:
        return y[0] if single else y
    where = max_pool_indices(x, **frame, dilation=ones)
    if numbers is not None:
        where = take(numbers, where)  # wengert's: the indices may be traced
    return (y[0], where[0]) if single else (y, where)


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = by_dimension(adaptive_max_pool_nd)


def lp_pool_nd(
    axes: int,
    op_name: str,
    x: Any,
    norm_type: float,
    kernel_size: Option,
    stride: Option | None = None,
    ceil_mode: bool = False,
) -> Any:
    """(sum of x**p)**(1/p) of each window over <over>.

    Parameters
    ----------
    x : array or Tensor, shape (batch, channels, <space>)
        Or one sample, without the batch axis.
    norm_type : float
        The power p, above 0.
    kernel_size : int or tuple
    stride : int or tuple, optional
        Default `kernel_size`: windows do not overlap.
    ceil_mode : bool, default False
        Whether to include a last window that fits only partly; its sum is scaled to a whole one.

    Returns
    -------
    array or Tensor

    Raises
    ------
    ShapeError, ArgumentError
        An axis is shorter than a window, or an option is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert.nn.functional as F
    >>> F.lp_pool<n>d(np.ones((2, 3, <8>)), 2.0, 2).shape
    (2, 3, <4>)
    """
    if not norm_type > 0:
        raise ArgumentError(
            f"{op_name}: norm_type must be above 0, got {norm_type!r}{at(user_line())}."
        )
    count = prod(per_axis(kernel_size, axes, "kernel_size"))
    mean = avg_pool_nd(axes, op_name, x**norm_type, kernel_size, stride, 0, ceil_mode)
    return (mean * count) ** (1.0 / norm_type)


lp_pool1d, lp_pool2d, lp_pool3d = by_dimension(lp_pool_nd)

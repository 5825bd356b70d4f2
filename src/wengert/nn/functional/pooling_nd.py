"""Pooling as functions: the largest elements and the means of windows, with PyTorch's names.

    max_pool1d avg_pool1d adaptive_max_pool1d adaptive_avg_pool1d, and the same for 2d and 3d

    largest, averaged                      with windows of one size, over any number of axes
    adaptive_largest, adaptive_averaged    with as many windows as are asked for

The operations are in _engine/ops/neural/pooling.py.  A mean is a sum times a constant, so zeros
around the input may count or not.  Adaptive windows are of one size where the output's length
divides the input's; if it does not, a mean is a product with a matrix of shares for each axis, and
a maximum that of windows written out beside each other.
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

from .window_options import per_axis, with_samples

Pairs = tuple[tuple[int, int], ...]


def _frame(
    x: Any, window: Any, stride: Any, padding: Any, dilation: Any, ceil: bool, axes: int, who: str
) -> dict[str, Any]:
    """Windows, strides, padding and dilation; what `ceil` adds is padding behind."""
    windows = per_axis(window, axes, "kernel_size")
    strides = windows if stride is None else per_axis(stride, axes, "stride")
    dilations = per_axis(dilation, axes, "dilation")
    pad = per_axis(padding, axes, "padding", 0)
    if any(2 * p > w for p, w in zip(pad, windows, strict=True)):
        raise ArgumentError(
            f"{who}: padding={padding!r} is more than half of kernel_size={window!r}, so windows "
            f"would hold nothing else. Choose less{at(user_line())}."
        )
    pairs = []
    for n, w, s, d, p in zip(shape_of(x)[2:], windows, strides, dilations, pad, strict=True):
        span = d * (w - 1) + 1
        if isinstance(n, int) and n + 2 * p < span:
            raise ShapeError(
                f"{who} was given {spelled(shape_of(x)[2:])} elements along its axes; with padding "
                f"{pad} an axis is shorter than its window, which spans {span}. Give larger "
                f"inputs, or a smaller kernel_size{at(user_line())}."
            )
        behind = p
        if p and d > 1 and isinstance(n, int):
            _check_inside(n, w, s, d, p, who)
        if ceil:
            count = -(-(n + 2 * p - span) // s) + 1
            if (count - 1) * s >= n + p:  # a window that would begin behind the input
                count -= 1
            behind = max(p, (count - 1) * s + span - n - p)
        pairs.append((p, behind))
    return {"window": windows, "stride": strides, "padding": tuple(pairs), "dilation": dilations}


def _check_inside(n: int, w: int, s: int, d: int, p: int, who: str) -> None:
    """Every window has an element that is no padding."""
    for first in range(-p, n + p - d * (w - 1), s):
        if not any(0 <= first + j * d < n for j in range(w)):
            raise ShapeError(
                f"{who}: with padding {p} and dilation {d} a window on an axis of {n} elements "
                f"has none of these. Choose less padding{at(user_line())}."
            )


def largest(
    x: Any,
    window: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil: bool,
    indices: bool,
    axes: int,
    who: str,
) -> Any:
    """The largest elements of windows; with `indices` also where they stand."""
    x, alone = with_samples(x, axes, who)
    frame = _frame(x, window, stride, padding, dilation, ceil, axes, who)
    y = max_pool(x, **frame)
    y = y[0] if alone else y
    if not indices:
        return y
    where = max_pool_indices(x, **frame)
    return y, where[0] if alone else where


def averaged(
    x: Any,
    window: Any,
    stride: Any,
    padding: Any,
    ceil: bool,
    with_padding: bool,
    divisor: int | None,
    axes: int,
    who: str,
) -> Any:
    """The means of windows; zeros around the input count or not."""
    x, alone = with_samples(x, axes, who)
    frame = _frame(x, window, stride, padding, 1, ceil, axes, who)
    del frame["dilation"]
    if divisor == 0:
        raise ArgumentError(
            f"{who}: divisor_override=0, by which nothing can be divided. Choose another number"
            f"{at(user_line())}."
        )
    pad = [low for low, _ in frame["padding"]]
    total = sum_pool(x, **frame)
    if divisor is not None:
        y = total / divisor
    elif not any(map(any, frame["padding"])) or (
        with_padding and all(low == high for low, high in frame["padding"])
    ):
        y = total / prod(frame["window"])
    else:
        counts = _counts(shape_of(x)[2:], shape_of(total)[2:], frame, pad, with_padding)
        y = total * np.asarray(1.0 / counts, x.dtype)
    return y[0] if alone else y


def _counts(
    lengths: Sequence[int], places: Sequence[int], frame: Any, pad: Sequence[int], all_count: bool
) -> Any:
    """How many elements each window has."""
    found: Any = np.ones(())
    for n, m, w, s, p in zip(lengths, places, frame["window"], frame["stride"], pad, strict=True):
        first = np.arange(m) * s - p
        stop = np.minimum(first + w, n + p if all_count else n)
        found = np.multiply.outer(found, stop - (first if all_count else np.maximum(first, 0)))
    return found


# ---- adaptive ----------------------------------------------------------------------------------


def _sizes(x: Any, output_size: Any, axes: int, who: str) -> list[tuple[Any, Any]]:
    """For each axis its length, and how many windows it is to have."""
    lengths = shape_of(x)[2:]
    many = output_size if isinstance(output_size, list | tuple) else [output_size] * axes
    kept = [n if m is None else m for n, m in zip(lengths, many, strict=False)]
    numbers = [m for m in kept if not isinstance(m, Dim)]
    per_axis(numbers or 1, len(numbers) or 1, f"{who}: output_size")
    if len(many) != axes:
        raise ArgumentError(
            f"{who}: output_size={output_size!r} is not one length for each of {axes} axes. Give a "
            f"number, or so many{at(user_line())}."
        )
    return list(zip(lengths, kept, strict=True))


def _even(sizes: Sequence[tuple[Any, Any]]) -> dict[str, Any] | None:
    """Windows of one size beside each other, where that is what is asked for."""
    if any(m == 0 or n % m or n < m for n, m in sizes):
        return None
    window = tuple([n // m for n, m in sizes])
    return {"window": window, "stride": window, "padding": ((0, 0),) * len(window)}


def _bounds(n: int, m: int) -> list[tuple[int, int]]:
    """Where m windows of n elements begin and end; they overlap where n / m is not whole."""
    return [(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]


def adaptive_averaged(x: Any, output_size: Any, axes: int, who: str) -> Any:
    """The means of as many windows as are asked for."""
    x, alone = with_samples(x, axes, who)
    sizes = _sizes(x, output_size, axes, who)
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
        words = ",".join(b + a for a, b in zip(own, others, strict=True))
        y = np.einsum(f"ab{own},{words}->ab{others}", x, *shares)
    return y[0] if alone else y


def adaptive_largest(x: Any, output_size: Any, indices: bool, axes: int, who: str) -> Any:
    """The largest elements of as many windows as are asked for."""
    x, alone = with_samples(x, axes, who)
    sizes = _sizes(x, output_size, axes, who)
    frame = _even(sizes)
    numbers = None
    if frame is None:  # the last element of a shorter window is written once more, and never first
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
    if not indices:
        return y[0] if alone else y
    where = max_pool_indices(x, **frame, dilation=ones)
    if numbers is not None:
        where = take(numbers, where)  # ours: the positions may be lines of a graph
    return (y[0], where[0]) if alone else (y, where)

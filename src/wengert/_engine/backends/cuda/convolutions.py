"""Convolution of channels and its adjoints on a device: columns of windows, and products of cuBLAS.

The windows of several samples are the columns of one matrix for each group of channels
(window_kernels.py), so a convolution is one product for each group, whatever the number of samples.

    convolved    the result of `convolution`, `convolution_input` or `convolution_weight`
    correlated    of one array: that of `signal.convolve` or `signal.slide`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from wengert._engine.ops.neural.convolution import geometry_of

from .device import Device
from .window_kernels import Windows, added, columns

_MOST_BYTES = 1 << 28  # of columns at a time


def convolved(name: str, device: Device, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """The result of an operation."""
    first, second = [device.contiguous(device.put(x)) for x in operands]
    dtype = params["dtype"]
    first, second = first.astype(dtype, copy=False), second.astype(dtype, copy=False)
    own = params["of_op"]
    kernel = own.get("kernel") or second.shape[2:]
    size = own.get("size") or first.shape[2:]
    geometry = geometry_of(kernel, own["stride"], own["padding"], own["dilation"])
    windows = Windows.of(size, geometry)
    with device.calling():
        return _RUNS[name](device, first, second, windows, own["groups"])


def correlated(name: str, device: Device, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """The result of `signal.convolve` or `signal.slide`, of arrays with any number of axes."""
    dtype = params["dtype"]
    x, v = [device.contiguous(device.put(y)).astype(dtype, copy=False) for y in operands]
    low = [0] * v.ndim
    if name == "signal.convolve":
        v, low = device.contiguous(np.flip(v)), [n - 1 for n in v.shape]
    ones = (1,) * v.ndim
    fits = all(m <= n + 2 * p for n, m, p in zip(x.shape, v.shape, low, strict=True))
    if not v.ndim or not v.size or not fits or x.size * v.size * x.itemsize > _MOST_BYTES:
        return NotImplemented
    windows = Windows.of(x.shape, geometry_of(v.shape, ones, tuple((p, p) for p in low), ones))
    with device.calling():
        return _convolution(device, x[None, None], v[None, None], windows, 1)[0, 0]


def _convolution(device: Device, x: Any, w: Any, windows: Windows, groups: int) -> Any:
    n, outputs = x.shape[0], w.shape[0]
    y = device.empty((n, outputs, *windows.counts), x.dtype)
    if not w.size or not y.size:
        y[...] = 0
        return y
    matrix = w.reshape(groups, outputs // groups, -1)
    for part in _samples(n, x.shape[1], x.itemsize, windows):
        taken = x[part]
        rows = _rows(device, taken, windows, groups)
        y[part] = _samples_first(np.matmul(matrix, rows), len(taken), y.shape[1:])
    return y


def _input(device: Device, y: Any, w: Any, windows: Windows, groups: int) -> Any:
    n, outputs, channels = y.shape[0], w.shape[0], w.shape[1] * groups
    x = device.empty((n, channels, *windows.lengths), y.dtype)
    if not w.size or not y.size:
        x[...] = 0
        return x
    matrix = w.reshape(groups, outputs // groups, -1).swapaxes(1, 2)
    for part in _samples(n, channels, y.itemsize, windows):
        taken = y[part]
        found = np.matmul(matrix, _samples_last(taken, groups))
        shape = (channels, prod(windows.geometry.window), len(taken), *windows.counts)
        x[part] = added(device, found.reshape(shape), windows, (len(taken), channels), "columns")
    return x


def _weight(device: Device, x: Any, y: Any, windows: Windows, groups: int) -> Any:
    outputs, inputs = y.shape[1], x.shape[1] // groups
    shape = (outputs, inputs, *windows.geometry.window)
    total: Any = None
    if x.size and y.size:
        for part in _samples(x.shape[0], x.shape[1], x.itemsize, windows):
            rows = _rows(device, x[part], windows, groups)
            found = np.matmul(_samples_last(y[part], groups), rows.swapaxes(1, 2))
            total = found if total is None else total + found
    if total is None:
        total = device.empty(shape, x.dtype)
        total[...] = 0
    return total.reshape(shape)


_RUNS: dict[str, Callable[..., Any]] = {
    "convolution": _convolution,
    "convolution_input": _input,
    "convolution_weight": _weight,
}


def _samples(n: int, channels: int, itemsize: int, windows: Windows) -> list[slice]:
    """Slices of samples, whose columns take at most `_MOST_BYTES`."""
    size = channels * prod(windows.geometry.window) * prod(windows.counts) * itemsize
    step = max(1, _MOST_BYTES // max(size, 1))
    return [slice(k, min(k + step, n)) for k in range(0, n, step)]


def _rows(device: Device, x: Any, windows: Windows, groups: int) -> Any:
    """The matrices of columns: (groups, channels and taps, samples and positions)."""
    geometry = windows.geometry
    plain = all(p == (0, 0) for p in geometry.padding) and set(geometry.stride) <= {1}
    if plain and prod(geometry.window) == 1:
        return _samples_last(x, groups)
    return columns(device, x, windows).reshape(groups, _height(x, windows, groups), -1)


def _height(x: Any, windows: Windows, groups: int) -> int:
    return int(x.shape[1] // groups * prod(windows.geometry.window))


def _samples_last(x: Any, groups: int) -> Any:
    """Samples of channels as (groups, channels, samples and positions)."""
    n, channels = x.shape[:2]
    return x.reshape(n, channels, -1).swapaxes(0, 1).reshape(groups, channels // groups, -1)


def _samples_first(rows: Any, n: int, shape: tuple[int, ...]) -> Any:
    """The inverse of `_samples_last`."""
    return rows.reshape(shape[0], n, -1).swapaxes(0, 1).reshape(n, *shape)

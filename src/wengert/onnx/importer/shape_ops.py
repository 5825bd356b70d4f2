"""Shape operations, constants, and arrays that depend on lengths only.

A Shape is an array of lengths, some of which may be symbolic, as are arrays computed from it.  So
the result of a Reshape has a known symbolic shape.

Constant, ConstantOfShape, Range, EyeLike and OneHot.  Lengths may be symbolic; then the arrays are
nodes of the graph.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.ops.casts import astype
from wengert.numpy import arange, full

from ..onnx_library import onnx
from .registry import NodeView, as_lengths, imports

_LAST_BOUND = 2**31 - 1  # the largest 32-bit bound of a slice, which stands for the end


@imports("Shape")
def _shape(n: NodeView, x: Any) -> Any:
    return as_lengths(x.shape[slice(n.get("start", 0), n.get("end"))])


@imports("Size")
def _size(n: NodeView, x: Any) -> Any:
    total: Any = 1
    for length in x.shape:
        total = total * length
    return as_lengths([total]).reshape(())


@imports("Reshape", lengths=True, static=(1,))
def _reshape(n: NodeView, x: Any, shape: Any) -> Any:
    wanted = n.integers(shape, "shape")
    if not n.get("allowzero", 0):
        wanted = [x.shape[k] if type(m) is int and m == 0 else m for k, m in enumerate(wanted)]
    return np.reshape(x, tuple(wanted))


@imports("Transpose")
def _transpose(n: NodeView, x: Any) -> Any:
    order = n.get("perm")
    return np.transpose(x, None if order is None else tuple(order))


@imports("Squeeze", lengths=True, static=(1,))
def _squeeze(n: NodeView, x: Any, axes: Any = None) -> Any:
    found = n.axes(axes, len(x.shape))
    if axes is None and n.get("axes") is None:
        found = [k for k, m in enumerate(x.shape) if type(m) is int and m == 1]
    return np.squeeze(x, tuple(found)) if found else x


@imports("Unsqueeze", lengths=True, static=(1,))
def _unsqueeze(n: NodeView, x: Any, axes: Any = None) -> Any:
    given = n.get("axes") if axes is None else n.integers(axes, "axes")
    return np.expand_dims(x, tuple(a % (len(x.shape) + len(given)) for a in given))


@imports("Flatten")
def _flatten(n: NodeView, x: Any) -> Any:
    ndim = len(x.shape)
    axis = n.get("axis", 1)
    axis = axis + ndim if axis < 0 else axis
    first: Any = 1
    rest: Any = 1
    for k, m in enumerate(x.shape):
        first, rest = (first * m, rest) if k < axis else (first, rest * m)
    return np.reshape(x, (first, rest))


@imports("Concat", lengths=True)
def _concat(n: NodeView, *xs: Any) -> Any:
    return np.concatenate(xs, axis=n.get("axis"))


@imports("Split", static=(1,))
def _split(n: NodeView, x: Any, sizes: Any = None) -> Any:
    axis = n.get("axis", 0) % len(x.shape)
    given = n.get("split") if sizes is None else n.integers(sizes, "sizes")
    if given is None:
        count = n.get("num_outputs") or len(n.outputs)
        each = -(-x.shape[axis] // count)
        given = [each] * (count - 1)
        given.append(x.shape[axis] - each * (count - 1))
    parts, start = [], 0
    for size in given:
        index = [slice(None)] * len(x.shape)
        index[axis] = slice(start, start + size)
        parts.append(x[tuple(index)])
        start = start + size
    return tuple(parts)


@imports("Expand", static=(1,), grows=True)
def _expand(n: NodeView, x: Any, shape: Any) -> Any:
    wanted = n.integers(shape, "shape")
    have = (1,) * (len(wanted) - len(x.shape)) + tuple(x.shape)
    wanted = [1] * (len(have) - len(wanted)) + wanted
    final = tuple(h if type(m) is int and m == 1 else m for h, m in zip(have, wanted, strict=True))
    if isinstance(x, np.ndarray) and any(isinstance(m, Dim) for m in final):
        return full(final, np.zeros((), x.dtype), x.dtype) + x
    return np.broadcast_to(x, final)


@imports("Tile", static=(1,), grows=True)
def _tile(n: NodeView, x: Any, counts: Any) -> Any:
    return np.tile(x, tuple(n.integers(counts, "repeats")))


@imports("Slice", lengths=True, static=(1, 2, 3, 4))
def _slice(n: NodeView, x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    first, last = n.integers(starts, "starts"), n.integers(ends, "ends")
    where = list(range(len(first))) if axes is None else n.integers(axes, "axes")
    by = [1] * len(first) if steps is None else n.integers(steps, "steps")
    index = [slice(None)] * len(x.shape)
    for a, b, axis, step in zip(first, last, where, by, strict=True):
        index[axis] = _bounded(a, b, step, x.shape[axis])
    return x[tuple(index)]


def _bounded(a: Any, b: Any, step: int, length: Any) -> slice:
    """A slice without bounds beyond the ends, which ONNX writes as large numbers."""
    if step > 0:
        last = None if not isinstance(b, Dim) and b >= _LAST_BOUND else b
        return slice(a, last, None if step == 1 else step)
    low = -length if type(length) is int else -_LAST_BOUND
    last = None if not isinstance(b, Dim) and b < low else b
    return slice(None if not isinstance(a, Dim) and a >= _LAST_BOUND else a, last, step)


@imports("DepthToSpace")
def _depth_to_space(n: NodeView, x: Any) -> Any:
    size = n.get("blocksize")
    b, c, h, w = x.shape
    n.only("mode", "DCR", "CRD")
    if n.get("mode", "DCR") == "DCR":
        apart = np.reshape(x, (b, size, size, c // size**2, h, w))
        moved = np.transpose(apart, (0, 3, 4, 1, 5, 2))
    else:
        apart = np.reshape(x, (b, c // size**2, size, size, h, w))
        moved = np.transpose(apart, (0, 1, 4, 2, 5, 3))
    return np.reshape(moved, (b, c // size**2, h * size, w * size))


@imports("SpaceToDepth")
def _space_to_depth(n: NodeView, x: Any) -> Any:
    size = n.get("blocksize")
    b, c, h, w = x.shape
    apart = np.reshape(x, (b, c, h // size, size, w // size, size))
    n.only("mode", "DCR", "CRD")
    front = (3, 5, 1) if n.get("mode", "DCR") == "DCR" else (1, 3, 5)
    moved = np.transpose(apart, (0, *front, 2, 4))
    return np.reshape(moved, (b, c * size**2, h // size, w // size))


@imports("Pad", static=(1, 2, 3), grows=True)
def _pad(n: NodeView, x: Any, pads: Any, value: Any = None, axes: Any = None) -> Any:
    mode = n.get("mode", "constant")
    amounts = n.integers(pads, "pads")
    ndim, half = len(x.shape), len(amounts) // 2
    where = range(ndim) if axes is None else [a % ndim for a in n.integers(axes, "axes")]
    width = [(0, 0)] * ndim
    for k, axis in enumerate(where):
        width[axis] = (amounts[k], amounts[half + k])
    for axis, (low, high) in enumerate(width):
        if low < 0 or high < 0:
            index = [slice(None)] * ndim
            index[axis] = slice(max(-low, 0), x.shape[axis] - max(-high, 0))
            x = x[tuple(index)]
    width = [(max(low, 0), max(high, 0)) for low, high in width]
    if mode == "constant":
        fill = 0 if value is None else n.number(value, "value")
        n.need([m + low + high for m, (low, high) in zip(x.shape, width, strict=True)], x.dtype)
        return np.pad(x, width, constant_values=fill)
    n.only("mode", "constant", "reflect", "edge", "wrap")
    return np.pad(x, width, mode=mode)


@imports("Trilu", static=(1,))
def _trilu(n: NodeView, x: Any, k: Any = None) -> Any:
    offset = 0 if k is None else int(n.number(k, "diagonal"))
    return (np.triu if n.get("upper", 1) else np.tril)(x, offset)


@imports("Constant")
def _constant(n: NodeView) -> Any:
    if n.get("value") is not None:
        return np.array(onnx().numpy_helper.to_array(n.get("value")))
    for name, dtype in (("value_float", np.float32), ("value_int", np.int64)):
        if n.get(name) is not None:
            return np.array(n.get(name), dtype)
    for name, dtype in (("value_floats", np.float32), ("value_ints", np.int64)):
        if n.get(name) is not None:
            return np.array(list(n.get(name)), dtype)
    raise n.unsupported("is not a numeric array")


@imports("ConstantOfShape", lengths=True, static=(0,))
def _filled(n: NodeView, shape: Any) -> Any:
    value = n.get("value")
    fill = np.zeros(1, np.float32) if value is None else onnx().numpy_helper.to_array(value)
    wanted = tuple(n.integers(shape, "shape"))
    if any(isinstance(m, Dim) for m in wanted):
        return full(wanted, np.asarray(fill).reshape(-1)[0], fill.dtype)
    n.need(wanted, fill.dtype)
    return np.full(wanted, fill.reshape(()), fill.dtype)


@imports("Range", lengths=True, static=(0, 1, 2))
def _range(n: NodeView, start: Any, limit: Any, delta: Any) -> Any:
    bounds = [n.number(b, "bounds") for b in (start, limit, delta)]
    if any(isinstance(b, Dim) for b in bounds):
        return arange(*[b if isinstance(b, Dim) else int(b) for b in bounds])
    first, end, step = bounds
    dtype = np.asarray(start).dtype
    n.need((max(0, math.ceil((float(end) - float(first)) / float(step))),), dtype)
    return np.arange(*bounds, dtype=dtype)


@imports("EyeLike")
def _eye(n: NodeView, x: Any) -> Any:
    dtype = x.dtype if n.get("dtype") is None else n.dtype(n.get("dtype"))
    rows, columns = x.shape
    n.need((rows, columns), dtype)
    return np.eye(rows, columns, n.get("k", 0), dtype)


@imports("OneHot", static=(1,), grows=True)
def _one_hot(n: NodeView, indices: Any, depth: Any, values: Any) -> Any:
    count = int(n.number(depth, "depth"))
    n.need((count,), np.int64)
    axis = n.get("axis", -1)
    axis = axis % (len(indices.shape) + 1)
    whole = astype(indices, np.int64) if isinstance(indices, Handle) else indices.astype(np.int64)
    whole = np.expand_dims(np.where(whole < 0, whole + count, whole), axis)
    shape = [1] * len(whole.shape)
    shape[axis] = count
    return np.where(np.equal(whole, np.arange(count).reshape(shape)), values[1], values[0])

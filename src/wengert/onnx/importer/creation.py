"""Constants, and arrays that depend on lengths only.

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
from .node_view import NodeView
from .registry import imports


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

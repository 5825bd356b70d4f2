"""Reductions, cumulative sums, the softmax, matrix products and contractions.

Axes are inputs of most ONNX reductions, and are written as nonnegative integers.  Booleans are
reduced as integers, because ONNX has no boolean reductions.

ONNX has both: MatMul multiplies the last two axes and broadcasts the others, Einsum contracts by
subscripts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.node import Node

from .elementwise import cast_all
from .graph_writer import GraphWriter
from .registry import exports, unsupported

_SIMPLE = {"sum": "ReduceSum", "mean": "ReduceMean", "prod": "ReduceProd"}
_EXTREMES = {"max": "ReduceMax", "min": "ReduceMin"}
_SUMMED = (np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.float32), np.dtype(np.float64))


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """`axis` as a tuple of nonnegative axes."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple) else (axis,)
    return tuple(a % ndim for a in axes)


def reduced(w: GraphWriter, kind: str, x: str, axes: tuple[int, ...], keep: bool) -> str:
    """A reduction over axes; without axes, the array itself."""
    if not axes:
        return x
    return str(w.op(kind, x, w.ints(axes), keepdims=int(keep)))


def _given(node: Node) -> tuple[tuple[int, ...], bool]:
    ndim = len(node.inputs[0].spec.shape)
    return axes_of(node.params["axis"], ndim), bool(node.params["keepdims"])


@exports(*_SIMPLE)
def _simple(w: GraphWriter, node: Node, x: str) -> Any:
    dtype = node.spec.dtype
    x = w.cast(x, node.inputs[0].spec.dtype, dtype)
    if dtype in _SUMMED or dtype.kind == "f":
        return reduced(w, _SIMPLE[node.op.name], x, *_given(node))
    total = reduced(w, _SIMPLE[node.op.name], w.cast(x, dtype, np.int64), *_given(node))
    return w.cast(total, np.int64, dtype)


@exports(*_EXTREMES)
def _extreme(w: GraphWriter, node: Node, x: str) -> Any:
    have = node.inputs[0].spec.dtype
    if have.kind == "b":
        return _boolean(w, _EXTREMES[node.op.name], node, x)
    return reduced(w, _EXTREMES[node.op.name], x, *_given(node))


@exports("any")
def _any(w: GraphWriter, node: Node, x: str) -> Any:
    return _boolean(w, "ReduceMax", node, x)


@exports("all")
def _all(w: GraphWriter, node: Node, x: str) -> Any:
    return _boolean(w, "ReduceMin", node, x)


def _boolean(w: GraphWriter, kind: str, node: Node, x: str) -> Any:
    x = w.cast(w.cast(x, node.inputs[0].spec.dtype, bool), bool, np.int32)
    return w.cast(reduced(w, kind, x, *_given(node)), np.int32, bool)


@exports("count_nonzero")
def _count(w: GraphWriter, node: Node, x: str) -> Any:
    x = w.cast(w.cast(x, node.inputs[0].spec.dtype, bool), bool, np.int64)
    return reduced(w, "ReduceSum", x, *_given(node))


@exports("var", "std")
def _variance(w: GraphWriter, node: Node, x: str) -> Any:
    axes, keep = _given(node)
    dtype, shape = node.spec.dtype, node.inputs[0].spec.shape
    x = w.cast(x, node.inputs[0].spec.dtype, dtype)
    away = w.op("Sub", x, reduced(w, "ReduceMean", x, axes, True))
    total = reduced(w, "ReduceSum", w.op("Mul", away, away), axes, keep)
    count: Any = 1
    for a in axes:
        count = count * shape[a]
    freedom = w.op("Squeeze", w.length(count - node.params["ddof"]), w.ints([0]))
    out = w.op("Div", total, w.cast(freedom, np.int64, dtype))
    return w.op("Sqrt", out) if node.op.name == "std" else out


@exports("norm2")
def _norm2(w: GraphWriter, node: Node, x: str) -> Any:
    x = w.cast(x, node.inputs[0].spec.dtype, node.spec.dtype)
    axes, keep = _given(node)
    return reduced(w, "ReduceL2", x, axes, keep) if axes else w.op("Abs", x)


@exports("norm_p")
def _norm_p(w: GraphWriter, node: Node, x: str) -> Any:
    dtype, p = node.spec.dtype, node.params["p"]
    x = w.cast(x, node.inputs[0].spec.dtype, dtype)
    axes, keep = _given(node)
    if p == 1 and axes:
        return reduced(w, "ReduceL1", x, axes, keep)
    powers = w.op("Pow", w.op("Abs", x), w.constant(p, dtype))
    return w.op("Pow", reduced(w, "ReduceSum", powers, axes, keep), w.constant(1.0 / p, dtype))


@exports("logsumexp")
def _logsumexp(w: GraphWriter, node: Node, x: str) -> Any:
    dtype = node.spec.dtype
    x = w.cast(x, node.inputs[0].spec.dtype, dtype)
    axes, keep = _given(node)
    # The maximum is subtracted first: ReduceLogSumExp may overflow by its definition.
    high = reduced(w, "ReduceMax", x, axes, True)
    low = w.op("Max", w.op("Min", high, w.constant(1e30, dtype)), w.constant(-1e30, dtype))
    total = reduced(w, "ReduceSum", w.op("Exp", w.op("Sub", x, low)), axes, True)
    out = w.op("Add", w.op("Log", total), low)
    return out if keep or not axes else w.op("Squeeze", out, w.ints(axes))


@exports("argmax", "argmin")
def _position(w: GraphWriter, node: Node, x: str) -> Any:
    have, shape = node.inputs[0].spec.dtype, node.inputs[0].spec.shape
    axis, keep = node.params["axis"], bool(node.params["keepdims"])
    if have.kind == "b":
        x = w.cast(x, have, np.int32)
    kind = "ArgMax" if node.op.name == "argmax" else "ArgMin"
    if axis is not None:
        return w.op(kind, x, axis=axis % len(shape), keepdims=int(keep))
    flat = w.op("Reshape", x, w.ints([-1]))
    out = w.op(kind, flat, axis=0, keepdims=int(keep))
    return w.op("Reshape", out, w.ints([1] * len(shape) if keep else []))


@exports("cumsum")
def _cumsum(w: GraphWriter, node: Node, x: str) -> Any:
    extra = {k: v for k, v in node.params.items() if k not in ("axis",)}
    if any(extra.values()) or node.params["axis"] is None:
        raise unsupported(node, f"with {extra} has no counterpart in ONNX")
    x = w.cast(x, node.inputs[0].spec.dtype, node.spec.dtype)
    return w.op("CumSum", x, w.constant(node.params["axis"], np.int64))


@exports("softmax", "log_softmax")
def _softmax(w: GraphWriter, node: Node, x: str) -> Any:
    axis, shape = node.params["axis"], node.spec.shape
    x = w.cast(x, node.inputs[0].spec.dtype, node.spec.dtype)
    axes = axes_of(axis, len(shape))
    if len(axes) == 1:
        return w.op("Softmax" if node.op.name == "softmax" else "LogSoftmax", x, axis=axes[0])
    away = w.op("Sub", x, reduced(w, "ReduceMax", x, axes, True))
    powers = w.op("Exp", away)
    total = reduced(w, "ReduceSum", powers, axes, True)
    if node.op.name == "softmax":
        return w.op("Div", powers, total)
    return w.op("Sub", away, w.op("Log", total))


@exports("matmul")
def _matmul(w: GraphWriter, node: Node, *names: str) -> Any:
    return w.op("MatMul", *cast_all(w, node, names, node.spec.dtype))


@exports("dot")
def _dot(w: GraphWriter, node: Node, *names: str) -> Any:
    x, y = cast_all(w, node, names, node.spec.dtype)
    m, n = (len(a.spec.shape) for a in node.inputs)
    if m == 0 or n == 0:
        return w.op("Mul", x, y)
    if n <= 2:
        return w.op("MatMul", x, y)
    letters = "abcdefghijklmnopqrstuvwxyz"
    left, right = letters[: m - 1] + "z", letters[m - 1 : m + n - 3] + "z" + letters[m + n - 3]
    equation = f"{left},{right}->{left[:-1]}{right.replace('z', '')}"
    return w.op("Einsum", x, y, equation=equation)


@exports("einsum")
def _einsum(w: GraphWriter, node: Node, *names: str) -> Any:
    *operands, out = node.params["subscripts"]
    if node.spec.dtype.kind == "b":
        raise unsupported(node, "of booleans has no counterpart in ONNX")
    equation = f"{','.join(operands)}->{out}"
    return w.op("Einsum", *cast_all(w, node, names, node.spec.dtype), equation=equation)

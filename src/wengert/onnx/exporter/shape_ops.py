"""Shape operations, and arrays that depend on lengths only.

In a shape with one symbolic size it is replaced by -1; several are computed in the file from the
shapes of its inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.node import Node
from wengert._engine.core.symbolic.dim import Dim

from .contractions import axes_of, reduced
from .graph_writer import GraphWriter
from .registry import exports, unsupported

LAST_BOUND = np.iinfo(np.int64).max


def reshaped(w: GraphWriter, x: str, shape: Sequence[Any]) -> str:
    """Reshape; a single symbolic size needs no computation."""
    unknown = [n for n in shape if isinstance(n, Dim)]
    if len(unknown) == 1 and 0 not in shape and -1 not in shape:
        return str(w.op("Reshape", x, w.ints([-1 if isinstance(n, Dim) else n for n in shape])))
    return str(w.op("Reshape", x, w.shape(shape), allowzero=1 if 0 in shape else None))


@exports("reshape")
def _reshape(w: GraphWriter, node: Node, x: str) -> Any:
    if node.params.get("order", "C") == "F":
        x = w.op("Transpose", x)
        return w.op("Transpose", reshaped(w, x, node.spec.shape[::-1]))
    return reshaped(w, x, node.spec.shape)


@exports("squeeze", "expand_dims")
def _lengths_of_one(w: GraphWriter, node: Node, x: str) -> Any:
    if node.op.name == "expand_dims":
        return w.op("Unsqueeze", x, w.ints(axes_of(node.params["axis"], len(node.spec.shape))))
    shape = node.inputs[0].spec.shape
    axis = node.params.get("axis")
    axes = [k for k, n in enumerate(shape) if n == 1] if axis is None else axes_of(axis, len(shape))
    return w.op("Squeeze", x, w.ints(axes)) if len(axes) else w.op("Identity", x)


@exports("transpose")
def _transpose(w: GraphWriter, node: Node, x: str) -> Any:
    ndim = len(node.spec.shape)
    axes = node.params.get("axes")
    order = range(ndim)[::-1] if axes is None else [a % ndim for a in axes]
    return w.op("Transpose", x, perm=list(order)) if ndim else w.op("Identity", x)


@exports("broadcast_to")
def _broadcast(w: GraphWriter, node: Node, x: str) -> Any:
    return w.op("Expand", x, w.shape(node.spec.shape))


@exports("sum_to")
def summed_to(w: GraphWriter, node: Node, x: str) -> Any:
    """The sum over the axes along which an operand was broadcast."""
    large, small = node.inputs[0].spec.shape, node.spec.shape
    missing = len(large) - len(small)
    axes = tuple(
        k for k, n in enumerate(large) if k < missing or (small[k - missing] == 1 and n != 1)
    )
    total = reduced(w, "ReduceSum", x, axes, True)
    return w.op("Squeeze", total, w.ints(range(missing))) if missing else total


@exports("flip")
def _flip(w: GraphWriter, node: Node, x: str) -> Any:
    axes = axes_of(node.params["axis"], len(node.spec.shape))
    if not axes:
        return x
    starts, ends = w.ints([-1] * len(axes)), w.ints([-LAST_BOUND] * len(axes))
    return w.op("Slice", x, starts, ends, w.ints(axes), w.ints([-1] * len(axes)))


@exports("roll")
def _roll(w: GraphWriter, node: Node, x: str) -> Any:
    shift, axis = node.params["shift"], node.params.get("axis")
    shape = node.spec.shape
    if axis is None:
        if isinstance(shift, tuple):
            shift = sum(shift)
        flat = _rolled(w, w.op("Reshape", x, w.ints([-1])), int(np.prod(shape)), shift, 0, node)
        return reshaped(w, flat, shape)
    axes = axis if isinstance(axis, tuple) else (axis,)
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    for a, s in zip(axes, shifts, strict=True):
        x = _rolled(w, x, shape[a], s, a % len(shape), node)
    return x


def _rolled(w: GraphWriter, x: str, length: Any, shift: Any, axis: int, node: Node) -> str:
    if isinstance(length, Dim):
        raise unsupported(node, "along an axis of symbolic size has no counterpart in ONNX")
    cut = -shift % length if length else 0
    if not cut:
        return x
    parts = [
        w.op("Slice", x, w.ints([a]), w.ints([b]), w.ints([axis]))
        for a, b in ((cut, length), (0, cut))
    ]
    return str(w.op("Concat", *parts, axis=axis))


@exports("concatenate", "stack")
def _joined(w: GraphWriter, node: Node, *names: str) -> Any:
    dtype, axis = node.spec.dtype, node.params["axis"] % len(node.spec.shape)
    parts = [w.cast(n, a.spec.dtype, dtype) for a, n in zip(node.inputs, names, strict=True)]
    if node.op.name == "stack":
        parts = [w.op("Unsqueeze", n, w.ints([axis])) for n in parts]
    return w.op("Concat", *parts, axis=axis)


@exports("full")
def _full(w: GraphWriter, node: Node) -> Any:
    value = w.constant(node.params["value"], node.spec.dtype)
    return w.op("Expand", value, w.shape(node.spec.shape))


@exports("eye")
def _eye(w: GraphWriter, node: Node) -> Any:
    rows, columns, k = (node.params[n] for n in ("rows", "columns", "offset"))
    row = w.op("Unsqueeze", _counted(w, rows), w.ints([1]))
    column = w.op("Unsqueeze", _counted(w, columns), w.ints([0]))
    shifted = w.op("Add", row, w.constant(k, np.int64))
    return w.cast(w.op("Equal", shifted, column), bool, node.spec.dtype)


@exports("arange")
def _arange(w: GraphWriter, node: Node) -> Any:
    bounds = [_number(w, node.params[k]) for k in ("start", "stop", "step")]
    return w.cast(w.op("Range", *bounds), np.int64, node.spec.dtype)


def _number(w: GraphWriter, length: Any) -> str:
    if isinstance(length, Dim):
        return str(w.op("Squeeze", w.length(length), w.ints([0])))
    return w.constant(length, np.int64)


def _counted(w: GraphWriter, length: Any) -> str:
    return str(w.op("Range", _number(w, 0), _number(w, length), _number(w, 1)))

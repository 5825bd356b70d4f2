"""Indexing: reading and writing parts of arrays.

A basic index is a Slice.  Integer arrays are a Gather along one axis, or a GatherND with the
indexed axes in front.  Writes use flat positions, which are found by applying the index to an array
of positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.node import Node
from wengert._engine.core.symbolic.constraints import broadcast
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.ops.indexing.template import IndexSlot

from .graph_writer import GraphWriter
from .registry import exports, unsupported
from .shape_ops import LAST_BOUND, reshaped


@exports("getitem")
def _getitem(w: GraphWriter, node: Node, x: str, *operands: str) -> Any:
    return _read(w, node, x, node.inputs[0].spec.shape, node.inputs[1:], operands)


def _read(
    w: GraphWriter, node: Node, x: str, shape: Any, indices: Sequence[Node], names: Sequence[str]
) -> str:
    """x[index], for the index of a node."""
    if any(a.spec.dtype.kind == "b" for a in indices):
        raise unsupported(node, "by a mask has no counterpart in ONNX: its shape depends on values")
    parts = _full_index(node.params["index"], len(shape))
    x, shape, parts = _sliced(w, x, shape, parts)
    arrays = any(isinstance(p, IndexSlot) for p in parts)
    if not arrays:
        return _axes_in_and_out(w, x, parts)
    chosen = [_chosen(w, p, indices, names) for p in parts]
    return _gathered(w, x, shape, parts, chosen)


def _full_index(index: Any, ndim: int) -> list[Any]:
    """The index as a list with an entry for each axis."""
    parts = list(index) if isinstance(index, tuple) else [index]
    taken = sum(p is not None and p is not Ellipsis for p in parts)
    rest = [slice(None)] * (ndim - taken)
    if Ellipsis in [p if p is Ellipsis else None for p in parts]:
        k = next(i for i, p in enumerate(parts) if p is Ellipsis)
        return [*parts[:k], *rest, *parts[k + 1 :]]
    return [*parts, *rest]


def _sliced(
    w: GraphWriter, x: str, shape: Any, parts: list[Any]
) -> tuple[str, list[Any], list[Any]]:
    """Apply all slices; integers are slices of length 1 unless the index has arrays."""
    starts, ends, axes, steps, lengths, left = [], [], [], [], [], []
    arrays = any(isinstance(p, IndexSlot) for p in parts)
    axis = 0
    for part in parts:
        left.append(part)
        if part is None:
            continue
        lengths.append(shape[axis])
        if isinstance(part, slice):
            if part != slice(None):
                step = 1 if part.step is None else part.step
                starts.append((0 if step > 0 else LAST_BOUND) if part.start is None else part.start)
                ends.append(
                    (LAST_BOUND if step > 0 else -LAST_BOUND) if part.stop is None else part.stop
                )
                axes.append(axis)
                steps.append(step)
                lengths[-1] = None
            left[-1] = slice(None)
        elif not isinstance(part, IndexSlot) and not arrays:
            starts.append(part)
            ends.append(LAST_BOUND if _is_last(part) else part + 1)
            axes.append(axis)
            steps.append(1)
            lengths[-1] = 1
        axis += 1
    if axes:
        x = w.op("Slice", x, w.shape(starts), w.shape(ends), w.ints(axes), w.ints(steps))
    return x, lengths, left


def _is_last(part: Any) -> bool:
    return isinstance(part, int) and part == -1


def _axes_in_and_out(w: GraphWriter, x: str, parts: list[Any]) -> str:
    """Remove the axes of integers, and insert those of None."""
    kept = [p for p in parts if p is not None]
    out = [k for k, p in enumerate(kept) if not isinstance(p, slice)]
    if out:
        x = w.op("Squeeze", x, w.ints(out))
    left = [p for p in parts if p is None or isinstance(p, slice)]
    new = [k for k, p in enumerate(left) if p is None]
    return str(w.op("Unsqueeze", x, w.ints(new))) if new else x


def _chosen(w: GraphWriter, part: Any, indices: Sequence[Node], names: Sequence[str]) -> Any:
    """Name and shape of an index array; None for a slice."""
    if part is None or isinstance(part, slice):
        return None
    if isinstance(part, IndexSlot):
        node = indices[part.k]
        return w.cast(names[part.k], node.spec.dtype, np.int64), tuple(node.spec.shape)
    if isinstance(part, Dim):
        return w.op("Squeeze", w.length(part), w.ints([0])), ()
    return w.constant(int(part), np.int64), ()


def _gathered(w: GraphWriter, x: str, shape: Any, parts: list[Any], chosen: list[Any]) -> str:
    """Elements at index arrays along some axes."""
    where = [k for k, c in enumerate(chosen) if c is not None]
    together = where == list(range(where[0], where[-1] + 1))
    plain = [c for p, c in zip(parts, chosen, strict=True) if p is not None]
    axes = [k for k, c in enumerate(plain) if c is not None]
    others = [k for k, c in enumerate(plain) if c is None]
    shapes = [plain[k][1] for k in axes]
    whole = broadcast(*shapes)
    if len(axes) == 1:
        out = str(w.op("Gather", x, plain[axes[0]][0], axis=axes[0]))
        front = axes[0]
    else:
        if others:
            x = w.op("Transpose", x, perm=[*axes, *others])
        positions = _stacked(w, [plain[k] for k in axes], whole)
        out, front = str(w.op("GatherND", x, positions)), 0
    depth = len(whole)
    # As in NumPy the axes of adjacent index arrays remain in place, others come first.
    first = sum(p is not None for p in parts[: where[0]]) if together else 0
    out = _moved(w, out, front, first, depth, len(others))
    before = parts[: where[0]] if together else []
    slots: list[Any] = [*before, *["taken"] * depth]
    slots += [
        p for k, p in enumerate(parts) if chosen[k] is None and not (together and k < where[0])
    ]
    new = [k for k, p in enumerate(slots) if p is None]
    return str(w.op("Unsqueeze", out, w.ints(new))) if new else out


def _stacked(w: GraphWriter, arrays: Sequence[Any], whole: Any) -> str:
    size = w.shape(whole)
    full = [n if s == whole else w.op("Expand", n, size) for n, s in arrays]
    last = w.ints([len(whole)])
    return str(w.op("Concat", *[w.op("Unsqueeze", n, last) for n in full], axis=len(whole)))


def _moved(w: GraphWriter, x: str, front: int, first: int, depth: int, others: int) -> str:
    """Move the axes of positions to where NumPy has them."""
    if front == first or not depth:
        return x
    total = depth + others
    taken = range(front, front + depth)
    rest = [k for k in range(total) if k not in taken]
    order = [*rest[:first], *taken, *rest[first:]]
    return str(w.op("Transpose", x, perm=order))


# ---- writing -----------------------------------------------------------------------------------


@exports("setitem")
def _setitem(w: GraphWriter, node: Node, x: str, v: str, *operands: str) -> Any:
    base, value, *indices = node.inputs
    dtype = node.spec.dtype
    x, v = w.cast(x, base.spec.dtype, dtype), w.cast(v, value.spec.dtype, dtype)
    flat = w.op("Reshape", x, w.ints([-1]))
    places, shape = _positions(w, node, base.spec.shape, indices, operands)
    missing = len(value.spec.shape)
    if missing:
        v = _without_leading_ones(w, v, value.spec.shape)
    updates = w.op("Reshape", w.op("Expand", v, shape), w.ints([-1]))
    out = w.op("ScatterElements", flat, places, updates, axis=0)
    return reshaped(w, out, base.spec.shape)


def _without_leading_ones(w: GraphWriter, v: str, shape: Any) -> str:
    """Drop leading axes of length 1, as NumPy does in assignments."""
    ones = 0
    while ones < len(shape) and isinstance(shape[ones], int) and shape[ones] == 1:
        ones += 1
    return str(w.op("Squeeze", v, w.ints(range(ones)))) if ones else v


@exports("scatter_add")
def _scatter_add(w: GraphWriter, node: Node, x: str, t: str, *operands: str) -> Any:
    base, value, *indices = node.inputs
    t = w.cast(t, value.spec.dtype, node.spec.dtype)
    places, chosen = _positions(w, node, base.spec.shape, indices, operands)
    flat = w.op("Reshape", x, w.ints([-1]))
    updates = w.op("Reshape", w.op("Expand", t, chosen), w.ints([-1]))
    out = w.op("ScatterElements", flat, places, updates, axis=0, reduction="add")
    return reshaped(w, out, base.spec.shape)


@exports("scatter")
def _scatter(w: GraphWriter, node: Node, t: str, *operands: str) -> Any:
    shape = node.spec.shape
    places, chosen = _positions(w, node, shape, node.inputs[1:], operands)
    total: Any = 1
    for n in shape:
        total = total * n
    flat = w.op("Expand", w.constant(0, node.spec.dtype), w.shape([total]))
    updates = w.op("Reshape", w.op("Expand", t, chosen), w.ints([-1]))
    out = w.op("ScatterElements", flat, places, updates, axis=0, reduction="add")
    return reshaped(w, out, shape)


def _positions(
    w: GraphWriter, node: Node, shape: Any, indices: Sequence[Node], names: Sequence[str]
) -> tuple[str, str]:
    """The flat positions of the indexed elements, and the shape of the result."""
    total: Any = 1
    for n in shape:
        total = total * n
    count = w.op("Squeeze", w.length(total), w.ints([0]))
    numbers = w.op("Range", w.constant(0, np.int64), count, w.constant(1, np.int64))
    chosen = _read(w, node, reshaped(w, numbers, shape), shape, indices, names)
    return w.op("Reshape", chosen, w.ints([-1])), w.op("Shape", chosen)


@exports("gather_along")
def _gather_along(w: GraphWriter, node: Node, x: str, positions: str) -> Any:
    ndim = len(node.spec.shape)
    have = node.inputs[1].spec
    positions = w.cast(positions, have.dtype, np.int64)
    if tuple(have.shape) != tuple(node.spec.shape):
        positions = w.op("Expand", positions, w.shape(node.spec.shape))
    axis = node.params["axis"] % ndim
    other = tuple(n for k, n in enumerate(node.inputs[0].spec.shape) if k != axis)
    if other != tuple(n for k, n in enumerate(node.spec.shape) if k != axis):
        raise unsupported(node, "of a broadcast array has no counterpart in ONNX")
    return w.op("GatherElements", x, positions, axis=axis)

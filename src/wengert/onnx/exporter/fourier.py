"""Fourier transforms, and arithmetic of complex numbers between them.

ONNX has no complex operators except DFT, which represents complex numbers by pairs on a further,
last axis.  A complex node of the graph is written as such pairs, for the operations of this module;
inputs and results of a file are real.

    transforms    fft, rfft, irfft as DFT
    arithmetic    sums, products, quotients, conjugates, parts, sizes
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from wengert._engine.core.node import CONSTANT, Node

from .contractions import axes_of
from .graph_writer import GraphWriter
from .registry import exports_complex, unsupported
from .shape_ops import reshaped, summed_to

LARGEST_POWER = 16  # of a complex number, by products


def _real_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype of the parts of complex numbers."""
    return np.empty(0, dtype).real.dtype


def _pairs(w: GraphWriter, node: Node, name: str, dtype: Any) -> str:
    """An operand as pairs, with imaginary parts zero if it is real."""
    have = node.spec.dtype
    if have.kind == "c":
        return w.cast(name, _real_dtype(have), dtype)
    return str(w.op("Mul", _column(w, node, name, dtype), w.constant([1.0, 0.0], dtype)))


def _column(w: GraphWriter, node: Node, name: str, dtype: Any) -> str:
    """A real operand with a last axis of length 1."""
    return str(w.op("Unsqueeze", w.cast(name, node.spec.dtype, dtype), w.ints([-1])))


def _part(w: GraphWriter, pairs: str, k: int) -> str:
    """Real (0) or imaginary (1) parts, on a last axis of length 1."""
    return str(w.op("Slice", pairs, w.ints([k]), w.ints([k + 1]), w.ints([-1])))


def _turned(w: GraphWriter, pairs: str, dtype: Any) -> str:
    """i times complex numbers."""
    swapped = w.op("Gather", pairs, w.ints([1, 0]), axis=-1)
    return str(w.op("Mul", swapped, w.constant([-1.0, 1.0], dtype)))


def _conjugated(w: GraphWriter, pairs: str, dtype: Any) -> str:
    return str(w.op("Mul", pairs, w.constant([1.0, -1.0], dtype)))


def _product(w: GraphWriter, one: str, other: str, dtype: Any) -> str:
    real = w.op("Mul", _part(w, one, 0), other)
    return str(w.op("Add", real, w.op("Mul", _part(w, one, 1), _turned(w, other, dtype))))


# ---- arithmetic --------------------------------------------------------------------------------


@exports_complex("add", "subtract")
def _sum(w: GraphWriter, node: Node, *names: str) -> Any:
    dtype = _real_dtype(node.spec.dtype)
    pairs = [_pairs(w, a, n, dtype) for a, n in zip(node.inputs, names, strict=True)]
    return w.op("Add" if node.op.name == "add" else "Sub", *pairs)


@exports_complex("multiply")
def _multiply(w: GraphWriter, node: Node, *names: str) -> Any:
    dtype = _real_dtype(node.spec.dtype)
    (a, b), (x, y) = node.inputs, names
    if a.spec.dtype.kind != "c":
        return w.op("Mul", _column(w, a, x, dtype), _pairs(w, b, y, dtype))
    if b.spec.dtype.kind != "c":
        return w.op("Mul", _pairs(w, a, x, dtype), _column(w, b, y, dtype))
    return _product(w, _pairs(w, a, x, dtype), _pairs(w, b, y, dtype), dtype)


@exports_complex("divide")
def _divide(w: GraphWriter, node: Node, x: str, y: str) -> Any:
    dtype = _real_dtype(node.spec.dtype)
    a, b = node.inputs
    above = _pairs(w, a, x, dtype)
    if b.spec.dtype.kind != "c":
        return w.op("Div", above, _column(w, b, y, dtype))
    below = _pairs(w, b, y, dtype)
    square = w.op("ReduceSumSquare", below, w.ints([-1]), keepdims=1)
    return w.op("Div", _product(w, above, _conjugated(w, below, dtype), dtype), square)


@exports_complex("negative", "conjugate", "square")
def _unary(w: GraphWriter, node: Node, x: str) -> Any:
    dtype = _real_dtype(node.spec.dtype)
    if node.op.name == "negative":
        return w.op("Neg", x)
    return _product(w, x, x, dtype) if node.op.name == "square" else _conjugated(w, x, dtype)


@exports_complex("power")
def _power(w: GraphWriter, node: Node, x: str, y: str) -> Any:
    """A small positive integer power, by products."""
    exponent, dtype = node.inputs[1], _real_dtype(node.spec.dtype)
    value = exponent.value if exponent.op is CONSTANT else None
    if value is None or np.ndim(value) or value not in range(1, LARGEST_POWER + 1):
        raise unsupported(
            node, f"of complex numbers, except by the integers 1 to {LARGEST_POWER}, is not written"
        )
    base = out = _pairs(w, node.inputs[0], x, dtype)
    for _ in range(int(value.real) - 1):
        out = _product(w, out, base, dtype)
    return out


@exports_complex("cast")
def _cast(w: GraphWriter, node: Node, x: str) -> Any:
    dtype = _real_dtype(node.spec.dtype)
    if node.spec.dtype.kind == "c":
        return _pairs(w, node.inputs[0], x, dtype)
    real = w.op("Gather", x, w.constant(0, np.int64), axis=-1)
    return w.cast(real, _real_dtype(node.inputs[0].spec.dtype), dtype)


@exports_complex("strong_zero")
def _strong_zero(w: GraphWriter, node: Node, t: str, g: str) -> Any:
    """g, but 0 where t is 0 and g is NaN."""
    dtype = _real_dtype(node.spec.dtype)
    first, second = node.inputs
    size = w.op("ReduceL1", _pairs(w, first, t, dtype), w.ints([-1]), keepdims=1)
    pairs = _pairs(w, second, g, dtype)
    parts = w.cast(w.op("IsNaN", pairs), bool, np.int32)
    unknown = w.cast(w.op("ReduceMax", parts, w.ints([-1]), keepdims=1), np.int32, bool)
    zero = w.constant(0, dtype)
    drop = w.op("And", w.op("Equal", size, zero), unknown)
    return w.op("Where", drop, zero, pairs)


@exports_complex("reshape")
def _reshape(w: GraphWriter, node: Node, x: str) -> Any:
    if node.params.get("order", "C") != "C":
        raise unsupported(node, "of complex numbers in Fortran's order is not written")
    return reshaped(w, x, (*node.spec.shape, 2))


@exports_complex("broadcast_to")
def _broadcast(w: GraphWriter, node: Node, x: str) -> Any:
    return w.op("Expand", x, w.shape((*node.spec.shape, 2)))


exports_complex("sum_to")(summed_to)  # axes are counted from the front, so pairs are kept


@exports_complex("real", "imag")
def _real_or_imaginary(w: GraphWriter, node: Node, x: str) -> Any:
    return w.op("Gather", x, w.constant(int(node.op.name == "imag"), np.int64), axis=-1)


@exports_complex("absolute")
def _absolute(w: GraphWriter, node: Node, x: str) -> Any:
    return w.op("ReduceL2", x, w.ints([-1]), keepdims=0)


@exports_complex("sum")
def _total(w: GraphWriter, node: Node, x: str) -> Any:
    axes = axes_of(node.params["axis"], len(node.inputs[0].spec.shape))
    keep = int(bool(node.params["keepdims"]))
    return w.op("ReduceSum", x, w.ints(axes), keepdims=keep) if axes else x


@exports_complex("where")
def _where(w: GraphWriter, node: Node, condition: str, x: str, y: str) -> Any:
    dtype = _real_dtype(node.spec.dtype)
    one, other = (_pairs(w, a, n, dtype) for a, n in zip(node.inputs[1:], (x, y), strict=True))
    return w.op("Where", _column(w, node.inputs[0], condition, bool), one, other)


# ---- transforms --------------------------------------------------------------------------------


def _resized(w: GraphWriter, x: str, axis: int, have: int, want: int, dtype: Any) -> str:
    """x cropped or padded with zeros at the end of an axis."""
    if want < have:
        return str(w.op("Slice", x, w.ints([0]), w.ints([want]), w.ints([axis])))
    if want == have:
        return x
    return str(w.op("Pad", x, w.ints([0, want - have]), w.constant(0, dtype), w.ints([axis])))


def _lengths(node: Node) -> tuple[int, int, int, int]:
    """The axis, and the lengths of operand, transform and result along it."""
    axis = node.params["axis"] % len(node.spec.shape)
    found = (node.inputs[0].spec.shape[axis], node.params["n"], node.params["keep"])
    if not all(isinstance(n, int) for n in found):
        raise unsupported(node, "along an axis of symbolic length has no counterpart in ONNX")
    return axis, *found


def _scaled(w: GraphWriter, node: Node, x: str, inverse: bool, weights: Any, dtype: Any) -> str:
    """x times the scale of the norm, and times weights along the axis of frequencies."""
    axis, _, n, _ = _lengths(node)
    norm, divided = node.params["norm"], "backward" if inverse else "forward"
    scale = 1.0 / sqrt(n) if norm == "ortho" else 1.0 / n if norm == divided else 1.0
    factor = np.asarray(scale)
    if weights is not None:
        factor = factor * weights.reshape(-1, *[1] * (len(node.spec.shape) - axis))
    return x if np.all(factor == 1.0) else str(w.op("Mul", x, w.constant(factor, dtype)))


def _interior(n: int, factor: float) -> Any:
    """Weights of the frequencies 0 to n // 2: `factor` except for the first and middle ones."""
    weights = np.full(n // 2 + 1, factor)
    weights[0] = 1.0
    if n % 2 == 0:
        weights[-1] = 1.0
    return weights


def _transformed(
    w: GraphWriter, x: str, axis: int, inverse: bool, dtype: Any, onesided: bool = False
) -> str:
    """DFT without a scale.

    An inverse transform is the conjugate of the transform of the conjugate: onnxruntime rounds the
    scale of its inverse to single precision.
    """
    x = _conjugated(w, x, dtype) if inverse else x
    y = str(w.op("DFT", x, "", w.constant(axis, np.int64), onesided=int(onesided) or None))
    return _conjugated(w, y, dtype) if inverse else y


@exports_complex("fft")
def _fft(w: GraphWriter, node: Node, x: str) -> Any:
    dtype = _real_dtype(node.spec.dtype)
    axis, have, n, keep = _lengths(node)
    inverse = bool(node.params.get("inverse", False))
    x = _resized(w, _pairs(w, node.inputs[0], x, dtype), axis, have, n, dtype)
    y = _scaled(w, node, _transformed(w, x, axis, inverse, dtype), inverse, None, dtype)
    return _resized(w, y, axis, n, keep, dtype)


@exports_complex("rfft")
def _rfft(w: GraphWriter, node: Node, x: str) -> Any:
    dtype = _real_dtype(node.spec.dtype)
    axis, have, n, keep = _lengths(node)
    x = _resized(w, _column(w, node.inputs[0], x, dtype), axis, have, n, dtype)
    y = _transformed(w, x, axis, False, dtype, onesided=True)
    y = _scaled(w, node, y, False, _interior(n, node.params.get("interior", 1.0)), dtype)
    return _resized(w, y, axis, n // 2 + 1, keep, dtype)


@exports_complex("irfft")
def _irfft(w: GraphWriter, node: Node, x: str) -> Any:
    """The real part of an inverse transform, in which interior frequencies count twice."""
    dtype = node.spec.dtype
    axis, have, n, keep = _lengths(node)
    count = n // 2 + 1
    x = _resized(w, _pairs(w, node.inputs[0], x, dtype), axis, have, count, dtype)
    x = _scaled(w, node, x, True, _interior(n, 2.0 * node.params.get("interior", 1.0)), dtype)
    y = _transformed(w, _resized(w, x, axis, count, n, dtype), axis, True, dtype)
    y = w.op("Gather", y, w.constant(0, np.int64), axis=-1)
    return _resized(w, y, axis, n, keep, dtype)

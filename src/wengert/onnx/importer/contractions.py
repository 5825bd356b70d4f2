"""Sums over axes: reductions, cumulative sums, softmax, matrix products, Fourier transforms.

The axes are an attribute or, in later versions, an input.  Without axes all are reduced, or none
with noop_with_empty_axes.

Gemm is alpha A B + beta C, with optionally transposed matrices; MatMul and Einsum are defined as in
NumPy.

The last axis of an operand has one element, a real number, or two: real and imaginary part.  A
one-sided transform has the first n // 2 + 1 frequencies of a real signal; its inverse is real.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.op import lookup

from .elementwise import weak
from .registry import NodeView, imports


def _sum_of(f: Any) -> Any:
    return lambda x, **k: np.sum(f(x), **k)


def _log_sum_exp(x: Any, axis: Any, keepdims: bool) -> Any:
    return lookup("logsumexp")(x, axis=axis, keepdims=keepdims)


def _norm2(x: Any, axis: Any, keepdims: bool) -> Any:
    if x.dtype.kind != "f":
        return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims)).astype(x.dtype)
    return lookup("norm2")(x, axis=axis, keepdims=keepdims)


_REDUCTIONS = {
    "ReduceSum": np.sum,
    "ReduceMean": np.mean,
    "ReduceProd": np.prod,
    "ReduceL1": _sum_of(np.abs),
    "ReduceL2": _norm2,
    "ReduceSumSquare": _sum_of(np.square),
    "ReduceLogSum": lambda x, **k: np.log(np.sum(x, **k)),
    "ReduceLogSumExp": _log_sum_exp,
}


def _axes(n: NodeView, x: Any, given: Any) -> Any:
    """The axes; None if nothing is to be reduced."""
    axes = n.axes(given, len(x.shape))
    if axes:
        return tuple(axes)
    return None if n.get("noop_with_empty_axes", 0) else tuple(range(len(x.shape)))


@imports(*_REDUCTIONS, static=(1,))
def _reduced(n: NodeView, x: Any, given: Any = None) -> Any:
    axes = _axes(n, x, given)
    keep = bool(n.get("keepdims", 1))
    # Without axes, ReduceSumSquare still squares; ReduceSum returns its input.
    axes = () if axes is None else axes
    out = _REDUCTIONS[n.kind](x, axis=axes, keepdims=keep)
    return out if out.dtype == x.dtype else out.astype(x.dtype)


@imports("ReduceMax", "ReduceMin", static=(1,))
def _extreme(n: NodeView, x: Any, given: Any = None) -> Any:
    axes = _axes(n, x, given)
    if axes is None:
        return x
    keep, largest = bool(n.get("keepdims", 1)), n.kind == "ReduceMax"
    if x.dtype.kind == "b":
        return (np.any if largest else np.all)(x, axis=axes, keepdims=keep)
    if any(x.shape[a] == 0 for a in axes):
        ends = np.finfo(x.dtype) if x.dtype.kind == "f" else np.iinfo(x.dtype)
        fill = ends.min if largest else ends.max
        if x.dtype.kind == "f":
            fill = -np.inf if largest else np.inf
        return np.max(x, axis=axes, keepdims=keep, initial=fill)
    return (np.max if largest else np.min)(x, axis=axes, keepdims=keep)


@imports("ArgMax", "ArgMin")
def _position(n: NodeView, x: Any) -> Any:
    axis = n.get("axis", 0) % len(x.shape)
    keep = bool(n.get("keepdims", 1))
    find = np.argmax if n.kind == "ArgMax" else np.argmin
    if not n.get("select_last_index", 0):
        return find(x, axis=axis, keepdims=keep)
    return x.shape[axis] - 1 - find(np.flip(x, axis), axis=axis, keepdims=keep)


@imports("CumSum", "CumProd", static=(1,))
def _cumsum(n: NodeView, x: Any, given: Any) -> Any:
    axis = int(n.number(given, "axis")) % len(x.shape)
    back = bool(n.get("reverse", 0))
    total, neutral = (np.cumsum, 0) if n.kind == "CumSum" else (np.cumprod, 1)
    x = np.flip(x, axis) if back else x
    out = total(x, axis=axis, dtype=x.dtype)
    if n.get("exclusive", 0):
        first = [slice(None)] * len(x.shape)
        rest = list(first)
        first[axis], rest[axis] = slice(0, 1), slice(None, -1)
        start = np.zeros_like(out[tuple(first)]) + np.asarray(neutral, x.dtype)
        out = np.concatenate([start, out[tuple(rest)]], axis=axis)
    return np.flip(out, axis) if back else out


@imports("Softmax", "LogSoftmax")
def _softmax(n: NodeView, x: Any) -> Any:
    name = "softmax" if n.kind == "Softmax" else "log_softmax"
    return lookup(name)(x, axis=n.get("axis", -1) % len(x.shape))


@imports("Hardmax")
def _hardmax(n: NodeView, x: Any) -> Any:
    axis = n.get("axis", -1) % len(x.shape)
    best = np.argmax(x, axis=axis, keepdims=True)
    shape = [1] * len(x.shape)
    shape[axis] = x.shape[axis]
    places = np.arange(x.shape[axis]).reshape(shape)
    return np.equal(best, places).astype(x.dtype)


@imports("LpNormalization")
def _lp(n: NodeView, x: Any) -> Any:
    axis, p = n.get("axis", -1) % len(x.shape), n.get("p", 2)
    if p == 1:
        size = np.sum(np.abs(x), axis=axis, keepdims=True)
    else:
        size = lookup("norm2")(x, axis=axis, keepdims=True)
    return np.where(np.equal(size, 0), 0, x / np.where(np.equal(size, 0), 1, size)).astype(x.dtype)


@imports("TopK", static=(1,))
def _top_k(n: NodeView, x: Any, count: Any) -> Any:
    """The largest elements, always sorted; the sort is stable."""
    axis, k = n.get("axis", -1) % len(x.shape), n.integers(count, "number of elements")[0]
    if n.get("largest", 1):
        key = -x if x.dtype.kind == "f" else np.invert(x)
    else:
        key = x
    order = np.argsort(key, axis=axis, kind="stable")
    order = order[(slice(None),) * axis + (slice(0, k),)]
    return np.take_along_axis(x, order, axis), order


@imports("MatMul")
def _matmul(n: NodeView, x: Any, y: Any) -> Any:
    return np.matmul(x, y)


@imports("Gemm")
def _gemm(n: NodeView, a: Any, b: Any, c: Any = None) -> Any:
    alpha, beta = weak(n.get("alpha", 1.0)), weak(n.get("beta", 1.0))
    a = np.transpose(a) if n.get("transA", 0) else a
    b = np.transpose(b) if n.get("transB", 0) else b
    out = np.matmul(a, b)
    out = out if alpha == 1.0 else alpha * out
    if c is None or beta == 0.0:
        return out
    return out + (c if beta == 1.0 else beta * c)


@imports("Einsum")
def _einsum(n: NodeView, *xs: Any) -> Any:
    return np.einsum(n.get("equation"), *xs)


@imports("Det")
def _det(n: NodeView, x: Any) -> Any:
    return np.linalg.det(x)


@imports("DFT", static=(1, 2), grows=True)
def _dft(n: NodeView, x: Any, length: Any = None, axis: Any = None) -> Any:
    inverse, one_sided = bool(n.get("inverse", 0)), bool(n.get("onesided", 0))
    where = n.get("axis", 1) if n.opset < 20 else -2
    where = where if axis is None else int(n.number(axis, "axis"))
    where = where % len(x.shape)
    count = x.shape[where]
    if length is not None:
        count = int(n.number(length, "length"))
    elif inverse and one_sided:
        count = 2 * (count - 1)
    pairs = x.shape[-1] == 2
    signal = x[..., 0] + 1j * x[..., 1] if pairs else x[..., 0]
    if inverse and one_sided:
        return np.expand_dims(np.fft.irfft(signal, count, where), -1).astype(x.dtype)
    if one_sided and not pairs:
        out = np.fft.rfft(signal, count, where)
    else:
        out = (np.fft.ifft if inverse else np.fft.fft)(signal, count, where)
        if one_sided:
            index = (slice(None),) * where + (slice(0, count // 2 + 1),)
            out = out[index]
    return np.stack([np.real(out), np.imag(out)], axis=-1).astype(x.dtype)

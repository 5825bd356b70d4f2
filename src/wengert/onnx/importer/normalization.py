"""Normalization over batches, samples, groups, layers and neighbors; dropout.

BatchNormalization, InstanceNormalization, GroupNormalization, LayerNormalization,
MeanVarianceNormalization, LRN and Dropout.  Only evaluation mode is supported: in training mode
nodes would update statistics.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.ops.casts import astype

from .elementwise import weak
from .node_view import NodeView
from .registry import imports

_TRAINING = "in training mode is not supported: export the model in evaluation mode"


def _standard(x: Any, axes: tuple[int, ...], epsilon: float) -> tuple[Any, Any, Any]:
    mean = np.mean(x, axis=axes, keepdims=True)
    away = x - mean
    scale = 1 / np.sqrt(np.mean(away * away, axis=axes, keepdims=True) + epsilon)
    return away * scale, mean, scale


def _by_channel(a: Any, x: Any) -> Any:
    return np.reshape(a, (-1, *[1] * (len(x.shape) - 2)))


@imports("BatchNormalization")
def _batch(n: NodeView, x: Any, scale: Any, bias: Any, mean: Any, var: Any) -> Any:
    if n.get("training_mode", 0) or len([o for o in n.outputs if o]) > 1:
        raise n.unsupported(_TRAINING)
    mean, var = _by_channel(mean, x), _by_channel(var, x)
    standard = (x - mean) / np.sqrt(var + weak(n.get("epsilon", 1e-5)))
    return astype(standard * _by_channel(scale, x) + _by_channel(bias, x), x.dtype)


@imports("InstanceNormalization")
def _instance(n: NodeView, x: Any, scale: Any, bias: Any) -> Any:
    axes = tuple(range(2, len(x.shape)))
    y, _, _ = _standard(x, axes, weak(n.get("epsilon", 1e-5)))
    return y * _by_channel(scale, x) + _by_channel(bias, x)


@imports("LayerNormalization")
def _layer(n: NodeView, x: Any, scale: Any, bias: Any = None) -> Any:
    n.only("stash_type", 1)
    ndim = len(x.shape)
    axes = tuple(range(n.get("axis", -1) % ndim, ndim))
    y, mean, inverse = _standard(x, axes, weak(n.get("epsilon", 1e-5)))
    y = y * scale if bias is None else y * scale + bias
    return (y, mean, inverse) if len(n.outputs) > 1 else y


@imports("RMSNormalization")
def _root_mean_square(n: NodeView, x: Any, scale: Any) -> Any:
    n.only("stash_type", 1)
    ndim = len(x.shape)
    axes = tuple(range(n.get("axis", -1) % ndim, ndim))
    mean = np.mean(x * x, axis=axes, keepdims=True)
    return x / np.sqrt(mean + weak(n.get("epsilon", 1e-5))) * scale


@imports("GroupNormalization")
def _group(n: NodeView, x: Any, scale: Any, bias: Any) -> Any:
    if n.opset < 21:
        raise n.unsupported("before opset 21, which has weights of another shape, is not supported")
    groups, shape = n.get("num_groups"), tuple(x.shape)
    apart = np.reshape(x, (shape[0], groups, shape[1] // groups, *shape[2:]))
    axes = tuple(range(2, len(shape) + 1))
    y = np.reshape(_standard(apart, axes, weak(n.get("epsilon", 1e-5)))[0], shape)
    return y * _by_channel(scale, x) + _by_channel(bias, x)


@imports("MeanVarianceNormalization")
def _mean_variance(n: NodeView, x: Any) -> Any:
    axes = tuple(n.get("axes") or (0, 2, 3))
    away = x - np.mean(x, axis=axes, keepdims=True)
    return away / (np.sqrt(np.mean(away * away, axis=axes, keepdims=True)) + 1e-9)


@imports("LRN", grows=True)
def _local_response(n: NodeView, x: Any) -> Any:
    size, channels = n.get("size"), x.shape[1]
    alpha, beta = weak(n.get("alpha", 1e-4)), weak(n.get("beta", 0.75))
    low, high = (size - 1) // 2, size - 1 - (size - 1) // 2
    n.need((channels + size,), x.dtype)
    width = [(0, 0), (low, high), *[(0, 0)] * (len(x.shape) - 2)]
    squares = np.pad(x * x, width)
    total = squares[:, :channels]
    for k in range(1, size):
        total = total + squares[:, k : k + channels]
    return x / (weak(n.get("bias", 1.0)) + alpha / size * total) ** beta


@imports("Dropout", static=(1, 2))
def _dropout(n: NodeView, x: Any, ratio: Any = None, training: Any = None) -> Any:
    if training is not None and bool(n.number(training, "mode")):
        rate = 0.5 if ratio is None else float(n.number(ratio, "ratio"))
        if rate != 0.0:
            raise n.unsupported(_TRAINING)
    return (x, np.ones(x.shape, bool)) if len(n.outputs) > 1 else x

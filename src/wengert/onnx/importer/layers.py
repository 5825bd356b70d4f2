"""Layers: convolution, pooling, normalization, dropout, and losses of classes.

Padding is given by numbers, or by `auto_pad`, which preserves lengths (up to the stride) and adds
an odd element at the end (SAME_UPPER) or at the start (SAME_LOWER).

BatchNormalization, InstanceNormalization, GroupNormalization, LayerNormalization,
MeanVarianceNormalization, LRN and Dropout.  Only evaluation mode is supported: in training mode
nodes would update statistics.

Classes are on axis 1.  The mean is weighted by the weights of the classes; elements whose class is
`ignore_index` have weight zero, and are not read.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert._engine.ops.casts import astype
from wengert.numpy import take, take_along_axis  # of known arrays at unknown positions, too

from .elementwise import weak
from .registry import NodeView, imports

Pairs = tuple[tuple[int, int], ...]


def _options(n: NodeView, axes: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(n.get("strides") or [1] * axes), tuple(n.get("dilations") or [1] * axes)


def _padding(n: NodeView, lengths: Any, kernel: Any, stride: Any, dilation: Any) -> Pairs:
    axes = len(kernel)
    how = n.get("auto_pad", "NOTSET")
    if how in ("NOTSET", ""):
        pads = n.get("pads") or [0] * (2 * axes)
        return tuple((pads[k], pads[axes + k]) for k in range(axes))
    if how == "VALID":
        return ((0, 0),) * axes
    pairs = []
    for m, k, s, d in zip(lengths, kernel, stride, dilation, strict=True):
        if not isinstance(m, int):
            raise n.unsupported(f"with auto_pad={how!r} is not supported for symbolic sizes")
        total = max((-(-m // s) - 1) * s + d * (k - 1) + 1 - m, 0)
        small, large = total // 2, total - total // 2
        pairs.append((small, large) if how == "SAME_UPPER" else (large, small))
    return tuple(pairs)


@imports("Conv", grows=True)
def _conv(n: NodeView, x: Any, w: Any, bias: Any = None) -> Any:
    kernel = tuple(w.shape[2:])
    stride, dilation = _options(n, len(kernel))
    y = lookup("convolution")(
        x,
        w,
        stride=stride,
        padding=_padding(n, x.shape[2:], kernel, stride, dilation),
        dilation=dilation,
        groups=n.get("group", 1),
    )
    return _biased(y, bias, len(kernel))


def _biased(y: Any, bias: Any, axes: int) -> Any:
    return y if bias is None else y + np.reshape(bias, (-1, *[1] * axes))


@imports("ConvTranspose", grows=True)
def _transposed(n: NodeView, x: Any, w: Any, bias: Any = None) -> Any:
    kernel, axes = tuple(w.shape[2:]), len(w.shape) - 2
    stride, dilation = _options(n, axes)
    more = n.get("output_padding") or [0] * axes
    full = [
        (m - 1) * s + d * (k - 1) + 1 + e
        for m, s, d, k, e in zip(x.shape[2:], stride, dilation, kernel, more, strict=True)
    ]
    wanted, how = n.get("output_shape"), n.get("auto_pad", "NOTSET")
    if wanted is None and how in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [m * s for m, s in zip(x.shape[2:], stride, strict=True)]
    if wanted is not None:
        cut = [f - m for f, m in zip(full, wanted[-axes:], strict=True)]
        # Unlike in Conv, SAME_UPPER crops more at the start, all other modes at the end.
        upper = how == "SAME_UPPER"
        padding = tuple((c // 2, c - c // 2) if upper else (c - c // 2, c // 2) for c in cut)
    else:
        padding = _padding(n, x.shape[2:], kernel, stride, dilation)
    size = tuple(f - low - high for f, (low, high) in zip(full, padding, strict=True))
    inner = tuple(
        (max(low, 0), max(high - e, 0)) for (low, high), e in zip(padding, more, strict=True)
    )
    if any(e > high and e for (_, high), e in zip(padding, more, strict=True)) or any(
        c < 0 for pair in padding for c in pair
    ):
        return _biased(_placed(n, x, w, full, padding, stride, dilation), bias, axes)
    options = {"stride": stride, "dilation": dilation, "groups": n.get("group", 1)}
    y = lookup("convolution_input")(x, w, size=size, padding=inner, **options)
    return _biased(y, bias, axes)


def _placed(
    n: NodeView, x: Any, w: Any, full: Any, padding: Pairs, stride: Any, dilation: Any
) -> Any:
    """The full result, with zeros where no window reaches, and the slices to crop it."""
    none = ((0, 0),) * len(full)
    reach = tuple(
        (m - 1) * s + d * (k - 1) + 1
        for m, s, d, k in zip(x.shape[2:], stride, dilation, w.shape[2:], strict=True)
    )
    options = {"stride": stride, "dilation": dilation, "groups": n.get("group", 1)}
    y = lookup("convolution_input")(x, w, size=reach, padding=none, **options)
    index, width = [slice(None)] * 2, [(0, 0)] * 2
    for f, r, (low, high) in zip(full, reach, padding, strict=True):
        width.append((max(-low, 0), f - r + max(-high, 0)))
        index.append(slice(max(low, 0), f + max(-low, 0) + max(-high, 0) - max(high, 0)))
    return np.pad(y, width)[tuple(index)]


def _rounded_up(n: NodeView, x: Any, frame: Any) -> Pairs:
    """Padding extended so that an incomplete last window fits (ceil_mode)."""
    kernel, stride, padding, dilation = frame
    if not n.get("ceil_mode", 0):
        return tuple(padding)
    pairs = []
    for m, k, s, (low, high), d in zip(x.shape[2:], kernel, stride, padding, dilation, strict=True):
        span = m + low + high - (d * (k - 1) + 1)
        count = -(-span // s) + 1
        if (count - 1) * s >= m + low:  # windows must start inside the array
            count -= 1
        pairs.append((low, high + max((count - 1) * s - span, 0)))
    return tuple(pairs)


def _frame(n: NodeView, x: Any) -> tuple[Any, Any, Pairs, Any]:
    kernel = tuple(n.get("kernel_shape"))
    stride, dilation = _options(n, len(kernel))
    return kernel, stride, _padding(n, x.shape[2:], kernel, stride, dilation), dilation


@imports("MaxPool", grows=True)
def _max_pool(n: NodeView, x: Any) -> Any:
    kernel, stride, _, dilation = frame = _frame(n, x)
    options = {
        "window": kernel,
        "stride": stride,
        "padding": _rounded_up(n, x, frame),
        "dilation": dilation,
    }
    y = lookup("max_pool")(x, **options)
    if len(n.outputs) < 2:
        return y
    n.only("storage_order", 0)
    indices = lookup("max_pool_indices")(x, **options)
    rows = prod(x.shape[:2])
    each = prod(x.shape[2:])
    return y, indices + (np.arange(rows) * each).reshape(*x.shape[:2], *[1] * len(kernel))


def sums(n: NodeView, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """Sums over windows; with dilation by a depthwise convolution with ones."""
    if all(d == 1 for d in dilation):
        return lookup("sum_pool")(x, window=kernel, stride=stride, padding=padding)
    channels = x.shape[1]
    n.need((channels, *kernel), x.dtype)
    return lookup("convolution")(
        x,
        np.ones((channels, 1, *kernel), x.dtype),
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=channels,
    )


@imports("AveragePool", grows=True)
def _average_pool(n: NodeView, x: Any) -> Any:
    kernel, stride, padding, dilation = frame = _frame(n, x)
    wide = _rounded_up(n, x, frame)
    total = sums(n, x, kernel, stride, wide, dilation)
    if wide == padding and (n.get("count_include_pad", 0) or not any(map(any, padding))):
        return total / prod(kernel)
    n.need([m + sum(p) for m, p in zip(x.shape[2:], wide, strict=True)], x.dtype)
    ones = np.ones((1, 1, *x.shape[2:]), x.dtype)
    if n.get("count_include_pad", 0):
        ones = np.pad(ones, [(0, 0), (0, 0), *padding], constant_values=1)
        wide = tuple((0, b - a) for (_, a), (_, b) in zip(padding, wide, strict=True))
    return total / sums(n, ones, kernel, stride, wide, dilation)


@imports("LpPool", grows=True)
def _lp_pool(n: NodeView, x: Any) -> Any:
    kernel, stride, _, dilation = frame = _frame(n, x)
    p = n.get("p", 2)
    total = sums(n, np.abs(x) ** p, kernel, stride, _rounded_up(n, x, frame), dilation)
    return total ** (1.0 / p)


@imports("GlobalAveragePool", "GlobalMaxPool")
def _global(n: NodeView, x: Any) -> Any:
    axes = tuple(range(2, len(x.shape)))
    reduce = np.mean if n.kind == "GlobalAveragePool" else np.max
    return reduce(x, axis=axes, keepdims=True)


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


def _loss(n: NodeView, logs: Any, target: Any, weight: Any) -> Any:
    """The loss of log-probabilities."""
    ignored = n.get("ignore_index")
    known = None if ignored is None else np.not_equal(target, ignored)
    classes = target if known is None else np.where(known, target, 0)
    picked = take_along_axis(logs, np.expand_dims(classes, 1), axis=1)
    loss = -np.squeeze(picked, axis=1)
    share = None if weight is None else take(weight, classes)
    if known is not None:
        share = np.where(known, 1 if share is None else share, 0).astype(logs.dtype)
        loss = np.where(known, loss, 0)
    if share is not None:
        loss = loss * share
    how = n.get("reduction", "mean")
    if how == "none":
        return loss
    total = np.sum(loss)
    if how == "sum":
        return total
    return np.mean(loss) if share is None else total / np.sum(share)


@imports("NegativeLogLikelihoodLoss")
def _negative_log_likelihood(n: NodeView, logs: Any, target: Any, weight: Any = None) -> Any:
    return _loss(n, logs, target, weight)


@imports("SoftmaxCrossEntropyLoss")
def _cross_entropy(n: NodeView, scores: Any, target: Any, weight: Any = None) -> Any:
    logs = lookup("log_softmax")(scores, axis=1)
    return _loss(n, logs, target, weight), logs

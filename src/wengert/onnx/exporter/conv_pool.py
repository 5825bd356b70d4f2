"""Convolution, transposed convolution and pooling.

ONNX lists the padding before all axes, then the padding after them.  It requires exactly two
leading axes, so further ones are merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from wengert._engine.core.node import Node

from .elementwise import cast_all
from .graph_writer import GraphWriter
from .registry import exports, unsupported
from .shape_ops import reshaped


def _pads(padding: Sequence[Any]) -> list[int]:
    """The padding before all axes, then the padding after them."""
    return [low for low, _ in padding] + [high for _, high in padding]


@exports("convolution")
def _convolution(w: GraphWriter, node: Node, *names: str) -> Any:
    x, kernel = cast_all(w, node, names, node.spec.dtype)
    p = node.params
    if any(n < 0 for n in _pads(p["padding"])):
        raise unsupported(node, "with negative padding has no counterpart in ONNX")
    return w.op(
        "Conv",
        x,
        kernel,
        strides=list(p["stride"]),
        pads=_pads(p["padding"]),
        dilations=list(p["dilation"]),
        group=p["groups"],
        kernel_shape=list(node.inputs[1].spec.shape[2:]),
    )


@exports("convolution_input")
def _transposed(w: GraphWriter, node: Node, *names: str) -> Any:
    y, kernel = cast_all(w, node, names, node.spec.dtype)
    p, taps = node.params, node.inputs[1].spec.shape[2:]
    lengths = node.inputs[0].spec.shape[2:]
    output_padding = []
    for n, size, s, (low, high), k, d in zip(
        lengths, p["size"], p["stride"], p["padding"], taps, p["dilation"], strict=True
    ):
        output_padding.append(size - ((n - 1) * s + d * (k - 1) + 1 - low - high))
    if any(not isinstance(m, int) or m < 0 for m in output_padding) or min(_pads(p["padding"])) < 0:
        raise unsupported(node, f"to the size {p['size']} has no counterpart in ONNX")
    return w.op(
        "ConvTranspose",
        y,
        kernel,
        strides=list(p["stride"]),
        pads=_pads(p["padding"]),
        dilations=list(p["dilation"]),
        group=p["groups"],
        kernel_shape=list(taps),
        output_padding=output_padding,
    )


def _as_samples(w: GraphWriter, node: Node, x: str, axes: int) -> tuple[str, bool]:
    """The array with exactly two leading axes, as ONNX requires."""
    shape = node.inputs[0].spec.shape
    if len(shape) == axes + 2:
        return x, False
    lead = prod(shape[: len(shape) - axes])
    return reshaped(w, x, (1, lead, *shape[len(shape) - axes :])), True


@exports("max_pool", "max_pool_indices")
def _max_pool(w: GraphWriter, node: Node, x: str) -> Any:
    p, axes = node.params, len(node.params["window"])
    x, moved = _as_samples(w, node, x, axes)
    positions = node.op.name == "max_pool_indices"
    out = w.op(
        "MaxPool",
        x,
        outputs=2 if positions else 1,
        kernel_shape=list(p["window"]),
        strides=list(p["stride"]),
        pads=_pads(p["padding"]),
        dilations=list(p["dilation"]),
    )
    if positions:  # in ONNX they are positions in the whole array
        shape = node.inputs[0].spec.shape
        each = w.length(prod(shape[len(shape) - axes :]))
        out = w.op("Mod", out[1], each)
    return reshaped(w, out, node.spec.shape) if moved else out


@exports("sum_pool")
def _sum_pool(w: GraphWriter, node: Node, x: str) -> Any:
    p, dtype = node.params, node.spec.dtype
    if dtype.kind != "f":
        raise unsupported(node, "of integers has no counterpart in ONNX")
    x, moved = _as_samples(w, node, x, len(p["window"]))
    out = w.op(
        "AveragePool",
        x,
        kernel_shape=list(p["window"]),
        strides=list(p["stride"]),
        pads=_pads(p["padding"]),
        count_include_pad=1,
    )
    out = w.op("Mul", out, w.constant(np.asarray(prod(p["window"]), dtype)))
    return reshaped(w, out, node.spec.shape) if moved else out

"""Matrix products and contractions.

ONNX has both: MatMul multiplies the last two axes and broadcasts the others, Einsum contracts by
subscripts.
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core.node import Node

from .elementwise import cast_all
from .graph_writer import GraphWriter
from .registry import exports, unsupported


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

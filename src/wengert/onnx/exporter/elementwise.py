"""Elementwise operations with an ONNX operator.

The others are written by their bodies (scalar_language.py).  Operands are cast to a common dtype,
because ONNX has no type promotion.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.node import Node

from .graph_writer import GraphWriter
from .registry import exports, unsupported
from .scalar_language import is_python, write_body

# The names of their ONNX operators are attributes of the operations (`Op.onnx`).
_UNARY = (
    "absolute fabs negative reciprocal sqrt exp log sin cos tan arcsin arccos arctan sinh cosh "
    "tanh arcsinh arccosh arctanh sigmoid relu floor ceil rint sign positive"
).split()
# For these onnxruntime has no float64 kernels, or kernels of float32 accuracy.
_SINGLE = ("softplus", "softsign", "erf", "gelu", "mish")
_BINARY = "add subtract multiply divide power float_power maximum minimum".split()
_COMPARISONS = "less less_equal greater greater_equal equal".split()
_OF_BOOLS = {"add": "Or", "multiply": "And", "maximum": "Or", "minimum": "And"}
_TRUTHS = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
_BITS = {"bitwise_and": "BitwiseAnd", "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor"}
_BITS_OF_BOOLS = {"bitwise_and": "And", "bitwise_or": "Or", "bitwise_xor": "Xor"}


def _onnx(node: Node) -> str:
    name = node.op.onnx
    assert name is not None, node.op
    return name


def cast_all(w: GraphWriter, node: Node, names: Any, dtype: Any) -> list[str]:
    """Cast the operands of a node to a dtype."""
    return [w.cast(n, a.spec.dtype, dtype) for a, n in zip(node.inputs, names, strict=True)]


def common_dtype(node: Node) -> np.dtype[Any]:
    """The common dtype of the operands of a node."""
    given = [_python_number(a) if is_python(a) else a.spec.dtype for a in node.inputs]
    return np.dtype(np.result_type(*given))


def _python_number(node: Node) -> Any:
    return {"b": False, "i": 0, "u": 0, "f": 0.0}[node.spec.dtype.kind]


@exports(*_UNARY)
def _unary(w: GraphWriter, node: Node, x: str) -> Any:
    (x,) = cast_all(w, node, [x], node.spec.dtype)
    return w.op(_onnx(node), x)


@exports(*_SINGLE)
def _single(w: GraphWriter, node: Node, x: str) -> Any:
    dtype = node.spec.dtype
    if dtype.itemsize == 8:
        return write_body(w, node, x)
    return w.op(_onnx(node), w.cast(x, node.inputs[0].spec.dtype, dtype))


@exports(*_BINARY)
def _binary(w: GraphWriter, node: Node, *names: str) -> Any:
    dtype = node.spec.dtype
    if dtype.kind == "b":
        return w.op(_OF_BOOLS[node.op.name], *names)
    return w.op(_onnx(node), *cast_all(w, node, names, dtype))


@exports(*_COMPARISONS, "not_equal")
def _comparison(w: GraphWriter, node: Node, *names: str) -> Any:
    dtype = common_dtype(node)
    if dtype.kind == "b" and node.op.name not in ("equal", "not_equal"):
        dtype = np.dtype(np.int32)
    names = tuple(cast_all(w, node, names, dtype))
    if node.op.name == "not_equal":
        return w.op("Not", w.op("Equal", *names))
    return w.op(_onnx(node), *names)


@exports(*_TRUTHS, "logical_not")
def _logical(w: GraphWriter, node: Node, *names: str) -> Any:
    names = tuple(cast_all(w, node, names, bool))
    return w.op(_TRUTHS.get(node.op.name, "Not"), *names)


@exports(*_BITS)
def _bits(w: GraphWriter, node: Node, *names: str) -> Any:
    dtype = node.spec.dtype
    table = _BITS_OF_BOOLS if dtype.kind == "b" else _BITS
    return w.op(table[node.op.name], *cast_all(w, node, names, dtype))


@exports("invert")
def _invert(w: GraphWriter, node: Node, x: str) -> Any:
    return w.op("Not" if node.spec.dtype.kind == "b" else "BitwiseNot", x)


@exports("where")
def _where(w: GraphWriter, node: Node, condition: str, x: str, y: str) -> Any:
    which, *chosen = node.inputs
    dtype = node.spec.dtype
    names = [w.cast(n, a.spec.dtype, dtype) for a, n in zip(chosen, (x, y), strict=True)]
    return w.op("Where", w.cast(condition, which.spec.dtype, bool), *names)


@exports("isnan")
def _isnan(w: GraphWriter, node: Node, x: str) -> Any:
    return write_body(w, node, x)


@exports("square")
def _square(w: GraphWriter, node: Node, x: str) -> Any:
    return w.op("Mul", x, x)


@exports("silu")
def _silu(w: GraphWriter, node: Node, x: str) -> Any:
    return w.op("Mul", x, w.op("Sigmoid", x))


@exports("clip")
def _clip(w: GraphWriter, node: Node, *names: str) -> Any:
    x, low, high = cast_all(w, node, names, node.spec.dtype)
    if all(a.spec.shape == () for a in node.inputs[1:]):
        return w.op("Clip", x, low, high)
    return w.op("Min", w.op("Max", x, low), high)


@exports("leaky_relu", "elu")
def _sloped(w: GraphWriter, node: Node, x: str, slope: str) -> Any:
    number = node.inputs[1]
    fixed = number.is_leaf and number.info is None and np.ndim(number.value) == 0
    # ONNX attributes have 32 bits, and onnxruntime has no 64-bit kernels.
    if fixed and node.spec.dtype.itemsize < 8 and node.spec.dtype == node.inputs[0].spec.dtype:
        kind = "LeakyRelu" if node.op.name == "leaky_relu" else "Elu"
        return w.op(kind, x, alpha=float(number.value))
    return write_body(w, node, x, slope)


@exports("floor_divide", "remainder", "fmod")
def _division(w: GraphWriter, node: Node, *names: str) -> Any:
    dtype = node.spec.dtype
    if dtype.kind == "b":
        raise unsupported(node, "of booleans has no counterpart in ONNX")
    x, y = cast_all(w, node, names, dtype)
    if node.op.name == "fmod":
        return w.op("Mod", x, y, fmod=1)
    rest = w.op("Mod", x, y) if dtype.kind in "iu" else _float_remainder(w, x, y, dtype)
    if node.op.name == "remainder":
        return rest
    quotient = w.op("Div", w.op("Sub", x, rest), y)
    return quotient if dtype.kind in "iu" else w.op("Round", quotient)


def _float_remainder(w: GraphWriter, x: str, y: str, dtype: Any) -> str:
    """The remainder with the sign of the divisor; that of ONNX has the sign of the dividend."""
    zero = w.constant(0, dtype)
    rest = w.op("Mod", x, y, fmod=1)
    apart = w.op("Less", w.op("Mul", w.op("Sign", rest), w.op("Sign", y)), zero)
    return str(w.op("Where", apart, w.op("Add", rest, y), rest))


@exports("round")
def _round(w: GraphWriter, node: Node, x: str) -> Any:
    decimals, dtype = node.params["decimals"], node.spec.dtype
    if dtype.kind in "iu" and decimals >= 0:
        return x
    if dtype.kind != "f":
        raise unsupported(node, "of integers to tens has no counterpart in ONNX")
    if decimals == 0:
        return w.op("Round", x)
    scale = w.constant(10.0 ** abs(decimals), dtype)
    there, back = ("Mul", "Div") if decimals > 0 else ("Div", "Mul")
    return w.op(back, w.op("Round", w.op(there, x, scale)), scale)


@exports("cast", "discretise")
def _cast(w: GraphWriter, node: Node, x: str) -> Any:
    return w.cast(x, node.inputs[0].spec.dtype, node.spec.dtype)


@exports("stop_gradient", "copy", "assume")
def _itself(w: GraphWriter, node: Node, x: str, *_: str) -> Any:
    return w.op("Identity", x)

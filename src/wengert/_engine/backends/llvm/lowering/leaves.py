"""Leaves: inputs, constants, sizes, and arrays such as `full`, `arange` and `eye`.

The layout of an input is a letter:

    C    C order
    F    Fortran order: the transpose of an array in C order
    S    strided: its strides are symbolic sizes
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.node import Node, is_variable
from wengert._engine.core.symbolic.dim import Dim

from ..ir.index_analysis import STRIDE, Affine
from ..ir.llvm_types import is_supported
from .loop_ir import Condition, Expr, IndexValue, ScalarConstant, Stored, View, aligned
from .registry import Lowering, lowers


@lowers("leaf input", "leaf constant")
def _leaf(lowering: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    if node.is_traced or is_variable(node):
        return _input(lowering, node)
    value = np.asarray(node.value)
    if value.ndim == 0 and is_supported(value.dtype):
        return Expr(ScalarConstant(value[()]), (), (), value.dtype, node)
    return _array(value, node)


def _input(lowering: Lowering, node: Node) -> Expr:
    shape, dtype = node.spec.shape, node.spec.dtype
    layout = lowering.layouts.get(node, "C")
    if layout == "F":
        stored = Expr(Stored("input"), (), shape[::-1], dtype, node)
        expr = Expr(View("transpose", lambda index: index[::-1]), (stored,), shape, dtype, node)
    elif layout == "S":
        number = list(lowering.layouts).index(node)  # as in Program
        names = stride_names(number, len(shape))
        stored = Expr(
            Stored("input", strides=tuple(Dim({((n, 1),): 1}) for n in names)),
            (),
            shape,
            dtype,
            node,
        )
        expr = Expr(View("strided", lambda index: index), (stored,), shape, dtype, node)
    else:
        expr = stored = Expr(Stored("input"), (), shape, dtype, node)
    lowering.held[node] = stored
    return expr


def stride_names(number: int, ndim: int) -> list[str]:
    """The names of the strides of an input, which are not valid names of sizes."""
    return [f"{STRIDE}{number}.{k}" for k in range(ndim)]


def _array(value: np.ndarray[Any, Any], node: Node) -> Expr:
    """A constant array; elements repeated along an axis are stored once."""
    repeated = [k for k, n in enumerate(value.shape) if n > 1 and _is_repeated(value, k)]
    distinct = value[
        tuple(slice(0, 1) if k in repeated else slice(None) for k in range(value.ndim))
    ]
    if distinct.size == 1 and is_supported(value.dtype):
        return Expr(ScalarConstant(distinct.reshape(())[()]), (), value.shape, value.dtype, node)
    stored = Expr(Stored("constant", distinct), (), distinct.shape, value.dtype, node)
    if not repeated:
        return stored
    place = lambda index: aligned(index, distinct.shape, value.shape)  # noqa: E731
    return Expr(View("repeated", place), (stored,), value.shape, value.dtype, node)


def _is_repeated(value: np.ndarray[Any, Any], axis: int) -> bool:
    """Whether the elements along an axis are equal bit by bit."""
    if value.strides[axis] == 0:
        return True
    if value.size == 0:
        return False
    if value.dtype.kind not in "fc":
        first = value.take([0], axis)
        return bool((value == first).all())
    bits = np.ascontiguousarray(value).view(np.uint8).reshape(*value.shape, -1)
    return bool((bits == bits.take([0], axis)).all())


@lowers("leaf size")
def _size(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    length = node.params["size"]
    return Expr(
        IndexValue(str(length), lambda index: Affine(length, ())), (), (), node.spec.dtype, node
    )


@lowers("full")
def _full(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    spec = node.spec
    value = np.asarray(node.params["value"]).astype(spec.dtype)[()]
    return Expr(ScalarConstant(value), (), spec.shape, spec.dtype, node)


@lowers("arange")
def _arange(_: Lowering, node: Node, operands: Sequence[Expr]) -> Any:
    start, step = node.params["start"], node.params["step"]
    if node.spec.dtype.kind not in "iu" or not isinstance(step, int):
        return NotImplemented
    rule = IndexValue("arange", lambda index: index[0].times(step).plus(start))
    return Expr(rule, (), node.spec.shape, node.spec.dtype, node)


@lowers("eye")
def _eye(_: Any, node: Node, operands: Sequence[Expr]) -> Any:
    offset = node.params.get("offset", 0)

    def diagonal(index: Any) -> Condition:
        distance = index[1].plus(index[0].times(-1)).plus(-offset)
        return Condition(distance, 0, 1)

    return Expr(IndexValue("eye", diagonal), (), node.spec.shape, node.spec.dtype, node)

"""Leaves: inputs, constants, sizes, and arrays that are made from nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.node import Node, is_variable
from ..dtypes import is_supported
from ..forms import Affine
from ..items import Condition, Held, Item, Number, Position
from .registry import lowers


@lowers("leaf input", "leaf constant")
def _leaf(_: Any, node: Node, operands: Sequence[Item]) -> Any:
    if node.is_traced or is_variable(node):
        return Item(Held("input"), (), node.spec.shape, node.spec.dtype, node)
    value = np.asarray(node.value)
    if value.ndim == 0 and is_supported(value.dtype):
        return Item(Number(value[()]), (), (), value.dtype, node)
    return Item(Held("constant", value), (), value.shape, value.dtype, node)


@lowers("leaf size")
def _size(_: Any, node: Node, operands: Sequence[Item]) -> Any:
    length = node.params["size"]
    return Item(Position(str(length), lambda index: Affine(length, ())), (), (), node.spec.dtype, node)


@lowers("full")
def _full(_: Any, node: Node, operands: Sequence[Item]) -> Any:
    spec = node.spec
    value = np.asarray(node.params["value"]).astype(spec.dtype)[()]
    return Item(Number(value), (), spec.shape, spec.dtype, node)


@lowers("arange")
def _arange(_: Any, node: Node, operands: Sequence[Item]) -> Any:
    start, step = node.params["start"], node.params["step"]
    if node.spec.dtype.kind not in "iu" or not isinstance(step, int):
        return NotImplemented
    rule = Position("arange", lambda index: index[0].times(step).plus(start))
    return Item(rule, (), node.spec.shape, node.spec.dtype, node)


@lowers("eye")
def _eye(_: Any, node: Node, operands: Sequence[Item]) -> Any:
    offset = node.params.get("offset", 0)

    def diagonal(index: Any) -> Condition:
        distance = index[1].plus(index[0].times(-1)).plus(-offset)
        return Condition(distance, 0, 1)

    return Item(Position("eye", diagonal), (), node.spec.shape, node.spec.dtype, node)



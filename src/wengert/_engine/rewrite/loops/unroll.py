"""Inlining: loops of at most one step, and branches with known conditions.

The nodes of their bodies become nodes of the surrounding graph, where all other rules apply.

    unrolled    the results of such a loop or conditional as nodes
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wengert._engine.core.node import CONSTANT, ConstantLeaf, Node
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import LOOP
from wengert._engine.core.spec import Spec

from .loop_dce import Need
from .loop_view import LoopView, inlined


def unrolled(node: Node, operands: Sequence[Node], need: Need) -> dict[int, Node] | None:
    """The needed results as nodes without a loop or branch; None if it cannot be inlined."""
    if node.op.control_flow == LOOP:
        return _few_steps(node, operands, need) if node.op.name == "scan" else None
    which = operands[0]
    if which.op is not CONSTANT or not isinstance(which, ConstantLeaf) or "names" in node.params:
        return None
    branches = node.params["branches"]
    chosen = branches[min(max(int(which.value), 0), len(branches) - 1)]
    outs = inlined(chosen, operands[1:], type(node) is Node)
    return {k: outs[k] for k in need.results}


def _few_steps(node: Node, operands: Sequence[Node], need: Need) -> dict[int, Node] | None:
    loop = LoopView(node)
    length = loop.length
    if loop.count:
        first = operands[0]
        if first.op is not CONSTANT or not isinstance(first, ConstantLeaf):
            return None
        length = max(int(first.value), 0) if length is None else None
    if length not in (0, 1) or not isinstance(length, int):
        return None
    given = operands[len(loop.count) :]
    carry = given[loop.fixed : loop.fixed + loop.carried]
    if length == 0:
        empty = {k: _none(loop, k) for k in need.results if k >= loop.carried}
        return {k: empty[k] if k in empty else carry[k] for k in need.results}
    rows = [_first(x) for x in given[loop.fixed + loop.carried :]]
    start = given[: loop.fixed + loop.carried]
    outs = inlined(loop.body, [*start, *rows], type(node) is Node)
    return {k: _alone(outs[k], node) if k >= loop.carried else outs[k] for k in need.results}


def _first(x: Node) -> Node:
    """The only row of an operand."""
    shape = x.spec.shape[1:]
    info = x.provenance(Spec(shape, x.spec.dtype))
    return type(x)(lookup("getitem"), (x,), {"index": 0}, None, info)


def _alone(x: Node, near: Node) -> Node:
    """A value as an array of one row."""
    shape = (1, *x.spec.shape)
    info = near.provenance(Spec(shape, x.spec.dtype))
    return type(x)(lookup("reshape"), (x,), {"shape": shape}, None, info)


def _none(loop: LoopView, k: int) -> Node:
    """An array without rows."""
    spec = loop.node.spec[k]
    zero = np.zeros((), spec.dtype).item()
    params = {"shape": spec.shape, "value": zero, "dtype": spec.dtype}
    return ConstantLeaf(lookup("full"), (), params, None, loop.node.provenance(spec))

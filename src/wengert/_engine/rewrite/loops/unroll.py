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
    """The needed results of an inlined loop or conditional; None if it cannot be inlined."""
    if node.op.control_flow == LOOP:
        return _of_short_loop(node, operands, need) if node.op.name == "scan" else None
    which = operands[0]
    if which.op is not CONSTANT or not isinstance(which, ConstantLeaf) or "names" in node.params:
        return None
    branches = node.params["branches"]
    branch = branches[min(max(int(which.value), 0), len(branches) - 1)]
    outs = inlined(branch, operands[1:], type(node) is Node)
    return {k: outs[k] for k in need.results}


def _of_short_loop(node: Node, operands: Sequence[Node], need: Need) -> dict[int, Node] | None:
    loop = LoopView(node)
    length = loop.length
    if loop.count:
        count = operands[0]
        if count.op is not CONSTANT or not isinstance(count, ConstantLeaf):
            return None
        length = max(int(count.value), 0) if length is None else None
    if length not in (0, 1) or not isinstance(length, int):
        return None
    values = operands[len(loop.count) :]
    carry = values[loop.fixed : loop.fixed + loop.carried]
    if length == 0:
        empty = {k: _empty(loop, k) for k in need.results if k >= loop.carried}
        return {k: empty[k] if k in empty else carry[k] for k in need.results}
    rows = [_first(x) for x in values[loop.fixed + loop.carried :]]
    initial = values[: loop.fixed + loop.carried]
    outs = inlined(loop.body, [*initial, *rows], type(node) is Node)
    return {k: _as_row(outs[k], node) if k >= loop.carried else outs[k] for k in need.results}


def _first(x: Node) -> Node:
    """The only row of an operand."""
    shape = x.spec.shape[1:]
    info = x.provenance(Spec(shape, x.spec.dtype))
    return type(x)(lookup("getitem"), (x,), {"index": 0}, None, info)


def _as_row(x: Node, near: Node) -> Node:
    """A value as an array of one row."""
    shape = (1, *x.spec.shape)
    info = near.provenance(Spec(shape, x.spec.dtype))
    return type(x)(lookup("reshape"), (x,), {"shape": shape}, None, info)


def _empty(loop: LoopView, k: int) -> Node:
    """An array of length 0, as result k."""
    spec = loop.node.spec[k]
    zero = np.zeros((), spec.dtype).item()
    params = {"shape": spec.shape, "value": zero, "dtype": spec.dtype}
    return ConstantLeaf(lookup("full"), (), params, None, loop.node.provenance(spec))

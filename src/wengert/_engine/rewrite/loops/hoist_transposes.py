"""Hoisting transposes: loop-invariant matrices are transposed before the loop, if products need it.

    h @ weight.T       in each step

reads columns of `weight`, which are not contiguous, so the matrix product rearranges it in every
step.  This pass makes the transpose an operand of the loop.
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core.copy_graph import rebuilt
from wengert._engine.core.graph import AnyGraph
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import LOOP
from wengert._engine.core.spec import Spec
from wengert._engine.core.subgraph import Body
from wengert._engine.core.tracing import part_of, placeholder

from ..driver import Applied
from .loop_dce import used
from .loop_view import LoopView, Rewiring

_PRODUCTS = ("einsum", "strong_einsum", "matmul", "dot")
_MIN_ROWS = 4  # rows of the other factor; with fewer, a product reads the matrix only once
_MIN_ELEMENTS = 1024  # of the matrix; for a smaller one it is not worthwhile
NAME = "transpose hoisted"


def with_hoisted_transposes(graph: AnyGraph) -> tuple[AnyGraph, list[Applied]]:
    """The graph with transposes hoisted out of loops, and the rewrites."""
    if not any(n.op.control_flow == LOOP for n in graph.nodes):
        return graph, []
    needs = used(graph)  # omits loops whose results are used as a tuple
    rewiring, applied = Rewiring(), []
    for node in graph.nodes:
        rewiring.follow(node)
        loop = rewiring.replacements.get(node, node)
        if (
            node not in needs
            or node.op.control_flow != LOOP
            or (rewritten := _with_transposes(loop)) is None
        ):
            continue
        rewiring.replace(node, {k: part_of(rewritten, k) for k in range(len(loop.spec))})
        applied.append(Applied(NAME, node, rewritten))
    return (rewiring.graph(graph), applied) if applied else (graph, [])


def _with_transposes(node: Node) -> Node | None:
    """The loop with some operands transposed; None if no layout changes."""
    loop = LoopView(node)
    positions = [k for k in range(loop.fixed) if _is_read_across(loop, k)]
    if not positions:
        return None
    inputs, consts, replacements = list(loop.body.inputs), list(loop.consts), {}
    for k in positions:
        old = inputs[k]
        spec = Spec(old.spec.shape[::-1], old.spec.dtype)
        inputs[k] = placeholder(spec, old.name, type(old) is Node)
        replacements[old] = _transpose(inputs[k], old)
        consts[k] = _transpose(consts[k], node)
    nodes = rebuilt(loop.body.nodes, replacements)
    outputs = [nodes.get(n, n) for n in loop.body.outputs]
    body = Body(*outputs, inputs=inputs, name=loop.body.name)
    return loop.with_body(body, loop.condition, consts, loop.carry, loop.rows)


def _transpose(x: Node, near: Node) -> Node:
    spec = Spec(x.spec.shape[::-1], x.spec.dtype)
    return type(x)(lookup("transpose"), (x,), {"axes": None}, None, near.provenance(spec))


def _is_read_across(loop: LoopView, k: int) -> bool:
    """Whether a const is a matrix whose columns are read by all its products."""
    matrix = loop.body.inputs[k]
    shape = matrix.spec.shape
    if len(shape) != 2 or not all(isinstance(n, int) for n in shape):
        return False
    if shape[0] * shape[1] < _MIN_ELEMENTS or loop.condition is not None:
        return False
    views = {matrix: False}  # whether the matrix is used transposed
    has_product = False
    for n in loop.body.nodes:
        operands = [a for a in n.inputs if a in views]
        if not operands:
            continue
        if n.op.name == "transpose" and n.params.get("axes") in (None, (1, 0)):
            views[n] = not views[operands[0]]
        elif len(operands) == 1 and n.op.name in _PRODUCTS and len(n.inputs) == 2:
            if not _is_across(n, operands[0], views[operands[0]]):
                return False
            has_product = True
        else:
            return False
    return has_product and views.keys().isdisjoint(loop.body.outputs)


def _is_across(product: Node, view: Node, is_transposed: bool) -> bool:
    """Whether adjacent elements in a row of the result belong to different rows of the matrix."""
    ranks = [len(a.spec.shape) for a in product.inputs]
    *subscripts, result = lookup(product.op.name).subscripts(*ranks, **product.params)
    position = product.inputs.index(view)
    own, other = subscripts[position], subscripts[1 - position]
    own = own[::-1] if is_transposed else own  # as in memory
    if len(set(own)) != 2 or not result or result[-1] != own[0] or own[1] not in other:
        return False
    if own[1] in result or own[0] in other:
        return False
    rows: Any = 1
    for label, n in zip(result, product.spec.shape, strict=True):
        rows = rows * n if label in other else rows
    return isinstance(rows, int) and rows >= _MIN_ROWS

"""Loops that are removed: inlined, or merged with the loop that stores their checkpoints.

Inlining: loops of at most one step, and branches with known conditions.

The nodes of their bodies become nodes of the surrounding graph, where all other rules apply.

    unrolled    the results of such a loop or conditional as nodes

Merging checkpointed loops: one loop stores the checkpoints and computes the results.

The pullback of a loop with limited memory runs the loop once more, to store checkpoints.  If the
results of the original loop are used too, the two loops are merged; if not, stacked outputs are
removed from the loop that stores checkpoints.

    without_repeated_loops    a graph in which each of these loops runs once
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence

import numpy as np

from wengert._engine.control_flow.checkpointed_loop import plain
from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import AnyGraph
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.node import CONSTANT, ConstantLeaf, Node
from wengert._engine.core.node_properties import frozen
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import CHECKPOINTED, LOOP, LOOPS
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import part_of
from wengert._engine.rewrite.driver import Applied

from .loop_dce import Need
from .loop_view import LoopView, Rewiring, inlined, like


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


_MEMORY_PARAMS = ("slots", "bytes")


def without_repeated_loops(graph: AnyGraph) -> tuple[AnyGraph, list[Applied]]:
    """The graph without repeated loops, and the rewrites."""
    used = _used(graph)
    checkpointed = {_key(n): n for n in used if n.op.control_flow == CHECKPOINTED}
    if not checkpointed:
        return graph, []
    merged_into = {
        n: checkpointed[_key(n)]
        for n in used
        if n.op.control_flow == LOOP and _key(n) in checkpointed
    }
    rewiring, applied = Rewiring(), []
    nodes: dict[Node, Node] = {}
    for node in graph.nodes:
        target = merged_into.get(node, node)
        if target not in checkpointed.values():
            rewiring.follow(node)
        elif target in merged_into.values():
            if target not in nodes:
                nodes[target] = like(target, tuple(rewiring.replaced(node.inputs)), target.params)
            rewiring.replace(node, _parts(nodes[target], {k: k for k in used[node]}))
            if node is not target:
                applied.append(Applied("checkpointed loops merged", node, nodes[target]))
        elif (
            results := _without_rows(node, tuple(rewiring.replaced(node.inputs)), used[node])
        ) is not None:
            rewiring.replace(node, results)
            applied.append(
                Applied("unused output removed", node, next(iter(results.values())).args[0])
            )
        else:
            rewiring.follow(node)
    return (rewiring.graph(graph), applied) if applied else (graph, [])


def _used(graph: AnyGraph) -> dict[Node, set[int]]:
    """The used results of each loop; without loops whose results are used as a tuple."""
    results: dict[Node, set[int]] = {n: set() for n in graph.nodes if n.op.control_flow in LOOPS}
    used_as_tuple = {*graph.outputs, *graph.updates, *graph.updates.values(), *graph.effects}
    for node in graph.nodes:
        if node.op is PART and node.args[0] in results:
            results[node.args[0]].add(node.params["index"])
        else:
            used_as_tuple.update(node.inputs)
    return {n: used for n, used in results.items() if n not in used_as_tuple}


def _key(node: Node) -> Hashable:
    """A key of a loop, which is the same with and without checkpoints."""
    is_checkpointed = node.op.control_flow == CHECKPOINTED
    params = plain(node.params) if is_checkpointed else node.params
    params = {k: x for k, x in params.items() if is_checkpointed or k not in _MEMORY_PARAMS}
    name = node.params["loop"] if is_checkpointed else node.op.name
    return name, type(node), node.inputs, frozen(params)


def _parts(node: Node, positions: Mapping[int, int]) -> dict[int, Node]:
    return {k: part_of(node, position) for k, position in positions.items()}


def _without_rows(
    node: Node, operands: tuple[Node, ...], used: Collection[int]
) -> dict[int, Node] | None:
    """The results of a checkpointed loop without stacked outputs; None if these are used."""
    params = node.params
    body: Body = params["body"]
    carried = params["carried"]
    first = carried + (params["loop"] == "while")
    stop = first + len(body.outputs) - carried
    if stop == first or any(first <= k < stop for k in used):
        return None
    without_ys = Body(*body.outputs[:carried], inputs=body.inputs, name=body.name)
    new = like(node, operands, {**params, "body": without_ys})
    return _parts(new, {k: k if k < first else first for k in used})

"""Merging checkpointed loops: one loop stores the checkpoints and computes the results.

The pullback of a loop with limited memory runs the loop once more, to store checkpoints.  If the
results of the original loop are used too, the two loops are merged; if not, stacked outputs are
removed from the loop that stores checkpoints.

    without_repeated_loops    a graph in which each of these loops runs once
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping

from wengert._engine.control_flow.checkpointed_loop import plain
from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import AnyGraph
from wengert._engine.core.node import Node
from wengert._engine.core.op_facts import CHECKPOINTED, LOOP, LOOPS
from wengert._engine.core.static_params import frozen
from wengert._engine.core.subgraph import Body
from wengert._engine.core.tracing import part_of

from ..driver import Applied
from .loop_view import Rewiring, like

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

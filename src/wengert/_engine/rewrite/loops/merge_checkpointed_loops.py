"""Merging checkpointed loops: one loop stores the checkpoints and computes the results.

The pullback of a loop with limited memory repeats the loop and stores checkpoints.  If the value is
needed too, one of the two loops suffices; if not, its stacked outputs are unused.

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
    same = {
        n: checkpointed[_key(n)]
        for n in used
        if n.op.control_flow == LOOP and _key(n) in checkpointed
    }
    new, applied = Rewiring(), []
    nodes: dict[Node, Node] = {}
    for node in graph.nodes:
        one = same.get(node, node)
        if one not in checkpointed.values():
            new.follow(node)
        elif one in same.values():
            if one not in nodes:
                nodes[one] = like(one, tuple(new.now(node.inputs)), one.params)
            new.replace(node, _parts(nodes[one], {k: k for k in used[node]}))
            if node is not one:
                applied.append(Applied("checkpointed loops merged", node, nodes[one]))
        elif (found := _without_rows(node, tuple(new.now(node.inputs)), used[node])) is not None:
            new.replace(node, found)
            applied.append(
                Applied("unused output removed", node, next(iter(found.values())).args[0])
            )
        else:
            new.follow(node)
    return (new.graph(graph), applied) if applied else (graph, [])


def _used(graph: AnyGraph) -> dict[Node, set[int]]:
    """The used results of each loop, unless they are used as a tuple."""
    found: dict[Node, set[int]] = {n: set() for n in graph.nodes if n.op.control_flow in LOOPS}
    whole = {*graph.outputs, *graph.updates, *graph.updates.values(), *graph.effects}
    for node in graph.nodes:
        if node.op is PART and node.args[0] in found:
            found[node.args[0]].add(node.params["index"])
        else:
            whole.update(node.inputs)
    return {n: used for n, used in found.items() if n not in whole}


def _key(node: Node) -> Hashable:
    """The key of a loop, without its checkpoints."""
    is_checkpointed = node.op.control_flow == CHECKPOINTED
    params = plain(node.params) if is_checkpointed else node.params
    params = {k: x for k, x in params.items() if is_checkpointed or k not in _MEMORY_PARAMS}
    name = node.params["loop"] if is_checkpointed else node.op.name
    return name, type(node), node.inputs, frozen(params)


def _parts(node: Node, places: Mapping[int, int]) -> dict[int, Node]:
    return {k: part_of(node, place) for k, place in places.items()}


def _without_rows(
    node: Node, operands: tuple[Node, ...], used: Collection[int]
) -> dict[int, Node] | None:
    """The results of a checkpointed loop without stacked outputs; None if these are used."""
    params = node.params
    body: Body = params["body"]
    carried = params["carried"]
    first = carried + (params["loop"] == "while")
    last = first + len(body.outputs) - carried
    if last == first or any(first <= k < last for k in used):
        return None
    short = Body(*body.outputs[:carried], inputs=body.inputs, name=body.name)
    new = like(node, operands, {**params, "body": short})
    return _parts(new, {k: k if k < first else first for k in used})

"""Prune: what the results do not depend on is removed, nodes and writes.

A write is dead if its elements are written again before anything reads them: `x[i] = u; x[j] = v;
x[i] = w` is `x[j] = v; x[i] = w`, whatever j is.  In the program of a user the reads of u have been
replaced by u itself (rules/store_forwarding.py), and backward passes clear elements that they set
later.

    pruned                 a graph without unused nodes and dead stores
    without_dead_stores    a graph without the latter
"""

from __future__ import annotations

from wengert._engine.core.copy_graph import with_replaced
from wengert._engine.core.graph import AnyGraph
from wengert._engine.core.node import Node

_MAX_STORES = 100  # between a write and the one that replaces it


def pruned(graph: AnyGraph) -> AnyGraph:
    """The graph without nodes that outputs, updates and effects do not need; inputs are kept.

    Nor do they need what is overwritten before it is read.
    """
    graph = without_dead_stores(graph)
    needed: set[Node] = {*graph.outputs, *graph.updates, *graph.updates.values(), *graph.effects}
    for node in reversed(graph.nodes):
        if node in needed:
            needed.update(node.args)
    kept_nodes = needed.union(graph.inputs)
    return graph if all(n in kept_nodes for n in graph.nodes) else graph.with_nodes({})


def without_dead_stores(graph: AnyGraph) -> AnyGraph:
    """The graph without writes that nothing reads before they are written over."""
    stores = [n for n in graph.nodes if n.op.name == "setitem"]
    if len(stores) < 2 or graph.effects:  # whose order would have to be kept
        return graph
    users = _uses(graph)
    dead: set[Node] = set()
    for last in stores:
        store = last.inputs[0]
        for _ in range(_MAX_STORES):
            if store.op is not last.op or users[store] != 1:
                break
            if _is_same_index(store, last):
                dead.add(store)
            store = store.inputs[0]
    if not dead:
        return graph
    new: dict[Node, Node] = {}
    for node in graph.nodes:
        if node in dead:
            before = node.inputs[0]
            new[node] = new.get(before, before)
        elif node.inputs:
            replaced = with_replaced(node, new)
            if replaced is not node:
                new[node] = replaced
    return graph.with_nodes(new)


def _uses(graph: AnyGraph) -> dict[Node, int]:
    """How often each node is an operand or a result."""
    found: dict[Node, int] = {}
    for node in graph.nodes:
        for x in node.inputs:
            found[x] = found.get(x, 0) + 1
    for x in (*graph.outputs, *graph.updates.values()):
        found[x] = found.get(x, 0) + 1
    return found


def _is_same_index(store: Node, last: Node) -> bool:
    return store.params["index"] == last.params["index"] and store.inputs[2:] == last.inputs[2:]

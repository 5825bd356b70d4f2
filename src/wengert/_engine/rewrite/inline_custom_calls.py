"""Inlining of functions with custom derivatives that need no further derivatives.

A node `custom_call` (control_flow/custom.py) keeps a function and its rule together until all
derivatives have been taken.  To run or compile a graph only the function is needed: its nodes
become nodes of the surrounding graph, also in the bodies of loops, and are simplified, merged and
fused with the others.  It is not a pass of `simplify`, whose result may still be differentiated.

    without_calls    a graph with all of them inlined
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core.graph import AnyGraph
from wengert._engine.core.node import Node
from wengert._engine.core.subgraph import Body, bodies_of

from .loops.loop_view import Rewiring, inlined, like


def without_calls(graph: AnyGraph) -> AnyGraph:
    """A graph with every function with a custom rule inlined; itself if there is none.

    Derivatives of the result are those of the functions' nodes, not of their rules.
    """
    return _without(graph, {})


def _without(graph: AnyGraph, known: dict[Body, Body]) -> AnyGraph:
    for node in graph.nodes:
        for body in bodies_of(node):
            if body not in known:
                known[body] = _without(body, known)
    if all(not _is_call(n) and all(known[b] is b for b in bodies_of(n)) for n in graph.nodes):
        return graph
    new = Rewiring()
    for node in graph.nodes:
        if _is_call(node):
            outs = inlined(known[node.params["body"]], new.now(node.inputs), type(node) is Node)
            new.replace(node, dict(enumerate(outs)))
        elif any(known[b] is not b for b in bodies_of(node)):
            new.place[node] = _with_bodies(node, tuple(new.now(node.inputs)), known)
        else:
            new.follow(node)
    return new.graph(graph)


def _is_call(node: Node) -> bool:
    op: Any = node.op
    return getattr(op, "kind", "") == "call" and node.params.get("body") is not None


def _with_bodies(node: Node, args: tuple[Node, ...], known: dict[Body, Body]) -> Node:
    return like(node, args, {k: _put(x, known) for k, x in node.params.items()})


def _put(x: Any, known: dict[Body, Body]) -> Any:
    if type(x) is tuple and x and all(isinstance(b, Body) for b in x):
        return tuple([known[b] for b in x])
    return known[x] if isinstance(x, Body) else x

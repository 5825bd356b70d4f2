"""Inlining of functions with custom derivatives, after all derivatives have been taken.

A `custom_call` node (control_flow/custom.py) contains a function and its rule, which derivatives
use.  To run or compile a graph only the function is needed: its nodes become nodes of the graph,
also in the bodies of loops, and are simplified, merged and fused with the others.  This is not a
pass of `simplify`, whose result may still be differentiated.

    without_calls    a graph with all of these functions inlined
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core.graph import AnyGraph
from wengert._engine.core.node import Node
from wengert._engine.core.subgraph import Body, bodies_of

from .loops.loop_view import Rewiring, inlined, with_bodies


def without_calls(graph: AnyGraph) -> AnyGraph:
    """A graph with all custom calls inlined; the graph itself if there are none.

    Derivatives of the result are those of the functions' nodes; their rules are not used.
    """
    return _with_inlined_bodies(graph, {})


def _with_inlined_bodies(graph: AnyGraph, inlined_bodies: dict[Body, Body]) -> AnyGraph:
    for node in graph.nodes:
        for body in bodies_of(node):
            if body not in inlined_bodies:
                inlined_bodies[body] = _with_inlined_bodies(body, inlined_bodies)
    if all(
        not _is_call(n) and all(inlined_bodies[b] is b for b in bodies_of(n)) for n in graph.nodes
    ):
        return graph
    rewiring = Rewiring()
    for node in graph.nodes:
        if _is_call(node):
            body = inlined_bodies[node.params["body"]]
            outs = inlined(body, rewiring.replaced(node.inputs), type(node) is Node)
            rewiring.replace(node, dict(enumerate(outs)))
        elif any(inlined_bodies[b] is not b for b in bodies_of(node)):
            operands = tuple(rewiring.replaced(node.inputs))
            rewiring.replacements[node] = with_bodies(node, operands, inlined_bodies)
        else:
            rewiring.follow(node)
    return rewiring.graph(graph)


def _is_call(node: Node) -> bool:
    op: Any = node.op
    return getattr(op, "kind", "") == "call" and node.params.get("body") is not None

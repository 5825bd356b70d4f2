"""Passes over a whole graph: unused nodes, factors from messages, custom calls.

Prune: what the results do not depend on is removed, nodes and writes.

A write is dead if its elements are written again before anything reads them: `x[i] = u; x[j] = v;
x[i] = w` is `x[j] = v; x[i] = w`, whatever j is.  In the program of a user the reads of u have been
replaced by u itself (rules/store_forwarding.py), and backward passes clear elements that they set
later.

    pruned                 a graph without unused nodes and dead stores
    without_dead_stores    a graph without the latter

Factors from messages, after the sums that they multiply.

The cotangent of a sum over processes is a number that arrives in a message, and multiplies every
element of the backward pass.  Sums are linear, so it may multiply their results instead:

    sum(t * p * x)   as   t * sum(p * x)

Then the loops of the forward and the backward pass do not wait for the message, and can be one loop
over the data.  As in rules/contractions.py, intermediate results are rounded differently.

    with_late_factors    a graph in which numbers from messages multiply sums, not their terms

Inlining of functions with custom derivatives, after all derivatives have been taken.

A `custom_call` node (control_flow/custom.py) contains a function and its rule, which derivatives
use.  To run or compile a graph only the function is needed: its nodes become nodes of the graph,
also in the bodies of loops, and are simplified, merged and fused with the others.  This is not a
pass of `simplify`, whose result may still be differentiated.

    without_calls    a graph with all of these functions inlined
"""

from __future__ import annotations

from typing import Any, NamedTuple

from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import AnyGraph
from wengert._engine.core.graph_classes import Body, bodies_of
from wengert._engine.core.graph_copies import rebuilt, with_args, with_replaced
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec

from .loops.loop_view import Rewiring, inlined, with_bodies

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


_SUMS = frozenset(("sum", "sum_to", "einsum", "matmul"))
_LINEAR = frozenset(("negative", "reshape", "transpose", "expand_dims", "squeeze", *_SUMS))


class _Scaled(NamedTuple):
    """A value that is a number from a message times another value."""

    factor: Node
    value: Node


def with_late_factors(graph: AnyGraph) -> AnyGraph:
    """The graph in which numbers from messages multiply sums instead of their terms."""
    if not any([n.op.kind == "collective" for n in graph.nodes]):
        return graph
    scaled: dict[Node, _Scaled] = {}

    def change(node: Node, args: tuple[Node, ...]) -> Node | None:
        if not args or type(node.spec) is not Spec or node.spec.dtype.kind != "f":
            return None
        same = all([a is b for a, b in zip(args, node.inputs, strict=True)])
        current = node if same else with_args(node, args)
        found = _scaled(current, args, scaled)
        if found is None:
            return current
        if node.op.name in _SUMS:
            both = (found.factor, found.value)
            current = Node(lookup("multiply"), both, {}, None, node.info)
        scaled[current] = found
        return current

    nodes = rebuilt(graph.nodes, None, change)
    if not any([s.value.op.name in _SUMS for s in scaled.values()]):
        return graph
    return graph.with_nodes({old: new for old, new in nodes.items() if old is not new})


def _scaled(node: Node, args: tuple[Node, ...], scaled: dict[Node, _Scaled]) -> _Scaled | None:
    """The factor and the other value of a node; None if it has no factor from a message."""
    dtype = node.spec.dtype
    if any([type(a.spec) is not Spec or a.spec.dtype != dtype for a in args]):
        return None
    name, inner = node.op.name, [scaled.get(a) for a in args]
    if name == "multiply":
        for k in (0, 1):
            if _is_number_of_message(args[k]) and args[1 - k].spec.shape == node.spec.shape != ():
                return _Scaled(args[k], args[1 - k])
    elif name in ("add", "subtract"):
        a, b = inner
        if a is None or b is None or a.factor is not b.factor:
            return None
        return _Scaled(a.factor, Node(node.op, (a.value, b.value), node.params, None, node.info))
    elif name not in _LINEAR or node.params.get("dtype") is not None:
        return None
    for k, part in enumerate(inner):
        if part is not None:
            rest = tuple([part.value if i == k else a for i, a in enumerate(args)])
            value = Node(node.op, rest, node.params, None, node.info)
            return _Scaled(part.factor, value)
    return None


def _is_number_of_message(node: Node) -> bool:
    """Whether a node is a number that a collective operation returned."""
    if node.op.name == "tied" and node.inputs:
        node = node.inputs[0]
    return (
        type(node.spec) is Spec
        and node.spec.shape == ()
        and node.op is PART
        and node.params["index"] == 0
        and node.inputs[0].op.kind == "collective"
    )


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

"""Changed copies and parts of graphs.

    substituted       `Graph.substitute`
    with_operation    `Graph.with_operation`
    subgraph          `Graph.subgraph`
    copied            `Graph.copy`

Nodes that depend on a replaced node are recorded again, so that shapes, dtypes and kinds are
inferred and checked; all others are shared with the original graph, which is not changed.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wengert._engine.core.copy_graph import rebuilt
from wengert._engine.core.graph import AnyGraph, BaseGraph, Item, several
from wengert._engine.core.handle import Handle, describe, wrap
from wengert._engine.core.node import CONSTANT, ConstantLeaf, LeafOp, Node, constant
from wengert._engine.core.op import Op, lookup
from wengert._engine.core.spec import Spec
from wengert._engine.core.static_params import stated
from wengert._engine.core.tracing import derivation, placeholder, record
from wengert._engine.core.validation import spelled
from wengert.errors import ArgumentError, GraphError, at, user_line

if TYPE_CHECKING:
    from wengert._engine.core.tracing import Derivation


def substituted(graph: AnyGraph, replacements: Mapping[Item, Any]) -> AnyGraph:
    """The graph with some nodes replaced."""
    if not isinstance(replacements, Mapping):
        raise ArgumentError(
            f"substitute: {spelled(replacements)} is not a mapping of replacements. Give a "
            f"dictionary from nodes to their replacements{at(user_line())}."
        )
    new = {graph.node(item): _node(x) for item, x in replacements.items()}
    return _with(graph, new)


def with_operation(graph: AnyGraph, item: Item, op: str | Op, params: dict[str, Any]) -> AnyGraph:
    """The graph with another operation at a node, on the same operands."""
    node = graph.node(item)
    if not node.args:
        raise GraphError(
            f"{graph.name_of(node)} is not an operation but {node.op.name}. Replace it with "
            f"substitute{at(user_line())}."
        )
    chosen = lookup(op) if isinstance(op, str) else op
    if not isinstance(chosen, Op):
        raise ArgumentError(
            f"with_operation: {spelled(op)} is not an operation. Give one, or the name of one"
            f"{at(user_line())}."
        )
    with derivation(node.level) as stem:
        stem.enter(node)
        args = [_handle(a) for a in node.inputs]
        made = record(chosen, args, params or _accepted(chosen, node.params))
    return _with(graph, {node: _node(made)})


def copied(graph: AnyGraph) -> AnyGraph:
    """A copy of the graph with new nodes and inputs."""
    new = {n: placeholder(n.spec, n.name, type(n) is Node) for n in graph.inputs}
    return graph.with_nodes(rebuilt(graph.nodes, new))


def subgraph(
    graph: AnyGraph, outputs: Item | Sequence[Item], inputs: Item | Sequence[Item] | None
) -> AnyGraph:
    """The part of the graph that computes some nodes, as a graph."""
    wanted = [graph.node(item) for item in several(outputs)]
    needed = graph.ancestors(*wanted)
    if inputs is None:
        fed = [n for n in graph.inputs if n in set(needed)]
        return type(graph)(*wanted, inputs=fed, name=f"part of {graph.name}")
    chosen = [graph.node(item) for item in several(inputs)]
    new = {n: placeholder(n.spec, graph.name_of(n), type(n) is Node) for n in chosen}
    place = rebuilt(graph.nodes, new)
    part = type(graph)(
        *[place[n] for n in wanted],
        inputs=list(new.values()),
        name=f"part of {graph.name}",
    )
    missing = [n for n in part.nodes if n in set(graph.inputs)]
    if missing:
        raise GraphError(
            f"the output cannot be computed from {', '.join(map(graph.name_of, chosen))} "
            f"alone: {', '.join(str(n.name) for n in missing)} is needed too. Choose it as an "
            f"input{at(user_line())}."
        )
    return part


def _with(graph: AnyGraph, new: dict[Node, Node]) -> AnyGraph:
    place: dict[Node, Node] = dict(new)
    with derivation(0) as stem:
        for node in graph.nodes:
            if node not in place:
                place[node] = _followed(node, place, stem)
    fresh = [n for made in new.values() for n in BaseGraph(made).inputs]
    inputs = [n for n in graph.inputs if n not in new]
    more = [n for n in dict.fromkeys(fresh) if n not in graph.inputs]
    changed = any(n in new for n in graph.inputs) or more
    return type(graph)(
        *[place[n] for n in graph.outputs],
        inputs=[*inputs, *more],
        updates={k: place[v] for k, v in graph.updates.items()},
        effects=[place[n] for n in graph.effects],
        structure=(None, graph.structure[1]) if changed else graph.structure,
        name=graph.name,
    )


def _accepted(op: Op, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that an operation accepts, without unset ones."""
    known: Mapping[str, Any] = {}
    with contextlib.suppress(TypeError, ValueError):  # a ufunc has none
        known = inspect.signature(op.run).parameters
    unknown = [k for k in stated(params) if k not in known]
    if unknown:
        raise ArgumentError(
            f"{op.name} has no parameter {unknown[0]}. State its parameters{at(user_line())}."
        )
    return {k: v for k, v in params.items() if k in known}


def _followed(node: Node, place: Mapping[Node, Node], stem: Derivation) -> Node:
    """A node on the replaced operands; itself if they are unchanged."""
    if isinstance(node.op, LeafOp) or all(place[a] is a for a in node.inputs):
        return node
    stem.enter(node)
    stem.level = node.level
    weak = isinstance(node.spec, Spec) and node.spec.weak
    args = [_handle(place[a]) for a in node.inputs]
    stem.stays_linear(node, args)
    made = record(node.op, args, node.params, weak)
    if isinstance(made, tuple):
        return made[0].node.args[0]  # type: ignore[no-any-return]
    new: Node = made.node
    if node.name:
        new.note(name=node.name)
    return new


def _handle(node: Node) -> Any:
    """A node as an operand; constants as plain values, which shape rules may depend on."""
    return node.value if node.op is CONSTANT and isinstance(node, ConstantLeaf) else wrap(node)


def _node(x: Any) -> Node:
    if isinstance(x, Handle):
        return x.node
    if isinstance(x, Node):
        return x
    if not isinstance(describe(x), Spec):
        raise ArgumentError(
            f"{spelled(x)} cannot be part of a graph. Give a tensor, an array or a number"
            f"{at(user_line())}."
        )
    return constant(x)

"""Modified copies and parts of graphs.

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
    return _with_replaced(graph, new)


def with_operation(graph: AnyGraph, item: Item, op: str | Op, params: dict[str, Any]) -> AnyGraph:
    """The graph with another operation at a node, on the same operands."""
    node = graph.node(item)
    if not node.args:
        raise GraphError(
            f"{graph.name_of(node)} is not an operation ({node.op.name}). Replace it by "
            f"Graph.substitute{at(user_line())}."
        )
    operation = lookup(op) if isinstance(op, str) else op
    if not isinstance(operation, Op):
        raise ArgumentError(
            f"with_operation: {spelled(op)} is not an operation. Give an operation or its name"
            f"{at(user_line())}."
        )
    with derivation(node.level) as origin:
        origin.enter(node)
        args = [_handle(a) for a in node.inputs]
        result = record(operation, args, params or _accepted(operation, node.params))
    return _with_replaced(graph, {node: _node(result)})


def copied(graph: AnyGraph) -> AnyGraph:
    """A copy of the graph with new nodes and inputs."""
    placeholders = {n: placeholder(n.spec, n.name, type(n) is Node) for n in graph.inputs}
    return graph.with_nodes(rebuilt(graph.nodes, placeholders))


def subgraph(
    graph: AnyGraph, outputs: Item | Sequence[Item], inputs: Item | Sequence[Item] | None
) -> AnyGraph:
    """The part of the graph that computes some nodes, as a graph."""
    output_nodes = [graph.node(item) for item in several(outputs)]
    needed = graph.ancestors(*output_nodes)
    if inputs is None:
        input_nodes = [n for n in graph.inputs if n in set(needed)]
        return type(graph)(*output_nodes, inputs=input_nodes, name=f"part of {graph.name}")
    cut_nodes = [graph.node(item) for item in several(inputs)]
    placeholders = {n: placeholder(n.spec, graph.name_of(n), type(n) is Node) for n in cut_nodes}
    copies = rebuilt(graph.nodes, placeholders)
    part = type(graph)(
        *[copies[n] for n in output_nodes],
        inputs=list(placeholders.values()),
        name=f"part of {graph.name}",
    )
    missing = [n for n in part.nodes if n in set(graph.inputs)]
    if missing:
        raise GraphError(
            f"the output cannot be computed from {', '.join(map(graph.name_of, cut_nodes))} "
            f"alone: {', '.join(str(n.name) for n in missing)} is needed too. Choose it as an "
            f"input{at(user_line())}."
        )
    return part


def _with_replaced(graph: AnyGraph, new: dict[Node, Node]) -> AnyGraph:
    replacements: dict[Node, Node] = dict(new)
    with derivation(0) as origin:
        for node in graph.nodes:
            if node not in replacements:
                replacements[node] = _with_new_operands(node, replacements, origin)
    found_inputs = [n for replacement in new.values() for n in BaseGraph(replacement).inputs]
    inputs = [n for n in graph.inputs if n not in new]
    new_inputs = [n for n in dict.fromkeys(found_inputs) if n not in graph.inputs]
    changed = any(n in new for n in graph.inputs) or new_inputs
    return type(graph)(
        *[replacements[n] for n in graph.outputs],
        inputs=[*inputs, *new_inputs],
        updates={k: replacements[v] for k, v in graph.updates.items()},
        effects=[replacements[n] for n in graph.effects],
        structure=(None, graph.structure[1]) if changed else graph.structure,
        name=graph.name,
    )


def _accepted(op: Op, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of another operation, if this operation accepts all that are set."""
    known: Mapping[str, Any] = {}
    with contextlib.suppress(TypeError, ValueError):  # a ufunc has none
        known = inspect.signature(op.run).parameters
    unknown = [k for k in stated(params) if k not in known]
    if unknown:
        raise ArgumentError(
            f"{op.name} has no parameter {unknown[0]}, which the replaced operation has. Give the "
            f"parameters of {op.name} as keywords{at(user_line())}."
        )
    return {k: v for k, v in params.items() if k in known}


def _with_new_operands(node: Node, replacements: Mapping[Node, Node], origin: Derivation) -> Node:
    """A node with the replaced operands; the node itself if they are unchanged."""
    if isinstance(node.op, LeafOp) or all(replacements[a] is a for a in node.inputs):
        return node
    origin.enter(node)
    origin.level = node.level
    weak = isinstance(node.spec, Spec) and node.spec.weak
    args = [_handle(replacements[a]) for a in node.inputs]
    origin.stays_linear(node, args)
    result = record(node.op, args, node.params, weak)
    if isinstance(result, tuple):
        return result[0].node.args[0]  # type: ignore[no-any-return]
    new_node: Node = result.node
    if node.name:
        new_node.note(name=node.name)
    return new_node


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

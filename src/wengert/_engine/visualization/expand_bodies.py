"""Expanded bodies: a graph with the bodies of its loops and branches next to their nodes.

Drawings show the body of a loop as a group of nodes: captured values are operands of the nodes that
use them, `carry` and `row` stand for the carry and the scanned elements, and the results of a step
are operands of the node of the loop.  The expanded graph is for display and cannot be run.

    expanded   the expanded graph, and the map from old to new nodes
    marks      which inputs of a body are carries or scanned elements
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from wengert._engine.core.copy_graph import rebuilt
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.node import Node
from wengert._engine.core.node_info import NodeInfo
from wengert._engine.core.op import Op
from wengert._engine.core.op_facts import BRANCH, LOOPS, REPLAY
from wengert._engine.core.subgraph import Body, bodies_of

LIMIT = 50_000  # nodes; a longer graph is not expanded


class _Mark(Op):
    """An operation that marks an input of a loop body, for display only."""

    kind = "view"

    def run(self, *values: Any, **params: Any) -> Any:
        """Not executable."""
        raise NotImplementedError


CARRY = _Mark("carry", "The carry from the previous step; in the first step its operand.")
ROW = _Mark("row", "The scanned element of this step.")


def marks(node: Node, count: int) -> list[Op | None]:
    """The mark of each input of a loop body; None for captured values."""
    is_loop = node.op.control_flow in LOOPS
    carried = node.params["carried"] if is_loop else 0
    stacked = node.params.get("stacked", 0) if is_loop else 0
    return [*[None] * (count - carried - stacked), *[CARRY] * carried, *[ROW] * stacked]


def expanded(graph: BaseGraph) -> tuple[BaseGraph, dict[Node, Node]]:
    """The graph with all bodies expanded, and the map from old to new nodes.

    Parameters
    ----------
    graph : Graph
    """
    if not any(bodies_of(n) for n in graph.nodes) or _length(graph.nodes) > LIMIT:
        return graph, {}
    new_nodes = rebuilt(graph.nodes, None, _expand(""))
    changed = {old: new for old, new in new_nodes.items() if old is not new}
    return graph.with_nodes(changed), changed


def _length(nodes: Sequence[Node]) -> int:
    """The number of nodes with all bodies expanded."""
    lengths: dict[Body, int] = {}

    def length(nodes: Sequence[Node]) -> int:
        total = len(nodes)
        for node in nodes:
            for body in bodies_of(node):
                if body not in lengths:
                    lengths[body] = length(body.nodes)
                total += lengths[body]
        return total

    return length(nodes)


def _expand(outer: str) -> Any:
    """The function that expands the bodies of a node, in a scope inside of `outer`."""
    numbers: dict[str, int] = {}

    def change(node: Node, args: tuple[Node, ...]) -> Node | None:
        bodies = bodies_of(node)
        if not bodies:
            return None
        scope = f"{outer}/{node.scope}" if outer and node.scope else outer or node.scope
        path = "/".join(part for part in (scope, _title(node, numbers)) if part)
        # Operands that a body captures are operands of the nodes that use them instead.
        operands = list(args[: len(args) - len(bodies[0].inputs)])
        for body in bodies:
            inner = path if len(bodies) == 1 else f"{path}/{_without_slash(body.name)}"
            inputs = list(_body_inputs(node, args, len(body.inputs), inner))
            operands += _body_outputs(body, inputs, inner, node)
        info = node.info_with(scope=path)
        return type(node)(node.op, tuple(operands), node.params, None, info)

    return change


def _title(node: Node, numbers: dict[str, int]) -> str:
    name = node.op.name
    for body in bodies_of(node):
        name = _without_slash(body.name)
        break
    if node.op.control_flow == BRANCH:
        name = node.op.name
    count = numbers[name] = numbers.get(name, 0) + 1
    return name if count == 1 else f"{name} {count}"


def _without_slash(name: str) -> str:
    return name.replace("/", " ")


def _body_inputs(node: Node, args: Sequence[Node], count: int, scope: str) -> Iterator[Node]:
    """The node that replaces each input of a body."""
    params = node.params
    values = args[len(args) - count :]
    is_loop = node.op.control_flow in LOOPS
    carried = params["carried"] if is_loop else 0
    stacked = params.get("stacked", 0) if is_loop else 0
    if node.op.control_flow == REPLAY:
        values = args[params["counted"] :]
    fixed = count - carried - stacked
    body = bodies_of(node)[0]
    for k in range(count):
        x = values[k] if k < len(values) else args[-1]
        mark = (
            ROW if k >= fixed + carried and stacked else CARRY if k >= fixed and carried else None
        )
        if mark is None:
            yield x
            continue
        spec = body.inputs[k].spec
        info = NodeInfo(spec, scope=scope, level=node.level, where=node.where)
        yield type(body.inputs[k])(mark, (x,), {}, None, info)


def _body_outputs(body: Body, inputs: Sequence[Node], scope: str, loop: Node) -> list[Node]:
    """The outputs of a body, with its nodes in a separate scope and at the level of the loop."""
    expand = _expand(scope)

    def change(node: Node, args: tuple[Node, ...]) -> Node | None:
        if node.is_leaf:
            return None
        new = expand(node, args)
        if new is not None:
            new.note(level=loop.level)
            return new  # type: ignore[no-any-return]
        inner = f"{scope}/{node.scope}" if node.scope else scope
        info = node.info_with(scope=inner, spec=node.spec, level=loop.level)
        return type(node)(node.op, args, node.params, None, info)

    nodes = rebuilt(body.nodes, dict(zip(body.inputs, inputs, strict=True)), change)
    return [nodes[n] for n in body.outputs]

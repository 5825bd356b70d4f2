"""Expanded bodies: a graph with the bodies of its loops and branches next to their nodes.

Drawings show the body of a loop as a group of nodes: values from outside enter where they are used,
`carry` and `row` represent the carry and the scanned elements, and the results of a step are
operands of the loop's node.  The expanded graph is for display and cannot be run.

    opened   the expanded graph, and the map from old to new nodes
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
    """An input of a loop step, for display only."""

    kind = "view"

    def run(self, *values: Any, **params: Any) -> Any:
        """Not executable."""
        raise NotImplementedError


CARRY = _Mark("carry", "The carry from the previous step; at first the operand above.")
ROW = _Mark("row", "The scanned element of this step.")


def marks(node: Node, count: int) -> list[Op | None]:
    """The mark of each input of a loop body; None for values from outside."""
    is_loop = node.op.control_flow in LOOPS
    carried = node.params["carried"] if is_loop else 0
    stacked = node.params.get("stacked", 0) if is_loop else 0
    return [*[None] * (count - carried - stacked), *[CARRY] * carried, *[ROW] * stacked]


def opened(graph: BaseGraph) -> tuple[BaseGraph, dict[Node, Node]]:
    """The graph with all bodies expanded, and the map from old to new nodes.

    Parameters
    ----------
    graph : Graph
    """
    if not any(bodies_of(n) for n in graph.nodes) or _length(graph.nodes) > LIMIT:
        return graph, {}
    place = rebuilt(graph.nodes, None, _opening(""))
    changed = {old: new for old, new in place.items() if old is not new}
    return graph.with_nodes(changed), changed


def _length(nodes: Sequence[Node]) -> int:
    """The number of nodes with all bodies expanded."""
    known: dict[Body, int] = {}

    def of(lines: Sequence[Node]) -> int:
        total = len(lines)
        for node in lines:
            for body in bodies_of(node):
                if body not in known:
                    known[body] = of(body.nodes)
                total += known[body]
        return total

    return of(nodes)


def _opening(outer: str) -> Any:
    numbers: dict[str, int] = {}

    def change(node: Node, args: tuple[Node, ...]) -> Node | None:
        bodies = bodies_of(node)
        if not bodies:
            return None
        around = f"{outer}/{node.scope}" if outer and node.scope else outer or node.scope
        path = "/".join(part for part in (around, _title(node, numbers)) if part)
        # Values from outside are operands of the nodes that use them.
        found = list(args[: len(args) - len(bodies[0].inputs)])
        for body in bodies:
            inner = path if len(bodies) == 1 else f"{path}/{_word(body.name)}"
            found += _inside(
                body, list(_entering(node, args, len(body.inputs), inner)), inner, node
            )
        info = node.info_with(scope=path)
        return type(node)(node.op, tuple(found), node.params, None, info)

    return change


def _title(node: Node, numbers: dict[str, int]) -> str:
    name = node.op.name
    for body in bodies_of(node):
        name = _word(body.name)
        break
    if node.op.control_flow == BRANCH:
        name = node.op.name
    count = numbers[name] = numbers.get(name, 0) + 1
    return name if count == 1 else f"{name} {count}"


def _word(name: str) -> str:
    return name.replace("/", " ")


def _entering(node: Node, args: Sequence[Node], count: int, scope: str) -> Iterator[Node]:
    """The node for each input of a body."""
    params = node.params
    given = args[len(args) - count :]
    is_loop = node.op.control_flow in LOOPS
    carried = params["carried"] if is_loop else 0
    stacked = params.get("stacked", 0) if is_loop else 0
    if node.op.control_flow == REPLAY:
        given = args[params["counted"] :]
    fixed = count - carried - stacked
    body = bodies_of(node)[0]
    for k in range(count):
        x = given[k] if k < len(given) else args[-1]
        mark = (
            ROW if k >= fixed + carried and stacked else CARRY if k >= fixed and carried else None
        )
        if mark is None:
            yield x
            continue
        spec = body.inputs[k].spec
        info = NodeInfo(spec, scope=scope, level=node.level, where=node.where)
        yield type(body.inputs[k])(mark, (x,), {}, None, info)


def _inside(body: Body, given: Sequence[Node], scope: str, loop: Node) -> list[Node]:
    """The outputs of a body, with its nodes in a separate scope and at the level of the loop."""
    open_inner = _opening(scope)

    def change(node: Node, args: tuple[Node, ...]) -> Node | None:
        if node.is_leaf:
            return None
        made = open_inner(node, args)
        if made is not None:
            made.note(level=loop.level)
            return made  # type: ignore[no-any-return]
        own = f"{scope}/{node.scope}" if node.scope else scope
        info = node.info_with(scope=own, spec=node.spec, level=loop.level)
        return type(node)(node.op, args, node.params, None, info)

    nodes = rebuilt(body.nodes, dict(zip(body.inputs, given, strict=True)), change)
    return [nodes[n] for n in body.outputs]

"""Nested parts of a graph, for drawings: bodies of loops, groups, blocks of sequences.

Expanded bodies: a graph with the bodies of its loops and branches next to their nodes.

Drawings show the body of a loop as a group of nodes: captured values are operands of the nodes that
use them, `carry` and `row` stand for the carry and the scanned elements, and the results of a step
are operands of the node of the loop.  The expanded graph is for display and cannot be run.

    expanded   the expanded graph, and the map from old to new nodes
    marks      which inputs of a body are carries or scanned elements

Grouping: the nodes of a graph in nested groups, and blocks of long sequences.

    level    the function, its first derivative, its second ...; only if there are several
    scope    a scope of the user (`wengert.scope`); scopes may be nested
    block    consecutive nodes of a group that would otherwise have too many members

The groups are a tree with three kinds of inner nodes, from the outside in:

Inputs are outside of all levels.  A constant or a variable is in the innermost group that contains
all its users (of the lowest level that uses it).

Group 0 is the whole graph; every other group has a parent with a smaller number.

A graph of ten thousand nodes without scopes must be divided to be legible.  Consecutive nodes
usually belong together, and a good cut is one that few values cross: between two iterations of a
loop, only the carry does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import Body, bodies_of
from wengert._engine.core.graph_copies import rebuilt
from wengert._engine.core.node import LeafOp, Node
from wengert._engine.core.node_properties import NodeInfo
from wengert._engine.core.op import Op
from wengert._engine.core.op_facts import BRANCH, LOOPS, REPLAY

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


FAN = 48  # a group with at most this number of members is not split
SLACK = 0.3  # maximum distance of a cut from an even split, as a fraction of a piece


def ranges(count: int, edges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Split ``range(count)`` into pieces, for one level of groups.

    Parameters
    ----------
    count : int
    edges : iterable of (int, int)
        Dependences of members: from the operand to its user.

    Returns
    -------
    list of (start, stop)
        The number of pieces is such that groups on all levels below have about the same size.
    """
    if count <= FAN:
        return [(0, count)]
    depth = math.ceil(math.log(count, FAN) - 1e-9)
    pieces = max(2, round(count ** (1.0 / depth)))
    crossing = _crossing(count, edges)
    size = count / pieces
    cuts = [0]
    for piece in range(1, pieces):
        ideal = piece * size
        low = max(cuts[-1] + 1, math.ceil(ideal - SLACK * size))
        high = min(count - (pieces - piece), math.floor(ideal + SLACK * size))
        choices = range(low, max(low, high) + 1)
        cuts.append(min(choices, key=lambda k: (crossing[k], abs(k - ideal))))
    return list(zip(cuts, [*cuts[1:], count], strict=True))


def _crossing(count: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """The number of values that cross the cut before each member."""
    last = list(range(count))
    first = list(range(count))
    for a, b in edges:
        last[a] = max(last[a], b)
        first[a] = min(first[a], b)
    change = [0] * (count + 1)
    for a in range(count):
        if last[a] > first[a]:
            change[first[a] + 1] += 1
            if last[a] < count:
                change[last[a] + 1] -= 1
    total = 0
    for k in range(count):
        total += change[k]
        change[k] = total
    return change


Path = tuple[tuple[str, str], ...]
ORDINALS = ("function", "first derivative", "second derivative", "third derivative")


class NodeGroup(NamedTuple):
    """A group of nodes and of other groups."""

    kind: str
    name: str
    parent: int


class Grouping(NamedTuple):
    """All groups, and the number of the innermost group of each node (`home`)."""

    groups: list[NodeGroup]
    home: list[int]


class _Box:
    """A group while the tree is being built; members in the order of their first nodes."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind = kind
        self.name = name
        self.members: list[_Box | int] = []

    def nodes(self) -> Iterator[int]:
        """All nodes inside."""
        stack: list[_Box | int] = [self]
        while stack:
            item = stack.pop()
            if isinstance(item, int):
                yield item
            else:
                stack.extend(item.members)


def grouping_of(graph: BaseGraph, blocks: bool = True) -> Grouping:
    """The groups of a graph.

    Parameters
    ----------
    graph : Graph
    blocks : bool, default True
        Whether groups with too many members are split.
    """
    root = _Box("graph", graph.name)
    boxes: dict[Path, _Box] = {(): root}
    for i, path in enumerate(_paths(graph)):
        for depth in range(1, len(path) + 1):
            part = path[:depth]
            if part not in boxes:
                boxes[part] = _Box(*part[-1])
                boxes[part[:-1]].members.append(boxes[part])
        boxes[path].members.append(i)
    return _numbered(graph, root, blocks)


def level_name(level: int) -> str:
    """The name of a level of derivative."""
    return ORDINALS[level] if level < len(ORDINALS) else f"derivative of order {level}"


def _paths(graph: BaseGraph) -> list[Path]:
    several = len({n.level for n in graph.nodes}) > 1
    inputs = set(graph.inputs)
    paths: list[Path] = []
    for node in graph.nodes:
        level: Path = (("level", level_name(node.level)),) if several else ()
        parts = [part for part in node.scope.split("/") if part]
        paths.append(() if node in inputs else (*level, *(("scope", part) for part in parts)))
    for i in range(len(graph) - 1, -1, -1):
        node = graph.nodes[i]
        if isinstance(node.op, LeafOp) and node not in inputs and not node.scope:
            users = graph.consumers(i)
            lowest = min((graph.nodes[k].level for k in users), default=0)
            user_paths = [paths[k] for k in users if graph.nodes[k].level == lowest]
            paths[i] = _common(user_paths) if user_paths else ()
    return paths


def _common(paths: list[Path]) -> Path:
    """The longest common prefix of all paths: that of the first and the last in sorted order."""
    low, high = min(paths), max(paths)
    depth = 0
    while depth < min(len(low), len(high)) and low[depth] == high[depth]:
        depth += 1
    return low[:depth]


def _numbered(graph: BaseGraph, root: _Box, blocks: bool) -> Grouping:
    """Number the groups, parents first, and split those with too many members."""
    groups: list[NodeGroup] = []
    home = [0] * len(graph)
    stack: list[tuple[_Box, int]] = [(root, -1)]
    while stack:
        box, parent = stack.pop()
        number = len(groups)
        groups.append(NodeGroup(box.kind, box.name, parent))
        if blocks and len(box.members) > FAN:
            box.members = _blocks(graph, box)
        for item in reversed(box.members):
            if isinstance(item, int):
                home[item] = number
            else:
                stack.append((item, number))
    return Grouping(groups, home)


def _blocks(graph: BaseGraph, box: _Box) -> list[_Box | int]:
    member = {}
    for k, item in enumerate(box.members):
        for node in (item,) if isinstance(item, int) else item.nodes():
            member[node] = k
    edges = [(member[a], k) for i, k in member.items() for a in graph.operands(i) if a in member]
    blocks: list[_Box | int] = []
    for start, stop in ranges(len(box.members), edges):
        block = _Box("block", "")
        block.members = box.members[start:stop]
        nodes = list(block.nodes())
        block.name = f"%{min(nodes)} to %{max(nodes)}"
        blocks.append(block)
    return blocks

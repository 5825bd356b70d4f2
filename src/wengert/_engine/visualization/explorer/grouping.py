"""Grouping: the nodes of a graph in nested groups, and blocks of long sequences.

    level    the function, its first derivative, its second ...; only if there are several
    scope    a scope of the user (`wengert.scope`); scopes may be nested
    block    consecutive nodes of a group that would otherwise have too many members
             (explorer/grouping.py)

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
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.node import LeafOp

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

"""Grouping: how the nodes of a graph fold into boxes.

A tree with three kinds of inner nodes, from the outside in:

    level    the function, its first derivative, its second ...; only where there are several
    scope    what the user opened with `wengert.scope`, one inside the other
    block    a run of consecutive nodes, where a group would have more members than an eye can
             take in (explorer/line_blocks.py says where to cut)

Inputs stand outside of all levels, above everything.  A constant or a variable has no place of its
own: it goes to the innermost group that holds all its users (of the lowest level that uses it).

Group 0 is the whole; every other has a parent that comes before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.node import LeafOp

from .line_blocks import FAN, ranges

Path = tuple[tuple[str, str], ...]
ORDINALS = ("function", "first derivative", "second derivative", "third derivative")


class NodeGroup(NamedTuple):
    """A box that holds nodes and other boxes."""

    kind: str
    name: str
    parent: int


class Grouping(NamedTuple):
    """All groups, and the innermost group of each node."""

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
            one = stack.pop()
            if isinstance(one, int):
                yield one
            else:
                stack.extend(one.members)


def grouping_of(graph: BaseGraph, blocks: bool = True) -> Grouping:
    """The groups of a graph, and where each of its nodes belongs.

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
    """What a gradient level is called."""
    return ORDINALS[level] if level < len(ORDINALS) else f"derivative of order {level}"


def _paths(graph: BaseGraph) -> list[Path]:
    several = len({n.level for n in graph.nodes}) > 1
    fed = set(graph.inputs)
    paths: list[Path] = []
    for node in graph.nodes:
        level: Path = (("level", level_name(node.level)),) if several else ()
        parts = [part for part in node.scope.split("/") if part]
        paths.append(() if node in fed else (*level, *(("scope", part) for part in parts)))
    for i in range(len(graph) - 1, -1, -1):
        node = graph.nodes[i]
        if isinstance(node.op, LeafOp) and node not in fed and not node.scope:
            users = graph.consumers(i)
            lowest = min((graph.nodes[k].level for k in users), default=0)
            places = [paths[k] for k in users if graph.nodes[k].level == lowest]
            paths[i] = _common(places) if places else ()
    return paths


def _common(paths: list[Path]) -> Path:
    """The longest beginning that all share: that of the extremes in alphabetical order."""
    low, high = min(paths), max(paths)
    depth = 0
    while depth < min(len(low), len(high)) and low[depth] == high[depth]:
        depth += 1
    return low[:depth]


def _numbered(graph: BaseGraph, root: _Box, blocks: bool) -> Grouping:
    """Number the boxes, parents first, splitting those with too many members on the way."""
    groups: list[NodeGroup] = []
    home = [0] * len(graph)
    stack: list[tuple[_Box, int]] = [(root, -1)]
    while stack:
        box, parent = stack.pop()
        number = len(groups)
        groups.append(NodeGroup(box.kind, box.name, parent))
        if blocks and len(box.members) > FAN:
            box.members = _blocks(graph, box)
        for one in reversed(box.members):
            if isinstance(one, int):
                home[one] = number
            else:
                stack.append((one, number))
    return Grouping(groups, home)


def _blocks(graph: BaseGraph, box: _Box) -> list[_Box | int]:
    place = {}
    for k, one in enumerate(box.members):
        for node in (one,) if isinstance(one, int) else one.nodes():
            place[node] = k
    edges = [(place[a], k) for i, k in place.items() for a in graph.operands(i) if a in place]
    made: list[_Box | int] = []
    for start, stop in ranges(len(box.members), edges):
        block = _Box("block", "")
        block.members = box.members[start:stop]
        nodes = list(block.nodes())
        block.name = f"%{min(nodes)} to %{max(nodes)}"
        made.append(block)
    return made

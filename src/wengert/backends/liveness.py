"""Liveness: when each value of a list is needed for the last time.

last_uses   for each line which values can be let go once it has run
"""

from __future__ import annotations

from ..core.graph import Graph
from ..core.node import Leaf


def last_uses(graph: Graph) -> list[tuple[int, ...]]:
    """For each line the lines whose values nothing after it needs.

    Values of outputs, updates and effects are kept to the end; those of leaves belong to the
    caller or to the graph.
    """
    slot = {n: i for i, n in enumerate(graph.nodes)}
    kept = {slot[n] for n in (*graph.outputs, *graph.updates.values())}
    last: dict[int, int] = {}
    for i, node in enumerate(graph.nodes):
        for a in node.inputs:
            last[slot[a]] = i
    gone: list[list[int]] = [[] for _ in graph.nodes]
    for k, i in last.items():
        if k not in kept and not isinstance(graph.nodes[k].op, Leaf):
            gone[i].append(k)
    return [tuple(ks) for ks in gone]

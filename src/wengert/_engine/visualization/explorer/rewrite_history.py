"""Rewrite history: a graph before and after each pass, with corresponding nodes.

A pass makes new nodes for everything that depends on a changed node.  So nodes are matched by
identity first, and then by content (operation, parameters, spec, user's line, scope), in order.
Nodes without a match were removed or are new.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.node import Node
from wengert._engine.core.static_params import frozen
from wengert.errors import ArgumentError, at, user_line

from ..node_labels import brief


class HistoryStep(NamedTuple):
    """A graph, the title of the step that made it, and a note about the step."""

    title: str
    graph: BaseGraph
    note: str


class Change(NamedTuple):
    """The changes of a step.

    before : the index of each node in the graph before; -1 for a new node.
    rewired : nodes of which only the operands have changed.
    """

    before: list[int]
    rewired: list[int]


def steps_of(graph: BaseGraph, history: Any = None) -> list[HistoryStep]:
    """The steps that lead to a graph; a single one if no history is given.

    Parameters
    ----------
    graph : Graph
    history : sequence of (title, graph) or (title, graph, note), optional
        Or an object with an attribute ``steps``, as `wengert.rewrite` records: each step has
        ``name``, ``before``, ``after`` and optionally ``counts``, how often each rule was applied.

    Raises
    ------
    ArgumentError
        `history` is neither.
    """
    if history is None:
        return [HistoryStep(graph.name, graph, "")]
    recorded = getattr(history, "steps", None)
    items = _recorded(recorded) if recorded is not None else history
    steps: list[HistoryStep] = []
    for item in items:
        if isinstance(item, HistoryStep):
            steps.append(item)
        elif (
            isinstance(item, tuple | list)
            and len(item) in (2, 3)
            and isinstance(item[1], BaseGraph)
        ):
            steps.append(HistoryStep(str(item[0]), item[1], str(item[2]) if len(item) > 2 else ""))
        else:
            raise ArgumentError(
                f"an entry of history= is {item!r:.80}. Give pairs of a title and a graph"
                f"{at(user_line())}."
            )
    if not steps or steps[-1].graph is not graph:
        steps.append(HistoryStep("result" if steps else graph.name, graph, ""))
    return steps


def _recorded(recorded: Sequence[Any]) -> list[HistoryStep]:
    steps: list[HistoryStep] = []
    for step in recorded:
        if not steps:
            steps.append(HistoryStep("original", step.before, ""))
        counts = getattr(step, "counts", None) or {}
        rules = [name if n == 1 else f"{name} ×{n}" for name, n in counts.items()]
        steps.append(HistoryStep(str(step.name), step.after, ", ".join(rules)))
    return steps


def change(before: BaseGraph, after: BaseGraph) -> Change:
    """The correspondence of the nodes of a graph before and after a step."""
    index = {node: i for i, node in enumerate(before.nodes)}
    removed: dict[Hashable, deque[int]] = {}
    remaining = set(after.nodes)
    for i, node in enumerate(before.nodes):
        if node not in remaining:
            removed.setdefault(_signature(node), deque()).append(i)
    was = []
    for node in after.nodes:
        i = index.get(node, -1)
        if i < 0:
            candidates = removed.get(_signature(node))
            i = candidates.popleft() if candidates else -1
        was.append(i)
    rewired = [
        k
        for k, i in enumerate(was)
        if i >= 0 and [was[a] for a in after.operands(k)] != list(before.operands(i))
    ]
    return Change(was, rewired)


def _signature(node: Node) -> Hashable:
    content = (node.op, frozen(node.params), str(node.spec), node.name, node.where, node.scope)
    value = None if node.is_traced or np.size(node.value) > 100 else brief(node.value)
    return (*content, node.level, len(node.args), value)

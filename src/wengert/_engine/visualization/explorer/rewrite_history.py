"""Rewrite history: a graph before and after each pass, and which node became which.

A rewriting pass makes new nodes below whatever it changes, although they mean the same; so nodes
are matched by identity first, and then by their content (operation,
parameters, spec, user's line, scope), in order.  What is left over has gone or is new.
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
    """A graph, what was done to get it, and what there is to say about that."""

    title: str
    graph: BaseGraph
    note: str


class Change(NamedTuple):
    """What a step did.

    before : for each node the node that it was; -1 for a new one.
    rewired : nodes that are the same but for their operands.
    """

    before: list[int]
    rewired: list[int]


def steps_of(graph: BaseGraph, history: Any = None) -> list[HistoryStep]:
    """The steps that lead to a graph; one, where no history is given.

    Parameters
    ----------
    graph : Graph
    history : sequence of (title, graph) or (title, graph, note), optional
        Or anything with an attribute ``steps``, of which each has ``name``, ``before``, ``after``
        and perhaps ``counts``, how often each rule was applied: what `wengert.rewrite` records.

    Raises
    ------
    ArgumentError
        It is neither.
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
    for one in recorded:
        if not steps:
            steps.append(HistoryStep("as it was", one.before, ""))
        counts = getattr(one, "counts", None) or {}
        words = [name if n == 1 else f"{name} ×{n}" for name, n in counts.items()]
        steps.append(HistoryStep(str(one.name), one.after, ", ".join(words)))
    return steps


def change(before: BaseGraph, after: BaseGraph) -> Change:
    """Which node of a graph was which before."""
    place = {node: i for i, node in enumerate(before.nodes)}
    free: dict[Hashable, deque[int]] = {}
    kept = set(after.nodes)
    for i, node in enumerate(before.nodes):
        if node not in kept:
            free.setdefault(_signature(node), deque()).append(i)
    was = []
    for node in after.nodes:
        i = place.get(node, -1)
        if i < 0:
            waiting = free.get(_signature(node))
            i = waiting.popleft() if waiting else -1
        was.append(i)
    rewired = [
        k
        for k, i in enumerate(was)
        if i >= 0 and [was[a] for a in after.operands(k)] != list(before.operands(i))
    ]
    return Change(was, rewired)


def _signature(node: Node) -> Hashable:
    said = (node.op, frozen(node.params), str(node.spec), node.name, node.where, node.scope)
    value = None if node.is_traced or np.size(node.value) > 100 else brief(node.value)
    return (*said, node.level, len(node.args), value)

"""Nested graphs: bodies of loops and branches are simplified like the graph around them.

A body that several nodes share is simplified once, and cached as long as it is referenced.  The
result has the same inputs, and outputs of the same specs.

    Bodies       the bodies of graphs, simplified by the same passes
    BodyHistory  the history of one body
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from wengert._engine.core.copy_graph import rebuilt
from wengert._engine.core.graph import AnyGraph
from wengert._engine.core.node import Node
from wengert._engine.core.subgraph import Body, bodies_of

from .loop_view import like


class BodyHistory(NamedTuple):
    """The name of a body and the history of its simplification."""

    name: str
    history: Any


class Bodies:
    """A cache of simplified bodies.

    Parameters
    ----------
    simplify : callable
        ``simplify(body, history)`` returns a simpler body, or the body itself.
    """

    def __init__(self, simplify: Callable[[Body, Any], Body]) -> None:
        self._simplify = simplify
        # None marks a body that cannot be simplified: a value that is its own key would never be
        # freed.
        self._known: weakref.WeakKeyDictionary[Body, Body | None] = weakref.WeakKeyDictionary()

    def of(self, graph: AnyGraph, new_history: Callable[[], Any] | None) -> tuple[AnyGraph, Any]:
        """A graph with simplified bodies, and the history of each (`BodyHistory`)."""
        inside: list[BodyHistory] = []
        made: dict[Body, Body] = {}
        for node in graph.nodes:
            for body in bodies_of(node):
                if body not in made:
                    made[body] = self._simplest(body, new_history, inside)
        if all(old is new for old, new in made.items()):
            return graph, ()

        def change(node: Node, args: tuple[Any, ...]) -> Node | None:
            if any(made[b] is not b for b in bodies_of(node)):
                return like(node, args, {k: _put(x, made) for k, x in node.params.items()})
            return None

        new = rebuilt(graph.nodes, None, change)
        changed = {old: n for old, n in new.items() if old is not n}
        return graph.with_nodes(changed), tuple(inside)

    def _simplest(self, body: Body, new_history: Any, inside: list[BodyHistory]) -> Body:
        if body in self._known and new_history is None:  # a history lists all rewrites
            return self._known[body] or body
        history = None if new_history is None else new_history()
        made = self._simplify(body, history)
        if made is not body:
            self._known[made] = None
            if history is not None:
                inside.append(BodyHistory(body.name, history))
        self._known[body] = made if made is not body else None
        return made


def _put(x: Any, made: dict[Body, Body]) -> Any:
    if type(x) is tuple and x and all(isinstance(b, Body) for b in x):
        return tuple([made[b] for b in x])
    return made[x] if isinstance(x, Body) else x

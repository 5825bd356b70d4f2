"""Loop passes of a graph that has loops or branches; most graphs have none.

The passes, and the control flow that they rewrite, are a tenth of the modules of a first call, so
they are imported when a graph needs them.

    rewritten    a graph after the loop passes (driver.py)

Nested graphs: bodies of loops and branches, simplified like the graph that contains them.

A body that several nodes share is simplified once, and cached as long as it is referenced.  The
result has the same inputs, and outputs of the same specs.

    Bodies       the bodies of graphs, simplified by the same passes
    BodyHistory  the history of one body
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from wengert._engine.core.graph import AnyGraph
from wengert._engine.core.graph_classes import Body, bodies_of
from wengert._engine.core.graph_copies import rebuilt
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.node import Node
from wengert._engine.core.op_facts import BRANCH, LOOPS

from .loop_view import with_bodies

if TYPE_CHECKING:
    from wengert._engine.rewrite.driver import Applied

    from . import driver
else:
    driver = LazyModule("wengert._engine.rewrite.loops.driver")

_REWRITTEN = frozenset((*LOOPS, BRANCH))


def rewritten(graph: AnyGraph) -> tuple[AnyGraph, tuple[Applied, ...]]:
    """A graph with simplified loops, and the rewrites that were applied."""
    if not any(n.op.control_flow in _REWRITTEN for n in graph.nodes):
        return graph, ()
    return driver.rewritten(graph)


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
        histories: list[BodyHistory] = []
        simplified: dict[Body, Body] = {}
        for node in graph.nodes:
            for body in bodies_of(node):
                if body not in simplified:
                    simplified[body] = self._simplest(body, new_history, histories)
        if all(old is new for old, new in simplified.items()):
            return graph, ()

        def change(node: Node, args: tuple[Any, ...]) -> Node | None:
            if any(simplified[b] is not b for b in bodies_of(node)):
                return with_bodies(node, args, simplified)
            return None

        new = rebuilt(graph.nodes, None, change)
        changed = {old: n for old, n in new.items() if old is not n}
        return graph.with_nodes(changed), tuple(histories)

    def _simplest(self, body: Body, new_history: Any, histories: list[BodyHistory]) -> Body:
        if body in self._known and new_history is None:  # a history lists all rewrites
            return self._known[body] or body
        history = None if new_history is None else new_history()
        simplified = self._simplify(body, history)
        if simplified is not body:
            self._known[simplified] = None
            if history is not None:
                histories.append(BodyHistory(body.name, history))
        self._known[body] = simplified if simplified is not body else None
        return simplified

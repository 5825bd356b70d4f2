"""DeferredGraph: a graph whose nodes are made when they are needed.

If a program for a traced graph is on disk, the first call needs neither the simplified graph nor
the rewrite rules: only errors, derivatives and inspection need its nodes.  Until then, the graph
has inputs, specs of results and structure, which are those of the traced graph; when anything else
is read, the nodes are made, and the object becomes an ordinary graph.

    DeferredGraph   the graph
    completed       the graph itself, with its nodes
    result_specs    the specs of the outputs of any graph
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Mapping
from typing import Any

from .fork_safe_locks import lock
from .graph import BaseGraph
from .node import Node
from .symbolic.constraints import Requirement


class DeferredGraph(BaseGraph):
    """A graph without variables and updates, whose nodes are made when they are needed.

    Parameters
    ----------
    traced : Graph
        A graph with the same inputs, structure, name and effects, and results of the same specs.
    make : callable
        Returns the graph, of any class.
    cache_key : bytes
        See `BaseGraph.cache_key`.

    Attributes
    ----------
    result_specs : list of Spec
    """

    is_deferred = True  # until it becomes an object of another class

    def __init__(
        self, traced: BaseGraph, make: Callable[[], BaseGraph], cache_key: bytes | None = None
    ) -> None:
        self.inputs, self.structure, self.name = traced.inputs, traced.structure, traced.name
        self.updates, self.effects = {}, traced.effects
        self.cache_key = cache_key
        self.result_specs = result_specs(traced)
        self._make: Callable[[], BaseGraph] | None = make
        self._lock = lock()

    def __getattr__(self, name: str) -> Any:
        # Called only if an attribute is missing: `nodes`, `outputs`, or one of another class.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(completed(self), name)

    @property
    def variables(self) -> tuple[Node, ...]:
        """There are none."""
        return ()

    @property
    def requirements(self) -> list[Requirement]:
        """There are none, since all sizes are numbers."""
        return []

    def with_nodes(self, new: Mapping[Node, Node], name: str | None = None) -> Any:
        """The same graph with some nodes replaced by others."""
        return completed(self).with_nodes(new, name)


def completed(graph: Any) -> Any:
    """The graph itself, whose nodes have been made."""
    if type(graph) is not DeferredGraph:
        return graph
    with graph._lock:
        make = graph.__dict__.get("_make")
        if make is not None:
            # In an empty context: its nodes belong to no trace that happens to be active now.
            made = completed(contextvars.Context().run(make))
            own = {k: v for k, v in vars(made).items() if k not in ("cache_key", "_lock", "_make")}
            graph.__dict__.update(own, _make=None)
            graph.__class__ = type(made)
    return graph


def result_specs(graph: BaseGraph) -> list[Any]:
    """The specs of the outputs of a graph; a tuple for an output of several values."""
    if type(graph) is DeferredGraph:
        return graph.result_specs
    return [n.spec for n in graph.outputs]

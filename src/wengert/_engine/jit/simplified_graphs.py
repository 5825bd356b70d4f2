"""The simplified graph of a traced one, or a deferred graph if its program is on disk.

A program is found by a fingerprint of the traced graph, which is made without rewriting it.

    simplified    the graph that derivatives are derived from, and the graph to run
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wengert._engine.backends import Backend
from wengert._engine.core.deferred_graph import DeferredGraph, completed
from wengert._engine.core.policy import gate
from wengert._engine.core.recording import switches
from wengert._engine.core.spec import Spec
from wengert._engine.core.static_params import sizes_of
from wengert._engine.rewrite import without_calls

from .compiled_operation import extras_of, with_inlined_calls

if TYPE_CHECKING:
    from wengert._engine.core.graph import BaseGraph
    from wengert._engine.core.node import Node
    from wengert._engine.graphs import Graph


def simplified(traced: Graph, backend: Backend, simplify: bool) -> tuple[BaseGraph, BaseGraph]:
    """The simplified graph, and the same with custom calls inlined, for a backend to run.

    If the backend has a program for them on disk, both are deferred.  If not `simplify`, custom
    calls are inlined only.
    """
    if not simplify:
        return traced, with_inlined_calls(traced, False)
    known: Any = backend if hasattr(backend, "key_before_simplification") else None
    # In a block that changes how operations are recorded, the result may depend on it.
    key = None
    if known is not None and not switches.count and not gate.count:
        key = known.key_before_simplification(traced)
    if key is not None and known.is_on_disk(key):
        later = DeferredGraph(traced, traced.simplify)
        return later, DeferredGraph(traced, lambda: with_inlined_calls(completed(later), True), key)
    inlined = without_calls(traced)
    if inlined is not traced and _depends_on_inputs_only(traced):
        # The graph with its calls is needed by derivatives only.
        executed = inlined.simplify()
        executed.cache_key = key
        return DeferredGraph(traced, traced.simplify), executed
    graph = traced.simplify()
    executed = with_inlined_calls(graph, True)
    executed.cache_key = key
    return graph, executed


def _depends_on_inputs_only(graph: Graph) -> bool:
    """Whether a graph has no captured leaves and no updates, and all its sizes are numbers."""
    if extras_of(graph) or graph.updates or graph.requirements:
        return False
    specs = [s for n in (*graph.inputs, *graph.outputs) for s in _specs(n)]
    return not sizes_of(tuple([s.shape for s in specs]))


def _specs(node: Node) -> tuple[Spec, ...]:
    return node.spec if isinstance(node.spec, tuple) else (node.spec,)

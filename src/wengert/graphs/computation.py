"""Computation: outputs and inputs of a graph as a callable, run by a backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..backends import Executable
from ..backends.base import Backend
from ..backends.base import backend as backend_of
from ..backends.executable import node_of, restored
from ..core import tree
from ..core.rebuild import settled
from .graph import Graph


class Computation:
    """What `computation` returns: call it with values for the inputs."""

    def __init__(self, graph: Graph, backend: Backend) -> None:
        self.graph = graph
        self._run = Executable(graph, backend)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Values of the outputs."""
        return restored(self.graph, self._run(args))


def computation(
    outputs: Any,
    *inputs: Any,
    backend: str | Backend = "interpret",
    updates: Mapping[Any, Any] | None = None,
) -> Computation:
    """A callable of some inputs that gives some outputs."""
    leaves, structure = tree.flatten((outputs,))
    graph = Graph(
        *leaves,
        inputs=[node_of(x) for x in inputs],
        updates={node_of(k): node_of(v) for k, v in (updates or {}).items()},
        structure=(None, structure),
    )
    return Computation(settled(graph), backend_of(backend))

"""Pickling: graphs and computations for process pools, as the bytes that `wengert.save` writes.

What a file cannot hold a pickle cannot either, with the same refusal.  Variables are pickled beside
the bytes as the tensors that they are, so a graph and a tensor that it reads, pickled together,
belong together afterwards, too.

    reduced    a graph, for ``__reduce__``
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from .. import keep
from ..backends.updates import owners_of
from ..core.rebuild import rebuilt

if TYPE_CHECKING:
    from .graph import Graph


def reduced(graph: Graph) -> tuple[Any, ...]:
    """How a graph is pickled: a function, and its arguments."""
    file = io.BytesIO()
    keep.save(graph, file, where="full")
    return _restored, (type(graph), file.getvalue(), owners_of(graph.variables))


def _restored(cls: Any, kept: bytes, owners: list[Any]) -> Any:
    graph: Any = keep.load(io.BytesIO(kept))
    place = {v: o.node for v, o in zip(graph.variables, owners, strict=True)}
    graph = graph.with_lines(rebuilt(graph.nodes, place)) if place else graph
    if type(graph) is cls:
        return graph
    return cls(
        *graph.outputs,
        inputs=graph.inputs,
        updates=graph.updates,
        effects=graph.effects,
        structure=graph.structure,
        name=graph.name,
    )

"""Pickling of graphs and computations, for process pools, as the bytes that `wengert.save` writes.

A graph that cannot be saved cannot be pickled either, with the same error.  Variables are pickled
as tensors next to these bytes, so that a graph and a tensor that it reads are still connected if
they were pickled together.

    reduced    the result of ``__reduce__`` for a graph
"""

from __future__ import annotations

import io
from typing import Any

from wengert._engine import serialization
from wengert._engine.core.copy_graph import rebuilt
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.handle import leaf, owners_of
from wengert._engine.core.node import Node, is_variable


def reduced(graph: BaseGraph) -> tuple[Any, ...]:
    """The result of ``__reduce__`` for a graph: a function and its arguments."""
    file = io.BytesIO()
    serialization.save(graph, file, where="full")
    return _restored, (type(graph), file.getvalue(), owners_of(graph.variables))


def _restored(cls: Any, data: bytes, owners: list[Any]) -> Any:
    graph: Any = serialization.load(io.BytesIO(data))
    replacements = {v: _node(v, o) for v, o in zip(graph.variables, owners, strict=True)}
    graph = graph.with_nodes(rebuilt(graph.nodes, replacements)) if replacements else graph
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


def _node(variable: Node, owner: Any) -> Node:
    """The node of a variable; for a frozen parameter, which has none, a new one."""
    if is_variable(owner.node):
        return owner.node  # type: ignore[no-any-return]
    node = leaf(owner.node.value, owner, type(variable) is Node)
    if variable.name is not None:
        node.note(name=variable.name)
    return node

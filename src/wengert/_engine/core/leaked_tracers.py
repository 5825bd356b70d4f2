"""Leaked tracers: tensors of a trace that are used after it has ended.

A tensor of a trace, such as an argument of a traced function or the carry of a loop, has a value
only inside the graph while it runs.  If it is stored outside and used afterwards, it has no value;
in another graph it would be an input without an argument.

    mark_ended   mark the inputs of a trace that has ended, with the name of the traced function
    source       the input of an ended trace that a node is computed from
    refuse       raise GraphError for a graph that uses one
    refuse_metadata   raise TraceError for traced values in the metadata of a scope
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wengert.errors import GraphError, TraceError, at, user_line

from .handle import Handle
from .node import INPUT, Node, next_serial
from .spec import shown


def mark_ended(inputs: Iterable[Node], what: str) -> None:
    """Mark the inputs of a trace that has ended, with the name of the traced function."""
    now = next_serial()
    for node in inputs:
        node.note(trace=(what, now))


def source(node: Node) -> Node | None:
    """The input of an ended trace that a node is computed from, or None."""
    seen: set[Node] = set()
    stack = [node]
    while stack:
        current = stack.pop()
        if current in seen or not current.is_traced:
            continue
        seen.add(current)
        if is_ended(current):
            return current
        stack += [a for a in current.args if isinstance(a, Node)]
    return None


def is_ended(node: Node) -> bool:
    """Whether a node is an input of a trace that has ended."""
    return node.op is INPUT and node.info is not None and node.info.trace is not None


def _trace(node: Node) -> tuple[str, int]:
    assert node.info is not None and node.info.trace is not None
    return node.info.trace


def traced_function(node: Node) -> str:
    """The name of the function whose trace the input belongs to."""
    return _trace(node)[0]


def refuse(nodes: Sequence[Node], own: Iterable[Node], what: str) -> None:
    """Raise GraphError if a graph is computed from inputs of a trace that has ended.

    Parameters
    ----------
    nodes : sequence of Node
        Operands first.
    own : iterable of Node
        The inputs of the graph.
    what : str
        Its name in the message.
    """
    known = set(own)
    leaked = next((n for n in nodes if n not in known and is_ended(n)), None)
    if leaked is None:
        return
    since = _trace(leaked)[1]
    depending = {leaked}
    where = None
    for node in nodes:
        if not depending.isdisjoint(node.inputs):
            depending.add(node)
            where = where or (node.where if node.serial > since else None)
    name = f"{leaked.name}, {shown(leaked.spec)}" if leaked.name else f"a {shown(leaked.spec)}"
    raise GraphError(
        f"{what} uses a tensor that was stored while {traced_function(leaked)} was traced: it is "
        f"computed from {name}, which has a value only while that runs. Return it from the "
        f"traced function, in a loop as part of the carry or of the collected values"
        f"{at(where or user_line())}."
    )


def refuse_metadata(metadata: Mapping[str, Any]) -> None:
    """Raise TraceError for traced values, which metadata would keep after the trace.

    Raises
    ------
    TraceError
        A value is traced, such as the counter of a compiled loop.
    """
    for key, value in metadata.items():
        if isinstance(value, Handle) and value.node.is_traced:
            raise TraceError(
                f"scope({key}=...): the value is traced, and the metadata of a scope must be known "
                "when the function is traced. If it is the counter of a loop, write the loop over "
                f"a list or wengert.unroll(range(n)){at(user_line())}."
            )

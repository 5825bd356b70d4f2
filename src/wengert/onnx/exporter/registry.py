"""Registry: which function writes which operation as nodes of ONNX.

A function ``write(w, node, *names) -> name`` (or a tuple of names, for several results) is entered
by the name of an operation.  `w` is the writer (writer.py), `node` the node of the graph, `names`
what its operands are called in the file.

    exports       the decorator
    writer_of     the function for an operation, None if there is none
    exported      the names of all operations that have one
    refused       the error for what cannot be written
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wengert._engine.core.node import Node
from wengert.errors import BackendError, at

Write = Callable[..., Any]
_BY_NAME: dict[str, Write] = {}


def exports(*names: str) -> Callable[[Write], Write]:
    """Enter the function below it for operations of these names (a decorator)."""

    def enter(function: Write) -> Write:
        _BY_NAME.update(dict.fromkeys(names, function))
        return function

    return enter


def writer_of(name: str) -> Write | None:
    """The function that writes an operation, None if there is none."""
    return _BY_NAME.get(name)


def exported() -> list[str]:
    """The names of all operations that have an entry of their own."""
    return sorted(_BY_NAME)


def refused(node: Node, why: str) -> BackendError:
    """The error for a line that cannot be written."""
    return BackendError(
        f"onnx.export: {node.op.name} {why}. Export the part of the program without it, or write "
        f"it with other operations{at(node.where)}."
    )

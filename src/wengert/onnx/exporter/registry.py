"""The registry of exporters: which function writes which operation.

A function ``write(w, node, *names) -> name`` (or a tuple of names, for several results) is
registered for the name of an operation, or for a kind.  `w` is the writer (graph_writer.py), `node`
the node of the graph, and `names` are the names of its operands in the file.

    exports, exports_kind    the decorators
    exports_complex          the same for operations with complex operands or results
    writer_of                the function that writes a node, or None
    exported                 the names of all operations with an exporter
    unsupported              the error for a node that cannot be written
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert.errors import BackendError, at

Write = Callable[..., Any]
_BY_NAME: dict[str, Write] = {}
_BY_KIND: dict[str, Write] = {}
_COMPLEX: dict[str, Write] = {}


def exports(*names: str) -> Callable[[Write], Write]:
    """Register a function for operations of these names (a decorator)."""

    def enter(function: Write) -> Write:
        _BY_NAME.update(dict.fromkeys(names, function))
        return function

    return enter


def exports_kind(kind: str) -> Callable[[Write], Write]:
    """Register a function for the other operations of a kind (a decorator)."""

    def enter(function: Write) -> Write:
        _BY_KIND[kind] = function
        return function

    return enter


def exports_complex(*names: str) -> Callable[[Write], Write]:
    """Register a function for operations of these names on complex numbers (a decorator)."""

    def enter(function: Write) -> Write:
        _COMPLEX.update(dict.fromkeys(names, function))
        return function

    return enter


def writer_of(node: Node) -> Write | None:
    """The function that writes a node, or None."""
    is_ours = lookup(node.op.name) is node.op  # not a user's operation of the same name
    if _is_complex(node):
        found = _COMPLEX.get(node.op.name) if is_ours else None
        if found is None:
            raise unsupported(node, "of complex numbers has no counterpart in ONNX")
        return found
    own = _BY_NAME.get(node.op.name) if is_ours else None
    return own or _BY_KIND.get(node.op.kind)


def _is_complex(node: Node) -> bool:
    """Whether an operand or result is complex."""
    specs = node.spec if isinstance(node.spec, tuple) else (node.spec,)
    return any(
        getattr(spec, "dtype", np.dtype(float)).kind == "c"
        for spec in (*specs, *[a.spec for a in node.inputs])
    )


def exported() -> list[str]:
    """The names of all operations with an exporter."""
    return sorted(_BY_NAME.keys() | _COMPLEX.keys())


def unsupported(node: Node, why: str) -> BackendError:
    """The error for a node that cannot be written."""
    return BackendError(
        f"onnx.export: {node.op.name} {why}. Export the part of the program without it, or write "
        f"it with other operations{at(node.where)}."
    )

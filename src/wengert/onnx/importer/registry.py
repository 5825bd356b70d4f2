"""The registry of importers: which function reads which ONNX operator.

A function ``read(n, *inputs) -> value`` (or a tuple of values, for several results) is registered
for the name of an operator.  `n` is the node with its attributes and opset (node_view.py).  An
input is an array if it is known during the import, else a tensor; None if it is omitted; and, for
functions registered with ``lengths=True``, possibly an array of symbolic sizes.

    imports     the decorator
    reader_of   the function for an operator, or None
    imported    the names of all supported operators
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Read = Callable[..., Any]


class Entry(NamedTuple):
    """A registered importer."""

    function: Read
    lengths: bool  # whether it accepts arrays of symbolic sizes
    static: tuple[int, ...]  # the inputs that must be known during the import
    grows: bool  # whether attributes or static inputs determine the size of the result


_BY_NAME: dict[str, Entry] = {}


def imports(
    *names: str, lengths: bool = False, static: tuple[int, ...] = (), grows: bool = False
) -> Callable[[Read], Read]:
    """Register a function for operators of these names (a decorator)."""

    def enter(function: Read) -> Read:
        _BY_NAME.update(dict.fromkeys(names, Entry(function, lengths, static, grows)))
        return function

    return enter


def reader_of(name: str) -> Entry | None:
    """The importer of an operator, or None."""
    return _BY_NAME.get(name)


def imported() -> list[str]:
    """The names of all supported operators."""
    return sorted(_BY_NAME)


def static_inputs(name: str) -> tuple[int, ...]:
    """The inputs of an operator that must be known during the import: shapes, axes, counts."""
    entry = _BY_NAME.get(name)
    return () if entry is None else entry.static

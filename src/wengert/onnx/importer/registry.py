"""The registry of importers: which function reads which ONNX operator.

A function ``read(n, *inputs) -> value`` (or a tuple of values, for several results) is entered by
the name of an operator.  `n` is the node (node_view.py): its attributes, the opset version.
An input is an array where it is known when the file is read, else a tensor; None where it is left
out; and, for functions that say so, a list of lengths some of which have names.

    imports     the decorator
    reader_of   the function for an operator, None if there is none
    imported    the names of all operators that have one
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Read = Callable[..., Any]


class Entry(NamedTuple):
    """How an operator is read."""

    function: Read
    lengths: bool  # it takes lists of symbolic sizes
    static: tuple[int, ...]  # the inputs that must be known when the file is read
    grows: bool  # attributes or static inputs say how large the result is


_BY_NAME: dict[str, Entry] = {}


def imports(
    *names: str, lengths: bool = False, static: tuple[int, ...] = (), grows: bool = False
) -> Callable[[Read], Read]:
    """Enter the function below it for operators of these names (a decorator)."""

    def enter(function: Read) -> Read:
        _BY_NAME.update(dict.fromkeys(names, Entry(function, lengths, static, grows)))
        return function

    return enter


def reader_of(name: str) -> Entry | None:
    """How an operator is read, None if it is not."""
    return _BY_NAME.get(name)


def imported() -> list[str]:
    """The names of all operators that are read."""
    return sorted(_BY_NAME)


def static_inputs(name: str) -> tuple[int, ...]:
    """The inputs of an operator that must be known when the file is read: shapes, axes, counts."""
    entry = _BY_NAME.get(name)
    return () if entry is None else entry.static

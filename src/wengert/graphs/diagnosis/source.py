"""Source: where a line of the list stands in the user's program, and the text that stands there.

Place     file, line and function; the text is read from the file when it is asked for
named     how to call a line in a sentence
"""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import NamedTuple

from ...core.node import Node

_WHERE = re.compile(r"(?P<file>.*):(?P<line>\d+), in (?P<function>.*)", re.DOTALL)


class Place(NamedTuple):
    """A line of the user's program."""

    file: str
    line: int
    function: str

    @property
    def text(self) -> str:
        """What stands there, without indentation; empty where it cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def short(self) -> str:
        """File and line without folders: ``model.py:12``."""
        name = self.file if self.file.startswith("<") else Path(self.file).name
        return f"{name}:{self.line}"


def place_of(where: str | None) -> Place | None:
    """``file.py:12, in f`` taken apart; None where it is not known."""
    found = _WHERE.fullmatch(where) if where else None
    return Place(found["file"], int(found["line"]), found["function"]) if found else None


def named(node: Node) -> str:
    """How to call a line in a sentence: its name, or its operation, and its spec."""
    name = f" {node.name}" if node.name else ""
    return f"{node.op.name}{name} {shown(node.spec)}"


def shown(spec: object) -> str:
    """A spec as text; of several outputs, all of them."""
    if isinstance(spec, tuple):
        return f"({', '.join(map(shown, spec))})"
    return str(spec)

"""Source locations: the line of the user's program that a node was recorded at.

`errors.user_line` returns it as text, ``file.py:12, in f``, which is cheap to make, to store and to
append to a message.  This module parses it.

    SourceLocation  file, line and function; the source text is read on demand
    place_of        the parsed text
    spot_of         file and line, without the function
    short           file and line without folders, ``file.py:12``
"""

from __future__ import annotations

import linecache
import re
from typing import NamedTuple

_WHERE = r"(?s)(?P<file>.*):(?P<line>\d+)(?:, in (?P<function>.*))?"
_FOLDERS = r"(?s).*[\\/]"  # of any operating system: a graph may come from another


class SourceLocation(NamedTuple):
    """A line of the user's program."""

    file: str
    line: int
    function: str

    @property
    def text(self) -> str:
        """The source text without indentation; empty if it cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def short(self) -> str:
        """File and line without folders: ``model.py:12``."""
        name = self.file if self.file.startswith("<") else re.sub(_FOLDERS, "", self.file)
        return f"{name}:{self.line}"


def place_of(where: str | None) -> SourceLocation | None:
    """The parsed ``file.py:12, in f``; None if not known."""
    match = re.fullmatch(_WHERE, where) if where else None
    return (
        SourceLocation(match["file"], int(match["line"]), match["function"] or "")
        if match
        else None
    )


def spot_of(where: str) -> str:
    """File and line, without the function."""
    location = place_of(where)
    return where if location is None else f"{location.file}:{location.line}"


def short(where: str | None) -> str:
    """File and line without folders; empty if not known."""
    location = place_of(where)
    return (where or "") if location is None else location.short

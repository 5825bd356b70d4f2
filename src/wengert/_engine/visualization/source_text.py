"""Source text of the user's lines, read when a page is made.

A page may be viewed where the source is not available, so it contains the text.  Only the lines
that nodes refer to are read.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from wengert._engine.core.node_info import place_of

LIMIT = 200  # characters


class SourceLine(NamedTuple):
    """A line of the user's program."""

    file: str  # relative to the working directory if it is below it
    line: int
    function: str
    text: str  # empty if it could not be read


def source_of(where: str | None) -> SourceLine | None:
    """The line at a source location ``"file.py:12, in f"``."""
    location = place_of(where)
    if location is None:
        return SourceLine(where, 0, "", "") if where else None
    file, text = _relative(location.file), location.text[:LIMIT]
    return SourceLine(file, location.line, location.function, text)


def _relative(path: str) -> str:
    try:
        return Path(path).relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):
        parts = Path(path).parts
        return "/".join(parts[-2:]) if len(parts) > 2 else path

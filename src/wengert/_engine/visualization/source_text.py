"""Source text of the user's lines, read when a page is made.

A page may be viewed where the source is not available, so the text is copied.  Only the line that a
node refers to is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from wengert._engine.core.source_location import place_of

LIMIT = 200  # characters


class SourceLine(NamedTuple):
    """A line of the user's program."""

    file: str  # relative to the working directory if it is inside
    line: int
    function: str
    text: str  # empty if it could not be read


def source_of(where: str | None) -> SourceLine | None:
    """The line at a source location ``"file.py:12, in f"``."""
    place = place_of(where)
    if place is None:
        return SourceLine(where, 0, "", "") if where else None
    return SourceLine(_relative(place.file), place.line, place.function, place.text[:LIMIT])


def _relative(path: str) -> str:
    try:
        return Path(path).relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):
        parts = Path(path).parts
        return "/".join(parts[-2:]) if len(parts) > 2 else path

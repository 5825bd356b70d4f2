"""Source text of the user's lines, read when a page is made.

A page is looked at later and elsewhere, where the program may not be; so the words are copied.
Nothing but the one line that a node points to is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from wengert._engine.core.source_location import place_of

LIMIT = 200  # characters


class SourceLine(NamedTuple):
    """A line of the user's program."""

    file: str  # as short as it can be: relative to the working directory where it lies inside
    line: int
    function: str
    text: str  # empty where it could not be read


def source_of(where: str | None) -> SourceLine | None:
    """The line that ``node.where`` names: ``"file.py:12, in f"``."""
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

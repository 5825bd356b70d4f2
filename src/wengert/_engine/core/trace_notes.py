"""Trace notes: decisions of the front end while a function was traced, for `wengert.explain`.

note         add a note
collected    a block in which notes are collected
TraceNote    one note
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from wengert.errors import user_line


class TraceNote(NamedTuple):
    """A decision: its kind, an explanation, and the user's line."""

    kind: str
    text: str
    where: str | None


class _Collector(threading.local):
    notes: list[TraceNote] | None = None


_collector = _Collector()


def note(kind: str, text: str) -> None:
    """Add a note, if notes are collected."""
    if _collector.notes is not None:
        _collector.notes.append(TraceNote(kind, text, user_line()))


@contextmanager
def collected() -> Iterator[list[TraceNote]]:
    """A block in which notes are collected."""
    outer = _collector.notes
    notes: list[TraceNote] = []
    _collector.notes = notes
    try:
        yield notes
    finally:
        _collector.notes = outer

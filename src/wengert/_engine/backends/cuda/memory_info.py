"""The memory of a device in numbers, and its words in messages.

MemoryInfo    bytes in use and free
megabytes     a number of bytes as text
"""

from __future__ import annotations

from typing import NamedTuple


class MemoryInfo(NamedTuple):
    """The memory of a graphics card, in bytes.

    Attributes
    ----------
    used : int
        Of arrays of this process.
    reserved : int
        Of this process, including what is kept for new arrays.
    free : int
        Available to new arrays of any process.
    total : int
        Of the card.
    """

    used: int
    reserved: int
    free: int
    total: int


MemoryInfo.__module__ = "wengert.memory"


def megabytes(count: int) -> str:
    """A number of bytes as text."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"

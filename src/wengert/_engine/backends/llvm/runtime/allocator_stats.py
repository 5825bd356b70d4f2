"""The public settings and counters of the recycling allocator.

    info     bytes used and kept, and how often blocks were recycled
    limit    sets how many bytes may be kept
    trim     returns kept blocks to the system
    attach   registers the functions of the native module, once it is loaded

The allocator is native code (allocator.py).  This module does not load it, or LLVM.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, SupportsIndex

from wengert._engine.core.validation import byte_count

from .thread_count import memory

_MAX_POOL_BYTES = 2 << 30


@dataclass(frozen=True)
class AllocatorInfo:
    """Counters of the recycling allocator.

    Attributes
    ----------
    used : int
        Bytes of large blocks (more than 128 KiB) in live arrays and workspaces.
    peak : int
        The maximum of `used`.
    kept : int
        Bytes of free blocks, kept for later arrays.
    limit : int
        The maximum of `kept`.
    hits, misses : int
        The numbers of large blocks that were recycled, and that came from the system.
    returned : int
        Bytes that were returned to the system.
    """

    __module__ = "wengert.memory"

    used: int
    kept: int
    limit: int
    hits: int
    misses: int
    returned: int
    peak: int


class _AllocatorState:
    """The native functions, once they are loaded, and the limit until then."""

    functions: Mapping[str, Any] | None = None
    limit = min(memory() // 4, _MAX_POOL_BYTES)


def info() -> AllocatorInfo:
    """Counters of the memory of large outputs and workspaces of native functions.

    Returns
    -------
    AllocatorInfo
        Its attributes are `used`, `peak`, `kept`, `limit`, `hits`, `misses` and `returned`.

    Examples
    --------
    >>> wg.memory.info().kept <= wg.memory.info().limit
    True
    """
    if _AllocatorState.functions is None:
        return AllocatorInfo(0, 0, _AllocatorState.limit, 0, 0, 0, 0)
    counters = (ctypes.c_int64 * 7)()
    _AllocatorState.functions["read"](counters)
    return AllocatorInfo(*counters)


def limit(bytes: SupportsIndex) -> None:
    """Set how many bytes of free blocks are kept for later arrays.

    Parameters
    ----------
    bytes : int
        With 0 nothing is kept: each large array then has new pages, which the system fills with
        zeros.  The default is a quarter of the memory that this process may use, and at most
        2 GiB.

    Raises
    ------
    ArgumentError
        It is not an integer, or less than 0.

    Notes
    -----
    If more is kept, the excess is returned at once, the oldest blocks first.

    Examples
    --------
    >>> before = wg.memory.info().limit
    >>> wg.memory.limit(1 << 28)
    >>> wg.memory.info().limit
    268435456
    >>> wg.memory.limit(before)
    """
    number = byte_count(bytes, "limit", "; 0 keeps no memory")
    _AllocatorState.limit = number
    if _AllocatorState.functions is not None:
        _AllocatorState.functions["limit"](number)


def trim(bytes: SupportsIndex = 0) -> int:
    """Return free blocks to the system, the oldest first.

    Parameters
    ----------
    bytes : int
        How many bytes may still be kept.

    Returns
    -------
    int
        How many bytes were returned.

    Raises
    ------
    ArgumentError
        It is not an integer, or less than 0.

    Examples
    --------
    >>> wg.memory.trim() >= 0
    True
    >>> wg.memory.info().kept
    0
    """
    number = byte_count(bytes, "trim", "; trim() returns all")
    return (
        0 if _AllocatorState.functions is None else int(_AllocatorState.functions["trim"](number))
    )


def attach(functions: Mapping[str, Any]) -> None:
    """Register the native functions "read", "limit" and "trim", and pass them the limit."""
    _AllocatorState.functions = functions
    functions["limit"](_AllocatorState.limit)

"""The public settings and counters of the recycling allocator.

    info     how many bytes are used and kept, and how often blocks were recycled
    limit    how many bytes may be kept
    trim     return kept blocks to the system
    attach   the functions of the native module, once it is loaded

The allocator is native code (allocator.py).  Nothing here loads it, or LLVM.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, SupportsIndex

from wengert._engine.core.validation import byte_count

from .machine import memory

_MAX_POOL_BYTES = 2 << 30


@dataclass(frozen=True)
class AllocatorInfo:
    """Counters of the memory that is recycled.

    Attributes
    ----------
    used : int
        Bytes of large blocks (more than 128 KiB) in arrays that live, and in workspaces.
    peak : int
        The most that `used` has been.
    kept : int
        Bytes of free blocks that wait for the next array of their size.
    limit : int
        The most that may be kept.
    hits, misses : int
        How many large blocks were recycled, and how many came from the system.
    returned : int
        Bytes that went back to the system.
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
    """The native functions, once there are any, and the limit until then."""

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
        0 keeps nothing: each large array then has fresh pages, which the system fills with zeros
        first.  At the beginning it is a quarter of the memory that this process may use, and at
        most 2 GiB.

    Raises
    ------
    ArgumentError
        It is not an integer, or less than 0.

    Notes
    -----
    What is kept beyond the new limit goes back at once, the oldest first.

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
    """Give free blocks back to the system, the oldest first.

    Parameters
    ----------
    bytes : int
        How many bytes may still be kept.

    Returns
    -------
    int
        How many bytes went back.

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
    number = byte_count(bytes, "trim", "; trim() gives all back")
    return (
        0 if _AllocatorState.functions is None else int(_AllocatorState.functions["trim"](number))
    )


def attach(functions: Mapping[str, Any]) -> None:
    """Take the native functions "read", "limit" and "trim", and pass them the limit."""
    _AllocatorState.functions = functions
    functions["limit"](_AllocatorState.limit)

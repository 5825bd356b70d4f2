"""Settings of the runtime: the number of threads, and the memory that the allocator keeps.

    get_threads    the number
    set_threads    sets it, for the duration of a `with` statement if used as one
    cores          the number of processors, limited by affinity and by the quota of a container
    memory         bytes of memory of the machine, or of the container

In a container with two of sixty-four cores the system reports sixty-four; sixty-two threads too
many would wait for each other.

    info     bytes used and kept, and how often blocks were recycled
    limit    sets how many bytes may be kept
    trim     returns kept blocks to the system

This module does not load LLVM.  The native thread pool (thread_pool.py) and allocator
(allocator.py) are registered by `attach_threads` and `attach_allocator`, once they are loaded.
"""

from __future__ import annotations

import ctypes
import math
import operator
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, SupportsIndex

from wengert._engine.core.validation import byte_count
from wengert.errors import ArgumentError, at, user_line

_VARIABLES = ("WENGERT_THREADS", "OMP_NUM_THREADS")


class _Setting:
    """The number, and the functions to be called when it changes."""

    def __init__(self) -> None:
        self.number = 0  # not determined yet
        self.listeners: list[Callable[[int], object]] = []

    def change(self, number: int) -> None:
        self.number = number
        for listener in self.listeners:
            listener(number)


_SETTING = _Setting()


class set_threads:
    """Set how many threads native functions use; in a `with` statement, until its end.

    Large loops are split over so many threads, and BLAS and LAPACK calls from native code use as
    many.  Small work stays on the calling thread.

    Parameters
    ----------
    threads : int
        At least 1.  The default is the environment variable WENGERT_THREADS or OMP_NUM_THREADS if
        one of them is a number, or else the number of processors that this process may use.

    Raises
    ------
    ArgumentError
        It is not an integer, or less than 1.

    Notes
    -----
    The setting is global for all Python threads.  Results are reproducible bit by bit for the same
    number of threads; for another number sums may round differently.

    Examples
    --------
    >>> before = wg.get_threads()
    >>> with wg.set_threads(1):
    ...     wg.get_threads()
    1
    >>> wg.get_threads() == before
    True
    """

    __module__ = "wengert"

    def __init__(self, threads: SupportsIndex) -> None:
        self._before = get_threads()
        _SETTING.change(checked(threads))

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _SETTING.change(self._before)

    def __repr__(self) -> str:
        return f"set_threads({get_threads()})"


def get_threads() -> int:
    """The number of threads that native functions use.

    Returns
    -------
    int
        The value of `set_threads`, or the default described there.

    Examples
    --------
    >>> wg.get_threads() >= 1
    True
    """
    if _SETTING.number == 0:
        _SETTING.number = _default()
    return _SETTING.number


def checked(threads: SupportsIndex) -> int:
    """Check and return a number of threads."""
    try:
        number = 0 if isinstance(threads, bool) else operator.index(threads)
    except TypeError:
        number = 0
    if not 1 <= number < 1 << 31:
        raise ArgumentError(
            f"threads={threads!r} is not a number of threads: give an integer that is at least 1; "
            f"1 computes everything on the calling thread{at(user_line())}."
        )
    return number


def attach_threads(listener: Callable[[int], object]) -> None:
    """Call a function with the number, now and whenever it changes."""
    _SETTING.listeners.append(listener)
    listener(get_threads())


def _default() -> int:
    for variable in _VARIABLES:
        first = os.environ.get(variable, "").split(",")[0].strip()
        if first.isdecimal() and 1 <= int(first) < 1 << 31:
            return int(first)
    return cores()


_GROUP = Path("/sys/fs/cgroup")
_UNKNOWN = 4 << 30  # bytes assumed if the system does not tell


def cores() -> int:
    """The number of processors that this process may run on; at least 1."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    quota = _group_file("cpu.max").split()
    if len(quota) == 2 and all(word.isdecimal() for word in quota) and int(quota[1]) > 0:
        count = min(count, math.ceil(int(quota[0]) / int(quota[1])))
    return max(count, 1)


def memory() -> int:
    """The bytes of memory that this process may use."""
    try:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not on Windows
        size = _UNKNOWN
    bound = _group_file("memory.max").strip()
    return min(size, int(bound)) if bound.isdecimal() else size


def _group_file(name: str) -> str:
    try:
        return (_GROUP / name).read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""


# ---- memory of the allocator ---------------------------------------------------------------------


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


def attach_allocator(functions: Mapping[str, Any]) -> None:
    """Register the native functions "read", "limit" and "trim", and pass them the limit."""
    _AllocatorState.functions = functions
    functions["limit"](_AllocatorState.limit)

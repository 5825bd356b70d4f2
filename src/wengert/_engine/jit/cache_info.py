"""The number of programs of a compiled function.

CacheInfo   the result of `Jitted.cache_info`
counted     the programs in the states of a function
added       the counts of a function, and of the one that runs its calls with labels or units
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .captured_state import CapturedState


class CacheInfo(NamedTuple):
    """The result of `Jitted.cache_info`.

    programs : the number of cached programs.
    general : the number of these that support many shapes.
    traces : the number of traces of the function, including failures.
    seconds : the time for tracing and compiling.
    """

    programs: int
    general: int
    traces: int
    seconds: float


CacheInfo.__module__ = "wengert.compiling"


def counted(states: Iterable[CapturedState], traces: int, seconds: float) -> CacheInfo:
    """The programs in the states of a function."""
    families = [f for s in states for known in list(s.families.values()) for f in known]
    general = sum(f.general is not None for f in families)
    programs = general + sum(len(f.exact) for f in families)
    return CacheInfo(programs, general, traces, seconds)


def added(own: CacheInfo, more: Any) -> CacheInfo:
    """The counts of two functions together; `more` is None if there is one."""
    if more is None:
        return own
    other: CacheInfo = more.cache_info()
    return CacheInfo(
        own.programs + other.programs,
        own.general + other.general,
        own.traces + other.traces,
        own.seconds + other.seconds,
    )

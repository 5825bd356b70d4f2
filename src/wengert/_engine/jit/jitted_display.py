"""How a compiled function is shown: as text, and as a table in notebooks.

text     its name, and how many programs it has
table    also what its programs serve, and the time for compiling them

The number of programs of a compiled function.

CacheInfo   the result of `Jitted.cache_info`
counted     the programs in the states of a function
added       the counts of a function, and of the one that runs its calls with labels or units
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from wengert._engine.core import display

if TYPE_CHECKING:
    from .captured_state import CapturedState


class CacheCounts(Protocol):
    """What `Jitted.cache_info` returns."""

    @property
    def programs(self) -> int: ...
    @property
    def general(self) -> int: ...
    @property
    def traces(self) -> int: ...
    @property
    def seconds(self) -> float: ...


class CountedCache(Protocol):
    """A compiled function, as far as it is shown."""

    __name__: str

    def cache_info(self) -> CacheCounts: ...


def _name(jitted: CountedCache) -> str:
    return getattr(jitted, "__qualname__", None) or jitted.__name__


def text(jitted: CountedCache) -> str:
    """``<jit of f, 1 programs>``."""
    return f"<jit of {_name(jitted)}, {jitted.cache_info().programs} programs>"


def table(jitted: CountedCache) -> str:
    """The state of its cache, for notebooks."""
    info = jitted.cache_info()
    return display.table(
        f"jit of {_name(jitted)}",
        {
            "programs": f"{info.programs}, of which {info.general} for all lengths of arrays",
            "traces": info.traces,
            "tracing and compiling": f"{info.seconds:.3g} s",
        },
    )


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

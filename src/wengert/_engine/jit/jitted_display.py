"""How a compiled function is shown: as text, and as a table in notebooks.

text     its name, and how many programs it has
table    also what its programs serve, and the time for compiling them
"""

from __future__ import annotations

from typing import Protocol

from wengert._engine.core import display


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

"""Inspection of a compiled function: its graph and code, its text, and a table for notebooks.

    text         its name, and how many programs it has
    table        also what its programs serve, and the time for compiling them
    CacheInfo    the result of `Jitted.cache_info`
    counted      the programs in the states of a function
    added        the counts of a function, and of the one that runs its calls with labels or units
    with_constants   the graph of a function whose captured arrays are constants

The graph is always available; loops, LLVM IR and machine instructions only if the backend generates
code (its method `program`, see backends/llvm).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from wengert._engine.core import display, pytree
from wengert._engine.core.handle import describe
from wengert._engine.core.spec import Spec
from wengert._engine.graphs import Graph, trace
from wengert.errors import BackendError, at, user_line

from .compiled_program import CompiledProgram

if TYPE_CHECKING:
    from .programs import CapturedState


class Lowered:
    """A function lowered for given arguments; made by ``f.lower(...)``.

    Attributes
    ----------
    graph : Graph
        The simplified graph.
    loops : str
        Fused loops, buffers and library calls.
    llvm_ir, assembly : str
        LLVM IR, and the machine instructions.

    Raises
    ------
    BackendError
        The backend does not generate code.
    """

    __module__ = "wengert.compiling"

    def __init__(self, compiled: CompiledProgram) -> None:
        self._compiled = compiled
        self._program: Any = None

    @property
    def graph(self) -> Graph:
        """The simplified graph, as it runs."""
        return self._compiled.executed

    @property
    def loops(self) -> str:
        """Fused loops, buffers and library calls."""
        summarize = getattr(self._compiled.backend, "summarize", None)
        return str(self._of_program("loops") if summarize is None else summarize(self.graph))

    @property
    def llvm_ir(self) -> str:
        """The LLVM IR before optimization by LLVM."""
        return str(self._of_program("text"))

    @property
    def assembly(self) -> str:
        """The machine instructions."""
        return str(self._of_program("assembly"))

    def _of_program(self, what: str) -> Any:
        backend = self._compiled.backend
        make = getattr(backend, "program", None)
        if self._program is None and make is not None:
            self._program = make(self.graph)
        if not hasattr(self._program, what):
            raise BackendError(
                f"the backend {backend.name!r} generates no code for {self.graph.name}, so there "
                f"is no {what}. Compile it with backend='llvm'{at(user_line())}."
            )
        attribute = getattr(self._program, what)
        return attribute() if callable(attribute) else attribute

    def __str__(self) -> str:
        return str(self.graph)

    def __repr__(self) -> str:
        nodes = len(self.graph)
        return f"<{self.graph.name} lowered: {nodes} nodes, {self._compiled.backend.name}>"


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


def with_constants(fun: Any, args: Sequence[Any], is_plain: bool = True) -> Graph:
    """The simplified graph of a compiled function, whose captured arrays are constants.

    Raises
    ------
    BackendError
        The function has static arguments too (it is not `is_plain`).
    """
    if not is_plain:
        raise BackendError(
            f"{fun.__name__} has static arguments and captures arrays, so it has no address. Pass "
            f"the arrays as arguments{at(user_line())}."
        )
    return trace(fun)(*[pytree.tree_map(spec_of_argument, a) for a in args]).simplify()


def spec_of_argument(x: Any) -> Any:
    """The spec of an argument; objects that are not arrays or numbers unchanged."""
    spec = x if isinstance(x, Spec) else describe(x)
    return spec if isinstance(spec, Spec) else x

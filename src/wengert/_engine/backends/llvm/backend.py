"""The backend "llvm": native code.

A graph is compiled once for all its sizes; `compile` binds the sizes.  A native run that fails (an
index out of range, a singular matrix) is repeated by the interpreter, which raises the error.

    Native      the backend, with its options
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from wengert._engine.backends.registry import Backend, Run, backend, register_backend
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.thread_state import lock

from . import cache
from .abi import is_available
from .abi.guarded_entries import LayoutDispatch, layout_of
from .compiled_programs import (
    CachedProgram,
    LoadedProgram,
    entry_of,
    has_entry,
    has_program,
    program_of,
    traced_key,
)

if TYPE_CHECKING:
    from wengert._engine.backends import interpreter_profile
    from wengert._engine.backends.interpreter import Interpreter
    from wengert._engine.core.types import Array
    from wengert._engine.profiling.record import Timing

    from . import program as programs
    from .abi import c_pointers, python_function
    from .export import files
    from .export.files import FunctionToExport
    from .profile import profile_runner, program_summary
    from .profile.program_summary import Summary
    from .program import Program
else:
    files = LazyModule("wengert._engine.backends.llvm.export.files")
    interpreter_profile = LazyModule("wengert._engine.backends.interpreter_profile")
    programs = LazyModule("wengert._engine.backends.llvm.program")
    profile_runner = LazyModule("wengert._engine.backends.llvm.profile.profile_runner")
    program_summary = LazyModule("wengert._engine.backends.llvm.profile.program_summary")
    c_pointers = LazyModule("wengert._engine.backends.llvm.abi.c_pointers")
    python_function = LazyModule("wengert._engine.backends.llvm.abi.python_function")

_IN_PLACE = "in place"  # key among the layouts


class Native(Backend):
    """Native code, compiled by LLVM for the processor of this computer; see `Backend`."""

    name = "llvm"
    tolerance = 1e-12

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads
        self._programs: weakref.WeakKeyDictionary[BaseGraph, Program] = weakref.WeakKeyDictionary()
        self._compiled: weakref.WeakKeyDictionary[BaseGraph, dict[str, LoadedProgram]]
        self._compiled = weakref.WeakKeyDictionary()
        self._lock = lock()

    def __reduce__(self) -> Any:
        """Pickle the options; programs are compiled again when needed."""
        return _configured, (self.threads,)

    @functools.lru_cache(maxsize=64)  # noqa: B019 - one entry for each number of threads
    def configured(self, threads: int | None = None) -> Native:
        """The same backend for another number of threads."""
        return self if threads == self.threads else Native(threads)

    def program(self, graph: BaseGraph) -> Program:
        """The program of a graph, for inspection."""
        with self._lock:
            found = self._programs.get(graph)
            if found is None:
                found = self._programs[graph] = programs.Program(graph, self.threads)
            return found

    def summarize(self, graph: BaseGraph) -> Summary:
        """The loop nests, library calls, host callbacks and buffers of a graph's program."""
        return program_summary.summary_of(self.program(graph))

    def compiled(self, graph: BaseGraph, layouts: str = "") -> LoadedProgram:
        """The program of a graph in memory, for all its sizes.

        Parameters
        ----------
        graph : Graph
        layouts : str
            The memory layout of each input, then of each variable; by default C order.
        """
        with self._lock:
            known = self._compiled.setdefault(graph, {})
            found = known.get(layouts)
            if found is None:
                made = None if layouts else self._programs.get(graph)
                program = made or program_of(graph, self.threads, layouts)
                found = known[layouts] = self._compiled_from(graph, program, layouts)
            return found

    def _compiled_from(
        self, graph: BaseGraph, program: Program | CachedProgram, layouts: str = ""
    ) -> LoadedProgram:
        """A program loaded into memory; the one for default layouts is cached."""
        made = LoadedProgram(program)
        if not layouts and not isinstance(made.program, CachedProgram):
            self._programs.setdefault(graph, made.program)
        return made

    def overwriting(self, graph: BaseGraph) -> LoadedProgram:
        """The program that writes updates in place if there is one, else that of `compiled`."""
        with self._lock:
            known = self._compiled.setdefault(graph, {})
            found = known.get(_IN_PLACE)
            if found is None:
                program = program_of(graph, self.threads, overwrites=True)
                if program.overwritten and program.cannot_fail:
                    found = LoadedProgram(program)
                elif program.overwritten or "" in known:
                    found = self.compiled(graph)
                else:  # there are no updates to overwrite: the usual program
                    found = known[""] = self._compiled_from(graph, program)
                known[_IN_PLACE] = found
            return found

    def overwritten(self, graph: BaseGraph) -> list[int]:
        """The indices of the variables whose arrays the overwriting entry point writes to."""
        first = len(graph.inputs)
        return [k - first for k in self.overwriting(graph).program.overwritten.values()]

    def key_before_simplification(self, graph: BaseGraph) -> bytes | None:
        """The `cache_key` of the simplified form of a traced graph; None if it has none."""
        return traced_key(graph)

    def is_on_disk(self, key: bytes) -> bool:
        """Whether there is a program on disk for the `cache_key` of a graph."""
        return has_program(key, self.threads)

    def compile(self, graph: BaseGraph, sizes: Mapping[str, int]) -> Run:
        """The program, with its sizes bound."""
        compiled = self.compiled(graph)
        bound = dict(sizes)

        def run(values: Sequence[Any]) -> list[Any]:
            found = compiled.run(values, bound)
            if found is None:
                found = backend("interpret").compile(graph, bound)(values)
            return found

        return run

    def entry(
        self,
        graph: BaseGraph,
        single: bool,
        otherwise: Callable[..., Any],
        gate: Array | None = None,
        nested: bool = False,
        overwrites: bool = False,
        fed: Sequence[Any] = (),
    ) -> Callable[..., Any] | None:
        """A built-in Python function that runs a graph.

        Parameters
        ----------
        graph : Graph
        single : bool
            Whether it returns the only output instead of a tuple.
        otherwise : callable
            Called with the same arguments if the entry point does not support a call.
        gate : numpy.ndarray, optional
            One int64; while it is nonzero, `otherwise` is called.
        nested : bool
            Whether it returns nested tuples, as the graph does.
        overwrites : bool
            Whether it may write updates into the given arrays of variables (see `overwritten`) and
            return these. They must be writable and referenced by nothing else.
        fed : sequence
            Example arrays, whose memory layouts the program is compiled for.

        Returns
        -------
        builtin_function_or_method, or None
            None if the interpreter is not supported, or the results are nested in another way.
        """
        if not is_available():
            return None
        first = self.overwriting(graph) if overwrites else None
        program = (first or self.compiled(graph)).program
        if single != program.is_single or any(program.counts):
            return None
        if nested and program.nesting is None:
            return None
        symbol = "nested" if nested else "entry"

        def make(layouts: str = "", miss: Callable[..., Any] = otherwise) -> Any:
            compiled = self.compiled(graph, layouts) if layouts or first is None else first
            return entry_of(compiled, miss, otherwise, gate, symbol)

        specs = [n.spec for n in (*graph.inputs, *graph.variables)]
        layouts = "".join(map(layout_of, fed, specs))
        if "-" in layouts:
            return None
        if "F" in layouts or "S" in layouts:
            special: Callable[..., Any] = make(layouts)
            return special
        made: Callable[..., Any] = make(miss=LayoutDispatch(specs, make, otherwise))
        return made

    def writing_entry(self, *parts: Any) -> Callable[..., Any]:
        """An entry point of a function that modifies arguments; see `abi/python_function.py`."""
        return python_function.writing_entry(*parts)

    def timed(
        self,
        graph: BaseGraph,
        values: Sequence[Any],
        sizes: Mapping[str, int],
        repeats: int | None = None,
        call: Callable[[], object] | None = None,
        overwrites: bool = False,
    ) -> Timing:
        """The time of a run by loop nests, kernel calls, host callbacks, and steps of loops."""
        profile_runner.check_timers()
        specs = [n.spec for n in (*graph.inputs, *graph.variables)]
        layouts = "".join(map(layout_of, values, specs)).replace("-", "C")
        layouts = layouts if set(layouts) - {"C"} else ""
        own = self.compiled(graph, layouts)
        if overwrites and graph.updates and not layouts and has_entry(own.program):
            own = self.overwriting(graph)
        found = profile_runner.timed(
            own, graph, values, sizes, repeats, call, self.threads, layouts
        )
        if found is None:  # the run failed: the interpreter raises the error
            return interpreter_profile.timed_by_nodes(
                cast("Interpreter", backend("interpret")), graph, values, sizes, repeats, call
            )
        return found

    def address(self, graph: BaseGraph, signature: str = "numbers", library: Any = None) -> Any:
        """A C function pointer; see `abi.c_pointers`."""
        compiled = self.compiled(graph)
        return c_pointers.pointer(compiled.program, compiled.code, signature, library)

    def export(
        self, path: Path, functions: Sequence[FunctionToExport], **options: Any
    ) -> files.Export:
        """The contents of files with functions for other languages; see `export.files`."""
        return files.rendered(path, functions, **options)


def _configured(threads: int | None) -> Any:
    native: Any = backend("llvm")
    return native.configured(threads)


cache.load()
register_backend(Native())

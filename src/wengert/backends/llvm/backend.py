"""Backend: native code as one of the backends, ``backend="llvm"``.

A graph is written once for all its sizes; `compile` binds the sizes.  What a native run cannot
finish - an index out of range, a singular matrix - the interpreter runs again, for its error.

    Native      the backend, with its options
    Compiled    the program of one graph, in memory
"""

from __future__ import annotations

import ctypes
import functools
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.dims import replaced
from ...core.graph import Graph
from ..base import Backend, Run, backend, register_backend
from . import engine
from .entry import is_available, make_entry
from .entry.pointers import pointer
from .islands import RAISED
from .program import Program
from .runtime.objects import kept_object_of
from .runtime.pool import handler

_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)


class Compiled:
    """The program of one graph, in memory.

    Attributes
    ----------
    program : Program
    code : Code
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.code = engine.Code(kept_object_of(program.text), program.symbols)
        self._kernel = _KERNEL(self.code.address("kernel"))

    def run(self, values: Sequence[Any], sizes: Mapping[str, int]) -> list[Any] | None:
        """The results for values of inputs and variables; None where there are none."""
        program = self.program
        frame = np.zeros(max(program.slots, 1), np.int64)
        held = []
        for value, port in zip(values, program.inputs, strict=True):
            array = np.ascontiguousarray(value, port.spec.dtype)
            held.append(array)
            frame[port.slot] = array.ctypes.data
        for name, slot in zip(program.sizes, program.size_slots, strict=True):
            frame[slot] = sizes[name]
        results = []
        for port in program.outputs:
            shape = tuple(replaced(n, sizes) for n in port.spec.shape)
            array = np.empty(shape, port.spec.dtype)
            results.append(array)
            frame[port.slot] = array.ctypes.data
        for slot, array in program.constants:
            frame[slot] = array.ctypes.data
        status = self._kernel(frame.ctypes.data)
        if status == RAISED:
            raise program.callbacks.take_error()
        if status:
            return None
        found = iter([r if r.ndim else r[()] for r in results])
        return [
            tuple([next(found) for _ in range(n)]) if n else next(found) for n in program.counts
        ]


class Native(Backend):
    """Native code, compiled by LLVM for the processor of this computer; see `Backend`."""

    name = "llvm"
    tolerance = 1e-12

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads
        self._programs: weakref.WeakKeyDictionary[Graph, Program] = weakref.WeakKeyDictionary()
        self._compiled: weakref.WeakKeyDictionary[Graph, Compiled] = weakref.WeakKeyDictionary()
        self._lock = threading.RLock()

    @functools.lru_cache(maxsize=64)  # noqa: B019 - one for each number of threads
    def configured(self, threads: int | None = None, islands: str = "allow") -> Native:
        """The same backend with other options."""
        return self if threads == self.threads else Native(threads)

    def program(self, graph: Graph) -> Program:
        """A graph as a program, to be looked at."""
        with self._lock:
            found = self._programs.get(graph)
            if found is None:
                found = self._programs[graph] = Program(graph, self.threads)
            return found

    def compiled(self, graph: Graph) -> Compiled:
        """The program of a graph in memory, for all its sizes."""
        with self._lock:
            found = self._compiled.get(graph)
            if found is None:
                found = self._compiled[graph] = Compiled(self.program(graph))
            return found

    def compile(self, graph: Graph, sizes: Mapping[str, int]) -> Run:
        """The program, with its sizes."""
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
        graph: Graph,
        single: bool,
        otherwise: Callable[..., Any],
        gate: Any = None,
        nested: bool = False,
    ) -> Callable[..., Any] | None:
        """A function of Python that runs a graph at the cost of a call.

        Parameters
        ----------
        graph : Graph
        single : bool
            Whether it returns its only output, and no tuple.
        otherwise : callable
            What calls go to that it does not serve, with the same arguments.
        gate : numpy.ndarray, optional
            One int64; while it is not zero all calls go there.
        nested : bool
            Whether it returns tuples in tuples, as the graph does.

        Returns
        -------
        builtin_function_or_method, or None
            None where this interpreter is not one that entries are made for, or the results are
            nested in another way.
        """
        if not is_available():
            return None
        compiled = self.compiled(graph)
        program = compiled.program
        if single != program.is_single or any(program.counts):
            return None
        if nested and program.nesting is None:
            return None

        def failed(*args: Any) -> Any:
            return otherwise(*args)

        def island_error() -> None:
            raise program.callbacks.take_error()

        return make_entry(
            program,
            compiled.code,
            otherwise,
            failed,
            island_error,
            handler=handler(),
            gate=gate,
            symbol="nested" if nested else "entry",
        )

    def address(self, graph: Graph, signature: str = "numbers") -> Any:
        """A C function pointer; see `entry.pointers`."""
        compiled = self.compiled(graph)
        return pointer(compiled.program, compiled.code, signature)


register_backend(Native())

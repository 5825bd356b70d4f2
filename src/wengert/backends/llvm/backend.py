"""Backend: native code as one of the backends, ``backend="llvm"``.

A graph is written once for all its sizes; `compile` binds the sizes.  What a native run cannot
finish - an index out of range, a singular matrix - the interpreter runs again, for its error.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.dims import replaced
from ...core.graph import Graph
from ..base import Backend, Run, backend, register_backend
from . import engine
from .islands import RAISED
from .program import Program

_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)


class Compiled:
    """A program in memory."""

    def __init__(self, graph: Graph) -> None:
        self.program = Program(graph)
        image = engine.object_of(self.program.text)
        self.code = engine.Code(image, self.program.symbols)
        self.kernel = _KERNEL(self.code.address("kernel"))

    def run(self, values: Sequence[Any], sizes: Mapping[str, int]) -> list[Any] | None:
        """The results; None where the interpreter has to say what is wrong."""
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
        status = self.kernel(frame.ctypes.data)
        if status == RAISED:
            raise program.islands.take_error()
        if status:
            return None
        return [r if r.ndim else r[()] for r in results]


class Native(Backend):
    """Native code, compiled by LLVM for the processor of this computer; see `Backend`."""

    name = "llvm"
    tolerance = 1e-12

    def __init__(self) -> None:
        self._compiled: weakref.WeakKeyDictionary[Graph, Compiled] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def compiled(self, graph: Graph) -> Compiled:
        """The program of a graph, for all its sizes."""
        with self._lock:
            found = self._compiled.get(graph)
            if found is None:
                found = self._compiled[graph] = Compiled(graph)
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


register_backend(Native())

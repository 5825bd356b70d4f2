"""The backend "cuda": kernels and library functions on a device.

A graph is compiled once for all its sizes. A run that fails is repeated by the interpreter, which
raises the error. Arguments may be arrays of the host or of the device; results stay on the device.

    Cuda    the backend
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from wengert._engine.backends.registry import Backend, Run, backend, register_backend
from wengert._engine.core.fork_safe_locks import lock
from wengert._engine.core.graph import BaseGraph

from .device import Device, current
from .program import Failed, Program


class Cuda(Backend):
    """Kernels on a graphics card; see `Backend`."""

    __module__ = "wengert.backends"

    name = "cuda"
    tolerance = 1e-12

    def __init__(self) -> None:
        self._programs: weakref.WeakKeyDictionary[BaseGraph, dict[Device, Program]]
        self._programs = weakref.WeakKeyDictionary()
        self._lock = lock()

    def program(self, graph: BaseGraph, device: Device) -> Program:
        """The program of a graph on a device."""
        with self._lock:
            known = self._programs.setdefault(graph, {})
            found = known.get(device)
            if found is None:
                found = known[device] = Program(graph, device)
            return found

    def compile(self, graph: BaseGraph, sizes: Mapping[str, int]) -> Run:
        """The program, with its sizes bound."""
        bound = dict(sizes)

        def run(values: Sequence[Any]) -> list[Any]:
            device = current()
            program = self.program(graph, device)
            given = [_on_device(device, x) for x in values]
            try:
                return program.run(given, bound)
            except Failed:
                host = [device.get(x)[()] if device.owns(x) else x for x in given]
                found = backend("interpret").compile(graph, bound)(host)
                return [_placed(device, x) for x in found]

        return run


def _on_device(device: Device, x: Any) -> Any:
    """An argument on the device; a number stays on the host."""
    if device.owns(x):
        return device.contiguous(x)
    return device.put(x) if getattr(x, "ndim", 0) else x


def _placed(device: Device, x: Any) -> Any:
    return tuple([device.put(y) for y in x]) if isinstance(x, tuple) else device.put(x)


register_backend(Cuda())

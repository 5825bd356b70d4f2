"""The backend "cuda": kernels and library functions on a device.

A graph is compiled once for all its sizes. A run that fails is repeated by the interpreter, which
raises the error. Arguments may be arrays of the host or of the device; results stay on the device.

    Cuda    the backend
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert._engine.backends.registry import Backend, Run, backend, register_backend
from wengert._engine.core.device_arrays import host_values, is_on_device
from wengert._engine.core.fork_safe_locks import lock
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.spec import Spec

from .current_device import current
from .device import Device
from .listing import Listing
from .program import DeviceProgram, Failed


class Cuda(Backend):
    """Kernels on a graphics card; see `Backend`."""

    __module__ = "wengert.backends"

    name = "cuda"
    tolerance = 1e-12

    def __init__(self) -> None:
        self._programs: weakref.WeakKeyDictionary[BaseGraph, dict[Device, DeviceProgram]]
        self._programs = weakref.WeakKeyDictionary()
        self._lock = lock()

    def __reduce__(self) -> Any:
        return backend, (self.name,)

    def program(self, graph: BaseGraph) -> Listing:
        """The kernels of a graph, for inspection."""
        return Listing(graph)

    def loaded(self, graph: BaseGraph, device: Device) -> DeviceProgram:
        """The program of a graph on a device."""
        with self._lock:
            known = self._programs.setdefault(graph, {})
            found = known.get(device)
            if found is None:
                found = known[device] = DeviceProgram(graph, device)
            return found

    def compile(self, graph: BaseGraph, sizes: Mapping[str, int]) -> Run:
        """The program, with its sizes bound."""
        bound = dict(sizes)

        def run(values: Sequence[Any]) -> list[Any]:
            device = current()
            program = self.loaded(graph, device)
            given = [_on_device(device, x) for x in values]
            try:
                found = program.run(given, bound)
            except Failed:
                host = [device.get(x)[()] if device.owns(x) else x for x in given]
                found = backend("interpret").compile(graph, bound)(host)
                found = [_placed(device, x) for x in found]
            # The values of variables are on the host.
            count = len(graph.outputs)
            return _apart(found[:count], given) + list(map(host_values, found[count:]))

        return run

    def fitted(self, value: Any, spec: Spec, name: str) -> Any:
        """A value converted to the spec of an input; an array of the device stays there."""
        if not is_on_device(value):
            return super().fitted(value, spec, name)
        array = current().put(value)
        # An array of the host without elements of its own: the checks are the same.
        stand_in = np.broadcast_to(np.zeros((), array.dtype), array.shape)
        super().fitted(stand_in, spec, name)
        return array if array.dtype == spec.dtype else array.astype(spec.dtype)

    def own(self, results: list[Any]) -> list[Any]:
        """Results of a run, which are arrays of the device."""
        return results


def _on_device(device: Device, x: Any) -> Any:
    """An argument on the device; a number stays on the host."""
    if device.owns(x):
        return device.contiguous(x)
    return device.put(x) if getattr(x, "ndim", 0) else x


def _apart(results: list[Any], given: Sequence[Any]) -> list[Any]:
    """Results that share no memory with arguments, nor with each other."""
    seen = {id(x) for x in given}
    apart: list[Any] = []
    for x in results:
        if id(x) in seen:
            x = x.copy()
        seen.add(id(x))
        apart.append(x)
    return apart


def _placed(device: Device, x: Any) -> Any:
    return tuple([device.put(y) for y in x]) if isinstance(x, tuple) else device.put(x)


register_backend(Cuda())

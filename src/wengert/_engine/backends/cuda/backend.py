"""The backend "cuda": kernels and library functions on a device.

A graph is compiled once for all its sizes. A run that fails is repeated by the interpreter, which
raises the error. Arguments may be arrays of the host or of the device; results stay on the device.

    Cuda    the backend
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from wengert._engine.backends.interpreter_profile import timed_by_nodes
from wengert._engine.backends.registry import Backend, Run, backend, register_backend
from wengert._engine.core.device_arrays import DeviceValue, host_values, is_on_device
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.node import Node
from wengert._engine.core.spec import Spec, spec_of
from wengert._engine.core.thread_state import lock
from wengert.errors import ConversionError, GuardError, MatrixError, at, user_line

from . import device_profile
from .checked_values import Sought, is_repeatable
from .current_device import current
from .device import Device, Failed
from .device_memory import out_of_memory
from .host_callbacks import CallbackLog
from .listing import Listing
from .program import DeviceProgram
from .variables import argument, values_on_device, write_on_device

if TYPE_CHECKING:
    from wengert._engine.backends.interpreter import Interpreter
    from wengert._engine.core.runtime_checks import Checks
    from wengert._engine.profiling.record import Timing


class Cuda(Backend):
    """Kernels on a graphics card; see `Backend`."""

    __module__ = "wengert.backends"

    name = "cuda"
    tolerance = 1e-12

    def __init__(self, host_callbacks: bool = True) -> None:
        self._host_callbacks = host_callbacks
        self._programs: weakref.WeakKeyDictionary[BaseGraph, dict[Any, DeviceProgram]]
        self._programs = weakref.WeakKeyDictionary()
        self._lock = lock()

    def __reduce__(self) -> Any:
        return _restored, (self._host_callbacks,)

    def without_host_callbacks(self) -> Cuda:
        """The backend that raises an error for operations that would run on the host."""
        return _FORBIDDING

    def program(self, graph: BaseGraph) -> Listing:
        """The kernels of a graph, for inspection; of the last run, if it has run."""
        with self._lock:
            programs = self._programs.get(graph, {}).values()
            known = [program for program in programs if program.sought is None]
        return Listing(graph, known[-1] if known else None)

    def loaded(
        self, graph: BaseGraph, device: Device, sought: Sought | None = None
    ) -> DeviceProgram:
        """The program of a graph on a device; with `sought`, one that looks for such values."""
        with self._lock:
            known = self._programs.setdefault(graph, {})
            found = known.get((device, sought))
            if found is None:
                callbacks = CallbackLog(self._host_callbacks)
                made = DeviceProgram(graph, device, callbacks=callbacks, sought=sought)
                found = known[device, sought] = made
            return found

    def compile(self, graph: BaseGraph, sizes: Mapping[str, int]) -> Run:
        """The program, with its sizes bound."""
        bound = dict(sizes)
        repeated = partial(backend("interpret").compile, graph, bound)
        return partial(self._run, graph, bound, repeated, None)

    def checked(self, graph: BaseGraph, sizes: Mapping[str, int], checks: Checks) -> Run:
        """The program with a search for values that are not finite.

        If it finds one, the interpreter repeats the run and checks each node. Graphs that are not
        to be run twice are run by it only.
        """
        if not is_repeatable(graph):
            return super().checked(graph, sizes, checks)
        repeated = partial(super().checked, graph, sizes, checks)
        return partial(self._run, graph, dict(sizes), repeated, Sought(checks.nan, checks.inf))

    def _run(
        self,
        graph: BaseGraph,
        sizes: Mapping[str, int],
        repeated: Callable[[], Run],
        sought: Sought | None,
        values: Sequence[Any],
    ) -> list[Any]:
        """Results of the program on the device, or, if it fails, of `repeated` on the host."""
        device = current()
        program = self.loaded(graph, device, sought)
        given = _uploaded(device, values, graph)
        # A matrix with NaN may be refused, and a loop with NaN may not end.
        failures = (Failed,) if sought is None else (Failed, MatrixError, GuardError)
        try:
            found = program.run(given, sizes)
        except failures:
            host = [device.get(x)[()] if device.owns(x) else x for x in given]
            found = [_placed(device, x) for x in repeated()(host)]
        return _apart(device, found, given)

    def timed(
        self,
        graph: BaseGraph,
        values: Sequence[Any],
        sizes: Mapping[str, int],
        repeats: int | None = None,
        call: Callable[[], object] | None = None,
        overwrites: bool = False,
    ) -> Timing:
        """The time of a run by kernels and calls, measured by events of the device."""
        device = current()
        program = self.loaded(graph, device)
        given = _uploaded(device, values, graph)
        try:
            return device_profile.timed(
                graph, program.for_sizes(sizes), given, sizes, repeats, call
            )
        except Failed:
            host = [host_values(x) for x in given]
            interpreter = cast("Interpreter", backend("interpret"))
            return timed_by_nodes(interpreter, graph, host, sizes, repeats, call)

    def values_of(self, owners: Sequence[Any], written: Collection[Any]) -> list[Any]:
        """The values of variables on the device, where they stay."""
        return values_on_device(current(), owners, written) if owners else []

    def write(self, owners: Sequence[Any], values: Sequence[Any]) -> None:
        """Give variables new values, which stay on the device."""
        write_on_device(current(), owners, values)

    def argument(self, node: Node) -> Any:
        """The value of a tensor; not copied to the host if it is on the device."""
        return argument(current(), node)

    def placed(self, value: Any) -> Any:
        """An array of the host on the device; where it has no memory, the run raises the error."""
        if type(value) is not np.ndarray or not value.ndim or value.dtype.kind not in "biufc":
            return value
        try:
            return current().put(value)
        except MemoryError:
            return value

    def result(self, value: Any) -> Any:
        """The value of a result for a tensor, which is copied to the host when it is read."""
        device = current()
        return DeviceValue(value, device, device.get) if device.owns(value) else value

    def fitted(self, value: Any, spec: Spec, name: str) -> Any:
        """A value converted to the spec of an input; an array of the device stays there."""
        if not is_on_device(value):
            return super().fitted(value, spec, name)
        device = current()
        array = device.put(value)
        if device.place(array) != device.number:
            raise ConversionError(
                f"{name} is an array of graphics card {device.place(array)}, but card "
                f"{device.number} is in use. Call this in a block `with cupy.cuda.Device("
                f"{device.place(array)}):`, or copy the array, cupy.asarray(wengert.device_get(x))"
                f"{at(user_line())}."
            )
        # An array of the host without elements of its own: the checks are the same.
        stand_in = np.broadcast_to(np.zeros((), array.dtype), array.shape)
        super().fitted(stand_in, spec, name)
        return array if array.dtype == spec.dtype else array.astype(spec.dtype)

    def own(self, results: list[Any]) -> list[Any]:
        """Results of a run, which are arrays of the device."""
        return results


def _uploaded(device: Device, values: Sequence[Any], graph: BaseGraph) -> list[Any]:
    """The values of the inputs and variables of a graph, on the device."""
    given: list[Any] = []
    try:
        for x in values:
            given.append(_on_device(device, x))
    except MemoryError as error:
        held = [x for x in given if device.owns(x)]
        leaves = (*graph.inputs, *graph.variables)
        what = f"the argument {leaves[len(given)].name or len(given)}"
        raise out_of_memory(device, what, [spec_of(x)], held, None) from error
    return given


def _on_device(device: Device, x: Any) -> Any:
    """An argument on the device; a number of the host stays there."""
    if device.owns(x):
        return device.contiguous(x)
    return device.put(x) if getattr(x, "ndim", 0) else x


def _apart(device: Device, results: list[Any], given: Sequence[Any]) -> list[Any]:
    """Results that share no memory with arguments, nor with each other."""
    seen = {device.address(x) for x in given if device.owns(x)}
    apart: list[Any] = []
    for x in results:
        if device.owns(x) and x.size:
            if device.address(x) in seen:
                x = x.copy()
            seen.add(device.address(x))
        apart.append(x)
    return apart


def _placed(device: Device, x: Any) -> Any:
    return tuple([device.put(y) for y in x]) if isinstance(x, tuple) else device.put(x)


def _restored(host_callbacks: bool) -> Any:
    found: Any = backend("cuda")
    return found if host_callbacks else found.without_host_callbacks()


_FORBIDDING = Cuda(host_callbacks=False)
register_backend(Cuda())

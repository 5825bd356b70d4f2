"""Laws of device code: kernels, run by an emulated device, agree with eager execution.

    device_values_agree    values for all dtypes that the operation accepts, special values;
                           operands that are broadcast, empty, 0-d, or parts of other arrays

The threads of a kernel run one after the other, in random order; results have memory that was
filled with other numbers. A run that is left to the interpreter violates the law, as for native
code (native_code.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert._engine.backends import Backend
from wengert._engine.backends.cuda import EmulatedDevice
from wengert._engine.backends.cuda.device import Failed
from wengert._engine.backends.cuda.program import DeviceProgram

from .common import law
from .native_code import Unfinished, native_values


class StrictDevice(Backend):
    """An emulated device without fallback to the interpreter; results are copied to the host."""

    name = "device code alone"

    def __init__(self) -> None:
        self.device = EmulatedDevice(threads=5)

    def compile(self, graph: Any, sizes: Mapping[str, int]) -> Callable[[Sequence[Any]], list[Any]]:
        """The program, with its sizes."""
        program, device = DeviceProgram(graph, self.device), self.device

        def run(values: Sequence[Any]) -> list[Any]:
            given = [device.put(x) if getattr(x, "ndim", 0) else x for x in values]
            try:
                return [_on_host(device, x) for x in program.run(given, sizes)]
            except Failed as error:
                raise Unfinished("a kernel returned no result.") from error

        return run


def _on_host(device: EmulatedDevice, x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple([_on_host(device, y) for y in x])
    return device.get(x)[()] if device.owns(x) else x


@law
def device_values_agree(op: Any, rng: np.random.Generator) -> None:
    """Values of kernels agree with eager execution, for all dtypes, shapes and layouts."""
    native_values(op, rng, thorough=False, alone=StrictDevice)

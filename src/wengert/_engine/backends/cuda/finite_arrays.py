"""The kernel that looks for NaN or infinities in an array, and sets the status of a run.

Nothing waits for it. It serves the checks of `wengert.debug(nan=True)` (checked_values.py), and
products in which zero times infinity is zero (strong_products.py).

    look        start it
    look_after  start it for the arrays that a stage has stored
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..llvm.ir.ir_builder import Function, ModuleBuilder, Name, Section
from ..llvm.ir.llvm_types import in_memory, part_of
from .checked_values import Sought
from .device import Device
from .kernel_codegen import DeviceKernel
from .loaded_kernels import element_kernel, launch_of
from .stage_memory import RunningStages


def look(device: Device, array: Any, status: Any, sought: Sought, code: int = 1) -> None:
    """Start a kernel that sets the status to `code` if an element of an array is not finite."""
    made = device.contiguous(array)
    parts = made.size * (2 if made.dtype.kind == "c" else 1)
    if parts:
        kind = in_memory(part_of(made.dtype))
        name = f"{'nan_' * sought.nan}{'inf_' * sought.inf}{kind}_{code}"
        launch = launch_of(device, name, partial(_kernel, name, kind, sought, code))
        launch([made, status, np.int64(parts)], parts)


def look_after(run: RunningStages, stage: Any, number: int) -> None:
    """Look at the arrays of a stage that the kernel of that number has not looked at."""
    program = run.program
    for x in program.checked.after(stage, number not in program.unchanged, program.parts):
        if x in run.arrays:
            look(run.device, run.arrays[x], run.status, program.sought)


def _kernel(name: str, kind: str, sought: Sought, code: int) -> DeviceKernel:
    return element_kernel(
        name, [("ptr", "x"), ("ptr", "status")], partial(_look, kind, sought, code)
    )


_BITS = {"half": (16, 10), "float": (32, 23), "double": (64, 52)}  # all, and of the fraction


def _look(
    kind: str,
    sought: Sought,
    code: int,
    module: ModuleBuilder,
    function: Function,
    s: Section,
    element: Name,
) -> None:
    """Look at one number: the bits of an infinity have no fraction, those of NaN have one."""
    size, fraction = _BITS[kind]
    infinity = (1 << (size - 1)) - (1 << fraction)
    address = s.value(f"getelementptr i{size}, ptr %x, i64 {element}")
    bits = s.value(f"load i{size}, ptr {address}")
    size_bits = s.value(f"and i{size} {bits}, {(1 << (size - 1)) - 1}")
    relation = ("uge" if sought.inf else "ugt") if sought.nan else "eq"
    with s.when(s.value(f"icmp {relation} i{size} {size_bits}, {infinity}")) as found:
        found.write(f"store i64 {code}, ptr %status")

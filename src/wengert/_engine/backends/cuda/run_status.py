"""The status of a run: conditions, NaN and infinities that kernels report without a copy.

    RunStatus     the status of a run and of its bodies
    checked       the result of `accepted`, `refuse_residual` or `refuse_singular`: its first
                  operand
    look          start it
    look_after    start it for the arrays that a stage has stored

It is an object of its own, which the runs of bodies share: a run that referred to itself would keep
its arrays in memory until Python's garbage collector runs.

A kernel sets the status of the run where an element is false; then the interpreter repeats the run,
and raises the error with its numbers and the user's line.

Nothing waits for it. It serves the checks of `wengert.debug(nan=True)` (checked_values.py), and
products in which zero times infinity is zero (scan_kernels.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from wengert._engine.ops.linalg.condition import smallest_reciprocal

from ..llvm.ir.ir_builder import Function, ModuleBuilder, Name, Section
from ..llvm.ir.llvm_types import in_memory, part_of
from .checked_values import Sought
from .device import Device, Failed, InDoubt
from .kernel_codegen import DeviceKernel
from .loaded_kernels import element_kernel, launch_of
from .matrix_kernels import IN_DOUBT
from .stage_memory import RunningStages


class RunStatus:
    """Where kernels of a run, and of the bodies of its loops, say that they have failed.

    Parameters
    ----------
    device : Device
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._array: Any = None

    @property
    def array(self) -> Any:
        """The array, for arguments of kernels."""
        if self._array is None:
            self._array = self._device.put(np.zeros(1, np.int64))
        return self._array

    def check(self) -> None:
        """Raise an error if a kernel has failed, for which the host waits for all of them.

        Raises
        ------
        Failed, InDoubt
        """
        found = 0 if self._array is None else self._device.get(self._array)[0]
        if found:
            raise InDoubt if found == IN_DOUBT else Failed


_NAME = "where_false"


def checked(
    name: str, device: Device, status: Any, operands: Sequence[Any], params: Mapping[str, Any]
) -> Any:
    """A copy of the first operand; the status is set if the condition does not hold."""
    x, *others = map(device.put, operands)
    if name == "accepted":
        holds = others[0]
    elif name == "refuse_residual":
        holds = np.real(others[0]) <= np.real(others[1])
    else:  # a condition number that is NaN is passed on in the results
        holds = np.logical_not(np.real(others[0]) < smallest_reciprocal(x.dtype))
    flags = device.contiguous(holds.astype(np.bool_))
    if flags.size:
        launch = launch_of(
            device,
            _NAME,
            partial(element_kernel, _NAME, [("ptr", "x"), ("ptr", "status")], _look_at_condition),
        )
        launch([flags, status, np.int64(flags.size)], flags.size)
    return x.copy()


def _look_at_condition(
    module: ModuleBuilder, function: Function, s: Section, element: Name
) -> None:
    """Look at one condition."""
    flag = s.value(f"load i8, ptr {s.value(f'getelementptr i8, ptr %x, i64 {element}')}")
    with s.when(s.value(f"icmp eq i8 {flag}, 0")) as found:
        found.write("store i64 1, ptr %status")


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

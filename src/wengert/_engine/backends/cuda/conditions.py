"""Conditions on arrays that are errors if they do not hold, without a copy to the host.

A kernel sets the status of the run where an element is false; then the interpreter repeats the run,
and raises the error with its numbers and the user's line.

    checked    the result of `accepted`, `refuse_residual` or `refuse_singular`: its first operand
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from wengert._engine.ops.linalg.condition import smallest_reciprocal

from ..llvm.ir.ir_builder import Function, ModuleBuilder, Name, Section
from .device import Device
from .loaded_kernels import element_kernel, launch_of

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
            device, _NAME, partial(element_kernel, _NAME, [("ptr", "x"), ("ptr", "status")], _look)
        )
        launch([flags, status, np.int64(flags.size)], flags.size)
    return x.copy()


def _look(module: ModuleBuilder, function: Function, s: Section, element: Name) -> None:
    """Look at one condition."""
    flag = s.value(f"load i8, ptr {s.value(f'getelementptr i8, ptr %x, i64 {element}')}")
    with s.when(s.value(f"icmp eq i8 {flag}, 0")) as found:
        found.write("store i64 1, ptr %status")

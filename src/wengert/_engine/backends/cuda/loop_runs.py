"""Runs of loop kernels: buffers, arguments and results.

    run_loop    the results of a loop that is a kernel
    Running     what it needs of the run of the program

The carry is copied first, as its buffers are written to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from wengert._engine.core.node import Node
from wengert._engine.core.symbolic.dim import Length

from ..llvm.lowering.loop_ir import Expr
from .device import Device, Launch, number_of
from .loop_kernels import LoopKernel


class Running(Protocol):
    """The state of the run of the program that the loop is part of.

    Attributes
    ----------
    device : Device
    sizes : dict
        The value of every named size.
    status : array
        Where a kernel says that it has failed.
    """

    device: Device
    sizes: dict[str, int]
    status: Any

    def length(self, length: Length) -> int:
        """The number of a length."""

    def shape(self, shape: Sequence[Length]) -> tuple[int, ...]:
        """The numbers of a shape."""

    def constant(self, expr: Expr) -> Any:
        """A constant array on the device."""


def run_loop(
    running: Running, loop: LoopKernel, launch: Launch, node: Node, operands: Sequence[Any]
) -> list[Any]:
    """The results of a loop: its carry, then what its steps stacked."""
    params, device, plan = node.params, running.device, loop.plan
    carried, stacked = params["carried"], params["stacked"]
    if params["counted"]:
        count, operands = max(number_of(device, operands[0]), 0), operands[1:]
    else:
        count = running.length(params["length"])
    rows = running.length(loop.rows)
    inputs = [device.contiguous(device.put(x)) for x in operands]
    first = len(inputs) - carried - stacked
    given = dict(zip(plan.inputs, inputs, strict=True))
    arguments = [given[x] if x in given else running.constant(x) for x in loop.fixed]
    pairs = []
    for x, start in zip(plan.inputs[first:][:carried], inputs[first:][:carried], strict=True):
        shape = running.shape(x.shape)
        whole = (rows, *shape) if x in loop.private else shape
        even, odd = device.empty(whole, x.dtype), device.empty(whole, x.dtype)
        even[...] = start.astype(x.dtype)
        pairs.append((even, odd))
        arguments += [even, odd]
    arguments += inputs[first + carried :]
    outs = [device.empty((count, *running.shape(x.shape)), x.dtype) for x in plan.outputs[carried:]]
    arguments += outs
    for x in loop.buffers:
        shape = running.shape(x.shape)
        arguments.append(device.empty((rows, *shape) if x in loop.private else shape, x.dtype))
    arguments += [np.int64(running.sizes[name]) for name in loop.sizes]
    if loop.kernel.may_fail:
        arguments.append(running.status)
    if count and rows:
        launch([*arguments, np.int64(rows), np.int64(count)], rows)
    carry = [pair[count % 2] for pair in pairs]
    for k, x in enumerate(plan.inputs[first:][:carried]):
        if x in loop.private:
            carry[k] = carry[k][0]
    return [*carry, *outs]

"""Runs of loop kernels: arguments, memory and results.

run_loop    the results of a loop that is a kernel
Running     what it needs of the run of the program
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from wengert._engine.core.node import Node

from ..llvm.lowering.loop_ir import Expr
from .device import Launch, number_of
from .loop_kernels import LoopKernel
from .matrix_kernels import MatrixRun
from .row_stages import Sharing

_MOST_SUMS = 1 << 30  # bytes of sums over rows, one for each row and step
Loaded = tuple[LoopKernel, Launch]


class Running(MatrixRun, Protocol):
    """The state of the run of the program that the loop is part of."""

    def constant(self, expr: Expr) -> Any:
        """A constant array on the device."""


def run_loop(
    running: Running, loops: Sequence[Loaded], node: Node, operands: Sequence[Any]
) -> list[Any] | None:
    """The results of a loop; None if it would need too much memory.

    The results are the carry, the number of steps of a loop with a condition, then what its steps
    stacked.
    """
    params = node.params
    rows = running.length(loops[0][0].rows)
    if "condition" not in params:
        if params["counted"]:
            count, operands = max(number_of(running.device, operands[0]), 0), operands[1:]
        else:
            count = running.length(params["length"])
        if _sums_of_steps(running, loops[0][0]) * rows * count > _MOST_SUMS:
            return None
        carry, stacks, _ = _launched(running, loops[0], operands, count)
        return [*carry, *stacks]
    carry, _, steps = _launched(running, loops[0], operands, 0)
    steps = np.max(steps)
    if len(loops) == 1:
        return [*carry, steps]
    count = number_of(running.device, steps)
    if _sums_of_steps(running, loops[1][0]) * rows * count > _MOST_SUMS:
        return None
    carry, stacks, _ = _launched(running, loops[1], operands, count)
    return [*carry, steps, *stacks]


def _sums_of_steps(running: Running, loop: LoopKernel) -> int:
    """The bytes of sums over rows of one step and row, which are stacked."""
    own = [x for x in loop.arguments if x.role == "stack" and x.is_own]
    return sum([math.prod(running.shape(x.shape)) * x.dtype.itemsize for x in own])


def _launched(
    running: Running, loaded: Loaded, operands: Sequence[Any], count: int
) -> tuple[list[Any], list[Any], Any]:
    """Carry, stacked results, and the numbers of steps of one launch."""
    loop = loaded[0]
    while True:
        capacity = 0 if loop.capacity is None else loop.capacity.steps
        made = _launched_once(running, loaded, operands, (count, capacity))
        if loop.capacity is None or not running.length(loop.rows):
            break
        needed = number_of(running.device, np.max(made["needed"][None]))
        if needed <= capacity:
            break
        loop.capacity.grow(needed)
    carry = [_combined(made["result"][k], kind) for k, kind in enumerate(loop.carried())]
    kinds = loop.loop.body.outputs()[len(carry) :]
    stacks = [_combined(made["stack"][k], kind) for k, kind in enumerate(kinds)]
    return carry, stacks, made["steps"].get(None)


def _combined(x: Any, kind: Sharing) -> Any:
    """A result, of which there may be one for each row."""
    if kind is Sharing.PARTIAL:
        return np.sum(x, axis=0)
    return np.max(x, axis=0) if kind is Sharing.LONGEST else x


def _launched_once(
    running: Running, loaded: Loaded, operands: Sequence[Any], counts: tuple[int, int]
) -> dict[str, dict[Any, Any]]:
    """The arrays that one launch has written, by their role.

    Parameters
    ----------
    counts : (int, int)
        The number of steps, and the capacity.
    """
    (loop, launch), device = loaded, running.device
    rows = running.length(loop.rows)
    made: dict[str, dict[Any, Any]] = {"result": {}, "stack": {}, "steps": {}, "needed": {}}
    arguments: list[Any] = []
    for x in loop.arguments:
        if x.role == "operand":
            given = device.put(operands[x.which])
            arguments.append(device.contiguous(given.astype(x.dtype)))
            continue
        if x.role == "constant":
            arguments.append(running.constant(x.which))
            continue
        shape = running.shape(x.shape)
        if x.role in ("stack", "grown"):
            shape = (counts[x.role == "grown"], *shape)
        array = device.empty((rows, *shape) if x.is_own else shape, x.dtype)
        if x.role in made:
            made[x.role][x.which] = array
        arguments.append(array)
    arguments += [np.int64(running.sizes[name]) for name in loop.sizes]
    if loop.kernel.may_fail:
        arguments.append(running.status)
    numbers = [rows, counts[0], *counts[1:] * (loop.capacity is not None)]
    launch([*arguments, *map(np.int64, numbers)], rows)
    return made

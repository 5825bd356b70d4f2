"""Loops of a batch as one kernel: each thread runs all steps of some rows; its launch and memory.

    for each row of the thread:    for each step:  the stages of the body, for this row
    LoopKernel                     such a loop: its kernel, and how its caller passes arrays
    Capacity                       memory for results of loops inside
    loop_kernels_of                the kernels of a loop; none if its rows depend on each other
    run_loop                       the results of a loop that is a kernel
    Running                        what it needs of the run of the program

A loop over a batch (`vmap` of a `scan` or of a `while_loop`) has a carry whose first axis is the
batch. Where rows do not depend on each other (row_analysis.py) they need not wait for each other:

A row whose condition has become false ends; the number of steps of the loop is that of the longest.
A sum over rows is one for each row, which are added after the loop, and so is a maximum.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from wengert._engine.core.node import Node

from ..llvm.ir.index_analysis import Length
from ..llvm.ir.ir_builder import Function, ModuleBuilder, Section
from ..llvm.ir.llvm_types import I64
from ..llvm.ir.scalar_language import Language
from ..llvm.lowering.loop_ir import Expr
from .device import Launch, number_of
from .kernel_codegen import DeviceKernel, UnsupportedKernel
from .matrix_kernels import MatrixRun
from .row_analysis import row_loop
from .row_codegen import RowCode
from .row_loops import ROW_END
from .row_memory import Argument
from .row_stages import COMBINED, NotByRows, RowLoop, Sharing

_LEAST_ROWS = 32  # a smaller batch does not keep a device busy
_FIRST_CAPACITY = 16


class Capacity:
    """The number of results of steps of a row that there is memory for; it grows."""

    def __init__(self) -> None:
        self.steps = _FIRST_CAPACITY

    def grow(self, needed: int) -> None:
        """Have memory for as many results, and for some more."""
        self.steps = max(self.steps, needed + needed // 4)


@dataclass(frozen=True)
class LoopKernel:
    """The kernel of a loop.

    Attributes
    ----------
    kernel : DeviceKernel
        Its arguments are `arguments`, the sizes, the status if it may fail, then rows, steps, and
        the capacity if there is one.
    loop : RowLoop
    rows : Length
        The length of the batch.
    arguments : tuple of Argument
    sizes : tuple of str
        Names of sizes.
    capacity : Capacity or None
        Of memory for the results of loops inside whose number of steps is not known.
    """

    kernel: DeviceKernel
    loop: RowLoop
    rows: Length
    arguments: tuple[Argument, ...]
    sizes: tuple[str, ...]
    capacity: Capacity | None

    def carried(self) -> list[Sharing]:
        """The kinds of the carry."""
        return self.loop.body.outputs()[: self.loop.params["carried"]]


def loop_kernels_of(node: Node, name: str, opaque: Container[str]) -> list[LoopKernel]:
    """The kernels of a loop, or none.

    A loop with a condition whose steps have results needs two: one finds the number of steps, the
    other runs so many.
    """
    params = node.params
    inputs = params["body"].inputs
    first = len(inputs) - params["carried"] - params.get("stacked", 0)
    specs = [x.spec for x in inputs[first : first + params["carried"]]]
    for rows in dict.fromkeys(s.shape[0] for s in specs if s.shape):
        if type(rows) is int and rows < _LEAST_ROWS:
            continue
        try:
            made = [_made(params, rows, opaque, name)]
            if "condition" in params and len(params["body"].outputs) > params["carried"]:
                counted = {k: x for k, x in params.items() if k not in ("condition", "limit")}
                counted |= {"stacked": 0, "reverse": False, "counted": True}
                made.append(_made(counted, rows, opaque, f"{name}_steps"))
            return made
        except (NotByRows, UnsupportedKernel):
            continue
    return []


def _made(params: Mapping[str, Any], rows: Length, opaque: Container[str], name: str) -> LoopKernel:
    """The kernel of a loop.

    Raises
    ------
    NotByRows
        The rows depend on each other.
    UnsupportedKernel
        It calls a function that is not part of it.
    """
    loop = row_loop(params, rows, opaque)
    module = ModuleBuilder()
    # The arguments are known at the end: the name of the function is followed by a mark.
    function = Function(module, name, [("ptr", "arguments")], "void", "#1", linkage="")
    code = RowCode(function, Language(module), rows, name)
    with function.body.loop("%first", "%rows", "%stride") as (s, row):
        begin = s.inside()
        _write(code, s, loop, row)
        s.block(ROW_END)
        code.begin(begin, row)
    function.body.write("ret void")
    for part, text in module.parts.items():
        if text.startswith("declare") and not part.startswith("llvm."):
            raise UnsupportedKernel(part)
    listed = [f"ptr %array{k}" for k in range(len(code.arguments))]
    listed += [f"i64 %size{k}" for k in range(len(code.sizes))]
    listed += ["ptr %status"] * code.may_fail
    numbers = ["rows", "steps", *["capacity"] * code.grows, "first", "stride"]
    listed += [f"i64 %{n}" for n in numbers]
    text = function.text().replace("ptr %arguments", ", ".join(listed), 1)
    parts = {**module.parts, name: text}
    kernel = DeviceKernel(name, parts, (), rows, code.may_fail)
    capacity = Capacity() if code.grows else None
    return LoopKernel(kernel, loop, rows, tuple(code.arguments), tuple(code.sizes), capacity)


def _write(code: RowCode, s: Section, loop: RowLoop, row: str) -> None:
    """The loop of one row, from operands to results."""
    body, carried = loop.body, loop.params["carried"]
    inputs = body.plan.inputs
    fixed = len(inputs) - carried - loop.params.get("stacked", 0)
    given = []
    for k, x in enumerate(inputs):
        # Of the rows along the first axis, the kernel knows the length of the loop.
        given.append(code.argument(Argument("operand", k, x.shape, x.dtype)))
    stacks = []
    for k, (x, node) in enumerate(
        zip(body.plan.outputs[carried:], body.body.outputs[carried:], strict=True)
    ):
        is_own, spec = body.kinds[x] in COMBINED, node.spec
        base = code.argument(Argument("stack", k, spec.shape, spec.dtype, is_own))
        if is_own:
            size = s.times(row, "%steps")
            base = code.offset(s, base, size, spec.shape, spec.dtype)
        stacks.append(base)
    kinds = [Sharing.SHARED] * len(given)
    addresses, count = code.loop(s, loop, given, kinds, "%steps", stacks, row)
    for k, (x, address) in enumerate(zip(inputs[fixed:], addresses, strict=False)):
        kind = body.kinds[x]
        base = code.argument(Argument("result", k, x.shape, x.dtype, kind is Sharing.PARTIAL))
        if kind is Sharing.PRIVATE:  # the same for all rows
            with s.when(s.value(f"icmp eq i64 {row}, 0")) as first:
                code.copy(first, base, address, x, kind, row)
            continue
        target = code.own(s, base, row, x) if kind is Sharing.PARTIAL else base
        code.copy(s, target, address, x, kind, row)
    if loop.condition is not None:
        base = code.argument(Argument("steps", None, (code.rows,), I64))
        place = s.value(f"getelementptr i64, ptr {base}, i64 {row}")
        s.write(f"store i64 {count}, ptr {place}")


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

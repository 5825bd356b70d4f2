"""Programs: the kernels of a graph, and the order in which they and library functions run.

The schedule is that of native code (backends/llvm/schedule) without loops over rows: each loop
group is a kernel, each other stage a call of the operation itself, whose NumPy functions run on the
device (library_calls.py). Loops and branches are run by the host, step by step.

    DeviceProgram     the stages of a graph, for all its sizes
    Stage       a kernel and where its results go, or a call
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert._engine.backends.llvm.ir.execution_engine import compiling_for
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.node import Node
from wengert._engine.core.op_facts import LOOP
from wengert._engine.core.symbolic.dim import Dim, Length, is_open, replaced

from ..llvm.lowering.loop_ir import CallResult, Expr, Stored, strided_view
from ..llvm.lowering.registry import specs_of
from ..llvm.lowering.scatter_chains import SliceUpdate
from ..llvm.schedule.fusion import FusedLoops, roots_of
from ..llvm.schedule.scheduling import Schedule, owner_of
from .block_kernels import BlockKernel, kernel_for, launch_block_kernel, loops_of_few_rows
from .checked_values import CheckedValues, Sought
from .device import Device, Failed, InDoubt, Launch
from .host_callbacks import CallbackLog
from .kernel_codegen import DeviceKernel, UnsupportedKernel, is_number
from .library_calls import called
from .loop_kernels import LoopKernel, loop_kernels_of, run_loop
from .matrix_kernels import MatrixKernel, matrix_kernel_of, run_matrices
from .memory import is_apart, renamed, reusable
from .ptx import NVPTX
from .run_status import RunStatus, look_after
from .scan_kernels import is_strong, product
from .scatter_kernels import OutOfRange
from .stage_memory import lacking_memory, suspected
from .stage_timers import StageTimers

_MOST_ATTEMPTS = 50


class DeviceProgram:
    """The stages of a graph, loaded to a device.

    Parameters
    ----------
    graph : Graph or Body
    device : Device
    few_rows : frozenset of int
        The loops fused along rows that are not to be fused, because rows are few.
    callbacks : CallbackLog, optional
        Where operations that run on the host are noted.
    sought : Sought, optional
        Values that are looked for, of all that it computes.
    """

    def __init__(
        self,
        graph: BaseGraph,
        device: Device,
        few_rows: frozenset[int] = frozenset(),
        callbacks: CallbackLog | None = None,
        sought: Sought | None = None,
    ) -> None:
        self.device, self.few_rows, self.sought = device, few_rows, sought
        self.callbacks = CallbackLog() if callbacks is None else callbacks
        self.results = (*graph.outputs, *graph.updates.values())
        self.kernels: list[DeviceKernel] = []
        self.stages: list[tuple[Any, int]] = []  # with the number of its kernel, or -1
        self._loops: dict[Any, list[tuple[LoopKernel, int]]] = {}
        self._matrices: dict[Expr, tuple[MatrixKernel, int]] = {}
        with compiling_for(NVPTX):
            self._plan(graph)
        self._constants: dict[Expr, Any] = {}
        self._bodies: dict[Body, DeviceProgram] = {}
        self._for_few_rows: dict[frozenset[int], DeviceProgram] = {}
        self.parts: dict[Expr, list[Expr]] = {}  # the results of each call
        for x in self.plan.reachable:
            if isinstance(x.rule, CallResult):
                self.parts.setdefault(x.operands[0], []).append(x)
        self._last_uses = self._found_last_uses()
        self.unchanged: set[int] = set()  # numbers of kernels that would copy an array as it is
        self.reused = self._found_reused()

    def _plan(self, graph: BaseGraph) -> None:
        """Schedule the graph, with what cannot be in a kernel as calls."""
        opaque = self._opaque = set[str]()
        for _ in range(_MOST_ATTEMPTS):
            self.plan = Schedule(
                graph, separate=True, opaque=opaque, by_rows=True, few_rows=self.few_rows
            )
            # Variables, and what loops and branches pass to their bodies, are on the device.
            given = 0 if isinstance(graph, Body) else sum(len(specs_of(n)) for n in graph.inputs)
            self.addressed = frozenset(self.plan.inputs[given:])
            self.checked = self.sought and CheckedValues(graph, self.plan, self.sought)
            try:
                self._write_kernels()
                return
            except UnsupportedKernel as error:
                names = {n for n in error.args[1] if n not in opaque}
                if not names:
                    raise
                opaque |= names
        raise AssertionError("operations that a device lacks")

    def _write_kernels(self) -> None:
        stored = self.stored = set(self.plan.stored)
        self.kernels, self.stages, self._loops, self._matrices = [], [], {}, {}
        for stage in self.plan.stages:
            if isinstance(stage, Expr):
                self._add_call(stage)
                self.stages.append((stage, -1))
                continue
            try:
                name = f"kernel{len(self.kernels)}"
                kernel = kernel_for(stage, stored, name, self.addressed, self.checked)
            except UnsupportedKernel as error:
                raise UnsupportedKernel(error.args[0], suspected(stage)) from None
            self.stages.append((stage, len(self.kernels)))
            self.kernels.append(kernel)

    def _add_call(self, stage: Expr) -> None:
        """Add the kernel of an operation on small matrices, or of a loop, if it can be one."""
        node = stage.node
        made = matrix_kernel_of(stage, f"kernel{len(self.kernels)}")
        if made is None:
            self._add_loop(node)
            return
        self._matrices[stage] = made, len(self.kernels)
        self.kernels.append(made.kernel)

    def _add_loop(self, node: Node) -> None:
        """Add the kernels of a loop, if its rows are independent."""
        if getattr(node.op, "control_flow", "") != LOOP or "names" in node.params:
            return
        found = loop_kernels_of(node, f"kernel{len(self.kernels)}", self._opaque)
        if found:
            first = len(self.kernels)
            self._loops[node] = [(made, first + k) for k, made in enumerate(found)]
            self.kernels += [made.kernel for made in found]

    def loops_of(self, node: Any) -> list[tuple[LoopKernel, Launch]]:
        """The kernels of a loop, loaded; none if it is run step by step."""
        return [(made, self.launches[k]) for made, k in self._loops.get(node, ())]

    def matrices_of(self, stage: Expr) -> tuple[MatrixKernel, Launch] | None:
        """The kernel of an operation on small matrices, loaded."""
        found = self._matrices.get(stage)
        return None if found is None else (found[0], self.launches[found[1]])

    def kernel_of_matrices(self, stage: Expr) -> DeviceKernel | None:
        """The kernel of an operation on small matrices, if it is one."""
        found = self._matrices.get(stage)
        return None if found is None else found[0].kernel

    def loop_kernels(self, node: Any) -> list[LoopKernel]:
        """The kernels of a loop."""
        return [made for made, _ in self._loops.get(node, ())]

    def _found_last_uses(self) -> list[list[Expr]]:
        """For each stage the arrays that no later one needs."""
        last: dict[Expr, int] = {}
        for k, (stage, number) in enumerate(self.stages):
            for x in self._read(stage, number):
                last[x] = k
        kept = {owner_of(x) for x in self.plan.outputs}
        found: list[list[Expr]] = [[] for _ in self.stages]
        for x, k in last.items():
            if x not in kept:
                found[k].append(x)
        return found

    def _found_reused(self) -> dict[Expr, Expr]:
        """Results of kernels, and the arrays over which they are written, if at all."""
        found: dict[Expr, Expr] = {}
        for (stage, number), gone in zip(self.stages, self._last_uses, strict=True):
            if number >= 0:
                x = renamed(stage, self.stored, gone)
                if x is not None:
                    self.unchanged.add(number)
                else:
                    x = reusable(self.plan, stage, self.stored, gone)
                if x is not None:
                    found[roots_of(stage)[0]] = x
        return found

    def _read(self, stage: Any, number: int) -> list[Expr]:
        if number >= 0:
            entries = self.kernels[number].entries
            return [x for x in entries if isinstance(x, Expr)]
        own = [p for p in self.parts.get(stage, ()) if p in self.stored]
        return [*[_base(x) for x in stage.operands], *own]

    # ---- running -------------------------------------------------------------------------------

    def run(
        self, values: Sequence[Any], sizes: Mapping[str, int], timers: StageTimers | None = None
    ) -> list[Any]:
        """The values of outputs and updates; `timers` are read around each stage.

        Raises
        ------
        Failed
            A kernel has failed.
        """
        chosen = self.for_sizes(sizes)
        try:
            return _Run(chosen, dict(sizes)).results(values, timers)
        except InDoubt:
            return _Run(chosen, dict(sizes), by_library=True).results(values, timers)

    def for_sizes(self, sizes: Mapping[str, int]) -> DeviceProgram:
        """The program to run: another one if rows are so few that their loops are not fused."""
        fused = [k for stage, k in self.stages if isinstance(stage, FusedLoops) and stage.rows]
        if not fused or self.few_rows:
            return self
        kernels = [self.kernels[k] for k in fused]
        few = loops_of_few_rows(kernels, sizes, _Run(self, dict(sizes)).length, self.device)
        if few and few not in self._for_few_rows:
            made = DeviceProgram(self.plan.graph, self.device, few, self.callbacks, self.sought)
            self._for_few_rows[few] = made
        return self._for_few_rows[few] if few else self

    @functools.cached_property
    def launches(self) -> list[Launch]:
        """The kernels, loaded at the first run."""
        return self.device.load(self.kernels)

    def body_program(self, body: Body) -> DeviceProgram:
        """The program of the body of a loop or branch."""
        found = self._bodies.get(body)
        if found is None:
            found = self._bodies[body] = DeviceProgram(body, self.device, callbacks=self.callbacks)
        return found

    def constant(self, expr: Expr) -> Any:
        """A constant array on the device."""
        found = self._constants.get(expr)
        if found is None:
            rule: Any = expr.rule
            array = np.array(rule.array, order="C")
            found = self._constants[expr] = self.device.put(array)
        return found


class _Run:
    """The state of one run of a program; `outer` is that of the program around a body."""

    def __init__(
        self,
        program: DeviceProgram,
        sizes: dict[str, int],
        by_library: bool = False,
        outer: _Run | None = None,
    ) -> None:
        self.program, self.device, self.sizes = program, program.device, sizes
        self._by_library, self.callbacks = by_library, program.callbacks
        self.arrays: dict[Expr, Any] = {}
        self._is_outermost = outer is None
        self._status: RunStatus = RunStatus(self.device) if outer is None else outer._status

    @property
    def status(self) -> Any:
        """Where kernels say that they have failed: one for all bodies of a run."""
        return self._status.array

    def check(self) -> None:
        """Raise an error if a kernel has failed, for which the host waits for all of them."""
        self._status.check()

    def body_run(self, body: Body, sizes: Mapping[str, int]) -> Callable[..., list[Any]]:
        """A function that runs the body of a loop or branch once."""
        program = self.program.body_program(body)

        def run(values: Sequence[Any]) -> list[Any]:
            return _Run(program, dict(sizes), self._by_library, self).results(values)

        return run

    def results(self, values: Sequence[Any], timers: StageTimers | None = None) -> list[Any]:
        program = self.program
        self.arrays.update(zip(program.plan.inputs, values, strict=True))
        if timers is not None:
            timers.begin(self.device)
        for (stage, number), gone in zip(program.stages, program._last_uses, strict=True):
            try:
                self._run_stage(stage, number)
            except MemoryError as error:
                raise lacking_memory(self, stage, error) from error
            if program.checked is not None:
                look_after(self, stage, number)
            if timers is not None:
                timers.end(self.arrays)
            for x in gone:
                self.arrays.pop(x, None)
        if self._is_outermost:
            self.check()
        specs = [spec for node in program.results for spec in specs_of(node)]
        found = [self._value(x, spec) for x, spec in zip(program.plan.outputs, specs, strict=True)]
        return _grouped(program.results, found)

    def _run_stage(self, stage: Any, number: int) -> None:
        program = self.program
        if number in program.unchanged:
            (root,) = roots_of(stage)
            shape = self.shape(root.shape)
            self.arrays[root] = self.arrays[program.reused[root]].reshape(shape)
        elif number >= 0:
            self._launch(stage, program.kernels[number], program.launches[number])
        else:
            self._call(stage)

    def length(self, length: Length) -> int:
        """The number of a length."""
        return int(replaced(length, self.sizes)) if isinstance(length, Dim) else int(length)

    def shape(self, shape: Sequence[Length]) -> tuple[int, ...]:
        """The numbers of a shape."""
        return tuple([self.length(n) for n in shape])

    def _stored(self, expr: Expr) -> Any:
        """A stored expression: an array on the device, or a number of an input."""
        found = self.arrays.get(expr)
        if found is None:
            assert isinstance(expr.rule, Stored) and expr.rule.array is not None, expr
            found = self.program.constant(expr)
        return found

    def constant(self, expr: Expr) -> Any:
        """A constant array on the device."""
        return self.program.constant(expr)

    # ---- kernels -------------------------------------------------------------------------------

    def _launch(self, fused: FusedLoops, kernel: DeviceKernel, launch: Launch) -> None:
        elements = self.length(kernel.elements)
        for root in roots_of(fused):
            if root not in self.program.stored:
                continue
            shape = self.shape(root.shape)
            if root in self.program.reused:
                self.arrays[root] = self.arrays[self.program.reused[root]].reshape(shape)
                continue
            copy = self.device.empty(shape, root.dtype)
            if isinstance(root.rule, SliceUpdate):
                copy[...] = self._stored(owner_of(root.operands[1]))
            self.arrays[root] = copy
        arguments = [self._argument(x) for x in kernel.entries]
        if kernel.may_fail:
            arguments.append(self.status)
        if isinstance(kernel, BlockKernel):
            launch_block_kernel(kernel, launch, arguments, self.arrays, self.length, self.device)
        elif elements:
            launch(arguments, elements)

    def _argument(self, entry: Any) -> Any:
        if isinstance(entry, str):
            return np.int64(self.sizes[entry])
        if is_number(entry, self.program.addressed):
            return entry.dtype.type(self._number(self._stored(entry)))
        return self._stored(entry)

    def _number(self, x: Any) -> Any:
        return self.device.get(x)[()] if self.device.owns(x) else x

    # ---- calls ---------------------------------------------------------------------------------

    def _call(self, stage: Expr) -> None:
        node = stage.node
        operands = [self._operand(x) for x in stage.operands]
        loops, matrices = self.program.loops_of(node), self.program.matrices_of(stage)
        made: Any = (
            run_loop(self, loops, node, operands) if loops and not self._by_library else None
        )
        if matrices is not None and not self._by_library:
            found = run_matrices(self, *matrices, operands)
            made = found if isinstance(node.spec, tuple) else found[0]
        elif is_strong(node) and not self._by_library:
            made = product(self.device, operands, node.params["subscripts"], self.status)
        elif made is None:
            try:
                made = called(self, node, operands, self.sizes)
            except OutOfRange:
                raise Failed from None
        specs = specs_of(node)
        made = made if isinstance(node.spec, tuple) else (made,)
        for part in self.program.parts.get(stage, ()):
            k = part.rule.position  # type: ignore[attr-defined]
            value = self.device.put(made[k])
            for length, n in zip(specs[k].shape, value.shape, strict=True):
                if is_open(length):
                    (name,) = length.names
                    self.sizes.setdefault(name, n)
            self.arrays[part] = self._own(value.astype(part.dtype, copy=False), operands)
            operands.append(self.arrays[part])

    def _own(self, value: Any, operands: Sequence[Any]) -> Any:
        """A result in C order that shares no memory with operands."""
        made = self.device.contiguous(value)
        others = [x for x in operands if self.device.owns(x)]
        return made if is_apart(made, others) else made.copy()

    def _operand(self, x: Expr) -> Any:
        """The operand of a call: an array on the device, or a number."""
        view = strided_view(x)
        if view is None:
            base = self._stored(owner_of(x))
            return self._shaped(base, x)
        base, offset, strides = view
        array = self._stored(base)
        if not x.shape or (x.shape == base.shape and base is x):
            return self._shaped(array, x)
        lengths = [self.length(n) for n in (offset, *strides)]
        return self.device.strided(array, lengths[0], self.shape(x.shape), tuple(lengths[1:]))

    def _shaped(self, array: Any, x: Expr) -> Any:
        shape = self.shape(x.shape)
        if not self.device.owns(array):
            return array
        return array if array.shape == shape else array.reshape(shape)

    def _value(self, x: Expr, spec: Any) -> Any:
        """A result, whose expression may have axes of length one in place of reduced ones."""
        array = self.device.put(self._stored(owner_of(x)))
        shape = self.shape(spec.shape)
        return array if array.shape == shape else array.reshape(shape)


def _base(x: Expr) -> Expr:
    view = strided_view(x)
    return owner_of(x) if view is None else view[0]


def _grouped(nodes: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """The values of nodes, those with several results as tuples."""
    ahead = iter(values)
    counts = [len(n.spec) if isinstance(n.spec, tuple) else 0 for n in nodes]
    return [tuple(itertools.islice(ahead, n)) if n else next(ahead) for n in counts]

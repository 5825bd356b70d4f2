"""Listing: the kernels and calls of a graph's program, for inspection; no device is needed.

    Listing    stages as text, LLVM IR, and PTX

`jit(f, backend="cuda").lower(...)` shows it: `loops`, `llvm_ir` and `assembly`.
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import bodies_of
from wengert._engine.core.node import Node
from wengert._engine.core.symbolic.dim import spelled

from ..llvm.ir.ir_builder import ModuleBuilder
from ..llvm.lowering.loop_ir import Expr
from ..llvm.schedule.fusion import FusedLoops
from .device_emulation import EmulatedDevice
from .library_calls import is_run_by_steps, runs_on_host
from .program import DeviceProgram
from .ptx import ptx_of
from .stage_memory import operations_of


class Listing:
    """The program of a graph.

    Parameters
    ----------
    graph : Graph
    program : DeviceProgram, optional
        One that has run, which knows what has run on the host.
    """

    def __init__(self, graph: BaseGraph, program: DeviceProgram | None = None) -> None:
        self._program = DeviceProgram(graph, EmulatedDevice()) if program is None else program

    def loops(self) -> str:
        """The stages in order: kernels with their operations, calls and loops."""
        kernels = len(self._program.kernels) - len(self._program.unchanged)
        lines = [self.line(stage, number) for stage, number in self._program.stages]
        return "\n".join([f"{kernels} kernel{'s' * (kernels != 1)}", *lines])

    @property
    def host_callbacks(self) -> list[Node]:
        """The operations that run on the host, as far as is known before a run."""
        return _host_callbacks(self._program)

    def kind(self, stage: Any, number: int) -> str:
        """What a stage is: kernel, call, host callback, loop or branch."""
        if number >= 0 or isinstance(stage, FusedLoops) or self._has_kernel(stage):
            return "kernel"
        node = stage.node
        if runs_on_host(node) or node in self._program.callbacks.nodes:
            return "host callback"
        if bodies_of(node):
            return "branch" if "branches" in node.params else "loop"
        return "call"

    def _has_kernel(self, stage: Expr) -> bool:
        program = self._program
        matrices = program.kernel_of_matrices(stage)
        return matrices is not None or bool(program.loop_kernels(stage.node))

    def line(self, stage: Any, number: int) -> str:
        """A stage as text."""
        if isinstance(stage, FusedLoops):
            group = max(stage.groups, key=lambda group: len(group.space))
            kernel = self._program.kernels[number]
            over = spelled(group.space)
            reduced = f", reduced along {group.reduced}" if group.reduced else ""
            if stage.rows:
                rows = spelled(group.space[: stage.rows])
                reduced = f", {len(stage.groups)} loops for each of {rows} rows"
            names = ", ".join(sorted(operations_of(stage)))
            if number in self._program.unchanged:
                return f"no copy: {names}"
            return f"{kernel.name} over {over}{reduced}: {names}"
        assert isinstance(stage, Expr)
        own = self._program.kernel_of_matrices(stage)
        if own is not None:
            return f"{own.name} for each of {own.elements} matrices: {stage.node.op.name}"
        for loop in self._program.loop_kernels(stage.node):
            return f"{loop.kernel.name}, a loop of {loop.rows} rows: {stage.node.op.name}"
        reason = self._program.callbacks.nodes.get(stage.node, "")
        return f"{self.kind(stage, number)} {stage.node.op.name}{reason}"

    def text(self) -> str:
        """The LLVM IR of the kernels."""
        module = ModuleBuilder()
        for kernel in self._program.kernels:
            module.include(kernel.text)
        return module.text()

    def assembly(self) -> str:
        """The PTX of the kernels, for the least architecture."""
        return ptx_of(self._program.kernels)


def _host_callbacks(program: DeviceProgram) -> list[Node]:
    found = []
    for stage, number in program.stages:
        if number >= 0 or isinstance(stage, FusedLoops):
            continue
        node = stage.node
        if program.kernel_of_matrices(stage) is not None or program.loop_kernels(node):
            continue
        if runs_on_host(node) or node in program.callbacks.nodes:
            found.append(node)
        elif not is_run_by_steps(node):
            found += [node] if bodies_of(node) else []
        else:
            for body in bodies_of(node):
                found += _host_callbacks(program.body_program(body))
    return found

"""Listing: the kernels and calls of a graph's program, for inspection; no device is needed.

    Listing    stages as text, LLVM IR, and PTX

`jit(f, backend="cuda").lower(...)` shows it: `loops`, `llvm_ir` and `assembly`.
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.symbolic.dim import spelled

from ..llvm.ir.ir_builder import ModuleBuilder
from ..llvm.lowering.loop_ir import Expr
from ..llvm.schedule.fusion import FusedLoops
from .emulated_device import EmulatedDevice
from .program import DeviceProgram, operations_of
from .ptx import ptx_of


class Listing:
    """The program of a graph.

    Parameters
    ----------
    graph : Graph
    """

    def __init__(self, graph: BaseGraph) -> None:
        self._program = DeviceProgram(graph, EmulatedDevice())

    def loops(self) -> str:
        """The stages in order: kernels with their operations, calls and loops."""
        kernels = len(self._program.kernels) - len(self._program.unchanged)
        lines = [self._line(stage, number) for stage, number in self._program.stages]
        return "\n".join([f"{kernels} kernel{'s' * (kernels != 1)}", *lines])

    def _line(self, stage: Any, number: int) -> str:
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
        return f"call {stage.node.op.name}"

    def text(self) -> str:
        """The LLVM IR of the kernels."""
        module = ModuleBuilder()
        for kernel in self._program.kernels:
            module.include(kernel.text)
        return module.text()

    def assembly(self) -> str:
        """The PTX of the kernels, for the least architecture."""
        return ptx_of(self._program.kernels)

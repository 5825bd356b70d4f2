"""A stage of a program that a device has no memory for, as an error with the user's line.

lacking_memory    the error
operations_of     the operations of a kernel
suspected         those that may call a function of a library
RunningStages     what is needed of a run
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from wengert._engine.core.node import LeafOp
from wengert._engine.core.op import Op
from wengert._engine.core.spec import Spec
from wengert.errors import DeviceMemoryError

from ..llvm.lowering.loop_ir import Expr
from ..llvm.schedule.fusion import FusedLoops, roots_of
from .device import Device
from .device_memory import out_of_memory


class RunningStages(Protocol):
    """The run of a program.

    Attributes
    ----------
    program : DeviceProgram
    device : Device
    arrays : mapping
        The arrays of the run.
    """

    program: Any
    device: Device
    arrays: dict[Expr, Any]

    @property
    def status(self) -> Any:
        """Where kernels say that they have failed."""

    def shape(self, shape: Sequence[Any]) -> tuple[int, ...]:
        """The numbers of a shape."""


def lacking_memory(run: RunningStages, stage: FusedLoops | Expr, error: MemoryError) -> MemoryError:
    """The error for a stage, with its operations, results and line."""
    if isinstance(error, DeviceMemoryError):  # of a step of a loop
        return error
    if isinstance(stage, FusedLoops):
        made = [root for root in roots_of(stage) if root in run.program.stored]
        what = ", ".join(sorted(operations_of(stage)))
        lines = [x.node.where for x in made if x.node is not None and x.node.where]
    else:
        made, what = list(run.program.parts.get(stage, ())), stage.node.op.name
        lines = [stage.node.where]
    specs = [Spec(run.shape(x.shape), x.dtype) for x in made]
    held = [x for x in run.arrays.values() if run.device.owns(x)]
    what, line = f"the result of {what}", lines[0] if lines else None
    return out_of_memory(run.device, what, specs, held, line)


def operations_of(fused: FusedLoops) -> set[str]:
    """The names of the operations that a loop group computes."""
    return {op.name for op in _ops_of(fused)}


def suspected(fused: FusedLoops) -> set[str]:
    """The operations of a loop group that may call what a device lacks.

    These are families of special functions, if there are any in the group; else all.
    """
    families = {op.name for op in _ops_of(fused) if op.kind == "opaque"}
    return families or operations_of(fused)


def _ops_of(fused: FusedLoops) -> list[Op]:
    found: list[Op] = []
    pending = list(roots_of(fused))
    seen = set(pending)
    while pending:
        x = pending.pop()
        if x.node is not None and not isinstance(x.node.op, LeafOp):
            found.append(x.node.op)
        for y in x.operands:
            if not y.is_root and y not in seen:
                seen.add(y)
                pending.append(y)
    return found

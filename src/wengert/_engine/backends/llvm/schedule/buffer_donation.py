"""Buffer donation: updates of variables are written into the memory of the variables.

A training step reads a parameter, its gradient and the state of the optimizer, and writes all but
the gradient.  Written to new memory, each array passes through the caches three times (a cache line
is read before it is written); in place, twice.

This is valid if it cannot be observed: every reader of the old value has run, and no later stage
can fail, because variables keep their values then.  The caller checks that there is no other
reference to the array (backends/variable_updates.py).

    overwritten    which results of a schedule may use the memory of which inputs
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.symbolic.dim import is_open

from ..ir.index_analysis import counters, size_of
from ..kernels import is_served
from ..lowering.loop_ir import CallResult, Expr, OpaqueCall, Reduce, ScalarConstant, Stored
from ..lowering.registry import specs_of
from ..tuning import thresholds
from .fusion import FusedLoops
from .scheduling import Schedule


class _OperandUse(NamedTuple):
    """A read of an expression: its stage, the position of its root, whether at the same index."""

    stage: int
    order: int
    is_here: bool


def overwritten(plan: Schedule, graph: BaseGraph) -> dict[int, int]:
    """The input that each result may overwrite, by position.

    Parameters
    ----------
    graph : Graph
        The graph of the schedule.  Inputs are its inputs and variables, results its outputs and
        updates.
    """
    steps = [k for k, stage in enumerate(plan.stages) if not isinstance(stage, FusedLoops)]
    if any(not _is_native(plan.stages[k]) for k in steps):
        return {}
    if any(is_open(n) for x in plan.stored for n in x.shape):  # memory is allocated during the run
        return {}
    last = max(steps, default=-1)
    first = sum(len(specs_of(n)) for n in graph.outputs)
    positions = {v: len(graph.inputs) + k for k, v in enumerate(graph.variables)}
    pairs = {first + k: positions[v] for k, v in enumerate(graph.updates)}
    pairs = {k: i for k, i in pairs.items() if _fits(plan.outputs[k], plan.inputs[i])}
    seen = _readers(plan, {plan.inputs[i] for i in pairs.values()})
    found = {}
    for k, i in pairs.items():
        at = _write_of(plan, plan.outputs[k])
        if any(loop.start <= at.stage < loop.stop for loop in plan.batch_loops):
            continue  # a stage before it reads the variable again, for the next item
        if at.stage > last and all(_is_before(x, at) for x in seen[plan.inputs[i]]):
            found[k] = i
    return found


def first_stage(plan: Schedule, results: dict[int, int]) -> int:
    """The first stage that overwrites an input."""
    return min(plan.position_of(plan.outputs[k]) for k in results)


def _is_native(step: FusedLoops | Expr) -> bool:
    """Whether a call runs without Python; the bodies of loops are checked by the program."""
    assert isinstance(step, Expr)
    return step.node.op.kind == "control" or is_served(step.node)


def _fits(x: Expr, variable: Expr) -> bool:
    size = size_of(x.shape)
    return (
        x.is_root
        and not isinstance(x.rule, Stored | ScalarConstant | CallResult | Reduce | OpaqueCall)
        and isinstance(variable.rule, Stored)
        and variable.rule.strides is None
        and x.shape == variable.shape
        and x.dtype == variable.dtype
        and type(size) is int
        and size * x.dtype.itemsize >= thresholds.donated_bytes
    )


def _write_of(plan: Schedule, x: Expr) -> _OperandUse:
    stage = plan.position_of(x)
    fused = plan.stages[stage]
    assert isinstance(fused, FusedLoops)
    roots = [root for group in fused.groups for root in group.roots]
    return _OperandUse(stage, roots.index(x), True)


def _is_before(read: _OperandUse, written: _OperandUse) -> bool:
    """Whether a read comes before the write, element by element in the same stage."""
    if read.stage != written.stage:
        return read.stage < written.stage
    return read.is_here and read.order <= written.order


def _readers(plan: Schedule, exprs: set[Expr]) -> dict[Expr, list[_OperandUse]]:
    found: dict[Expr, list[_OperandUse]] = {x: [] for x in exprs}
    for k, stage in enumerate(plan.stages):
        if not isinstance(stage, FusedLoops):
            for x in _operands_read(stage):
                if x in found:
                    found[x].append(_OperandUse(k, 0, False))
            continue
        order = 0
        for group in stage.groups:
            here = counters(group.space)
            for root in group.roots:
                for access in plan.accesses(root):
                    if access.expr in found:
                        found[access.expr].append(_OperandUse(k, order, access.index == here))
                order += 1
    return found


def _operands_read(step: Expr) -> Iterator[Expr]:
    """All expressions that a call reads from memory, through views that are not materialized."""
    pending = list(step.operands)
    while pending:
        x = pending.pop()
        yield x
        if not x.is_root:
            pending.extend(x.operands)

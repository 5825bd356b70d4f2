"""Overwriting: updates of variables that are written where the variables lie.

A training step reads a parameter, its gradient and what the optimiser remembers, and writes all but
the gradient.  Written to memory of its own, each array goes three times through the caches (a line
has to be there before it is written to); in place, twice.

It may be done where no one can tell: whoever reads the old value has read it by then, and nothing
that comes later in the run can fail, for then variables keep what they had.  That nobody outside
holds the array is for the caller to see to (backends/variable_updates.py).

    overwritten    which results of a plan may take the place of which inputs
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from wengert._engine.backends.llvm.ir.affine import counters, size_of
from wengert._engine.backends.llvm.kernels import is_served
from wengert._engine.backends.llvm.lowering.loop_ir import Expr, Held, Number, Part, Reduce, Step
from wengert._engine.backends.llvm.lowering.registry import specs_of
from wengert._engine.core.graph import Graph
from wengert._engine.core.symbolic.dim import is_open

from .fusion import FusedLoops
from .scheduling import Plan

LEAST = 16384  # bytes: what is smaller stays in the nearest cache anyway


class _Seen(NamedTuple):
    """That an item is read: by which stage, as which of its roots, and whether just there."""

    stage: int
    order: int
    is_here: bool


def overwritten(plan: Plan, graph: Graph) -> dict[int, int]:
    """For results, by position, the input that each may take the place of.

    Parameters
    ----------
    plan : Plan
    graph : Graph
        The one it was made for. Inputs are its inputs and variables, results its outputs and
        updates.
    """
    steps = [k for k, stage in enumerate(plan.stages) if not isinstance(stage, FusedLoops)]
    if any(not _is_native(plan.stages[k]) for k in steps):
        return {}
    if any(is_open(n) for x in plan.stored for n in x.shape):  # memory is asked for on the way
        return {}
    last = max(steps, default=-1)
    first = sum(len(specs_of(n)) for n in graph.outputs)
    places = {v: len(graph.inputs) + k for k, v in enumerate(graph.variables)}
    pairs = {first + k: places[v] for k, v in enumerate(graph.updates)}
    pairs = {k: i for k, i in pairs.items() if _fits(plan.outputs[k], plan.inputs[i])}
    seen = _readers(plan, {plan.inputs[i] for i in pairs.values()})
    found = {}
    for k, i in pairs.items():
        at = _place(plan, plan.outputs[k])
        if at.stage > last and all(_is_before(x, at) for x in seen[plan.inputs[i]]):
            found[k] = i
    return found


def first_stage(plan: Plan, results: dict[int, int]) -> int:
    """The first stage that overwrites anything."""
    return min(plan.position_of(plan.outputs[k]) for k in results)


def _is_native(step: FusedLoops | Expr) -> bool:
    """Whether a step runs without Python; bodies of loops are looked at by the program."""
    assert isinstance(step, Expr)
    return step.node.op.kind == "control" or is_served(step.node)


def _fits(x: Expr, variable: Expr) -> bool:
    size = size_of(x.shape)
    return (
        x.is_root
        and not isinstance(x.rule, Held | Number | Part | Reduce | Step)
        and isinstance(variable.rule, Held)
        and variable.rule.strides is None
        and x.shape == variable.shape
        and x.dtype == variable.dtype
        and type(size) is int
        and size * x.dtype.itemsize >= LEAST
    )


def _place(plan: Plan, x: Expr) -> _Seen:
    stage = plan.position_of(x)
    fused = plan.stages[stage]
    assert isinstance(fused, FusedLoops)
    roots = [root for group in fused.groups for root in group.roots]
    return _Seen(stage, roots.index(x), True)


def _is_before(read: _Seen, written: _Seen) -> bool:
    """Whether what is read is still there: an element is written after its own is read."""
    if read.stage != written.stage:
        return read.stage < written.stage
    return read.is_here and read.order <= written.order


def _readers(plan: Plan, items: set[Expr]) -> dict[Expr, list[_Seen]]:
    found: dict[Expr, list[_Seen]] = {x: [] for x in items}
    for k, stage in enumerate(plan.stages):
        if not isinstance(stage, FusedLoops):
            for x in _behind(stage):
                if x in found:
                    found[x].append(_Seen(k, 0, False))
            continue
        order = 0
        for group in stage.groups:
            here = counters(group.space)
            for root in group.roots:
                for access in plan.accesses(root):
                    if access.item in found:
                        found[access.item].append(_Seen(k, order, access.index == here))
                order += 1
    return found


def _behind(step: Expr) -> Iterator[Expr]:
    """All that a step reads from memory, through views that are not materialized."""
    pending = list(step.operands)
    while pending:
        x = pending.pop()
        yield x
        if not x.is_root:
            pending.extend(x.operands)

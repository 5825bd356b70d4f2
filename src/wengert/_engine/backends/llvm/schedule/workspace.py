"""Workspace: intermediate arrays in one block of memory, by lifetime; updates in place.

Memory is reused when the array in it is no longer needed, by an array of about the same size.
Arrays begin at cache lines.  The result of a call that replaces some elements of an array, and of a
loop that overwrites a carried array, is in the memory of that array, if nothing reads it later; so
what a loop begins with is computed where its result belongs, and not copied.

    arranged            the offsets of arrays in the workspace
    taken_over          the arrays in whose memory results are
    results_of_calls    the results of calls, also those that are not used
    overwritten         which results of a schedule may use the memory of which inputs

Buffer donation: a training step reads a parameter, its gradient and the state of the optimizer, and
writes all but the gradient.  Written to new memory, each array passes through the caches three
times (a cache line is read before it is written); in the memory of the variables, twice.  This is
valid if it cannot be observed: every reader of the old value has run, and no later stage can fail,
because variables keep their values then.  The caller checks that there is no other reference to the
array (backends/variable_updates.py).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.symbolic.dim import is_open

from ..ir.index_analysis import Length, counters, size_of
from ..kernels import KERNELS, is_served
from ..lowering.loop_ir import (
    CallResult,
    Expr,
    OpaqueCall,
    Reduce,
    ScalarConstant,
    Stored,
    strided_view,
)
from ..lowering.registry import specs_of
from ..lowering.scatter_chains import SliceUpdate, reads_elsewhere
from ..tuning import thresholds
from .fusion import FusedLoops, roots_of
from .scheduling import Schedule, owner_of

_LINE = 64  # bytes of a cache line

# Whether result k of a call with bodies is written over the operand that it updates.
Overwrites = Callable[[Expr, int], bool]


def arranged(
    plan: Schedule,
    exprs: Sequence[Expr],
    shapes: Mapping[Expr, Sequence[Length]] = MappingProxyType({}),
    sources: Mapping[Expr, Expr] = MappingProxyType({}),
) -> tuple[list[Length], Length]:
    """The offset of each expression in the workspace, and the size of the workspace.

    Parameters
    ----------
    plan : Schedule
    exprs : sequence of Expr
    shapes : mapping
        Upper bounds of shapes that differ between the steps of a loop.
    sources : mapping
        The array in whose memory an expression is, as far as there is one (`taken_over`).
    """
    last = last_uses(plan)
    free: list[tuple[Length, Length]] = []  # size and offset of free blocks
    live: list[tuple[int, int, Length, Length]] = []
    blocks: dict[Expr, tuple[Length, Length]] = {}
    passed_on: set[int] = set()  # whose block another array has taken over
    total: Length = 0
    for expr in sorted(exprs, key=plan.position_of):
        now = plan.position_of(expr)
        while live and live[0][0] < now:
            _, number, *block = heapq.heappop(live)
            if number not in passed_on:
                free.append((block[0], block[1]))
        source = sources.get(expr)
        if source in blocks:
            passed_on.add(source.number)
            blocks[expr] = blocks[source]
        else:
            size = _rounded(size_of(shapes.get(expr, expr.shape)) * expr.dtype.itemsize)
            found = next((f for f in free if _is_suitable(f[0], size)), None)
            if found is None:
                found = size, total
                total = total + size
            else:
                free.remove(found)
            blocks[expr] = found
        heapq.heappush(live, (last.get(expr, now), expr.number, *blocks[expr]))
    return [blocks[x][1] for x in exprs], total


def results_of_calls(
    plan: Schedule,
) -> tuple[dict[Expr, list[Expr]], dict[Expr, tuple[int, ...]]]:
    """All results of each call, and the positions of those that are not used.

    A call writes unused results, too, and so they need memory.
    """
    results: dict[Expr, list[Expr]] = {}
    unused: dict[Expr, tuple[int, ...]] = {}
    for expr in plan.reachable:
        if isinstance(expr.rule, CallResult):
            results.setdefault(expr.operands[0], []).append(expr)
    for stage in plan.stages:
        if isinstance(stage, FusedLoops):
            continue
        node = stage.node
        specs = specs_of(node)
        own = {p.rule.position: p for p in results.get(stage, [])}  # type: ignore[attr-defined]
        if len(own) < len(specs):
            unused[stage] = tuple([k for k in range(len(specs)) if k not in own])
        for k in unused.get(stage, ()):
            own[k] = Expr(CallResult(k), (stage,), specs[k].shape, specs[k].dtype, node)
        results[stage] = [own[k] for k in range(len(specs))]
    return results, unused


def taken_over(plan: Schedule, exprs: Sequence[Expr], overwrites: Overwrites) -> dict[Expr, Expr]:
    """The array whose memory each of some expressions takes over, if there is one.

    Parameters
    ----------
    plan : Schedule
    exprs : sequence of Expr
    overwrites : callable
        ``overwrites(step, k)``: whether a loop or a body with lengths writes result `k` over the
        operand that it updates.
    """
    last = last_uses(plan)
    kept = set(plan.outputs)
    found = {x: _updated(plan, x, last, overwrites) for x in exprs}
    return {x: source for x, source in found.items() if source is not None and source not in kept}


def _updated(
    plan: Schedule, expr: Expr, last: Mapping[Expr, int], overwrites: Overwrites
) -> Expr | None:
    """The array whose memory an expression may take over, element by element."""
    if isinstance(expr.rule, SliceUpdate):
        source = expr.operands[1]
        is_last = last.get(source) == plan.position_of(expr)
        if isinstance(source.rule, Stored) or not is_last:
            return None
        return None if reads_elsewhere(expr, plan.accesses(expr), source) else source
    if not isinstance(expr.rule, CallResult):
        return None
    (step,) = expr.operands
    node, place = step.node, 0
    if node.op.kind == "control":
        position = expr.rule.position
        updated = node.op.updated_operand(node, position)
        if updated is None or not overwrites(step, position):
            return None
        place = updated
    elif not is_served(node) or not KERNELS[node.op.name].updates(node.params):
        return None
    source = step.operands[place]
    others = [x for k, x in enumerate(step.operands) if k != place]
    if (
        isinstance(source.rule, Stored)
        or not source.is_root
        or (source.shape, source.dtype) != (expr.shape, expr.dtype)
        or last.get(source) != plan.position_of(expr)
        or any(source in owners_of(x) for x in others)
    ):
        return None
    return source


def owners_of(x: Expr) -> set[Expr]:
    """Whose memory an operand of a step may be."""
    view = strided_view(x)
    return {owner_of(x)} if view is None else {owner_of(x), view[0]}


def ends_with(plan: Schedule, step: Expr, expr: Expr) -> bool:
    """Whether a call is the only and last reader of an expression, a result of another call."""
    if not isinstance(expr.rule, CallResult) or expr in plan.outputs:
        return False
    readers = [x for x in step.operands if owner_of(x) is expr]
    return len(readers) == 1 and last_uses(plan).get(expr) == plan.position_of(step)


def _is_suitable(block: Length, size: Length) -> bool:
    if type(block) is int and type(size) is int:
        return size <= block <= 2 * size
    return bool(block == size)


def _rounded(size: Length) -> Length:
    """A size rounded up so that the next array begins at a cache line."""
    return -(-size // _LINE) * _LINE if type(size) is int else size + _LINE


def last_uses(plan: Schedule) -> dict[Expr, int]:
    """The last stage that uses each expression."""
    last: dict[Expr, int] = {}
    for k, stage in enumerate(plan.stages):
        if isinstance(stage, FusedLoops):
            for root in roots_of(stage):
                for access in plan.accesses(root):
                    last[access.expr] = k
        else:
            for x in stage.operands:
                last[owner_of(x)] = k
                view = strided_view(x)
                if view is not None:
                    last[view[0]] = k
    for loop in plan.batch_loops:  # all that it reads is read for the last item, too
        for x, k in last.items():
            if loop.start <= k < loop.stop:
                last[x] = loop.stop - 1
        for root in [r for fused in loop.repeated for r in roots_of(fused)]:
            for x in (root, *[access.expr for access in plan.accesses(root)]):
                last[x] = max(last.get(x, 0), loop.stop - 1)
    return last


# ---- variables -----------------------------------------------------------------------------------


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

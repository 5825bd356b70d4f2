"""Which results of a body may be written over its inputs.

A result may be written over an input if it is a version of it with some elements written, and all
that is read of the input is read before.  So a loop updates its arrays in place.

    body_schedule    the schedule of a body, with slices written in place where that is possible
    updates_of       the body of a loop, and the inputs that its results are versions of
    carried_pairs    the carried inputs of a loop, and their results
    in_place         what a result may be written over, with the versions between
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from wengert._engine.control_flow.versions import updated_input
from wengert._engine.core.node import Node
from wengert._engine.core.op_facts import LOOP
from wengert._engine.core.subgraph import Body

from ..ir.affine import counters
from ..lowering.gathers import Gather
from ..lowering.loop_ir import CallResult, Expr, Reduce, Stored
from ..lowering.slice_updates import SliceUpdate, reads_elsewhere
from ..schedule.fusion import FusedLoops, roots_of
from ..schedule.in_place_writes import Updates
from ..schedule.scheduling import Schedule
from ..schedule.workspace import owners_of


def body_schedule(body: Body, updates: Updates) -> Schedule:
    """The schedule of the body of a loop.

    Parameters
    ----------
    updates : sequence of (int, int)
        Inputs, and the results that may be written over them if the body permits it.
    """
    plan = Schedule(body, updates=updates)
    given = {k: position for position, k in updates}
    for k, result in enumerate(plan.outputs):
        if result in plan.in_place and in_place(plan, plan.inputs[given[k]], result) is None:
            return Schedule(body)
    return plan


def carried_pairs(params: Mapping[str, Any]) -> Updates:
    """For each carried value of a loop its input and its result, by number."""
    carried = params["carried"]
    fixed = len(params["body"].inputs) - carried - params.get("stacked", 0)
    return tuple([(fixed + k, k) for k in range(carried)])


def updates_of(node: Node) -> tuple[Body, Updates] | None:
    """The body of a loop or of a body with lengths, and the inputs that results are versions of.

    None for other nodes.
    """
    params = node.params
    if node.op.control_flow == LOOP:
        return params["body"], carried_pairs(params)
    if "names" not in params:
        return None
    (body,) = params["branches"]
    found = [(updated_input(body, k), k) for k in range(len(body.outputs))]
    return body, tuple([(given, k) for given, k in found if given is not None])


def _writes_over(node: Node, position: int) -> bool:
    """Whether a loop may write a result over the operand that it updates."""
    updates = updates_of(node)
    if updates is None:
        return False
    numbers = [k for _, k in updates[1]]
    return position in numbers and _in_place(*updates)[numbers.index(position)]


@functools.lru_cache(maxsize=512)
def _in_place(body: Body, updates: Updates) -> list[bool]:
    plan = body_schedule(body, updates)
    pairs = [(plan.inputs[given], plan.outputs[k]) for given, k in updates]
    return [in_place(plan, given, result) is not None for given, result in pairs]


def read_by(plan: Schedule, stage: FusedLoops | Expr) -> set[Expr]:
    if isinstance(stage, FusedLoops):
        return {a.expr for root in roots_of(stage) for a in plan.accesses(root)}
    return {owner for x in stage.operands for owner in owners_of(x)}


def in_place(plan: Schedule, given: Expr, result: Expr) -> list[Expr] | None:
    """The expression that may overwrite an input, so that a result is in its memory; or None.

    A result may be the last of several writes into an array.  All that is read of what is written
    over has to be read before: in earlier stages, or, element by element, by the stage that writes.

    Returns
    -------
    list of Expr, or None
        What is made between the input and the result.
    """
    found = [result]
    while True:
        source = _written_over(plan, found[-1])
        if (
            source is None
            or source is given
            or not isinstance(source.rule, CallResult | SliceUpdate)
            or source in plan.outputs
            or (source.shape, source.dtype) != (result.shape, result.dtype)
            or not _is_read_before(plan, source, found[-1])
        ):
            break
        found.append(source)
    if (given.shape, given.dtype) != (result.shape, result.dtype):
        return None
    return found[1:] if _is_read_before(plan, given, found[-1]) else None


def _is_read_before(plan: Schedule, source: Expr, result: Expr) -> bool:
    """Whether all that is read of one expression is read before it is written over."""
    last = plan.position_of(result)
    for k, stage in enumerate(plan.stages):
        if source not in read_by(plan, stage):
            continue
        if k > last:
            return False
        if k == last and not _reads_as_it_writes(plan, source, result):
            return False
    return True


def _written_over(plan: Schedule, result: Expr) -> Expr | None:
    """The operand that a call may write a result over."""
    stage = plan.stages[plan.position_of(result)]
    if isinstance(result.rule, SliceUpdate):
        return result.operands[1]
    operand_index = None if isinstance(stage, FusedLoops) else _updated_operand(stage, result)
    return None if operand_index is None else stage.operands[operand_index]  # type: ignore[union-attr]


def _updated_operand(stage: Expr, result: Expr) -> int | None:
    """The number of the operand that a call may write a result over."""
    rule: Any = stage.rule
    if rule.options:
        return len(stage.operands) - 1
    node, position = stage.node, result.rule.position  # type: ignore[attr-defined]
    if node.op.kind == "control" and not _writes_over(node, position):
        return None
    operand_index: int | None = node.op.updated_operand(node, position)
    return operand_index


def _reads_as_it_writes(plan: Schedule, given: Expr, result: Expr) -> bool:
    stage = plan.stages[plan.position_of(result)]
    if isinstance(result.rule, SliceUpdate):
        return not reads_elsewhere(result, plan.accesses(result), given)
    if isinstance(stage, FusedLoops):
        if stage.rows or isinstance(result.rule, Reduce | Stored):
            return False
        here = counters(result.shape)
        for root in roots_of(stage):
            for access in plan.accesses(root):
                if access.expr is given and (root is not result or access.index != here):
                    return False
        return not isinstance(result.rule, Gather)
    if result.operands != (stage,):
        return False
    operand_index = _updated_operand(stage, result)
    if operand_index is None or stage.operands[operand_index] is not given:
        return False
    return not any(
        given in owners_of(x) for k, x in enumerate(stage.operands) if k != operand_index
    )

"""Which results of a body may be written over its inputs.

A result may be written over an input if it is a version of it with some elements written, and all
that is read of the input is read before.  So a loop updates its arrays in place.

    body_schedule    the schedule of a body, with slices written in place where that is possible
    updates_of       the bodies of a node, and the inputs that their results are versions of
    updated_results  the results of a node that may be written over its operands
    carried_pairs    the carried inputs of a loop, and their results
    in_place         what a result may be written over, with the versions between
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from wengert._engine.control_flow.loop_accesses import updated_in_all
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.node import Node
from wengert._engine.core.op_facts import BRANCH, LOOP

from ..ir.index_analysis import counters
from ..lowering.gathers import Gather
from ..lowering.loop_ir import CallResult, Expr, Reduce, Stored
from ..lowering.scatter_chains import SliceUpdate, reads_elsewhere
from ..schedule.fusion import FusedLoops, roots_of
from ..schedule.scheduling import Schedule
from ..schedule.slices import Updates
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


class BodyUpdates(NamedTuple):
    """A body, and its results that may be written over its inputs.

    body : Body
        Without the results that are inputs of which other branches give later versions.
    updates : sequence of (int, int)
        Inputs of the body, and its results.
    results : tuple of int
        For each result of the body that of the node.
    passed : dict
        For results of the node that are inputs, and not results of `body`, the input.
    """

    body: Body
    updates: Updates
    results: tuple[int, ...]
    passed: dict[int, int]

    def is_in_place(self, result: int) -> bool:
        """Whether a result of the node may have the memory of the input that it updates."""
        if result in self.passed:
            return True
        wanted = [k for _, k in self.updates].index(self.results.index(result))
        return _in_place(self.body, self.updates)[wanted]


def updates_of(node: Node) -> Sequence[BodyUpdates]:
    """The bodies of a loop or conditional, with the inputs that results are versions of."""
    params = node.params
    if node.op.control_flow == LOOP:
        body: Body = params["body"]
        return [BodyUpdates(body, carried_pairs(params), tuple(range(len(body.outputs))), {})]
    if node.op.control_flow != BRANCH:
        return []
    branches: tuple[Body, ...] = params["branches"]
    numbers = range(len(branches[0].outputs))
    found = {k: given for k in numbers if (given := updated_in_all(branches, k)) is not None}
    given_once = [x for x, count in Counter(found.values()).items() if count == 1]
    pairs = {k: given for k, given in found.items() if given in given_once}
    return [_updates_of_branch(b, pairs) for b in branches]


def _updates_of_branch(branch: Body, pairs: Mapping[int, int]) -> BodyUpdates:
    passed = {k: x for k, x in pairs.items() if branch.outputs[k] is branch.inputs[x]}
    results = tuple([k for k in range(len(branch.outputs)) if k not in passed])
    updates = tuple([(x, results.index(k)) for k, x in pairs.items() if k not in passed])
    body = branch
    if passed:
        outputs = [branch.outputs[k] for k in results]
        body = Body(*outputs, inputs=branch.inputs, name=branch.name)
    return BodyUpdates(body, updates, results, passed)


def updated_results(node: Node) -> set[int]:
    """The results of a node that may have the memory of the operands that they are versions of."""
    bodies = updates_of(node)
    if not bodies:
        return set()
    first = bodies[0]
    numbers = {first.results[k] for _, k in first.updates} | first.passed.keys()
    return {k for k in numbers if all(b.is_in_place(k) for b in bodies)}


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
    if node.op.kind == "control" and position not in updated_results(node):
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

"""Conditions of loops by rows: loops whose rows end at different steps.

Batching makes one loop of them, which runs until no row goes on, and in which a row that has ended
keeps its values (control_flow/batching.py). A thread ends its row at once. This is valid if the
step changes nothing where the row's condition is false, which is verified by putting this into the
body: then each carried result folds to the operand.

The same is true of a loop whose number of steps is the largest of those of all rows, which compares
the number of the step with that of its row, and of the backward pass of a loop with a condition.

    row_bodies        the body and the condition of one row
    ends_by_rows      whether rows of a loop with a condition end by themselves
    steps_of_rows     whether a row may take its own number of steps
    OwnSteps          what depends on this number
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.node import CONSTANT, Node
from wengert._engine.core.op import lookup

from ..llvm.ir.index_analysis import Length
from .row_folding import folded, merged


def row_bodies(
    params: Mapping[str, Any], rows: Length, with_results: bool = False
) -> tuple[Body, Body | None] | None:
    """The body and the condition (None of a loop of known length); None if rows end together.

    Parameters
    ----------
    with_results : bool
        Whether the body has the results of steps as well, if there is a condition.
    """
    body, condition, carried = params["body"], params.get("condition"), params["carried"]
    if condition is None:
        return body, None
    if ends_by_rows(params, rows):
        found = _masked(body, condition, carried)
        if found is None:
            return None
        body, condition = found
    count = len(body.outputs) if with_results else carried
    return Body(*body.outputs[:count], inputs=body.inputs, name=body.name), condition


def ends_by_rows(params: Mapping[str, Any], rows: Length) -> bool:
    """Whether a loop has a condition that is one for each row."""
    condition = params.get("condition")
    if condition is None:
        return False
    (goes_on,) = condition.outputs
    return goes_on.op is lookup("any") and bool(goes_on.inputs[0].spec.shape == (rows,))


def _of_active(body: Body, condition: Body) -> tuple[dict[Node, Node], Node | None]:
    """The nodes of both, and the one that says whether a row goes on; None if it is an operand."""
    known = dict(zip(condition.inputs, body.inputs, strict=True))
    nodes = merged([*body.nodes, *condition.nodes], known)
    active = nodes[condition.outputs[0].inputs[0]]
    is_operand = active.op is CONSTANT or active in body.inputs
    return nodes, None if is_operand else active


@functools.lru_cache(maxsize=256)
def _masked(body: Body, condition: Body, carried: int) -> tuple[Body, Body] | None:
    """The body of a row that goes on, and its condition; None if others change as well."""
    nodes, active = _of_active(body, condition)
    if active is None:
        return None
    both = Body(*[nodes[n] for n in body.outputs], inputs=body.inputs, name=body.name)
    first = len(body.inputs) - carried
    if folded(both, active, False).outputs[:carried] != body.inputs[first:]:
        return None
    goes_on = condition.outputs[0].inputs[0]
    step = folded(both, active, True)
    return step, Body(goes_on, inputs=condition.inputs, name=condition.name)


# ---- numbers of steps of each row ----------------------------------------------------------------


@dataclass(frozen=True)
class OwnSteps:
    """A loop of which a row may take its own number of steps.

    Attributes
    ----------
    number : int or None
        The position of the operand that is the number of the step, which it carries.
    """

    number: int | None


def steps_of_rows(node: Node, rows: Length) -> OwnSteps | None:
    """Whether a row may take its own number of steps of a loop; None if it may not.

    The number of steps is an operand, computed from all rows.
    """
    count = node.args[0]
    if not isinstance(count, Node):
        return None
    if count.op is PART:
        return _steps_of_condition(node, count, rows)
    return _steps_of_counts(node, count, rows)


def _steps_of_counts(node: Node, count: Node, rows: Length) -> OwnSteps | None:
    """A loop that runs as often as the row with the largest number of steps."""
    params, operands = node.params, node.args[1:]
    while _keeps_count(count):
        count = count.inputs[0]
    if count.op is not lookup("max") or count.inputs[0].spec.shape != (rows,):
        return None
    body, carried, stacked = params["body"], params["carried"], params["stacked"]
    fixed = len(body.inputs) - carried - stacked
    ordered = stacked > 0 or len(body.outputs) > carried
    ends = [k for k in range(fixed) if operands[k] is count.inputs[0]]
    for k in range(fixed, fixed + carried):
        x, step = body.inputs[k], body.outputs[k - fixed]
        by, start = _distance(step, x), _distance(operands[k], count)
        if x.spec.shape or by not in (1, -1):
            continue
        if by == 1 and not (_is_number(operands[k], 0) and not (ordered and params["reverse"])):
            continue
        if by == -1 and (start is None or (ordered and not params["reverse"])):
            continue
        # The first number that is compared is 0, or the last one that is below the count.
        first = 0 if by == 1 else -1 - int(start or 0)
        for end in ends:
            if _is_idle(body, carried, stacked, (k, end, first)):
                return OwnSteps(1 + k)
    return None


def _distance(x: Any, start: Any) -> int | None:
    """x - start, if x is `start` plus or minus a number; else None.

    The number of steps is not negative, whether it says so or not.
    """
    if x is start:
        return 0
    if not isinstance(x, Node):
        return None
    if _keeps_count(x):
        return _distance(x.inputs[0], start)
    if len(x.inputs) != 2:
        return None
    op: Any = x.op
    a, b = x.inputs
    if op.commutative and a.op is CONSTANT:
        a, b = b, a
    if b.op is not CONSTANT or np.ndim(b.value) or x.spec.dtype.kind != "i":
        return None
    before = _distance(a, start)
    if before is None or op not in (lookup("add"), lookup("subtract")):
        return None
    number = int(b.value)
    return before + number if op is lookup("add") else before - number


def _keeps_count(x: Node) -> bool:
    """Whether a node is the same number of steps as its first operand."""
    if type(x.spec) is tuple or x.spec.dtype.kind != "i":
        return False
    if x.op is lookup("maximum"):
        return _is_number(x.inputs[-1], 0)
    return x.op in (lookup("discretise"), lookup("cast")) and x.inputs[0].spec.dtype.kind == "i"


def _is_number(x: Any, number: int) -> bool:
    value = x.value if isinstance(x, Node) and x.op is CONSTANT else x
    return not isinstance(value, Node) and np.ndim(value) == 0 and bool(value == number)


@functools.lru_cache(maxsize=256)
def _is_idle(body: Body, carried: int, stacked: int, place: tuple[int, int, int]) -> bool:
    """Whether a step keeps the carry if its number is not below the end of a row.

    Parameters
    ----------
    place : tuple of int
        The inputs that are the number and the end, and what is added to the number first.
    """
    number, end, first = place
    nodes = merged(body.nodes, {})
    fixed = len(body.inputs) - carried - stacked
    for node in nodes.values():
        if node.op is not lookup("less") or node.inputs[1:] != (body.inputs[end],):
            continue
        if _distance(node.inputs[0], body.inputs[number]) != first:
            continue
        whole = Body(*[nodes[n] for n in body.outputs], inputs=body.inputs, name=body.name)
        after = folded(whole, node, False).outputs
        if all(
            k == number or after[k - fixed] is body.inputs[k] for k in range(fixed, fixed + carried)
        ):
            return True
    return False


def _steps_of_condition(node: Node, count: Node, rows: Length) -> OwnSteps | None:
    """The backward pass of a loop whose rows have ended by themselves."""
    loop = count.inputs[0]
    params = loop.params
    if not ends_by_rows(params, rows) or count.params["index"] != params["carried"]:
        return None
    if not node.params["reverse"]:
        return None
    origins = tuple([_origin(x, loop, params["carried"]) for x in node.args[1:]])
    first = len(origins) - node.params["stacked"]
    if None in origins[first:]:
        return None
    here = node.params
    counts = here["carried"], here["stacked"]
    return OwnSteps(None) if _undoes(_bodies(params), here["body"], counts, origins) else None


def _bodies(params: Mapping[str, Any]) -> tuple[Body, Body]:
    return params["body"], params["condition"]


def _origin(x: Any, loop: Node, carried: int) -> int | None:
    """Which input of the body an operand is, or minus one minus which of its outputs."""
    if not isinstance(x, Node):
        return None
    if x.op is PART and x.inputs[0] is loop and x.params["index"] > carried:
        return -int(x.params["index"])  # the number of steps follows the carry
    places = [k for k, y in enumerate(loop.args[: len(loop.args) - carried]) if y is x]
    return places[0] if places else None


@functools.lru_cache(maxsize=256)
def _undoes(
    bodies: tuple[Body, Body],
    back: Body,
    counts: tuple[int, int],
    origins: Sequence[int | None],
) -> bool:
    """Whether a step of a backward pass keeps its carry where the row had ended."""
    nodes, active = _of_active(*bodies)
    if active is None:
        return False
    forward, (carried, stacked) = bodies[0], counts
    fixed = len(back.inputs) - carried - stacked
    known: dict[Node, Node] = {}
    for k, (x, place) in enumerate(zip(back.inputs, origins, strict=True)):
        if place is None or fixed <= k < fixed + carried:
            continue
        known[x] = forward.inputs[place] if place >= 0 else nodes[forward.outputs[-place - 1]]
    ours = merged([*dict.fromkeys(nodes.values()), *back.nodes], known)
    inputs = [*forward.inputs, *back.inputs[fixed : fixed + carried]]
    inputs += [x for k, x in enumerate(back.inputs[:fixed]) if origins[k] is None]
    whole = Body(*[ours[n] for n in back.outputs[:carried]], inputs=inputs, name=back.name)
    return folded(whole, active, False).outputs == back.inputs[fixed : fixed + carried]

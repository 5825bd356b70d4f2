"""Conditions of loops by rows: a loop whose rows end at different steps.

Batching makes one loop of them, which runs until no row goes on, and in which a row that has ended
keeps its values (control_flow/batching.py). A thread ends its row at once. This is valid if the
step changes nothing where the row's condition is false, which is verified by putting this into the
body: then each carried result simplifies to the operand.

    row_bodies    the body and the condition of one row
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from wengert._engine.core.copy_graph import rebuilt
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import tracing_body
from wengert._engine.core.subgraph import Body
from wengert._engine.core.tracing import record
from wengert._engine.rewrite import simplify

from ..llvm.ir.affine import Length


def row_bodies(params: Mapping[str, Any], rows: Length) -> tuple[Body, Body | None] | None:
    """The body and the condition (None of a loop of known length); None if rows end together."""
    body, condition, carried = params["body"], params.get("condition"), params["carried"]
    if condition is None:
        return body, None
    (goes_on,) = condition.outputs
    if goes_on.op is lookup("any") and goes_on.inputs[0].spec.shape == (rows,):
        return _masked(body, condition, carried)
    return Body(*body.outputs[:carried], inputs=body.inputs, name=body.name), condition


@functools.lru_cache(maxsize=256)
def _masked(body: Body, condition: Body, carried: int) -> tuple[Body, Body] | None:
    """The body of a row that goes on, and its condition; None if others change as well."""
    known = dict(zip(condition.inputs, body.inputs, strict=True))
    goes_on = condition.outputs[0].inputs[0]
    active = rebuilt(condition.nodes, known)[goes_on]
    both = Body(*body.outputs[:carried], active, inputs=body.inputs, name=body.name)
    both = simplify(both, verify=False)
    active = both.outputs[-1]
    if active in both.inputs:
        return None
    ended = _with_boolean(both, active, False)
    first = len(body.inputs) - carried
    if any(x is not y for x, y in zip(ended.outputs[:carried], ended.inputs[first:], strict=True)):
        return None
    running = _with_boolean(both, active, True)
    step = Body(*running.outputs[:carried], inputs=running.inputs, name=body.name)
    return step, Body(goes_on, inputs=condition.inputs, name=condition.name)


def _with_boolean(body: Body, active: Node, value: bool) -> Body:
    """The body with one boolean for all rows in the place of a node."""
    with tracing_body():
        options = {"shape": active.spec.shape, "value": value, "dtype": active.spec.dtype}
        made: Any = record(lookup("full"), [], options)
    new = rebuilt(body.nodes, {active: made.node})
    found: Body = simplify(body.with_nodes(new), verify=False)
    return found

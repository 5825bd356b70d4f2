"""Bodies that also run for batch elements which do not need their results.

Under `vmap` both branches of a conditional run for all elements, and a loop runs as long as its
longest element.  What an element computes in a branch that it does not take, or after its last
step, is discarded; but an index may be out of bounds there, and a loop inside may not end.  So
indices are 0 there, and loops inside take no steps.

    inline_guarded   the nodes of a body, for elements that may be inactive
    with_activity    the body with one more input: whether the element is active
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import describe, wrap
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import BRANCH, LOOP
from wengert._engine.core.recording import enable_grad, tracing
from wengert._engine.core.replay import inline_graph
from wengert._engine.core.spec import Spec
from wengert._engine.core.subgraph import Body
from wengert._engine.core.tracing import placeholder

from .eager_loops import strong

_TRUTH = Spec((), np.dtype(bool))


def inline_guarded(body: Body, values: Sequence[Any], active: Any) -> list[Any]:
    """The outputs of a body for these values, if an element is active; else any values."""

    def instead(node: Node, args: Sequence[Any], params: dict[str, Any]) -> Any:
        op: Any = node.op
        if "index" in params:
            return _guarded_index(op, args, params, active)
        if op.control_flow == BRANCH and "branches" in params:
            branches = tuple([with_activity(b, guard=True) for b in params["branches"]])
            return op(*args, active, **{**params, "branches": branches})
        if op.control_flow == LOOP and "condition" in params:
            body, condition = params["body"], params["condition"]
            both = {
                "body": with_activity(body, guard=False, first=True),
                "condition": _and_active(condition),
            }
            return op(active, *args, **{**params, **both})
        if op.control_flow == LOOP and params.get("counted"):
            return op(lookup("where")(active, args[0], np.int64(0)), *args[1:], **params)
        if op.control_flow == LOOP and "counted" in params:
            body = with_activity(params["body"], guard=True, first=True)
            return op(active, *args, **{**params, "body": body})
        return None

    return inline_graph(body, values, instead)


def _guarded_index(op: Any, args: Sequence[Any], params: dict[str, Any], active: Any) -> Any:
    """An operation with an index, whose integers are 0 if the element is not active."""
    guarded = list(args)
    for k in range(len(args))[op.selectors]:
        spec = describe(args[k])
        if spec.dtype.kind in "iu":
            guarded[k] = lookup("where")(active, args[k], np.zeros((), spec.dtype)[()])
    return op(*guarded, **params)


@functools.lru_cache(maxsize=512)
def with_activity(body: Body, guard: bool, first: bool = False) -> Body:
    """The body with one more input, which is the last one or the first.

    Without `guard` it does not use it: the body of a ``while`` loop only runs for active elements.
    """
    with tracing() as opened, enable_grad():
        opened.isolated = opened.general = True
        inputs = [placeholder(n.spec, n.name, type(n) is Node) for n in body.inputs]
        active = placeholder(_TRUTH)
        values = [wrap(n) for n in inputs]
        outs = inline_guarded(body, values, wrap(active)) if guard else inline_graph(body, values)
        results = [strong(x) for x in outs]
    return Body(*results, inputs=[active, *inputs] if first else [*inputs, active], name=body.name)


@functools.lru_cache(maxsize=512)
def _and_active(condition: Body) -> Body:
    """The condition of a loop that takes no steps for elements that are not active."""
    with tracing() as opened:
        opened.isolated = opened.general = True
        inputs = [placeholder(n.spec, n.name, type(n) is Node) for n in condition.inputs]
        active = placeholder(_TRUTH)
        (goes_on,) = inline_guarded(condition, [wrap(n) for n in inputs], wrap(active))
        both = lookup("logical_and")(wrap(active), goes_on)
    return Body(both, inputs=[active, *inputs], name=condition.name)

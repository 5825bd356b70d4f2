"""Loops and branches that exchange messages with other processes, or call functions for debugging.

The token that orders messages (core/message_order.py) becomes one more carry of a loop, and one
more operand and result of a branch.  All processes have to take the same branch and the same number
of steps, so what decides must be the same in all of them.

    MessagesSent      a body exchanges messages: it is traced again, with a token
    body_derivative      a block in which the derivative of a body is traced
    token_to_carry       the token that a loop or branch with messages begins with
    with_token        run a function with a token of its own; its result and the last token
    results_once      results of a body, in which loops with messages run once
    after_messages    a derivative of a body, after the messages of the body
    before_tangents      the token of tangents of a body, after the messages of the body
    check_decisions   refuse messages after a decision that may differ between processes
    sends_messages    whether a body has collective operations

Whether values in the backward pass of a checkpointed loop are the same in all processes.

Decisions about messages in its bodies must be, as in those of the loop.

inputs_of_replay    what the inputs of its bodies depend on
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from wengert._engine.autodiff.messages import (
    LOCAL,
    Origins,
    of_condition,
    of_inputs,
    origins_of,
    origins_of_operands,
)
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import Body, bodies_of
from wengert._engine.core.handle import Handle, wrap
from wengert._engine.core.loop_variants import from_variants, set_variant
from wengert._engine.core.message_order import (
    NO_MESSAGES,
    OrderWanted,
    current,
    is_used,
    ordered_by,
)
from wengert._engine.core.node import Node, constant
from wengert._engine.core.op_facts import BRANCH, LOOPS, REPLAY
from wengert._engine.core.recording import current_trace, tracing_body
from wengert._engine.ops.messages import after_tokens
from wengert.errors import TraceError, at

from .checkpoint_schedule import OperandGroups


class MessagesSent(OrderWanted):
    """A body exchanges messages, and does not carry the token that orders them."""


@contextmanager
def body_derivative() -> Iterator[None]:
    """A block in which the derivative of a body is traced.

    The tokens of its messages are inputs and outputs of the body, not that of the function that is
    differentiated.
    """
    with tracing_body():
        if is_used():
            with ordered_by(None):
                yield
        else:
            yield


def token_to_carry() -> Handle:
    """The token that a loop or branch with messages or calls for debugging begins with.

    Raises
    ------
    OrderWanted
        It is in something that is traced, which needs a token too.
    """
    token, session = current(), current_trace()
    if token is None and session is not None and (session.isolated or session.general):
        raise OrderWanted(
            "a loop or branch with a call for debugging is in a function whose steps are traced "
            "separately from it. Call it outside, or return the values."
        )
    first: Handle = wrap(constant(NO_MESSAGES) if token is None else token.node)
    return first


def with_token(token: Handle, fun: Callable[..., Any], *args: Any) -> tuple[Any, Handle]:
    """The result of a function that may exchange messages, and the token after them."""
    last = wrap(token.node)
    with ordered_by(last):
        result = fun(*args)
    return result, last


def set_variant_with_messages(loop: Node, outs: Sequence[Any]) -> None:
    """Let a loop that exchanges messages be replaced by the one that also stores residuals.

    Whether there are residuals may differ between processes, and so would the number of messages.
    """
    if is_used() and isinstance(outs[0], Handle) and any(map(_acts_in_order, bodies_of(loop))):
        set_variant(loop, outs[0].node.inputs[0])


def results_once(*results: Any) -> list[Any]:
    """Results of a body, in which loops with messages run once (core/loop_variants.py)."""
    if not is_used():
        return list(results)
    nodes = [x.node if isinstance(x, Handle) else x for x in results]
    new = from_variants([n for n in nodes if isinstance(n, Node)])
    return [
        new.get(n, x) if isinstance(n, Node) else x for n, x in zip(nodes, results, strict=True)
    ]


def after_messages(derivative: Any, out: Any, body: Body) -> Any:
    """A (co)tangent of a result of a body; of a token, after the messages of the body.

    The derivative of a branch computes the branch again as far as it needs its values, which may
    differ between processes.  If the branch does not return results of messages
    (branch_vjp.py), all processes exchange all its messages again.
    """
    return after_tokens(derivative, [out]) if is_used() and sends_messages(body) else derivative


def before_tangents(dot: Any, outs: Sequence[Any], body: Body) -> Any:
    """The tangent of an input of a body; of a token, after the messages of the body.

    So the messages of values and tangents have one order, which follows from their operands alone.
    """
    return after_tokens(dot, outs) if is_used() and sends_messages(body) else dot


def check_decisions(graph: BaseGraph, known: Mapping[Node, Any] | None = None) -> None:
    """Refuse messages in branches and loops if what decides may differ between processes.

    Parameters
    ----------
    graph : BaseGraph
        A whole graph, or a body with the origins `known` of its inputs.

    Raises
    ------
    TraceError
        Some processes would wait for messages that others do not send.
    """
    nodes = [n for n in graph.nodes if any(map(sends_messages, bodies_of(n)))]
    if not nodes:
        return
    for node in nodes:
        operands = origins_of_operands(node, known)
        bodies = bodies_of(node)
        carried = node.params.get("carried", 0) if node.op.control_flow in LOOPS else 0
        inner = (
            inputs_of_replay(node, operands)
            if node.op.control_flow == REPLAY
            else [
                of_inputs(
                    b,
                    operands[len(operands) - len(b.inputs) :],
                    carried if b is node.params.get("body") else 0,
                    node.params.get("stacked", 0),
                )
                for b in bodies
            ]
        )
        if node.op.control_flow == BRANCH:
            _refuse_local(operands[0], node)
        elif "condition" in node.params:
            of_body = inner[bodies.index(node.params["body"])]
            _refuse_local(of_condition(node.params["condition"], of_body), node)
        elif node.params.get("counted"):
            _refuse_local(operands[0], node)
        for body, own in zip(bodies, inner, strict=True):
            check_decisions(body, own)


def _refuse_local(origins: Any, node: Node) -> None:
    if LOCAL in origins:
        raise TraceError(
            f"a {node.op.control_flow} exchanges messages, and whether or how often is decided by "
            "a value that may differ between processes, which would wait for each other. Combine "
            "the condition, distributed.allreduce(condition, 'any') or 'all'; mark an argument "
            f"that is the same in all processes by distributed.replicated(){at(node.where)}."
        )


def _acts_in_order(body: Body) -> bool:
    """Whether a body, or one inside it, has collective operations or calls for debugging."""
    return any(
        n.op.kind == "collective"
        or n.op.effects.side_effect
        or any(map(_acts_in_order, bodies_of(n)))
        for n in body.nodes
    )


def sends_messages(body: Body) -> bool:
    """Whether a body, or one inside it, has collective operations."""
    for node in body.nodes:
        if node.op.kind == "collective" or any(map(sends_messages, bodies_of(node))):
            return True
    return False


def inputs_of_replay(node: Node, operands: Sequence[Origins]) -> list[dict[Node, Origins]]:
    """For each of the bodies of a replay, what its inputs depend on, in all steps.

    Parameters
    ----------
    node : Node
    operands : sequence
        What the operands of the node depend on.
    """
    params, parts = node.params, OperandGroups(operands, node.params)
    step, keep, back = (params[name] for name in ("step", "keep", "back"))
    carried, stacked = params["carried"], params["stacked"]
    of_step = of_inputs(step, [*parts.consts, *parts.carry, *parts.xs], carried, stacked)
    of_keep = dict(zip(keep.inputs, of_step.values(), strict=True))
    residuals = origins_of(keep.outputs[carried:], of_keep)
    rows = [*[parts.xs[k] for k in params["read"]], *residuals, *parts.rows]
    given = [*parts.consts, *parts.more, *parts.starts, *rows]
    of_back = of_inputs(back, given, params["pulled"], len(rows))
    found: dict[Body, dict[Node, Origins]] = {step: of_step, keep: of_keep, back: of_back}
    return [found[body] for body in bodies_of(node)]

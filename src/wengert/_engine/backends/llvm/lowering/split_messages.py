"""Messages between two processes as two calls: one starts the message, one waits for it.

The graph has one operation, so derivatives and batches know nothing of this.  What does not need
the received array is computed between the calls (schedule/message_overlap.py).

    split          the calls of one message
    is_start       whether a call starts a message
    is_wait        whether a call waits for one
    requests_of    the requests of MPI that a call has started
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.node import Node
from wengert._engine.core.op_facts import Effects
from wengert._engine.core.spec import Spec

from .loop_ir import CallResult, Expr, OpaqueCall

# A request to receive, one to send, and a number whose bits tell which of them are pending.
REQUESTS = Spec((3,), np.dtype(np.uint64))
_START, _WAIT = "mpi.start", "mpi.wait"


class _MessageOperand:
    """The spec of an operand that is not in the graph."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec


class _MessageCall:
    """One of the two calls, in the place of a node of the graph."""

    def __init__(self, name: str, node: Node, operands: Sequence[Spec], results: Any) -> None:
        self.op = _MessageOperation(name)
        self.params, self.spec, self.inputs = (
            node.params,
            results,
            tuple(map(_MessageOperand, operands)),
        )
        self.where, self.name = node.where, node.name
        origin = None if node.info is None else node.info.lowered_from
        self.info = node.info_with(lowered_from=origin or node)


class _MessageOperation:
    """The operation of a call."""

    kind, effects, cost, control_flow = "collective", Effects(), None, ""

    def __init__(self, name: str) -> None:
        self.name = name

    @staticmethod
    def updated_operand(node: _MessageCall, output: int) -> int | None:
        """None: no operand is written to."""
        return None


def split(node: Node, x: Expr, token: Expr) -> tuple[Expr, Expr]:
    """The received array, after the wait, and the token, after the start.

    Parameters
    ----------
    node : Node
        Of an operation whose messages are not collective.
    x, token : Expr
        Its operands.
    """
    received, next_token = node.spec
    sent = Spec(x.shape, x.dtype)
    started = _calls(_START, node, [x, token], (received, next_token, REQUESTS), (sent, next_token))
    pending, after, requests = started
    # The wait reads what is sent, so that its memory is not used for anything else before.
    (array,) = _calls(_WAIT, node, [pending, requests, x], (received,), (received, REQUESTS, sent))
    return array, after


def _calls(
    name: str, node: Node, operands: Sequence[Expr], results: Sequence[Spec], given: Sequence[Spec]
) -> tuple[Expr, ...]:
    """The results of a call."""
    call: Any = _MessageCall(name, node, given, tuple(results))
    whole = Expr(OpaqueCall(name, dict(node.params)), operands, (), results[0].dtype, call)
    parts = enumerate(results)
    return tuple([Expr(CallResult(k), (whole,), s.shape, s.dtype, node) for k, s in parts])


def is_start(stage: Any) -> bool:
    """Whether a stage starts a message."""
    return isinstance(stage, Expr) and _name_of(stage) == _START


def is_wait(stage: Any) -> bool:
    """Whether a stage waits for a message."""
    return isinstance(stage, Expr) and _name_of(stage) == _WAIT


def _name_of(expr: Expr) -> str:
    return expr.rule.name if isinstance(expr.rule, OpaqueCall) else ""


def requests_of(parts: Sequence[Expr]) -> Expr:
    """The requests among the results of a call that starts a message."""
    return parts[2]

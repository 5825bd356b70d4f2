"""Loops and branches that exchange messages with other processes.

The token that orders messages (core/message_order.py) becomes one more carry of a loop, and one
more operand and result of a branch.  All processes have to take the same branch and the same number
of steps, so what decides must be the same in all of them.

    token_to_carry    the first token of a loop or branch that becomes a node
    with_token        run a function with a token of its own; its result and the last token
    check_uniform, check_uniform_steps
                      refuse messages after a decision that may differ between processes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wengert._engine.autodiff.messages import LOCAL, of_inputs, origins_of
from wengert._engine.core.handle import Handle, wrap
from wengert._engine.core.message_order import current, is_used, ordered_by
from wengert._engine.core.subgraph import Body, bodies_of
from wengert.errors import TraceError, at, user_line


def token_to_carry() -> Handle | None:
    """The first token of a loop or branch that becomes a node; None if messages are not ordered."""
    token = current()
    return None if token is None or not token.node.is_traced else wrap(token.node)


def with_token(token: Handle, fun: Callable[..., Any], *args: Any) -> tuple[Any, Handle]:
    """The result of a function that may exchange messages, and the token after them."""
    last = wrap(token.node)
    with ordered_by(last):
        result = fun(*args)
    return result, last


def check_uniform(decision: Any, bodies: Sequence[Body], what: str) -> None:
    """Refuse messages in branches if the value that decides may differ between processes.

    Raises
    ------
    TraceError
        It may; then some processes would wait for messages that others do not send.
    """
    if is_used() and isinstance(decision, Handle) and any(map(sends_messages, bodies)):
        _refuse_local(origins_of([decision.node])[0], what)


def check_uniform_steps(
    bodies: Sequence[Body], operands: Sequence[Any], carried: int, what: str
) -> None:
    """The same for a loop while a condition holds; `bodies` are its body and its condition."""
    if not is_used() or not any(map(sends_messages, bodies)):
        return
    body, condition = bodies
    known = [origins_of([x.node])[0] if isinstance(x, Handle) else frozenset() for x in operands]
    inputs = of_inputs(body, known, carried).values()
    own = dict(zip(condition.inputs, inputs, strict=True))
    _refuse_local(origins_of(condition.outputs, own)[0], what)


def _refuse_local(origins: Any, what: str) -> None:
    if LOCAL in origins:
        raise TraceError(
            f"{what}: it exchanges messages, and how often is decided by a value that may differ "
            "between processes, which would wait for each other. Combine the condition, "
            "distributed.allreduce(condition, 'any') or 'all'; mark an argument that is the same "
            f"in all processes by distributed.replicated(){at(user_line())}."
        )


def sends_messages(body: Body) -> bool:
    """Whether a body, or one inside it, has collective operations."""
    for node in body.nodes:
        if node.op.kind == "collective" or any(map(sends_messages, bodies_of(node))):
            return True
    return False

"""`.grad` and `backward` while a function is traced.

A training step writes and reads `.grad` of parameters.  While it is traced, gradients are nodes,
and the final gradient of a parameter is an output of the graph.  After each run it is stored in
`.grad` (jit/compiled_program.py), or added to it if the step has not set it first.

    check_backward, check_owners    raise an error if a backward pass is not possible
    accumulate    add a node to the gradient of a parameter
    note_set      record that `.grad` is set
    check_read    allow reading `.grad` only after it was set in the traced function
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert._engine.core.handle import stopped, wrap
from wengert._engine.core.node import Node, is_variable
from wengert._engine.core.recording import Session, current_trace
from wengert.errors import TraceError, at, user_line


def check_backward(tensor: Any) -> None:
    """Raise an error for a backward pass that is not part of the graph being built."""
    session, node = current_trace(), tensor.node
    inside = session is not None and session.general and not session.isolated
    if node.is_traced and not inside:
        raise _refusal(node)
    if inside and not node.is_traced:
        raise TraceError(
            f"backward() of {node.spec}, which was computed before this function is traced, would "
            f"run once and not each time. Compute it in the function{at(user_line())}."
        )


def check_owners(node: Node, owners: Sequence[Node]) -> None:
    """Raise an error for a traced pass that reaches only inputs, which have no gradient."""
    if node.is_traced and not owners:
        raise _refusal(node)


def _refusal(node: Node) -> TraceError:
    return TraceError(
        f"backward() of {node.spec}, whose value is not known while a graph is built, does not "
        "reach a parameter that has a gradient. Take derivatives of functions, "
        "wengert.grad(loss)(w), in the graph too, or of the graph when it is finished, "
        f"graph.grad(){at(user_line())}."
    )


def accumulate(owner: Any, bar: Any, differentiable: bool) -> None:
    """Add a node to the gradient of a tensor."""
    session = current_trace()
    assert session is not None
    session.grads.setdefault(owner, (getattr(owner, "_grad", None), False))
    total = owner._grad if session.grads[owner][1] else _sum_so_far(session, owner)
    new = bar if differentiable else wrap(stopped(bar.node).node)
    owner._grad = new if total is None else total + new
    session.added.add(owner)


def _sum_so_far(session: Session, owner: Any) -> Any:
    """The sum of gradients added in this function, or None."""
    return owner._grad if owner in session.added else None


def note_set(tensor: Any) -> None:
    """Record that `.grad` is replaced."""
    session = current_trace()
    if session is not None and session.general:
        old = session.grads.get(tensor, (getattr(tensor, "_grad", None), True))
        session.grads[tensor] = old[0], True


def check_read(tensor: Any) -> None:
    """Raise an error for reading a gradient that is not a node of this graph."""
    session = current_trace()
    if session is None or not session.general or not is_variable(_leaf(session, tensor)):
        return
    if not session.grads.get(tensor, (None, False))[1]:
        raise TraceError(
            f"the gradient of {tensor.node.name or 'a tensor'} is read while a graph is built, but "
            "it depends on its earlier value, which is not part of the graph. Call zero_grad() "
            f"in the same function, before backward(){at(user_line())}."
        )


def _leaf(session: Session, tensor: Any) -> Any:
    return session.written.get(tensor, tensor.node)

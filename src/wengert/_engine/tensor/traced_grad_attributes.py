"""`.grad` and `backward` while a function is compiled.

A training step writes and reads `.grad` of parameters.  While it is traced, gradients are nodes;
the final gradient of a parameter is an output of the graph. It is stored in `.grad` after each run
(jit/compiled_program.py), or added to it if the step has not set it first.

   check_backward, check_owners   whether a backward pass is possible
    deposit          add a node to the gradient of a parameter
    note_set         record that `.grad` is set
    check_read       allow reading `.grad` only after it was set in the traced function
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert._engine.core.handle import held, wrap
from wengert._engine.core.node import Node, is_variable
from wengert._engine.core.recording import Session, current_trace
from wengert.errors import TraceError, at, user_line


def check_backward(tensor: Any) -> None:
    """Raise an error for a backward pass that is not part of the graph being built."""
    opened, node = current_trace(), tensor.node
    inside = opened is not None and opened.general and not opened.isolated
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
        f"backward() of {node.spec}, whose value is not known while a graph is built, reaches no "
        "parameter that has a gradient. Take derivatives of functions, "
        "wengert.grad(loss)(w), in the graph too, or of the graph when it is finished, "
        f"graph.grad(){at(user_line())}."
    )


def deposit(owner: Any, bar: Any, differentiable: bool) -> None:
    """Add a node to the gradient of a tensor."""
    opened = current_trace()
    assert opened is not None
    opened.grads.setdefault(owner, (getattr(owner, "_grad", None), False))
    have = owner._grad if opened.grads[owner][1] else _added(opened, owner)
    new = bar if differentiable else wrap(held(bar.node).node)
    owner._grad = new if have is None else have + new
    opened.added.add(owner)


def _added(opened: Session, owner: Any) -> Any:
    """The sum of gradients added in this function."""
    return owner._grad if owner in opened.added else None


def note_set(tensor: Any) -> None:
    """Record that `.grad` is replaced."""
    opened = current_trace()
    if opened is not None and opened.general:
        old = opened.grads.get(tensor, (getattr(tensor, "_grad", None), True))
        opened.grads[tensor] = old[0], True


def check_read(tensor: Any) -> None:
    """Raise an error for reading a gradient that is not a node of this graph."""
    opened = current_trace()
    if opened is None or not opened.general or not is_variable(_leaf(opened, tensor)):
        return
    if not opened.grads.get(tensor, (None, False))[1]:
        raise TraceError(
            f"the gradient of {tensor.node.name or 'a tensor'} is read while a graph is built, but "
            "it depends on what was there before, which is not part of the graph. Call zero_grad() "
            f"in the same function, before backward(){at(user_line())}."
        )


def _leaf(opened: Session, tensor: Any) -> Any:
    return opened.written.get(tensor, tensor.node)

"""Rematerialization: `wengert.checkpoint` in a graph.

The call is a node with the function as its body (`custom_call`, custom.py), and the rule of its
derivative recomputes the body from the operands.  The recomputed nodes depend on a cotangent
(`after`), so that they are not merged with those of the forward pass, and stay in the backward pass
if a loop is split in two: between the passes only the operands are stored.

    Recompute      the rule
    written        the results of a call in a graph
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from wengert._engine.autodiff.jvp_vjp import linearize, vjp
from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, describe, wrap
from wengert._engine.core.message_order import is_used
from wengert._engine.core.node import constant
from wengert._engine.core.replay import inline_graph
from wengert._engine.core.subgraph import Body
from wengert._engine.core.uniform_arrays import zeros
from wengert._engine.ops.messages import after_tokens
from wengert._engine.ops.side_effects import after
from wengert.errors import MutatedError, at, user_line

from .call_rule import CustomRule
from .closure_conversion import closed
from .custom import custom_call
from .eager_loops import strong
from .loops import mapped

if TYPE_CHECKING:
    from wengert._engine.core.node import Node
    from wengert._engine.core.types import Array


_REPEATED = "which would be repeated when the derivative recomputes it"


class Recompute(CustomRule):
    """The derivative of a body that is recomputed; rules of the same body compare equal."""

    has_vjp = has_jvp = True

    def __init__(self, body: Body) -> None:
        self.body = body
        self.name = f"checkpoint of {body.name}"

    def __eq__(self, other: object) -> bool:
        return type(other) is Recompute and self.body == other.body

    def __hash__(self) -> int:
        return hash(self.body)

    def bars(
        self, operands: Sequence[Any], outs: Sequence[Any], ts: Sequence[Any], saved: Any = None
    ) -> list[Any]:
        """The cotangents of the operands, by running the body again, after the given cotangents."""
        cotangents = [t for t in ts if t is not None]
        ordered = [after(_handle(x), *cotangents) if isinstance(x, Handle) else x for x in operands]
        if is_used():
            ordered = [after_tokens(x, cotangents) for x in ordered]
        differentiable = [k for k, x in enumerate(ordered) if _is_inexact(x)]
        if not differentiable or not cotangents:
            return [None] * len(ordered)
        values, pull = vjp(
            self._function(ordered, differentiable), *[_handle(ordered[k]) for k in differentiable]
        )
        if is_used():
            pairs = zip(cotangents, values, strict=True)
            cotangents = [after_tokens(t, [y]) for t, y in pairs]
        by_operand = dict(zip(differentiable, pull(tuple(cotangents)), strict=True))
        return [by_operand.get(k) for k in range(len(ordered))]

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The tangents of the results; forward mode stores nothing."""
        if is_used():  # messages are repeated after those of the values
            operands = [after_tokens(x, [dot]) for x, dot in zip(operands, dots, strict=True)]
        differentiable = [k for k, x in enumerate(operands) if _is_inexact(x)]
        tangents = [
            zeros(describe(operands[k])) if dots[k] is None else dots[k] for k in differentiable
        ]
        primals = tuple([_handle(operands[k]) for k in differentiable])
        values, push = linearize(self._function(operands, differentiable), *primals)
        if is_used():
            tangents = [after_tokens(x, values) for x in tangents]
        remaining = iter(push(*tangents))
        return [next(remaining) if _is_inexact(n) else None for n in self.body.outputs]

    def _function(
        self, operands: Sequence[Any], differentiable: Sequence[int]
    ) -> Callable[..., Any]:
        """The differentiable results as a function of the differentiable operands."""

        def recompute(*xs: Any) -> tuple[Any, ...]:
            full = list(operands)
            for k, x in zip(differentiable, xs, strict=True):
                full[k] = x
            outs = inline_graph(self.body, full)
            pairs = zip(outs, self.body.outputs, strict=True)
            return tuple([_handle(y) for y, n in pairs if _is_inexact(n)])

        return recompute


def _is_inexact(x: Array | Node) -> bool:
    return describe(x).dtype.kind in "fc"


def _handle(x: Any) -> Any:
    return x if isinstance(x, Handle) else wrap(constant(x))


def written(fun: Callable[..., Any], leaves: Sequence[Any], structure: Any) -> Any:
    """The results of a checkpointed call in a graph.

    Parameters
    ----------
    fun : callable
    leaves, structure
        Its arguments, ``(args, kwargs)``, as a flattened pytree.

    Raises
    ------
    MutatedError
        `fun` writes to one of its arguments, which cannot be repeated.
    TraceError
        `fun` prints, draws random numbers or has other side effects, which would be repeated.
    """
    slots = [k for k, x in enumerate(leaves) if isinstance(x, Handle)]
    name = getattr(fun, "__name__", "function")

    def of_operands(*handles: Any) -> Any:
        full = list(leaves)
        for k, x in zip(slots, handles, strict=True):
            full[k] = x
        nodes = [x.node for x in handles]
        args, kwargs = pytree.unflatten(structure, full)
        results = mapped(strong, converted(fun)(*args, **kwargs))
        if any(x.node is not n for x, n in zip(handles, nodes, strict=True)):
            raise MutatedError(
                f"checkpoint of {name}: the function wrote to one of its arguments, which cannot "
                "be repeated when the derivative runs the function again. Copy it first "
                f"(x.copy()){at(user_line())}."
            )
        return results

    operands = [leaves[k] for k in slots]
    what = f"checkpoint of {name}"
    closure = closed(
        of_operands, [describe(x) for x in operands], what, hoist=False, without_effects=_REPEATED
    )
    closure.body.name = name
    arguments = [*closure.captured, *operands]
    if not closure.body.outputs or not any([isinstance(x, Handle) for x in arguments]):
        return of_operands(*operands)
    rule = Recompute(closure.body)
    return closure.container(custom_call(*arguments, body=closure.body, rule=rule, captured=0))

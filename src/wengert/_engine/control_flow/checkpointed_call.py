"""Rematerialization: `wengert.checkpoint` in a graph.

The call is a node with the function as its body (`custom_call`, custom.py), and the rule of its
derivative recomputes the body from the operands.  The recomputed nodes depend on a cotangent
(`after`), so that they are not merged with those of the forward pass, and stay in the backward pass
if a loop is split in two: between the passes only the operands are stored.

    Recompute      the rule
    written        a call in a graph
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from wengert._engine.autodiff.cotangent_space import zeros
from wengert._engine.autodiff.jvp_vjp import jvp, vjp
from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, describe, wrap
from wengert._engine.core.node import constant
from wengert._engine.core.replay import inline_graph
from wengert._engine.core.subgraph import Body
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


class Recompute(CustomRule):
    """The derivative of a body that is recomputed; equal to another of the same body."""

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
        """The cotangents of the operands, from a run that depends on those of the results."""
        live = [t for t in ts if t is not None]
        held = [after(_handle(x), *live) if isinstance(x, Handle) else x for x in operands]
        moving = [k for k, x in enumerate(held) if _is_inexact(x)]
        if not moving or not live:
            return [None] * len(held)
        _, pull = vjp(self._function(held, moving), *[_handle(held[k]) for k in moving])
        found = dict(zip(moving, pull(tuple(live)), strict=True))
        return [found.get(k) for k in range(len(held))]

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The tangents of the results; forward mode stores nothing."""
        moving = [k for k, x in enumerate(operands) if _is_inexact(x)]
        given = [zeros(describe(operands[k])) if dots[k] is None else dots[k] for k in moving]
        primals = tuple([_handle(operands[k]) for k in moving])
        _, found = jvp(self._function(operands, moving), primals, tuple(given))
        rest = iter(found)
        return [next(rest) if _is_inexact(n) else None for n in self.body.outputs]

    def _function(self, operands: Sequence[Any], moving: Sequence[int]) -> Callable[..., Any]:
        """The differentiable results as a function of the differentiable operands."""

        def again(*xs: Any) -> tuple[Any, ...]:
            full = list(operands)
            for k, x in zip(moving, xs, strict=True):
                full[k] = x
            outs = inline_graph(self.body, full)
            pairs = zip(outs, self.body.outputs, strict=True)
            return tuple([_handle(y) for y, n in pairs if _is_inexact(n)])

        return again


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
        Its arguments, ``(args, kwargs)``, as a tree.

    Raises
    ------
    MutatedError
        It writes to one of its arguments, which cannot be repeated.
    TraceError
        It prints, draws random numbers or has other side effects, which would be repeated.
    """
    slots = [k for k, x in enumerate(leaves) if isinstance(x, Handle)]
    name = getattr(fun, "__name__", "function")

    def of_operands(*handles: Any) -> Any:
        full = list(leaves)
        for k, x in zip(slots, handles, strict=True):
            full[k] = x
        nodes = [x.node for x in handles]
        args, kwargs = pytree.unflatten(structure, full)
        found = mapped(strong, converted(fun)(*args, **kwargs))
        if any(x.node is not n for x, n in zip(handles, nodes, strict=True)):
            raise MutatedError(
                f"checkpoint of {name}: the function wrote to one of its arguments, which cannot "
                "be repeated when the derivative runs the function again. Copy it first "
                f"(x.copy()){at(user_line())}."
            )
        return found

    operands = [leaves[k] for k in slots]
    what = f"checkpoint of {name}"
    inside = closed(of_operands, [describe(x) for x in operands], what, hoist=False, twice=True)
    inside.body.name = name
    given = [*inside.captured, *operands]
    if not inside.body.outputs or not any([isinstance(x, Handle) for x in given]):
        return of_operands(*operands)
    rule = Recompute(inside.body)
    return inside.container(custom_call(*given, body=inside.body, rule=rule, captured=0))

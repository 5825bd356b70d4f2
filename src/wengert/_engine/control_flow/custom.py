"""Custom calls: a call whose derivative is defined by a rule, as a single node.

    custom_call    args: captured, operands -> results     a body, and the rule of its derivative

The node is run, batched and compiled as its body, which is inlined before a graph is executed
(rewrite/whole_graph.py).  Derivatives that are taken before that use the rule, at any
order, in loops and under `vmap`.

A rule is in terms of leaves: one for each operand that is not captured, one for each result.
Captured values are not part of the rule, so a derivative with respect to them is refused.

    CustomCall     the operation
    checked        the cotangents that a rule returned, each checked against its operand

Rematerialization: `wengert.checkpoint` in a graph.

The call is a node with the function as its body (`custom_call`), and the rule of its
derivative recomputes the body from the operands.  The recomputed nodes depend on a cotangent
(`after`), so that they are not merged with those of the forward pass, and stay in the backward pass
if a loop is split in two: between the passes only the operands are stored.

    Recompute      the rule
    written        the results of a call in a graph
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff.forward import jvp_from_vjp
from wengert._engine.autodiff.jvp_vjp import linearize, vjp
from wengert._engine.autodiff.reverse import PROBE, vjp_from_jvp
from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_copies import inline_graph
from wengert._engine.core.handle import Handle, describe, wrap
from wengert._engine.core.message_order import is_used
from wengert._engine.core.node import Node, constant
from wengert._engine.core.op import RuleContext, register
from wengert._engine.core.spec import Spec
from wengert._engine.core.uniform_arrays import zeros
from wengert._engine.kinds.opaque import is_from_recorded
from wengert._engine.ops.messages import after_tokens, within_rule
from wengert._engine.ops.side_effects import after
from wengert.errors import MutatedError, NotDifferentiableError, RuleError, at, user_line

from . import batching
from .call_rule import CustomRule, transposing
from .closure_conversion import closed
from .eager_loops import strong
from .loops import mapped
from .operations import Compile, Control

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


class CustomCall(Control):
    """A body with a rule for its derivative."""

    kind = "call"
    may_be_nonlinear = True

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> tuple[Spec, ...]:
        """The specs of the body's results."""
        body = params["body"]
        if body is None:
            result_specs: tuple[Spec, ...] = super(Control, self).infer(specs, params)
            return result_specs
        rule, captured = params["rule"], params["captured"]
        self.check(body, specs, rule.name)
        outs = tuple([Spec(n.spec.shape, n.spec.dtype) for n in body.outputs])
        rule.check([n.spec for n in body.inputs[captured:]], outs)
        return outs

    def run_by(self, compile: Compile, *values: Any, **params: Any) -> tuple[Any, ...]:
        """The results of the body."""
        body = params["body"]
        if body is None:
            return params["rule"].values(values)  # type: ignore[no-any-return]
        return tuple(compile(body)(values))

    def vjp(
        self, node: Node, t: Any, out: tuple[Array, ...], inputs: Sequence[Any], ctx: RuleContext
    ) -> Any:
        """The cotangents from the rule, checked; without a VJP rule, the transpose of the JVP."""
        if not is_used():
            return self._pulled(node, t, out, inputs, ctx)
        given = list(t.values()) if isinstance(t, dict) else list(t)
        return within_rule(lambda: self._pulled(node, t, out, inputs, ctx), given)

    def _pulled(
        self, node: Node, t: Any, out: tuple[Array, ...], inputs: Sequence[Any], ctx: RuleContext
    ) -> Any:
        rule, captured = node.params["rule"], node.params["captured"]
        if ctx is not PROBE:
            wanted = [ctx.wants(a) for a in node.args]
            self._refuse_captured(node, wanted[:captured])
            rule.refuse(wanted[captured:])
        cotangent_of = t.get if isinstance(t, dict) else dict(enumerate(t)).get
        ts = [_instantiated(cotangent_of(k), s) for k, s in enumerate(node.spec)]
        if not rule.has_vjp:
            self._refuse_unruled(node)
            with transposing(rule):
                return vjp_from_jvp(node, ts, out, inputs, ctx)
        saved = None if ctx.recorded or node.info is None else node.info.saved
        given = inputs[captured:], out, ts
        if ctx.guarded:
            cotangents = rule.guarded_bars(*given, saved)
        else:
            needed = [ctx is PROBE or ctx.wants(a) for a in node.args[captured:]]
            cotangents = rule.needed_bars(*given, needed, saved)
        return [
            *[None] * captured,
            *checked(node, cotangents, node.args[captured:], rule.name, ctx),
        ]

    def jvp(
        self,
        node: Node,
        dots: Sequence[Any],
        out: tuple[Array, ...],
        inputs: list[Array],
        ctx: RuleContext,
    ) -> Any:
        """The tangents from the rule, checked; without a JVP rule, the transpose of the VJP."""
        if not is_used():
            return self._pushed(node, dots, out, inputs, ctx)
        return within_rule(lambda: self._pushed(node, dots, out, inputs, ctx), dots)

    def _pushed(
        self,
        node: Node,
        dots: Sequence[Any],
        out: tuple[Array, ...],
        inputs: list[Array],
        ctx: RuleContext,
    ) -> Any:
        rule, captured = node.params["rule"], node.params["captured"]
        self._refuse_captured(node, [d is not None for d in dots[:captured]])
        if not rule.has_jvp:
            self._refuse_unruled(node)
            return jvp_from_vjp(node, dots, out, inputs, ctx)
        rule.refuse([d is not None for d in dots[captured:]])
        tangents = rule.dots(inputs[captured:], out, dots[captured:])
        pairs = zip(tangents, node.spec, strict=True)
        return tuple([_tangent(x, s, node, rule.name, ctx) for x, s in pairs])

    def batched(self, args: Any, batched: Any, size: Any, params: dict[str, Any]) -> Any:
        """The body for a batch, with a rule that is applied to each element."""
        if params["body"] is None:
            return NotImplemented
        return batching.custom(args, batched, size, params)

    def _refuse_captured(self, node: Node, needed: Sequence[bool]) -> None:
        if any(needed):
            k = needed.index(True)
            a = node.args[k]
            what = a.name if isinstance(a, Node) and a.name else "a value"
            raise NotDifferentiableError(
                f"{node.params['rule'].name} captures {what} ({a.spec}), and the derivative with "
                "respect to it is needed, but the rule has derivatives of the arguments only. "
                f"Pass it as an argument, or apply wengert.stop_gradient to it{at(node.where)}."
            )

    def _refuse_unruled(self, node: Node) -> None:
        rule = node.params["rule"]
        if not rule.has_vjp and not rule.has_jvp:
            raise NotDifferentiableError(
                f"the derivative of {rule.name} is needed, and it has no rule. {rule.missing()}"
                f"{at(node.where)}."
            )


def _instantiated(t: Array | None, spec: Spec) -> Any:
    """The cotangent of a result: zeros if none arrived, None if its dtype has none."""
    if spec.dtype.kind not in "fc":
        return None
    return zeros(spec) if t is None else t


def _tangent(dot: Any, spec: Spec, node: Node, name: str, ctx: RuleContext) -> Any:
    """The tangent that a rule returned, checked against its result."""
    if spec.dtype.kind not in "fc":
        return None
    if dot is None:
        return zeros(spec)
    dot = _as_array(dot, name, f"as the tangent of a result, which is {spec}", node)
    if tuple(dot.shape) != tuple(spec.shape):
        raise RuleError(
            f"the rule of {name} returned shape {tuple(dot.shape)} for the tangent of a result, "
            f"which has shape {spec.shape}. Return the shape of the result{at(node.where)}."
        )
    _refuse_recorded(dot, name, node, ctx)
    _refuse_complex(dot, spec, name, "result", node)
    return dot if dot.dtype == spec.dtype else dot.astype(spec.dtype)


def checked(
    node: Node, cotangents: Sequence[Any], args: Sequence[Any], name: str, ctx: RuleContext
) -> list[Any]:
    """The cotangents that a rule returned, None where an argument has no derivative.

    Raises
    ------
    RuleError
        The number of cotangents is wrong; or one has the wrong shape, a dtype that is not numeric,
        or depends on a recorded tensor that is not an argument.
    """
    where = at(node.where)
    if len(cotangents) != len(args):
        raise RuleError(
            f"the rule of {name} returned {len(cotangents)} cotangents for {len(args)} arguments. "
            f"Return one for each, None where it is zero{where}."
        )
    result: list[Any] = []
    for k, (cotangent, a) in enumerate(zip(cotangents, args, strict=True)):
        if cotangent is None or type(a) is not Node:
            result.append(None)
            continue
        spec = a.spec
        cotangent = _as_array(cotangent, name, f"for argument {k}, which is {spec}", node)
        if tuple(cotangent.shape) != tuple(spec.shape):
            raise RuleError(
                f"the rule of {name} returned shape {tuple(cotangent.shape)} for argument {k}, "
                f"which has shape {spec.shape}. Return the shape of the argument{where}."
            )
        _refuse_complex(cotangent, spec, name, f"argument {k}", node)
        _refuse_recorded(cotangent, name, node, ctx)
        result.append(cotangent)
    return result


def _as_array(x: Any, name: str, what: str, node: Node) -> Any:
    x = x if hasattr(x, "dtype") else np.asarray(x)
    if x.dtype.kind not in "biufc":
        raise RuleError(
            f"the rule of {name} returned dtype {x.dtype} {what}. Return an array of numbers, or "
            f"None for zero{at(node.where)}."
        )
    return x


def _refuse_complex(x: Array, spec: Spec, name: str, what: str, node: Node) -> None:
    if x.dtype.kind == "c" and spec.dtype.kind != "c":
        raise RuleError(
            f"the rule of {name} returned {x.dtype} for {what}, which is {spec.dtype}. Return its "
            f"real part, x.real{at(node.where)}."
        )


def _refuse_recorded(x: Array, name: str, node: Node, ctx: RuleContext) -> None:
    """Refuse a rule that uses a captured recorded tensor, whose derivative would be lost."""
    if ctx.recorded or not is_from_recorded(x):
        return
    raise RuleError(
        f"the rule of {name} uses a recorded tensor that is not one of its arguments, so the "
        "derivative with respect to that tensor would be lost silently. Pass it as an argument, or "
        f"use its value (x.detach()){at(node.where)}."
    )


custom_call = register(CustomCall("custom_call", "A call whose derivative is defined by a rule."))


@custom_call.compose
def _(*operands: Any, body: Any, rule: CustomRule, captured: int) -> Any:
    """The nodes of its body, for a backend whose graph has not been inlined."""
    return NotImplemented if body is None else tuple(inline_graph(body, operands))


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

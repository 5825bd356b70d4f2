"""Linear maps of the first operand.

An operation defines run and *transpose*; the jvp is the operation itself, the vjp the transpose.
Views (reshape, transpose, slices), joins, casts and cumulative sums are of this kind.  A transpose
takes the cotangent, the operand (for its shape and dtype only) and the other arguments.

A view may share memory with its operand, as in NumPy; it then also defines `put`, the new base
after a write to the view (core/handle.py).

Linearity: whether a user's rule is linear, checked before it is transposed.

If an operation has a rule for one mode only, the other mode is its transpose: the rule is recorded
on variables at zero (probes) and differentiated.  The derivative of a linear rule does not depend
on the probes.  If it does (a cotangent that is clipped, squared, divided by its norm), there is no
transpose, and the result would be the derivative of the rule at zero.

    check_linear    reject a rule whose derivative depends on the probes
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from wengert._engine.core.dispatch import Operation, apply
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.handle import Handle, link
from wengert._engine.core.message_order import is_token
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, register
from wengert._engine.core.op_facts import Aliasing
from wengert.errors import RuleError, at

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


class LinearMap(Operation):
    """A linear map of the first operand; made by the decorator `linear`."""

    kind = "view"
    multilinear = True
    selectors = slice(1, None)

    def __init__(
        self,
        run: Callable[..., Any],
        *,
        name: str | None = None,
        view: bool = False,
        may_copy: bool = False,
        oracle: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(name or run.__name__, inspect.getdoc(run))
        self.run = run
        self.aliasing = Aliasing(view, may_copy)
        self.oracle = oracle
        self.differentiable = False
        self._transpose: Callable[..., Any] | None = None
        self._put: Callable[..., Any] | None = None

    def transpose(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Define the transpose: `rule(t, x, *others, **params) -> cotangent of x` (a decorator).

        Of `x` only shape, dtype and ndim may be used.
        """
        self._transpose = rule
        self.differentiable = True
        return rule

    def put(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Define the write to the base: `rule(base, view, *others, **params)` (a decorator)."""
        self._put = rule
        return rule

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Run the operation; a view of a tensor is linked to it, so that writes change both."""
        for a in args:
            if isinstance(a, Handle):
                out = apply(self, args, params)
                if self.aliasing.view and isinstance(args[0], Handle):
                    self._link(out, args, params)
                return out
        return self.run(*args, **params)

    def _link(self, out: Handle, args: Sequence[Any], params: dict[str, Any]) -> None:
        others = args[1:]
        put = self._put
        link(
            out,
            args[0],
            lambda base: apply(self, (base, *others), params),
            None if put is None else lambda base, view: put(base, view, *others, **params),
        )

    def vjp(self, node: Node, t: Array, out: Array, inputs: Sequence[Any], ctx: RuleContext) -> Any:
        """The transpose of the cotangent."""
        if self._transpose is None:
            raise self.no_rule(node)
        x = inputs[0] if hasattr(inputs[0], "shape") else np.asarray(inputs[0])
        bar = self._transpose(t, x, *inputs[1:], **node.params)
        return [bar, *([None] * (len(inputs) - 1))]

    def jvp(
        self, node: Node, dots: Sequence[Any], out: Array, inputs: list[Array], ctx: RuleContext
    ) -> Any:
        """The operation itself."""
        if self._transpose is None:
            raise self.no_rule(node)
        if dots[0] is None:
            return None
        args = (dots[0], *inputs[1:])
        if any(isinstance(a, Handle) for a in args):
            return apply(self, args, node.params)
        return self.run(*args, **node.params)


@overload
def linear(run: Callable[..., Any], **options: Any) -> LinearMap: ...
@overload
def linear(**options: Any) -> Callable[[Callable[..., Any]], LinearMap]: ...
def linear(run: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Register the decorated function as a linear map of its first operand.

    Parameters
    ----------
    run : callable
        ``run(x, *others, **params)`` on plain values.
    name : str, optional
        By default the name of the function.
    view : bool
        Whether NumPy's result may share memory with `x`.
    may_copy : bool
        Whether such a result is a copy instead if the memory of `x` is not contiguous.
    oracle : callable, optional
        An independent implementation, for the tests.
    """
    if run is None:
        return lambda f: linear(f, **options)
    return register(LinearMap(run, **options))


def check_linear(node: Node, cotangents: Iterable[Any], probes: Sequence[Node]) -> None:
    """Refuse a rule that is not linear.

    Parameters
    ----------
    node : Node
        The node whose rule it is.
    cotangents : iterable
        The cotangents that were pulled back through the rule.
    probes : sequence of Node
        The variables that the rule was recorded on.

    Raises
    ------
    RuleError
        A cotangent depends on a probe.
    """
    targets = set(probes)
    oldest = min((p.serial for p in probes), default=0)
    stack = [x.node for x in cotangents if isinstance(x, Handle)]
    seen = set(stack)
    while stack:
        current = stack.pop()
        if current in targets:
            raise RuleError(
                f"{_name(node)} has a rule for one mode, and the other mode was needed. That would "
                "be the transpose of the rule, but this rule is not linear in its tangents or "
                "cotangents, so it has no transpose. Define a rule for the other mode too, or a "
                f"rule for tangents (wengert.custom_jvp) that is linear in them{at(node.where)}."
            )
        for a in _used(current):
            if a.serial >= oldest and a not in seen:
                seen.add(a)
                stack.append(a)


def _used(node: Node) -> list[Node]:
    """The operands of a node; for a loop only those that its body uses."""
    args = node.args
    if is_token(node.spec):  # the order of messages, not a value
        return []
    body = node.params.get("body")
    if isinstance(body, Body) and len(body.inputs) <= len(args):
        first = len(args) - len(body.inputs)
        used = {a for n in body.nodes for a in n.inputs} | set(body.outputs)
        condition = node.params.get("condition")
        if isinstance(condition, Body):
            used.update(
                carry
                for carry, n in zip(body.inputs, condition.inputs, strict=False)
                if condition.consumers(condition.index(n)) or n in condition.outputs
            )
        inner = [a for a, n in zip(args[first:], body.inputs, strict=True) if n in used]
        args = (*args[:first], *inner)
    return [a for a in args if isinstance(a, Node)]


def _name(node: Node) -> str:
    rule = node.params.get("rule")
    return str(getattr(rule, "name", None) or getattr(node.op, "name", "an operation"))

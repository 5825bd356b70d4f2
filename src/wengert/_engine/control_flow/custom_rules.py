"""Custom rules as graphs, which can be saved.

BodyRule    a rule that consists of graphs
Stated      a rule with the graph of its function
as_bodies   any rule as graphs
as_linear   the JVP of a custom call as a graph
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.strong_zeros import project
from wengert._engine.core.copy_graph import rebuilt
from wengert._engine.core.handle import Handle, describe, wrap
from wengert._engine.core.node import Node, constant
from wengert._engine.core.op import RuleContext
from wengert._engine.core.recording import tracing_body
from wengert._engine.core.replay import inline_graph
from wengert._engine.core.spec import Spec
from wengert._engine.core.subgraph import Body
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.tracing import placeholder
from wengert._engine.core.uniform_arrays import uniform, zeros
from wengert.errors import ShapeError

from .call_rule import CustomRule, Flags
from .closure_conversion import without_aliases
from .custom import CustomCall, custom_call


class BodyRule(CustomRule):
    """A traced rule; compared by identity, because its graphs may contain the rule itself.

    Symbolic lengths in the graphs are determined by its operands.

    Parameters
    ----------
    name : str
    reverse : Body or None
        Takes the operands, the results and the cotangents of differentiable results; returns the
        cotangents of the operands in `given`.
    forward : Body or None
        Takes the operands, the results and the tangents of differentiable operands; returns the
        tangents of differentiable results.
    given : tuple of bool
        Which operands `reverse` returns a cotangent of.
    """

    def __init__(
        self,
        name: str,
        reverse: Body | None = None,
        forward: Body | None = None,
        given: Flags = (),
    ) -> None:
        self.name = name
        self.fill(reverse, forward, given)

    def fill(self, reverse: Body | None, forward: Body | None, given: Flags) -> None:
        """Set the graphs; they may contain this rule, so they can be made after it."""
        self.reverse, self.forward, self.given = reverse, forward, given
        self.has_vjp, self.has_jvp = reverse is not None, forward is not None

    def check(self, specs: Sequence[Any], outs: Sequence[Any]) -> None:
        """Raise if its graphs were traced for other operands or results."""
        differentiable = [s for s in specs if s.dtype.kind in "fc"]
        differentiable_results = [s for s in outs if s.dtype.kind in "fc"]
        cases = [(self.forward, differentiable, differentiable_results)]
        if self.reverse is not None:
            lengths_match = len(self.given) == len(specs)
            with_cotangents = [s for s, g in zip(specs, self.given, strict=False) if g]
            cases.append(
                (self.reverse, differentiable_results, with_cotangents if lengths_match else [])
            )
        for body, extra, results in cases:
            if body is not None and not (
                _specs_match(body.inputs, [*specs, *outs, *extra])
                and _specs_match(body.outputs, results)
            ):
                raise ShapeError(f"the rule of {self.name} was traced for other operands.")

    def bars(
        self, operands: Sequence[Any], outs: Sequence[Any], ts: Sequence[Any], saved: Any = None
    ) -> list[Any]:
        """The results of the reverse graph."""
        assert self.reverse is not None
        cotangents = [t for t in ts if t is not None]
        results = iter(inline_graph(self.reverse, [*operands, *outs, *cotangents]))
        return [next(results) if is_given else None for is_given in self.given]

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The results of the forward graph, with zeros for tangents that are None."""
        assert self.forward is not None
        specs = [describe(x) for x in operands]
        tangents = [
            zeros(Spec(s.shape, s.dtype)) if d is None else d
            for s, d in zip(specs, dots, strict=True)
            if s.dtype.kind in "fc"
        ]
        results = iter(inline_graph(self.forward, [*operands, *outs, *tangents]))
        return [next(results) if describe(x).dtype.kind in "fc" else None for x in outs]


def _specs_match(nodes: Sequence[Node], specs: Sequence[Any]) -> bool:
    """Whether specs are those of the nodes; a symbolic length of a node matches any length."""
    return len(nodes) == len(specs) and all(
        n.spec.dtype == s.dtype
        and len(n.spec.shape) == len(s.shape)
        and all(a == b or isinstance(a, Dim) for a, b in zip(n.spec.shape, s.shape, strict=True))
        for n, s in zip(nodes, specs, strict=True)
    )


class Stated(NamedTuple):
    """A rule with the graph of its function, to be saved in a file."""

    rule: CustomRule
    body: Body
    captured: int


def as_bodies(rule: CustomRule, body: Body, captured: int) -> BodyRule:
    """A rule as graphs, for the operands and results of a body.

    Parameters
    ----------
    rule : CustomRule
    body : Body
        Of the node with the rule.
    captured : int
        The number of its inputs that are not operands of the rule.
    """
    if isinstance(rule, BodyRule):
        return rule
    operands, outs = list(body.inputs[captured:]), list(body.outputs)
    reverse, given = None, (False,) * len(operands)
    if rule.has_vjp:

        def bars(xs: list[Any], ys: list[Any], ts: list[Any]) -> Sequence[Any]:
            return rule.bars(xs, ys, ts)

        reverse, given = _traced_rule(bars, operands, outs, outs, operands, rule.name)
    forward = None
    if rule.has_jvp:

        def dots(xs: list[Any], ys: list[Any], ds: list[Any]) -> Sequence[Any]:
            tangents = rule.dots(xs, ys, ds)
            pairs = zip(tangents, outs, strict=True)
            return [uniform(n.spec, 0) if x is None else x for x, n in pairs]

        forward, _ = _traced_rule(dots, operands, outs, operands, outs, rule.name)
    return BodyRule(rule.name, reverse, forward, given)


def _traced_rule(
    fun: Callable[..., Any],
    operands: Sequence[Node],
    outs: Sequence[Node],
    differentiable: Sequence[Node],
    like: Sequence[Node],
    name: str,
) -> tuple[Body, Flags]:
    """A function of operands, results and some (co)tangents as a graph."""
    with tracing_body():
        xs, ys = [_placeholder_like(n) for n in operands], [_placeholder_like(n) for n in outs]
        ts = [placeholder(_spec(n)) if _is_inexact(n) else None for n in differentiable]
        traced = fun(*[[None if n is None else wrap(n) for n in ns] for ns in (xs, ys, ts)])
        present = tuple(
            [value is not None and _is_inexact(n) for value, n in zip(traced, like, strict=True)]
        )
        results = [
            project(value if isinstance(value, Handle) else wrap(constant(np.asarray(value))), n)
            for value, n, is_present in zip(traced, like, present, strict=True)
            if is_present
        ]
    inputs = [*xs, *ys, *[n for n in ts if n is not None]]
    body = Body(*results, inputs=inputs, name=f"the rule of {name}")
    nodes = rebuilt(body.nodes, {n: n for n in inputs}, without_aliases)
    return Body(*[nodes[n] for n in body.outputs], inputs=inputs, name=body.name), present


def _placeholder_like(n: Node) -> Node:
    return placeholder(_spec(n), n.name, type(n) is Node)


def _spec(n: Node) -> Spec:
    return Spec(n.spec.shape, n.spec.dtype)


def _is_inexact(n: Node) -> bool:
    return n.spec.dtype.kind in "fc"


def as_linear(node: Node) -> tuple[Body, tuple[int, ...]]:
    """The JVP of a node as a graph: it takes the operands, then the tangents of some.

    Returns
    -------
    body : Body
        Returns a tangent for each differentiable result.
    differentiable : tuple of int
        The operands whose tangents it takes.
    """
    captured = node.params["captured"]
    op: CustomCall = custom_call
    with tracing_body():
        inputs = [_placeholder_like(a) for a in node.params["body"].inputs]
        call = op(*map(wrap, inputs), **node.params)[0].node.args[0]
        differentiable = [k for k, n in enumerate(inputs) if k >= captured and type(n) is Node]
        dots = {k: placeholder(_spec(inputs[k])) for k in differentiable}
        tangents = [wrap(dots[k]) if k in dots else None for k in range(len(inputs))]
        outs = [wrap(placeholder(s)) for s in call.spec]
        result_tangents = op.jvp(
            call, tangents, tuple(outs), list(map(wrap, inputs)), RuleContext(recorded=True)
        )
        results = [
            uniform(s, 0) if x is None else x
            for x, s in zip(result_tangents, call.spec, strict=True)
            if s.dtype.kind in "fc"
        ]
    result_inputs = [x.node for x in outs]
    all_inputs = [*inputs, *result_inputs, *dots.values()]
    return Body(*results, inputs=all_inputs, name=f"tangents of {node.params['rule'].name}"), tuple(
        differentiable
    )

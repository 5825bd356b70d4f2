"""Rules of custom calls and of primitives, in graphs that can be saved.

Custom rules as graphs, which can be saved.

BodyRule    a rule that consists of graphs
Stated      a rule with the graph of its function
as_bodies   any rule as graphs
as_linear   the JVP of a custom call as a graph

Primitive calls: a call of a primitive in a graph, whose rule is looked up when needed.

A primitive is a function of arrays with registered rules (wengert.extend.primitive).  Rules that
are registered after the call was recorded are used too.

    PrimitiveFunction    a primitive with its static parameters, as a function with a rule
    PrimitiveCall        one call of it
    is_primitive         whether an operation is a primitive
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.infinities import project
from wengert._engine.core import pytree
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_copies import inline_graph, rebuilt
from wengert._engine.core.handle import Handle, describe, wrap
from wengert._engine.core.node import Node, constant
from wengert._engine.core.node_properties import frozen, sizes_of, substituted
from wengert._engine.core.op import RuleContext
from wengert._engine.core.recording import tracing_body
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.tracing import placeholder
from wengert._engine.core.uniform_arrays import uniform, zeros
from wengert.errors import (
    NotDifferentiableError,
    RuleError,
    ShapeError,
    WengertError,
    at,
    rule_failed,
    user_line,
)

from .call_rule import CustomRule, Flags
from .closure_conversion import without_aliases
from .custom import CustomCall, custom_call
from .custom_calls import BoundRule

if TYPE_CHECKING:
    from wengert._engine.core.types import Array
    from wengert._engine.kinds.opaque import Opaque


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


_OPERAND = np.zeros(())  # marks an operand


class PrimitiveFunction:
    """A primitive with its static parameters, as a function with a rule."""

    kind = "primitive"

    def __init__(self, op: Any, params: dict[str, Any]) -> None:
        self.op, self.params, self.name = op, params, op.name
        self._key = op, frozen(params)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrimitiveFunction) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def has_vjp(self) -> bool:
        """Whether a reverse rule has been registered."""
        return self.op.vjp_rule is not None

    @property
    def has_jvp(self) -> bool:
        """Whether a forward rule has been registered."""
        return self.op.jvp_rule is not None

    def fun(self, *args: Any) -> Any:
        """The value."""
        return self.op.function(*args, **self.params)

    def full(self, nondiff: Sequence[Any], differentiable: Sequence[Any]) -> list[Any]:
        """All operands."""
        return list(differentiable)


class PrimitiveCall(BoundRule):
    """The rule of one call of a primitive."""

    @classmethod
    def of(
        cls,
        op: Opaque,
        params: dict[str, Any],
        slots: list[int],
        static: list[Any],
        count: int | None,
    ) -> PrimitiveCall:
        """Rebuild the rule of a saved call of a primitive."""
        leaves = [_OPERAND if k in slots else x for k, x in enumerate(static)]
        call = cls(PrimitiveFunction(op, params), (), leaves, pytree.flatten((0,) * len(leaves))[1])
        call.out = pytree.flatten(0 if count is None else (0,) * count)[1], (True,) * (count or 1)
        return call

    @property
    def count(self) -> int | None:
        """The number of results, None for a single one that is not a tuple."""
        assert self.out is not None
        structure, live = self.out
        return None if structure.is_leaf() else len(live)

    def missing(self) -> str:
        """How to register the missing rule."""
        return (
            "It was registered without one: register a rule (wengert.extend.vjp), or apply "
            "wengert.stop_gradient if it is meant to be a constant"
        )

    @property
    def size_names(self) -> frozenset[str]:
        """The symbolic sizes among its parameters."""
        return sizes_of(self.function.params)

    def at_sizes(self, sizes: dict[Any, Any]) -> BoundRule:
        """The same with numbers for symbolic sizes."""
        if self.size_names.isdisjoint(sizes):
            return self
        function = PrimitiveFunction(self.function.op, substituted(self.function.params, sizes))
        other = object.__new__(PrimitiveCall)
        other.__dict__.update(self.__dict__, function=function, _key=(function, *self._key[1:]))
        return other

    def bars(
        self, operands: Sequence[Any], outs: Sequence[Any], ts: Sequence[Any], saved: Any = None
    ) -> list[Any]:
        """Apply the registered rule."""
        op, args = self.function.op, self.args(operands)
        self._refuse_integers(outs)
        t, out = self.results(ts), self.results(outs)
        cotangents = self._explained("reverse", op.vjp_rule, t, out, args)
        if not isinstance(cotangents, list | tuple):
            cotangents = (cotangents,)
        if len(cotangents) != len(args):
            raise RuleError(
                f"The rule of {op.name} returned {len(cotangents)} cotangents for {len(args)} "
                f"operands. Return a tuple with one for each, None if it is zero{at(user_line())}."
            )
        return [cotangents[k] for k in self.slots]

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """Apply the registered rule."""
        args: list[Any] = [None] * len(self.static)
        for k, dot in zip(self.slots, dots, strict=True):
            args[k] = dot
        self._refuse_integers(outs)
        out, rule = self.results(outs), self.function.op.jvp_rule
        tangents = self._explained("forward", rule, args, out, self.args(operands))
        return list(tangents) if isinstance(tangents, tuple) else [tangents]

    def _refuse_integers(self, outs: Sequence[Any]) -> None:
        if len(outs) == 1 and outs[0].dtype.kind not in "fc":
            raise NotDifferentiableError(
                f"{self.name} returned {outs[0].dtype}, and integers have no derivative. "
                "Compute in floating point, or register it with discrete=True if its derivative is "
                f"known to be zero{at(user_line())}."
            )

    def _explained(
        self,
        mode: str,
        rule: Any,
        first: Array | list[Array | None],
        out: Array,
        args: Sequence[Any],
    ) -> Any:
        try:
            return rule(first, out, *args, **self.function.params)
        except WengertError:
            raise
        except Exception as error:
            what = f"The {mode} rule of {self.name}"
            raise rule_failed(what, error, user_line() or None) from error


def is_primitive(op: Opaque) -> bool:
    """Whether an operation is a primitive, whose rules are registered separately."""
    return getattr(op, "is_primitive", False)

"""Taylor series: the terms of one pass, and the rule of one operation as a graph.

    SeriesTerm         one value, and its coefficients
    TermTable          the terms of a pass; equal operations on equal operands are one term
    operand_of         an operand of a term, as a derivative rule is traced for
    spec_of_term       the spec of the value of a term
    TangentRule        the graph, and which of its nodes depend on what
    tangent_rule       the rule of an operation
    traced_function    the nodes of a function
    SeriesCall         the operands of an operation that propagates all orders at once (a loop)

`TangentRule` is the JVP rule of an operation, traced for placeholders of its operands and of their
tangents.  The operation itself is a node of that graph, so a rule that uses the result of the
operation (exp) refers to a node that equals the one being differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.dispatch import part
from wengert._engine.core.graph_copies import record_again
from wengert._engine.core.graph_fingerprint import key_of_value, leaf_key
from wengert._engine.core.handle import Handle, describe, wrap
from wengert._engine.core.message_order import is_used, ordered_by
from wengert._engine.core.node import CONSTANT, LeafOp, Node, constant
from wengert._engine.core.node_properties import NodeInfo, frozen
from wengert._engine.core.op import linear_in
from wengert._engine.core.recording import tracing_body
from wengert._engine.core.tracing import placeholder, size_value

from .forward import pushforward


class SeriesCall(NamedTuple):
    """The operands of an operation, and their Taylor coefficients.

    Attributes
    ----------
    node : Node
        The operation, on operands of the same specs.
    operands : list
        The values of the operands.
    coefficients : list
        For each operand the coefficients of order 1 to `order`, None for zeros; or None.
    order : int
    masked : bool
        Whether coefficients may be zero because a branch was not taken.
    recorded : bool
        Whether values are handles.
    params : dict
        The parameters of the operation.
    """

    node: Node
    operands: list[Any]
    coefficients: list[list[Any] | None]
    order: int
    masked: bool
    recorded: bool
    params: dict[str, Any]


class TangentRule(NamedTuple):
    """The JVP rule of an operation as a graph.

    Attributes
    ----------
    operands : tuple of Node
        The placeholders of operands, by position; None for plain numbers.
    dots : dict from int to Node
        The placeholders of the tangents.
    nodes : tuple of Node
        The other nodes, in order.
    tangents : tuple of Node
        The tangent of each result; None where it is zero.
    on_dots : frozenset of Node
        The nodes that depend on a tangent.
    live : frozenset of Node
        The nodes on which a tangent of a result depends differentiably.
    is_linear : bool
        Whether the tangents of the results do not depend differentiably on operands that vary.
    several : bool
        Whether the operation has several results.
    """

    operands: tuple[Node | None, ...]
    dots: dict[int, Node]
    nodes: tuple[Node, ...]
    tangents: tuple[Node | None, ...]
    on_dots: frozenset[Node]
    live: frozenset[Node]
    is_linear: bool
    several: bool


class RuleOperand(NamedTuple):
    """An operand in the key of a rule.

    Attributes
    ----------
    spec : Spec or None
        None for a plain number that the rule may read.
    value : object
        The number, or a plain array of indices or conditions that the rule may read; or None.
    varies : bool
    """

    spec: Any
    value: Any
    varies: bool

    def place(self, is_active: bool) -> Node | None:
        """The node that stands for it in the rule; None for a plain number."""
        if self.spec is None:
            return None
        if self.value is not None:
            return constant(self.value)
        return placeholder(self.spec, None, self.varies or is_active)


def tangent_rule(
    node: Node,
    operands: Sequence[RuleOperand],
    active: frozenset[int],
    masked: bool,
    linear: tuple[int, ...] = (),
) -> TangentRule:
    """The JVP rule of a node with respect to the operands at the positions `active`.

    Parameters
    ----------
    masked : bool
        Whether tangents may be zero because a branch was not taken.
    linear : tuple of int
        The operands that are (co)tangents of an earlier derivative (`RuleContext`).
    """
    with tracing_body():
        if not is_used():
            return _traced(node, operands, active, masked, linear)
        with ordered_by(None):
            return _traced(node, operands, active, masked, linear)


def _traced(
    node: Node,
    operands: Sequence[RuleOperand],
    active: frozenset[int],
    masked: bool,
    linear: tuple[int, ...],
) -> TangentRule:
    places = [x.place(k in active) for k, x in enumerate(operands)]
    args = [x.value if p is None else p for p, x in zip(places, operands, strict=True)]
    info = NodeInfo(node.spec, where=node.where, level=node.level, linear=linear)
    itself = Node(node.op, tuple(args), node.params, None, info)
    several = type(node.spec) is tuple
    outs = [part(itself, i) for i in range(len(node.spec))] if several else [itself]
    dots = {k: placeholder(operands[k].spec) for k in sorted(active)}
    live = [n for n in outs if type(n) is Node]
    known = {places[k]: wrap(dot) for k, dot in dots.items()}
    found = iter(pushforward(live, known, record=True, masked=masked) if live else ())  # type: ignore[arg-type]
    tangents = [next(found) if type(n) is Node else None for n in outs]
    ends = [_node(t) for t in tangents]
    return _analysed(places, dots, active, ends, several)


def _node(x: Any) -> Node | None:
    if x is None:
        return None
    return x.node if isinstance(x, Handle) else constant(x)


def _analysed(
    places: Sequence[Node | None],
    dots: Mapping[int, Node],
    active: frozenset[int],
    tangents: Sequence[Node | None],
    several: bool,
) -> TangentRule:
    ends = [t for t in tangents if t is not None]
    sources = {p for p in places if p is not None} | set(dots.values())
    nodes = _ancestors(ends, sources)
    varying = {p for k, p in enumerate(places) if p is not None and type(p) is Node}
    on_dots = set(dots.values())
    for n in nodes:
        if any(a in on_dots for a in n.args if isinstance(a, Node)):
            on_dots.add(n)
        if type(n) is Node and not varying.isdisjoint(n.args_as_nodes()):
            varying.add(n)
    live = set(ends)
    for n in reversed(nodes):
        if n in live and type(n) is Node:
            live.update(n.args_as_nodes())
    return TangentRule(
        tuple(places),
        dict(dots),
        tuple(nodes),
        tuple(tangents),
        frozenset(on_dots),
        frozenset(live),
        varying.isdisjoint(ends),
        several,
    )


def _ancestors(ends: Sequence[Node], sources: set[Node]) -> list[Node]:
    """The nodes that the ends are computed from, without the sources, in order."""
    seen = set(ends) - sources
    stack = list(seen)
    while stack:
        node = stack.pop()
        if isinstance(node.op, LeafOp):
            continue
        for a in node.args:
            if isinstance(a, Node) and a not in seen and a not in sources:
                seen.add(a)
                stack.append(a)
    return sorted(seen, key=lambda n: n.serial)


def traced_function(
    function: Callable[..., Any], specs: Sequence[Any], params: Mapping[str, Any]
) -> tuple[list[Node], list[Node]]:
    """The placeholders of the arguments of a function, and its nodes, the result last."""
    with tracing_body():
        places = [placeholder(s) for s in specs]
        out = function(*map(wrap, places), **params)
    return places, _ancestors([out.node], set(places))


Coefficients = list[Any]
_COMPARED_BYTES = 1 << 10  # larger constants are equal only if they are the same object


class SeriesTerm:
    """A value, and its Taylor coefficients as far as they are known.

    Attributes
    ----------
    node : Node or None
        Its operation and parameters; None for a leaf.
    args : tuple
        The operands: terms, or plain values.
    values : list
        The coefficients from order 0; None for zero; a tuple if there are several results.
    active : bool
        Whether it varies; otherwise only the coefficient of order 0 is not zero.
    masked : bool
        Whether coefficients may be zero because a branch was not taken.
    source : SeriesTerm or None
        The term of which it is the derivative with respect to t.
    derivative : (list, list) or None
        The terms of the graph of its derivative, each with whether all orders of it are needed, and
        those of the tangents of its results.
    """

    __slots__ = (
        "active",
        "args",
        "derivative",
        "fixed",
        "linear",
        "masked",
        "node",
        "source",
        "values",
    )

    def __init__(
        self,
        node: Node | None,
        args: tuple[Any, ...] = (),
        active: bool = False,
        masked: bool = False,
        source: SeriesTerm | None = None,
    ) -> None:
        self.node, self.args = node, args
        self.active, self.masked, self.source = active, masked, source
        self.linear: tuple[int, ...] = ()
        self.values: list[Any] = []
        self.derivative: tuple[list[tuple[SeriesTerm, bool]], list[SeriesTerm | None]] | None = None
        self.fixed: tuple[frozenset[int], dict[Node, Any]] | None = None


class TermTable:
    """The terms of a pass.

    Parameters
    ----------
    known : bool
        Whether values are known.
    """

    def __init__(self, known: bool) -> None:
        self.known = known
        self._terms: dict[Hashable, SeriesTerm] = {}
        self._alive: list[Any] = []  # plain operands, whose id is a key

    def leaf(self, value: Any, coefficients: Coefficients | None, masked: bool) -> SeriesTerm:
        """A term with given coefficients of order 1 to `order`."""
        term = SeriesTerm(None, active=coefficients is not None, masked=masked)
        term.values = [value, *(coefficients or ())]
        return term

    def term(self, node: Node, args: Sequence[Any], linear: tuple[int, ...] = ()) -> Any:
        """The term of an operation on terms and plain values; its value if all are plain."""
        if not any(isinstance(a, SeriesTerm) for a in args) and not node.op.effects.side_effect:
            return self.run(node, args)
        if node.op.involution:
            inner = args[0]
            if (
                isinstance(inner, SeriesTerm)
                and inner.node is not None
                and inner.node.op is node.op
            ):
                return inner.args[0]
        operands = tuple([a if isinstance(a, SeriesTerm) else self.key(a) for a in args])
        linear = linear or linear_in(node)
        params = frozen(node.params) if node.params else None
        key = (node.op, params, type(node) is Node, node.spec, linear, operands)
        term = self._terms.get(key)
        if term is None:
            vary = [isinstance(a, SeriesTerm) and a.active for a in args]
            term = SeriesTerm(node, tuple(args), type(node) is Node and any(vary))
            traits = node.op.differentiation
            joined = node.op.kind == "indexing" and not all(vary)
            masks = joined or traits.masks or bool(linear)
            term.masked = term.active and (
                masks or any(isinstance(a, SeriesTerm) and a.active and a.masked for a in args)
            )
            term.linear = linear
            self._terms[key] = term
        return term

    def key(self, x: Any) -> Hashable:
        key = None if isinstance(x, np.ndarray) and x.nbytes > _COMPARED_BYTES else key_of_value(x)
        if key is None:
            self._alive.append(x)
            key = ("object", id(x))
        return key

    def constant_of(self, node: Node) -> Any:
        """A constant of the graph of a rule, or the term of a size."""
        if node.op is CONSTANT:
            self._alive.append(node)
            return node.value
        key = ("leaf", leaf_key(node))
        term = self._terms.get(key)
        if term is None:
            self._alive.append(node)
            term = self._terms[key] = self.leaf(size_value(node.params["size"]), None, False)
        return term

    def derivative_of(self, term: SeriesTerm) -> SeriesTerm:
        """The derivative of a term with respect to t."""
        key = ("derivative", term)
        shifted = self._terms.get(key)
        if shifted is None:
            shifted = SeriesTerm(None, (), True, term.masked, term)
            self._terms[key] = shifted
        return shifted

    def run(self, node: Node, args: Sequence[Any]) -> Any:
        out = record_again(node, args, node.params, self.known)
        return tuple(out) if type(out) is list else out


def operand_of(a: Any, by_value: bool) -> RuleOperand:
    if isinstance(a, SeriesTerm):
        return RuleOperand(spec_of_term(a), None, a.active)
    spec = describe(a)
    if by_value and (spec.shape == () or spec.dtype.kind in "biu"):
        return RuleOperand(spec if spec.shape else None, a, False)
    return RuleOperand(spec, None, False)


def spec_of_term(term: SeriesTerm) -> Any:
    """The spec of the value of a term."""
    while term.source is not None:
        term = term.source
    return describe(term.values[0]) if term.node is None else term.node.spec

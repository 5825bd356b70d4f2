"""The terms of Taylor series: the values of one pass, equal ones once.

SeriesTerm      one value, and its coefficients
TermTable       the terms of a pass; equal operations on equal operands are one term
operand_of      an operand of a term, as a derivative rule is traced for
spec_of_term    the spec of the value of a term
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.graph_fingerprint import key_of_value, leaf_key
from wengert._engine.core.handle import describe
from wengert._engine.core.node import CONSTANT, Node
from wengert._engine.core.op import linear_in
from wengert._engine.core.replay import record_again
from wengert._engine.core.static_params import frozen
from wengert._engine.core.tracing import size_value

from .taylor_rules import RuleOperand

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

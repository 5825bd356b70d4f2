"""Propagation of truncated Taylor series through a tape.

A value on a curve is x(t) = x_0 + x_1 t + x_2 t^2 + ...  For the result z of an operation, the JVP
rule gives dz/dt as a graph of the operands, their derivatives dx/dt, and z.  That graph is
evaluated in Taylor arithmetic again, one order lower:

    z_k = (coefficient k - 1 of dz/dt) / k

so the rules of the operations are all that is needed.  The graphs of rules refer to other values of
the operation (sin to cos, cos to sin): equal nodes are one `SeriesTerm`, so the recursion ends, and
each operation costs O(K^2).  Three facts of operations end it earlier:

    linear rules       z_k is the rule applied to the coefficients k of the operands; found here
    Op.multilinear     the Cauchy product
    Op.quotient        a division: z_k from the product of divisor and quotient
    Op.series          all orders at once, by a loop whose body has series (control_flow/jvp.py)

    SeriesPass      the coefficients of the terms of one pass
    propagate       the series of the outputs of a tape
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.dispatch import PART, part
from wengert._engine.core.handle import Handle, wrap
from wengert._engine.core.node import ConstantLeaf, LeafOp, Node
from wengert._engine.core.node_properties import frozen
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import current_trace
from wengert._engine.core.uniform_arrays import zeros

from .series_terms import (
    Coefficients,
    SeriesCall,
    SeriesTerm,
    TangentRule,
    TermTable,
    operand_of,
    spec_of_term,
    tangent_rule,
    traced_function,
)
from .tape import VARIABLE, Tape


class SeriesPass(TermTable):
    """The terms of one pass, and how their coefficients are computed.

    Parameters
    ----------
    order : int
        The highest order.
    known, recorded : bool
        Whether values are known, and whether they are handles.
    """

    def __init__(self, order: int, known: bool, recorded: bool) -> None:
        super().__init__(known)
        self.order, self.recorded = order, recorded
        self._rules: dict[Hashable, TangentRule] = {}

    # ---- coefficients ----------------------------------------------------------------------------

    def coefficient(self, term: SeriesTerm, k: int) -> Any:
        """The coefficient of order k; None for zero."""
        if k and not term.active:
            return None
        self.extend(term, k)
        return term.values[k]

    def extend(self, term: SeriesTerm, order: int) -> None:
        """Compute the coefficients up to an order."""
        if not term.active:
            order = 0
        while len(term.values) <= order:
            k = len(term.values)
            node = term.node
            if k and node is not None and node.op.series is not None:
                self._extend_at_once(term, order)
            else:
                term.values.append(self._next(term, k))

    def _next(self, term: SeriesTerm, k: int) -> Any:
        if term.source is not None:
            x = self.coefficient(term.source, k + 1)
            return x if x is None or k == 0 else x * (k + 1)
        node = term.node
        assert node is not None
        if node.op is PART:
            whole = self.coefficient(term.args[0], k)
            return None if whole is None else whole[node.params["index"]]
        if k == 0:
            if node.op.multilinear and any(self._value(a, 0) is None for a in term.args):
                return None
            return self.run(node, self._primals(term))
        active = frozenset(
            i for i, a in enumerate(term.args) if isinstance(a, SeriesTerm) and a.active
        )
        if node.op.multilinear:
            if node.op.kind == "view":
                return self._by_linearity(term, k) if 0 in active else None
            if len(active) == len(term.args) == 2:
                return self._cauchy_product(term, k)
        if node.op.quotient is not None and 1 - node.op.quotient.numerator in active:
            return self._quotient(term, k)
        rule = self._rule(term, active)
        if rule.is_linear:
            return self._by_linear_rule(term, active, k)
        return self._by_derivative(term, rule, k)

    def _primals(self, term: SeriesTerm) -> list[Any]:
        """The values of the operands."""
        values = [self._value(a, 0) for a in term.args]
        return [
            zeros(spec_of_term(a)) if x is None and isinstance(a, SeriesTerm) else x
            for a, x in zip(term.args, values, strict=True)
        ]

    def _value(self, a: Any, k: int) -> Any:
        return self.coefficient(a, k) if isinstance(a, SeriesTerm) else a if k == 0 else None

    # ---- linear rules ----------------------------------------------------------------------------

    def _rule(
        self, term: SeriesTerm, active: frozenset[int], masked: bool | None = None
    ) -> TangentRule:
        node = term.node
        assert node is not None
        masked = term.masked if masked is None else masked
        traits = node.op.differentiation
        by_value = node.op.kind != "elementwise" or node.op.special_numbers
        by_value = by_value or callable(traits.singular)
        operands = [operand_of(a, by_value) for a in term.args]
        keys = tuple([(x.spec, self.key(x.value), x.varies) for x in operands])
        params = frozen(node.params) if node.params else None
        key = (node.op, params, node.spec, term.linear, keys, active, masked)
        rule = self._rules.get(key)
        if rule is None:
            rule = tangent_rule(node, operands, active, masked, term.linear)
            self._rules[key] = rule
        return rule

    def _by_linearity(self, term: SeriesTerm, k: int) -> Any:
        """A linear map of the first operand, applied to its coefficient of order k."""
        assert term.node is not None
        x = self.coefficient(term.args[0], k)
        return None if x is None else self.run(term.node, [x, *self._primals(term)[1:]])

    def _by_linear_rule(self, term: SeriesTerm, active: frozenset[int], k: int) -> Any:
        """The rule applied to the coefficients of order k of the operands."""
        dots = {i: x for i in active if (x := self.coefficient(term.args[i], k)) is not None}
        if not dots:
            return None
        rule = self._rule(term, frozenset(dots))
        if term.fixed is None or term.fixed[0] != frozenset(dots):
            term.fixed = frozenset(dots), self._primal_part(rule, self._primals(term))
        return self._tangents(rule, term.fixed[1], dots)

    def _primal_part(self, rule: TangentRule, values: Sequence[Any]) -> dict[Node, Any]:
        """The values of the nodes of a rule that do not depend on tangents."""
        found = {p: x for p, x in zip(rule.operands, values, strict=True) if p is not None}
        for node in rule.nodes:
            if node in rule.on_dots or node in found:
                continue
            if isinstance(node.op, LeafOp):
                found[node] = self._value(self.constant_of(node), 0)
            else:
                found[node] = self._run_in(node, found)
        return found

    def _tangents(self, rule: TangentRule, known: dict[Node, Any], dots: dict[int, Any]) -> Any:
        values = dict(known)
        for i, x in dots.items():
            values[rule.dots[i]] = x
        for node in rule.nodes:
            if node in rule.on_dots and node not in values:
                values[node] = self._run_in(node, values)
        outs = [None if t is None else values[t] for t in rule.tangents]
        if not rule.several:
            return outs[0]
        return tuple(outs) if any(x is not None for x in outs) else None

    def _run_in(self, node: Node, values: dict[Node, Any]) -> Any:
        args = [values[a] if isinstance(a, Node) else a for a in node.args]
        if node.op is PART:
            return args[0][node.params["index"]]
        return self.run(node, args)

    # ---- products and quotients ------------------------------------------------------------------

    def _cauchy_product(self, term: SeriesTerm, k: int) -> Any:
        """The sum of the products of coefficients whose orders add up to k."""
        a, b = term.args
        total = None
        is_square = a is b and term.node is not None and term.node.op.commutative
        for j in range(k // 2 + 1 if is_square else k + 1):
            x, y = self.coefficient(a, j), self.coefficient(b, k - j)
            if x is None or y is None:
                continue
            product = self._product(term, j, x, y)
            if is_square and j != k - j:
                product = product + product
            total = product if total is None else total + product
        return total

    def _product(self, term: SeriesTerm, j: int, x: Any, y: Any) -> Any:
        """The product of x, of order j, and y; zero where the varying factor is masked."""
        assert term.node is not None
        if not term.masked:
            return self.run(term.node, [x, y])
        moving = 0 if j else 1
        rule = self._rule(term, frozenset([moving]))
        return self._tangents(rule, self._primal_part(rule, [x, y]), {moving: y if moving else x})

    def _quotient(self, term: SeriesTerm, k: int) -> Any:
        """The coefficient of z = x / y from that of x = y * z."""
        node = term.node
        assert node is not None
        numerator, product, solve = node.op.quotient
        divisor = term.args[1 - numerator]
        singular = node.op.differentiation.is_singular(node)
        masked = node.op.kind == "elementwise" and (term.masked or singular)
        if term.derivative is None:
            term.derivative = [(t, True) for t in self._traced_product(term, product, masked)], []
        factors = [t for t, _ in term.derivative[0]]
        for t in factors:
            self.extend(t, k - 1)
        self.extend(divisor, k)
        remaining = self._value(term.args[numerator], k)
        term.values.append(None)  # the product without the coefficient that is computed here
        try:
            for t in factors:
                t.values.append(self._next(t, k))
            product_so_far = factors[-1].values[k]
        finally:
            term.values.pop()
            for t in factors:
                del t.values[k:]
        if product_so_far is not None:
            remaining = -product_so_far if remaining is None else remaining - product_so_far
        if remaining is None:
            return None
        operands = self._primals(term)
        if solve is not None:
            return solve(operands[1 - numerator], remaining, **node.params)
        operands[numerator] = remaining
        out = self.run(node, operands)  # which is linear in the numerator
        return lookup("strong_zero")(remaining, out) if masked else out

    def _traced_product(self, term: SeriesTerm, product: Any, masked: bool) -> list[SeriesTerm]:
        """The terms of the product of divisor and quotient, of which the last is the product."""
        node = term.node
        assert node is not None
        divisor = term.args[1 - node.op.quotient.numerator]
        places, nodes = traced_function(product, [spec_of_term(divisor), node.spec], node.params)
        of: dict[Node, SeriesTerm] = {places[0]: divisor, places[1]: term}
        terms = []
        for n in nodes:
            if isinstance(n.op, LeafOp):
                of[n] = self.constant_of(n)
                continue
            new = self.term(n, [of.get(a, a) if isinstance(a, Node) else a for a in n.args])
            new.masked = new.masked or masked
            of[n] = new
            terms.append(new)
        return terms

    # ---- other operations ------------------------------------------------------------------------

    def _by_derivative(self, term: SeriesTerm, rule: TangentRule, k: int) -> Any:
        """The coefficient of order k - 1 of the derivative with respect to t, divided by k."""
        if term.derivative is None:
            term.derivative = self._instantiated(term, rule)
        terms, tangents = term.derivative
        for t, is_live in terms:
            self.extend(t, k - 1 if is_live else 0)
        outs = [None if t is None else self._value(t, k - 1) for t in tangents]
        if k > 1:
            outs = [None if x is None else x * (1.0 / k) for x in outs]
        if not rule.several:
            return outs[0]
        return tuple(outs) if any(x is not None for x in outs) else None

    def _instantiated(
        self, term: SeriesTerm, rule: TangentRule
    ) -> tuple[list[tuple[SeriesTerm, bool]], list[SeriesTerm | None]]:
        """The terms of the graph of a rule."""
        of: dict[Node, Any] = {}
        for place, a in zip(rule.operands, term.args, strict=True):
            if place is not None:
                of[place] = a
        for i, dot in rule.dots.items():
            of[dot] = self.derivative_of(term.args[i])
        terms = []
        for node in rule.nodes:
            if isinstance(node.op, LeafOp):
                of[node] = self.constant_of(node)
                continue
            args = [of[a] if isinstance(a, Node) else a for a in node.args]
            of[node] = new = self.term(node, args)
            if isinstance(new, SeriesTerm):
                terms.append((new, node in rule.live))
        return terms, [None if t is None else of[t] for t in rule.tangents]

    def _extend_at_once(self, term: SeriesTerm, order: int) -> None:
        node = term.node
        assert node is not None
        coefficients: list[Coefficients | None] = []
        for a in term.args:
            varies = isinstance(a, SeriesTerm) and a.active
            found = [self._value(a, j) for j in range(1, order + 1)] if varies else []
            coefficients.append(found if any(x is not None for x in found) else None)
        operands = self._primals(term)
        call = SeriesCall(
            node, operands, coefficients, order, term.masked, self.recorded, node.params
        )
        results, masked = node.op.series(call)
        term.masked = term.masked or masked
        rows = [tuple([None if x is None else x[j] for x in results]) for j in range(order)]
        term.values[1:] = [row if any(x is not None for x in row) else None for row in rows]


def propagate(
    outputs: Sequence[Node],
    series: Mapping[Node, Coefficients],
    order: int,
    tape: Tape,
    recorded: bool,
    masked: bool,
    linear: Mapping[Node, tuple[int, ...]] | None = None,
    recorder: Any = None,
) -> tuple[list[Coefficients | None], list[bool]]:
    """The Taylor coefficients of the outputs of a tape.

    Parameters
    ----------
    outputs : sequence of Node
    series : mapping from Node
        The coefficients of order 1 to `order` of each input; None for zeros.
    order : int
    tape : Tape
        The nodes between the inputs and the outputs.
    recorded : bool
        Whether values are handles.
    masked : bool
        Whether coefficients of the inputs may be zero because a branch was not taken.
    linear : mapping from Node, optional
        The operands that are (co)tangents, of nodes of recorded derivatives.
    recorder : Derivation or Session, optional
        Stores the user's line of the node whose coefficients are recorded.

    Returns
    -------
    coefficients : list
        For each output a list, with None for zeros; None where it depends on no input.
    masked : list of bool
        Whether coefficients of each output may be zero because a branch was not taken.
    """
    state = SeriesPass(order, current_trace() is None and not tape.traced, recorded)
    terms: dict[Node, Any] = {}
    for node, given in series.items():
        terms[node] = state.leaf(_value_of(node, recorded), given, masked or _has_zeros(given))
    for node in tape.nodes:
        if node in terms or not node.args:
            continue
        if not any(
            isinstance(t := terms.get(a), SeriesTerm) and t.active for a in node.args_as_nodes()
        ):
            continue
        if recorder is not None:
            recorder.enter(node)
        args = [_argument(state, a, terms, recorded) for a in node.args]
        if node.op is VARIABLE:
            terms[node] = args[0]
            continue
        terms[node] = term = state.term(node, args, (linear or {}).get(node, ()))
        if not term.values:
            term.values.append(_value_of(node, recorded))
        state.extend(term, order)
    found = [terms.get(n) for n in outputs]
    return (
        [t.values[1:] if isinstance(t, SeriesTerm) and t.active else None for t in found],
        [isinstance(t, SeriesTerm) and t.masked for t in found],
    )


def _argument(state: SeriesPass, a: Any, terms: dict[Node, Any], recorded: bool) -> Any:
    """The term of an operand; its value if it is plain."""
    if not isinstance(a, Node):
        return a
    if a not in terms:
        value = _value_of(a, recorded)
        terms[a] = state.leaf(value, None, False) if isinstance(value, Handle) else value
    return terms[a]


def _value_of(node: Node, recorded: bool) -> Any:
    if not recorded or (isinstance(node, ConstantLeaf) and not node.is_traced):
        return node.value
    count = len(node.spec) if type(node.spec) is tuple else 0
    return tuple([wrap(part(node, i)) for i in range(count)]) if count else wrap(node)


def _has_zeros(coefficients: Coefficients | None) -> bool:
    """Whether an element is known to have no coefficient that is not zero."""
    plain = [x for x in coefficients or () if isinstance(x, np.ndarray | np.generic)]
    return any(bool(np.any(x == 0)) for x in plain)

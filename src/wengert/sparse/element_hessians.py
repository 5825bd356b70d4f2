"""Hessians by elements: entries of second derivatives that are computed without passes.

The Hessian of a function is a sum over the nodes of its graph that are not linear:

    H  =  sum over nodes and pairs (a, b) of operands of  J_a^T diag(w d2op/da db) J_b

where w is the cotangent of the node and J_a the Jacobian of operand a.  Reads at index arrays, sums
and other linear nodes contribute nothing.  Where the Jacobians of the operands are a few diagonals
(diagonal_entries.py), a term is one elementwise product for each pair of diagonals, and its entries
are at known positions, those of the numbers of the two diagonals.  Products with equal positions
are summed element by element, in one loop; then each is added to its entry, in a fixed order.

Nodes that are not elementwise, or whose operands depend on many inputs, are *coupled*: their part
of the Hessian is computed by passes (compression.py).

    second_order        the products, and the coupled nodes
    Curvature           these
    DiagonalProduct     one product, and the positions of its entries
    summed              the entries of a pattern, from products
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.forward import pushforward, settle
from wengert._engine.autodiff.infinities import TracedGuards
from wengert._engine.autodiff.pullback import Result
from wengert._engine.autodiff.reverse import pullback
from wengert._engine.autodiff.tape import fresh, tape_between
from wengert._engine.core.dispatch import PART
from wengert._engine.core.handle import wrap
from wengert._engine.core.node import Node
from wengert._engine.core.node_properties import NodeInfo
from wengert._engine.core.op import RuleContext, lookup
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import derivation
from wengert._engine.core.uniform_arrays import uniform
from wengert._engine.kinds.elementwise import Elementwise, strong_zero

from . import array_rules
from .coloring_and_order import summed_at
from .diagonal_entries import DiagonalGroup, PushedDiagonals, Side
from .propagation import rule_of
from .rule_context import Numbers
from .scattered_entries import Diagonal

LEAVES = 24  # diagonals of a node, beyond which it is coupled
SUMMANDS = 128  # of a sum or product, before diagonals with equal numbers are joined
LINEAR_RULES = (
    array_rules.choosing,
    array_rules.placed,
    array_rules.identity,
    array_rules.adding,
    array_rules.added,
    array_rules.sums,
    array_rules.linear,
)
LINEAR_REDUCTIONS = ("sum", "mean")


class DiagonalProduct(NamedTuple):
    """For each element one number, and the two input elements that it is an entry of; -1: none.

    twice : whether it belongs to both (first, second) and (second, first), which are one entry if
        these are equal.
    """

    first: Numbers
    second: Numbers
    value: Any
    twice: bool


class Curvature(NamedTuple):
    """The parts of a Hessian.

    products : those of nodes whose operands have few diagonals.
    coupled : the other nodes that are not linear.
    nodes : the number of nodes that the products are of.
    terms : the number of terms that are summed to the products.
    """

    products: list[DiagonalProduct]
    coupled: list[Node]
    nodes: int
    terms: int


class _Curved(NamedTuple):
    """A node that is not linear: its second partials, and the diagonals of its operands.

    is_singular : whether a second partial can be infinite.
    """

    node: Node
    seconds: dict[tuple[int, int], Any]
    groups: list[DiagonalGroup]
    is_singular: bool


def second_order(result: Result) -> Curvature | None:
    """The parts of the Hessian of a function of one real result; None if it cannot be divided.

    Parameters
    ----------
    result : Result
        The result of the function, in a graph.
    """
    tape = result.tape
    (value,) = result.out_nodes
    if not result.connected or type(value) is not Node:
        return Curvature([], [], 0, 0)
    if not tape.traced or result.messages is not None or not all(map(_is_plain, tape.nodes)):
        return None
    with np.errstate(all="ignore"):
        traversal = _Traversal(result)
        with derivation(1 + value.level) as stem:
            for node in tape.nodes:
                traversal.visit(node, stem)
        weights, masked = weights_of(result, [c.node for c in traversal.curved])
        products = _Products()
        with derivation(2 + value.level):
            for curved, weight in zip(traversal.curved, weights, strict=True):
                if weight is not None:
                    traversal.add(curved, weight, curved.node in masked, products)
    nodes = len(traversal.curved)
    return Curvature(products.made(), traversal.coupled, nodes, products.terms)


def weights_of(result: Result, nodes: Sequence[Node]) -> tuple[list[Any], set[Node]]:
    """The cotangents of some nodes, and those that can be zero as part of a branch not taken."""
    value: Any = result.out_nodes[0]
    masked: set[Node] = set()
    seed = {value: np.ones((), value.spec.dtype)[()]}
    return pullback(seed, nodes, tape=result.tape, masked_targets=masked), masked


def _is_plain(node: Node) -> bool:
    """Whether it is one real array, or has no derivative, and has no hook of the user."""
    specs = node.spec if isinstance(node.spec, tuple) else (node.spec,)
    return (node.info is None or node.info.hooks is None) and not any(
        isinstance(s, Spec) and s.dtype.kind == "c" for s in specs
    )


class _Traversal:
    """The nodes of a tape in order, and the diagonals of those that have some."""

    def __init__(self, result: Result) -> None:
        tape = result.tape
        self._wanted = tape.wanted
        self._known: dict[Node, list[Diagonal]] = {}
        self._unknown: set[Node] = set()  # those that depend on the inputs in other ways
        self._guards = TracedGuards(tape, RuleContext(tape.wanted, True), {})
        self.curved: list[_Curved] = []
        self.coupled: list[Node] = []
        first = 0
        for node in result.targets:
            spec = node.spec
            by = np.arange(first, first + spec.size).reshape(spec.shape)
            self._known[node] = [Diagonal(by, uniform(Spec(spec.shape, spec.dtype), 1))]
            first += spec.size

    def visit(self, node: Node, stem: Any) -> None:
        """Find the diagonals and second partials of a node, or that it is coupled."""
        if node in self._known:
            return
        sides: list[Side] = [
            list(self._known.get(a, ())) if type(a) is Node else None for a in node.args
        ]
        active = [
            k
            for k, a in enumerate(node.args)
            if type(a) is Node and (self._known.get(a) or a in self._unknown)
        ]
        if not active or node.op.discrete:
            return
        if not isinstance(node.spec, Spec) or node.op is PART:
            if node.op is not PART:
                self.coupled.append(node)
            self._unknown.add(node)
            return
        stem.enter(node)
        unknown = [k for k in active if node.args[k] in self._unknown]
        push = PushedDiagonals(node, sides, self._guards, stem)
        made = None
        if self._has_part(node, active, unknown, push) and not unknown:
            made = push.diagonals(SUMMANDS)
        if made is None or len(made) > LEAVES:
            self._unknown.add(node)
        else:
            self._known[node] = made

    def _has_part(
        self, node: Node, active: Sequence[int], unknown: Sequence[int], push: PushedDiagonals
    ) -> bool:
        """Note the part of a node; False if it is a coupled one."""
        op: Any = node.op
        if rule_of(op) is array_rules.elementwise and isinstance(op, Elementwise):
            seconds, is_singular = second_partials(node, active)
            if not seconds:
                return True
            if not any(k in pair for pair in seconds for k in unknown):
                groups = push.groups()
                if len(groups) <= LEAVES:
                    self.curved.append(_Curved(node, seconds, groups, is_singular))
                    return True
        elif _is_linear(node, active):
            return True
        self.coupled.append(node)
        return False

    def add(self, curved: _Curved, weight: Any, masked: bool, products: _Products) -> None:
        """The products of one node, for the cotangent of its result."""
        node, seconds, groups, is_singular = curved
        masks = self._guards.masked
        weak = is_singular or masked or any(a in masks for a in node.args_as_nodes())
        for p, one in enumerate(groups):
            for other in groups[p:]:
                total = None
                for (a, b), second in seconds.items():
                    for i, j in ((a, b), (b, a))[: 1 + (a != b)]:
                        factors = [weight, one.dots[i], other.dots[j]]
                        if any(f is None for f in factors):
                            continue
                        term = _product(second, factors, weak)
                        total = term if total is None else total + term
                if total is not None:
                    products.add(one.by, other.by, settle(total, node, True))


def _product(second: Any, factors: Sequence[Any], weak: bool) -> Any:
    """A product; zero if a factor is, also for an infinite second partial, where one may be."""
    total = second
    for factor in factors:
        total = total * factor
    if weak:
        for factor in factors:
            total = strong_zero(factor, total)
    return total


def _is_linear(node: Node, active: Sequence[int]) -> bool:
    """Whether a node that is not elementwise is linear in its active operands together."""
    op: Any = node.op
    rule = rule_of(op)
    if op.name in LINEAR_REDUCTIONS:
        return True
    if rule is array_rules.contraction:
        return len(active) == 1
    return rule in LINEAR_RULES and op.name not in ("cumprod", "recurrence", "running")


def second_partials(node: Node, active: Sequence[int]) -> tuple[dict[tuple[int, int], Any], bool]:
    """The second partials of an elementwise node, for pairs of operands; without those known zero.

    Also whether one can be infinite for finite operands. They are computed from its rule, for
    operands that are new nodes, so that the result of the rule can be differentiated with respect
    to these alone.
    """
    op: Any = node.op
    args = [fresh(a) if k in active else a for k, a in enumerate(node.args)]
    info = NodeInfo(node.spec, where=node.where, level=node.level)
    copy = Node(op, tuple(args), node.params, None, info)
    inputs = [wrap(a) if isinstance(a, Node) else a for a in args]
    ctx = RuleContext(None, True)
    found: dict[tuple[int, int], Any] = {}
    is_singular = False
    for k, a in enumerate(active):
        dots: list[Any] = [None] * len(args)
        dots[a] = _ones(args[a])
        slope = op.jvp(copy, dots, wrap(copy), inputs, ctx)
        at = getattr(slope, "node", None)
        if type(at) is not Node:
            continue
        for b in active[k:]:
            tape = tape_between([at], {args[b]})
            (second,) = pushforward([at], {args[b]: _ones(args[b])}, tape=tape)
            if second is not None:
                found[a, b] = second
                singular = [n.op.differentiation.is_singular(n) for n in tape.nodes if n.args]
                is_singular = is_singular or any(singular)
    return found, is_singular


def _ones(node: Node) -> Any:
    return uniform(Spec(node.spec.shape, node.spec.dtype), 1)


class _Products:
    """Products, those at equal positions summed."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._arrays: list[Numbers] = []
        self._sums: dict[tuple[int, int], Any] = {}
        self.terms = 0

    def _number(self, by: Numbers) -> int:
        key = (by.shape, by.tobytes())
        k = self._numbers.setdefault(key, len(self._arrays))
        if k == len(self._arrays):
            self._arrays.append(by.ravel())
        return k

    def add(self, first: Numbers, second: Numbers, value: Any) -> None:
        """Add a product."""
        self.terms += 1
        i, j = sorted((self._number(first), self._number(second)))
        before = self._sums.get((i, j))
        self._sums[i, j] = value if before is None else before + value

    def made(self) -> list[DiagonalProduct]:
        """The sums, flattened."""
        flat = lookup("reshape")
        return [
            DiagonalProduct(
                self._arrays[i], self._arrays[j], flat(v, shape=(v.node.spec.size,)), i != j
            )
            for (i, j), v in self._sums.items()
        ]


def summed(
    found: Sequence[DiagonalProduct], rows: Numbers, cols: Numbers, width: int, dtype: Any
) -> Any:
    """The entries at some rows and columns of the symmetric matrix that products add up to.

    Parameters
    ----------
    found : sequence of DiagonalProduct
    rows, cols : ndarray
        Positions of the entries.
    width : int
        The number of columns.
    """
    parts = []
    for product in found:
        low = np.minimum(product.first, product.second)
        high = np.maximum(product.first, product.second)
        keys = np.where(low >= 0, high * width + low, -1)
        parts.append((keys, product.value))
        if product.twice and np.any(low == high):
            parts.append((np.where(low == high, keys, -1), product.value))
    total = summed_at(parts, np.maximum(rows, cols) * width + np.minimum(rows, cols))
    if total is None:
        return np.zeros(len(rows), dtype)
    return total if total.dtype == dtype else lookup("cast")(total, dtype=dtype)

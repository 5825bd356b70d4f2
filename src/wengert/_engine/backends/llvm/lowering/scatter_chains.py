"""Scatter chains: the stores of an unrolled loop into one array.

Each store is an array of its own in the graph: the previous one with something replaced, or with a
scatter added (as gradients of x[0], x[1], ... are summed).  Materialized one by one, n stores would
be n arrays of n elements.  So a store is deferred until its array is needed: an array that is only
stored to again, or read at a single position, is never materialized.

    ScatterChain    an array with something stored into it, not materialized yet
    read_back       the element at a position, found among the stores

A few stores are selections by the index (indexing.py), which are fused with their neighbors; many
are one kernel call, which copies the array once (kernels/scatter.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wengert._engine.core.node import Node
from wengert._engine.core.spec import Spec

from ..ir.affine import Affine
from ..ir.index_analysis import IndexPlan
from ..tuning import thresholds
from .loop_ir import Expr, Map, View, scalar_constant
from .registry import Deferred, opaque_call, settled

Position = tuple[int, ...]


class Operand:
    """The spec of an operand that is not in the graph."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec


class FusedNode:
    """Several nodes of the graph as one for a kernel; `last` is the last of them."""

    class op:
        """The operation of the fused node."""

        name, kind, effect = "writes", "indexing", False

    def __init__(self, last: Node, params: dict[str, Any], inputs: Sequence[Operand]) -> None:
        self.last, self.params, self.inputs = last, params, tuple(inputs)
        self.spec, self.where, self.name = last.spec, last.where, last.name


class ScatterChain(Deferred):
    """An array with something stored into it, not materialized yet.

    Parameters
    ----------
    node : Node
        The node of the store.
    before : Expr, ScatterChain or None
        The array before the store; None for zeros.
    index : object
        The index of the store, without index arrays.
    found : IndexPlan
        The plan of that index.
    adds : bool
        Whether the value is added to the old elements instead of replacing them.
    alone : callable
        ``alone(before, value)`` makes the array of this store by itself.
    """

    __slots__ = ("adds", "alone", "before", "expr", "found", "index", "node", "position", "value")

    def __init__(
        self,
        node: Node,
        before: Expr | ScatterChain | None,
        value: Expr,
        index: Any,
        found: IndexPlan,
        adds: bool,
        alone: Callable[[Expr | None, Expr], Expr],
    ) -> None:
        self.node, self.before, self.value = node, before, value
        self.index, self.found, self.adds, self.alone = index, found, adds, alone
        self.position = position_of(found)
        self.expr: Expr | None = None

    def settled(self) -> Expr:
        """The array."""
        if self.expr is None:
            chain = [self]
            while isinstance(chain[-1].before, ScatterChain) and chain[-1].before.expr is None:
                chain.append(chain[-1].before)
            chain.reverse()
            if len(chain) <= thresholds.scatter_selections:
                for one in chain:
                    before = None if one.before is None else settled(one.before)
                    one.expr = one.alone(before, one.value)
            else:
                self.expr = _kernel_call(self.node, chain)
        assert self.expr is not None
        return self.expr


def position_of(found: IndexPlan) -> Position | None:
    """The element that an index selects; None if it selects several."""
    if found.shape or any(type(p.start) is not int for p in found.parts):
        return None
    return tuple(p.start for p in found.parts)


def _kernel_call(node: Node, chain: Sequence[ScatterChain]) -> Expr:
    """All stores as one kernel call."""
    first = chain[0].before
    base = None if first is None else settled(first)
    operands = [*([] if base is None else [base]), *[w.value for w in chain]]
    params = {"from_zero": base is None, "writes": tuple((w.index, w.adds) for w in chain)}
    fused: Any = FusedNode(node, params, [Operand(Spec(x.shape, x.dtype)) for x in operands])
    expr: Expr = opaque_call(fused, operands)
    expr.node = node
    return expr


def read_back(x: ScatterChain, position: Position, node: Node) -> Expr | None:
    """The element at a position; None if that is not known without the array."""
    added: list[Expr] = []
    current: Expr | ScatterChain | None = x
    while isinstance(current, ScatterChain) and current.expr is None:
        if current.position is None:
            return None
        if current.position != position:
            current = current.before
        elif current.adds:
            added.append(current.value)
            current = current.before
        else:
            return _sum(_as_element(current.value, node), added, node)
    if current is None:
        return _sum(None, added, node)
    place = tuple(Affine(n, ()) for n in position)
    whole = settled(current)
    return _sum(
        Expr(View("getitem", lambda _: place), (whole,), (), whole.dtype, node), added, node
    )


def _as_element(value: Expr, node: Node) -> Expr:
    """A stored value as an element of the array."""
    dtype = node.spec.dtype
    if value.dtype == dtype and not value.shape:
        return value
    reading = View("getitem", lambda _: tuple(Affine(0, ()) for _ in value.shape))
    value = Expr(reading, (value,), (), value.dtype, node) if value.shape else value
    return Expr(Map("cast", lambda s, v: s.cast(v, dtype)), (value,), (), dtype, node)


def _sum(first: Expr | None, added: Sequence[Expr], node: Node) -> Expr:
    """The old element, plus the values added to it since."""
    total = scalar_constant(0, node.spec.dtype) if first is None and not added else first
    for x in reversed(added):
        one = _as_element(x, node)
        if total is None:
            total = one
        else:
            total = Expr(Map("add", lambda s, u, v: u + v), (total, one), (), total.dtype, node)
    assert total is not None
    return total

"""Stores into one array: chains of an unrolled loop, and slices that are overwritten in place.

    ScatterChain       an array with something written into it, not materialized yet
    WriteLog           the writes into one array by position, so that reading one back is no search
    read_back          the element at a position, found among the writes
    SliceUpdate        the rule of an array with a slice overwritten
    SliceSelection     the same as a selection, which can become a `SliceUpdate`
    is_base            whether an access is that of the array before
    reads_elsewhere    whether the new elements depend on other elements of the array before

Each store is an array of its own in the graph: the previous one with something replaced, or with a
scatter added (as gradients of x[0], x[1], ... are summed).  Materialized one by one, n stores would
be n arrays of n elements.  So a store is deferred until its array is needed: an array that is only
stored to again, or read at a single position, is never materialized.

A few writes are selections by the index (indexing.py), which are fused with their neighbors; many
are kernel calls, which write into the array in place where nothing else reads it any more, and else
copy it once (kernels/joined_arrays.py).

`A[:, i:] = v`, with a length that differs between the steps of a loop, is one loop over the slice
that computes v and stores it where it belongs, without an array for v.  `A[1:-1] = v` in a loop is
one too, where the array can be overwritten (schedule/slices.py), and otherwise a selection
between v and the array before, for each element of a new array.
"""

from __future__ import annotations

import bisect
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from wengert._engine.core.node import Node
from wengert._engine.core.op_facts import Effects
from wengert._engine.core.spec import Spec

from ..ir.index_analysis import ZERO, Affine, Index, IndexPlan, Length, counters
from ..tuning import thresholds
from .loop_ir import (
    Condition,
    ElementRule,
    Expr,
    Map,
    Read,
    SelectExpr,
    View,
    aligned,
    scalar_constant,
)
from .registry import Deferred, opaque_call, origin_of, settled

Position = tuple[int, ...]


class Operand:
    """The spec of an operand that is not in the graph."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec


class FusedNode:
    """Several nodes of the graph as one for a kernel; `last` is the last of them."""

    class op:
        """The operation of the fused node."""

        name, kind, effects, cost = "writes", "indexing", Effects(), None

        @staticmethod
        def updated_operand(node: FusedNode, output: int) -> int | None:
            """The array that is written into."""
            return None if node.params["from_zero"] else 0

    def __init__(self, last: Node, params: dict[str, Any], inputs: Sequence[Operand]) -> None:
        self.last, self.params, self.inputs = last, params, tuple(inputs)
        self.spec, self.where, self.name = last.spec, last.where, last.name
        self.info = last.info_with(lowered_from=origin_of(last))


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

    __slots__ = (
        *("adds", "alone", "before", "expr", "found", "index", "log", "node", "number"),
        *("position", "value"),
    )

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
        # What is written into an array twice is two arrays from there on, each with a log.
        follows = isinstance(before, ScatterChain) and before.log.length == before.number + 1
        self.log: WriteLog = before.log if follows else WriteLog()  # type: ignore[union-attr]
        self.number: int = self.log.length
        self.log.add(self)

    def settled(self) -> Expr:
        """The array."""
        if self.expr is None:
            chain = [self]
            while isinstance(chain[-1].before, ScatterChain) and chain[-1].before.expr is None:
                chain.append(chain[-1].before)
            chain.reverse()
            if len(chain) > thresholds.scatter_selections or self._is_one_of_many(chain):
                self.expr = _kernel_call(self.node, chain)
                self.log.note_settled(self)
            else:
                for one in chain:
                    before = None if one.before is None else settled(one.before)
                    one.expr = one.alone(before, one.value)
                    one.log.note_settled(one)
        assert self.expr is not None
        return self.expr

    def _is_one_of_many(self, chain: Sequence[ScatterChain]) -> bool:
        """Whether a long series of writes, between which the array is read, each change little."""
        if self.number < thresholds.scatter_selections:
            return False
        lengths = [n for one in chain for n in one.found.shape]
        if any(type(n) is not int for n in lengths):
            return False
        changed = sum(math.prod(one.found.shape) for one in chain)
        size: int = math.prod(self.node.spec.shape)
        return changed * thresholds.small_write_part <= size


class WriteLog:
    """The writes into one array, in order, each into the array that the one before made.

    Attributes
    ----------
    length : int
    first : ScatterChain
    """

    __slots__ = ("_settled", "_single", "_wide", "first", "length")

    first: ScatterChain

    def __init__(self) -> None:
        self.length = 0
        self._single: dict[Position, list[ScatterChain]] = {}
        self._wide: list[ScatterChain] = []  # of more than one element
        self._settled: list[ScatterChain] = []

    def add(self, write: ScatterChain) -> None:
        """Note a write into what the last one made."""
        if not self.length:
            self.first = write
        self.length += 1
        if write.position is None:
            self._wide.append(write)
        else:
            self._single.setdefault(write.position, []).append(write)

    def note_settled(self, write: ScatterChain) -> None:
        """Note that the array that a write makes is in memory."""
        bisect.insort(self._settled, write, key=_number)

    def since(self, number: int) -> ScatterChain | None:
        """The last array in memory, up to a write."""
        k = bisect.bisect_right(self._settled, number, key=_number)
        return self._settled[k - 1] if k else None

    def writes_to(self, position: Position, after: int, number: int) -> list[ScatterChain] | None:
        """The writes to a position after one write and up to another, the latest first.

        None if one of them writes more than that position, or too many are to be looked at.
        """
        single = self._single.get(position, ())
        low = bisect.bisect_right(single, after, key=_number)
        high = bisect.bisect_right(single, number, key=_number)
        found = list(single[low:high])
        first = bisect.bisect_right(self._wide, after, key=_number)
        last = bisect.bisect_right(self._wide, number, key=_number)
        if last - first > _MOST_SLICES:
            return None
        if any(_covers(write.found, position) for write in self._wide[first:last]):
            return None
        found.reverse()
        return found


_number = operator.attrgetter("number")
_MOST_SLICES = 64  # between two reads of an array


def _covers(found: IndexPlan, position: Position) -> bool:
    """Whether an index may choose the element at a position."""
    for part, n in zip(found.parts, position, strict=True):
        if part.operand is not None or type(part.start) is not int or type(part.length) is not int:
            return True
        steps, rest = divmod(n - part.start, part.step if part.axis is not None else 1)
        if rest or not 0 <= steps < (part.length if part.axis is not None else 1):
            return False
    return True


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
        log, number = current.log, current.number
        known = log.since(number)
        writes = log.writes_to(position, -1 if known is None else known.number, number)
        if writes is None:
            return None
        for write in writes:
            if not write.adds:
                return _sum(_as_element(write.value, node), added, node)
            added.append(write.value)
        current = log.first.before if known is None else known
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


class SliceUpdate(ElementRule):
    """An array with a slice overwritten; its operands are the new elements and the array before.

    The array is in the memory of the array before, or else in a copy of it.

    Parameters
    ----------
    place : callable
        ``place(index)`` returns the index in the array of an element of the slice.
    """

    is_stored = True
    weight = 1

    def __init__(self, place: Callable[[Any], tuple[Affine, ...]]) -> None:
        self.place = place

    def reads(self, expr: Expr, index: Index) -> list[Read]:
        """The new element at an index of the slice."""
        return [Read(expr.operands[0], index)]

    def value(self, at: Any, expr: Expr, index: Index, mask: Any) -> Any:
        """The new element at an index of the slice."""
        return at.read(expr.operands[0], index, mask)


class SliceSelection(SelectExpr):
    """An array with a slice overwritten, as a selection between the new elements and the array.

    Parameters
    ----------
    new : Expr
        The new elements, in the shape of the slice.
    place : callable
        That of `SliceUpdate`.
    """

    def __init__(
        self,
        name: str,
        choices: Callable[[Any], Sequence[tuple[Index, tuple[Condition, ...]]]],
        new: Expr,
        place: Callable[[Any], tuple[Affine, ...]],
    ) -> None:
        super().__init__(name, choices)
        self.new, self.place = new, place


def write_in_place(expr: Expr) -> None:
    """Let an array with the rule `SliceSelection` be written over the array before."""
    rule: Any = expr.rule
    expr.rule = SliceUpdate(rule.place)
    expr.operands = (rule.new, expr.operands[1])
    expr.is_root = expr.is_flat = True


def updated(
    node: Node, x: Expr, v: Expr, shape: Sequence[Length], place: Callable[[Any], Any]
) -> Expr:
    """x with v stored in a slice of this shape.

    Parameters
    ----------
    place : callable
        That of `SliceUpdate`.
    """
    v = spread(squeezed(v, len(shape)), tuple(shape))
    return Expr(SliceUpdate(place), (v, x), node.spec.shape, node.spec.dtype, node)


def squeezed(v: Expr, rank: int) -> Expr:
    """An array without leading axes of one beyond a rank, which NumPy drops in a store."""
    while len(v.shape) > rank:
        v = Expr(View("squeeze", lambda index: (ZERO, *index), True), (v,), v.shape[1:], v.dtype)
    return v


def spread(v: Expr, shape: tuple[Length, ...]) -> Expr:
    """An array broadcast to a shape."""
    own = v.shape
    if own == shape:
        return v
    return Expr(View("spread", lambda index: aligned(index, own, shape)), (v,), shape, v.dtype)


def is_base(root: Expr, access: Any) -> bool:
    """Whether an access of a root is that of the array before, which it does not read."""
    update = isinstance(root.rule, SliceUpdate)
    return update and access.expr is root.operands[1] and access.index is None


def reads_elsewhere(root: Expr, accesses: Iterable[Any], of: Expr) -> bool:
    """Whether an updated slice depends on elements of an array other than those it overwrites."""
    rule: Any = root.rule
    here = rule.place(counters(root.operands[0].shape))
    return any(a.expr is of and a.index != here and not is_base(root, a) for a in accesses)

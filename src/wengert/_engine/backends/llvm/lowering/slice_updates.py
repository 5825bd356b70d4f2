"""Slices of arrays that are overwritten in place, of which only the elements are computed.

`A[:, i:] = v`, with a length that differs between the steps of a loop, is one loop over the slice
that computes v and stores it where it belongs, without an array for v.  `A[1:-1] = v` in a loop is
one too, where the array can be overwritten (schedule/in_place_writes.py), and otherwise a selection
between v and the array before, for each element of a new array.

    SliceUpdate      the rule of an array with a slice overwritten
    SliceSelection   the same as a selection, which can become a `SliceUpdate`
    is_base          whether an access is that of the array before
    reads_elsewhere  whether the new elements depend on other elements of the array before
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from wengert._engine.core.node import Node

from ..ir.index_analysis import ZERO, Affine, Index, Length, counters
from .loop_ir import Condition, ElementRule, Expr, Read, SelectExpr, View, aligned


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

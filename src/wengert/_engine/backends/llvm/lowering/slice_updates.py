"""Slices of arrays that are overwritten in place, of which only the elements are computed.

`A[:, i:] = v`, with a length that differs between the steps of a loop, is one loop over the slice
that computes v and stores it where it belongs, without an array for v.

    SliceUpdate      the rule of an array with a slice overwritten
    is_base          whether an access is that of the array before
    reads_elsewhere  whether the new elements depend on other elements of the array before
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from wengert._engine.core.node import Node

from ..ir.affine import ZERO, Affine, Index, Length, counters
from .loop_ir import ElementRule, Expr, Read, View, aligned


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


def updated(
    node: Node, x: Expr, v: Expr, shape: Sequence[Length], place: Callable[[Any], Any]
) -> Expr:
    """x with v stored in a slice of this shape.

    Parameters
    ----------
    place : callable
        That of `SliceUpdate`.
    """
    shape = tuple(shape)
    while len(v.shape) > len(shape):  # NumPy drops leading axes of one
        v = Expr(View("squeeze", lambda index: (ZERO, *index), True), (v,), v.shape[1:], v.dtype)
    if v.shape != shape:
        own = v.shape
        v = Expr(View("spread", lambda index: aligned(index, own, shape)), (v,), shape, v.dtype)
    return Expr(SliceUpdate(place), (v, x), node.spec.shape, node.spec.dtype, node)


def is_base(root: Expr, access: Any) -> bool:
    """Whether an access of a root is that of the array before, which it does not read."""
    update = isinstance(root.rule, SliceUpdate)
    return update and access.expr is root.operands[1] and access.index is None


def reads_elsewhere(root: Expr, accesses: Iterable[Any], of: Expr) -> bool:
    """Whether an updated slice depends on elements of an array other than those it overwrites."""
    rule: Any = root.rule
    here = rule.place(counters(root.operands[0].shape))
    return any(a.expr is of and a.index != here and not is_base(root, a) for a in accesses)

"""One element per row, read or written, as in a cross-entropy.

`z[np.arange(n), labels]` reads one element of each row; elements that are cheap to compute need not
be stored first.  Its transpose, zeros with one element of each row written, compares the position
with the label, and needs no array of zeros.

    gathered    elements of an expression at given positions, recomputed from its operands
    one_hot     a scatter that writes one element of each row, as a selection by position
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wengert._engine.core.node import Node
from wengert._engine.core.types import Size

from ..ir.index_analysis import ZERO, Affine, Index, IndexPlan, Length, counters, is_one
from ..tuning import thresholds
from .gathers import Gather, Place, RowGather, known
from .loop_ir import (
    CallResult,
    ElementRule,
    Expr,
    Map,
    OpaqueCall,
    Read,
    Reduce,
    ScalarConstant,
    Stored,
    View,
    aligned,
)

Places = Callable[[Any], Sequence[Place]]


def gathered(
    name: str, x: Expr, arrays: Sequence[Expr], places: Places, shape: tuple[Size, ...], node: Node
) -> Expr:
    """The elements of an expression at positions given by index arrays.

    Parameters
    ----------
    arrays : sequence of Expr
        Index arrays.
    places : callable
        ``places(index)`` returns the place of each axis of `x`.
    shape : tuple of Length
        Of the result.
    """
    if isinstance(x.rule, Map) and _work(x, 4) <= thresholds.inline_work:
        parts = [
            gathered(name, y, arrays, _of_operand(places, y.shape, x.shape), shape, node)
            for y in x.operands
        ]
        return Expr(Map(x.rule.name, x.rule.combine, x.rule.weight), parts, shape, x.dtype, node)
    if isinstance(x.rule, ScalarConstant):
        return Expr(x.rule, (), shape if x.shape else (), x.dtype, node)
    where = places(counters(shape))
    forms = [place for place in where if isinstance(place, Affine)]
    if len(forms) == len(where):  # though perhaps not for the index of a part
        view = View(name, lambda index: tuple([_at(form, index) for form in forms]))
        return Expr(view, (x,), shape, x.dtype, node)
    return Expr(Gather(name, places), (x, *arrays), shape, x.dtype, node)


def _at(form: Affine, index: tuple[Affine, ...]) -> Affine:
    """An affine expression of the counters of axes, with an index substituted for them."""
    found = Affine(form.offset, ())
    for axis, factor in form.terms:
        found = found.plus(index[axis].times(factor))
    return found


def _work(x: Expr, depth: int) -> int:
    """The work of one element down to stored operands; above the limit if nested too deeply."""
    if isinstance(x.rule, Stored | Reduce | OpaqueCall | CallResult | ScalarConstant):
        return 0
    if not isinstance(x.rule, Map) or depth == 0:
        return thresholds.inline_work + 1
    # Values that are repeated along the axes are computed once and stored, if expensive.
    full = [y for y in x.operands if _axes(y) >= _axes(x)]
    return x.rule.weight + sum(_work(y, depth - 1) for y in full)


def _axes(x: Expr) -> int:
    return sum(not is_one(n) for n in x.shape)


def _of_operand(places: Places, shape: tuple[Length, ...], whole: tuple[Length, ...]) -> Places:
    """The positions in a broadcast operand."""

    def own(index: tuple[Affine, ...]) -> Sequence[Place]:
        found = list(places(index))[len(whole) - len(shape) :]
        return [ZERO if is_one(n) else place for place, n in zip(found, shape, strict=True)]

    return own


class OneHotRule(ElementRule):
    """An operand's element if the position is that of an index array, else zero.

    Parameters
    ----------
    axis : int
        The axis of the result along which the position is compared.
    length : Length
        Of that axis.
    value_at, position_at : callable
        ``value_at(index)`` returns the index of the first operand, ``position_at(index)`` that of
        the second, the index array.
    """

    weight = 3
    asks_index = True

    def __init__(
        self,
        axis: int,
        length: Length,
        value_at: Callable[..., Any],
        position_at: Callable[..., Any],
    ) -> None:
        self.axis, self.length = axis, length
        self.value_at, self.position_at = value_at, position_at

    def reads(self, expr: Expr, index: Index) -> list[Read]:
        """The value and the position."""
        t, labels = expr.operands
        return [Read(t, self.value_at(index)), Read(labels, self.position_at(index))]

    def value(self, at: Any, expr: Expr, index: tuple[Affine, ...], mask: Any) -> Any:
        """The selection."""
        value, label = [at.read(r.operand, r.index, mask) for r in self.reads(expr, index)]
        position = at.position(label, self.length, mask)
        here = at.language.binary("equal", at.lane_of(index[self.axis]), position)
        return at.language.where(here, value, at.language.constant(0, expr.dtype))

    def __repr__(self) -> str:
        return "one_hot"


def one_hot(
    t: Expr, arrays: Sequence[Expr], found: IndexPlan, shape: tuple[Size, ...], node: Node
) -> Any:
    """Zeros of a shape with `t` added at an index, if that is one element of each row.

    All axes but one must be full slices, or arrays that count from the start: then no element is
    written twice.  Otherwise NotImplemented.
    """
    if found.depth != 1:
        return NotImplemented
    inside = found.shape[found.place : found.place + 1]
    of_result: dict[int, int] = {}  # for each axis of t an axis of the result
    free: list[tuple[int, Expr]] = []
    for k, (part, n) in enumerate(zip(found.parts, shape, strict=True)):
        if part.operand is None:
            if part.axis is None or part.step != 1 or part.length != n or part.start != 0:
                return NotImplemented
            of_result[part.axis] = k
            continue
        array = arrays[part.operand]
        index = counters(inside)
        place = known(RowGather(array, aligned(index, array.shape, inside), n))
        if isinstance(place, Affine) and place == index[0] and inside[0] == n:
            of_result[found.place] = k
        else:
            free.append((k, array))
    if len(free) != 1 or len(of_result) != len(found.shape) or found.place not in of_result:
        return NotImplemented
    axis, labels = free[0]
    row = of_result[found.place]
    whole = tuple(found.shape)

    def value_at(index: tuple[Affine, ...]) -> Index:
        own = tuple(index[of_result[k]] for k in range(len(whole)))
        return aligned(own, t.shape, whole)

    def position_at(index: tuple[Affine, ...]) -> Index:
        return aligned((index[row],), labels.shape, inside)

    rule = OneHotRule(axis, shape[axis], value_at, position_at)
    return Expr(rule, (t, labels), shape, t.dtype, node)

"""Gathers: elements whose position in an array is given by other arrays; one element per row.

    RowGather    one axis of the array: its position is an element of an index array
    Gather       an element, with some axes indexed by `RowGather` and the others affine
    known        an index array whose positions are an affine expression at compile time
    gathered     elements of an expression at given positions, recomputed from its operands
    one_hot      a scatter that writes one element of each row, as a selection by position

The array must be in memory, or be a view of an array in memory.  Positions are checked before
anything is read: negative ones count from the end; if one is out of range the run fails, and the
interpreter raises NumPy's error.  If the position along the vectorized axis is affine (rows of a
table, for example), neighboring elements are loaded together.

`z[np.arange(n), labels]`, as in a cross-entropy, reads one element of each row; elements that are
cheap to compute need not be stored first.  Its transpose, zeros with one element of each row
written, compares the position with the label, and needs no array of zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.node import Node
from wengert._engine.core.types import Size

from ..ir.index_analysis import (
    ZERO,
    Affine,
    FlatIndex,
    Index,
    IndexPlan,
    Length,
    counters,
    is_one,
    strides_of,
)
from ..tuning import thresholds
from .loop_ir import (
    CallResult,
    ElementRule,
    Expr,
    IndexValue,
    Map,
    OpaqueCall,
    Read,
    Reduce,
    ScalarConstant,
    Stored,
    View,
    aligned,
    strided_view,
)


class RowGather(NamedTuple):
    """The position along an axis: an element of an index array.

    array : the index array.
    where : the index of that element.
    length : of the axis.
    """

    array: Expr
    where: Index
    length: Length


Place = Affine | RowGather


class Gather(ElementRule):
    """The element of the first operand at a position; the other operands are index arrays.

    Parameters
    ----------
    places : callable
        ``places(index)`` returns the `Place` of each axis of the array.
    """

    weight = 8

    def __init__(self, name: str, places: Callable[[Any], Sequence[Place]]) -> None:
        self.name, self.places = name, places

    def reads(self, expr: Expr, index: Index) -> list[Read]:
        """The array at an unknown position, and the index arrays."""
        base, form, gathered = self._where(expr, index)
        return [
            Read(base, None, (), form),
            *[Read(place.array, place.where) for place, _ in gathered],
        ]

    def _where(
        self, expr: Expr, index: Index
    ) -> tuple[Expr, Affine, list[tuple[RowGather, Length]]]:
        """The array in memory, the affine part of the offset, and index arrays with strides."""
        x = expr.operands[0]
        base, start, strides = strided_view(x) or (x, 0, strides_of(x.shape))
        form = Affine(start, ())
        gathered: list[tuple[RowGather, Length]] = []
        for place, stride in zip(self.places(index), strides, strict=True):
            if isinstance(place, RowGather):
                gathered.append((place, stride))
            else:
                form = form.plus(place.times(stride))
        return base, form, gathered

    def value(self, at: Any, expr: Expr, index: Index, mask: Any) -> Any:
        """The element, after checking that its position is in range."""
        base, form, gathered = self._where(expr, index)
        offset: Any = None
        for place, stride in gathered:
            lane = at.read(place.array, place.where, mask)
            lane = at.position(lane, place.length, mask, place.array)
            if not is_one(stride):
                lane = lane * at.lane_of(Affine(stride, ()))
            offset = lane if offset is None else offset + lane
        return at.read_from(base, form, offset, mask)


def known(place: Place) -> Place:
    """The affine index of positions that are in range and equally spaced; else unchanged."""
    if not isinstance(place, RowGather):
        return place
    expr, index = place.array, place.where
    while isinstance(expr.rule, View) and not isinstance(index, FlatIndex):
        index = expr.rule.placed(expr, index)
        (expr,) = expr.operands
    if isinstance(index, FlatIndex):
        return place
    form: Affine | None = None
    if isinstance(expr.rule, ScalarConstant):
        form = Affine(int(expr.rule.number), ())
    elif isinstance(expr.rule, IndexValue):
        made = expr.rule.make(index)
        form = made if isinstance(made, Affine) else None
    elif isinstance(expr.rule, Stored) and expr.rule.array is not None:
        form = _steps(expr.rule.array, index)
    lengths = {c: n for f, n in zip(index, expr.shape, strict=True) for c, _ in f.terms}
    return place if form is None or not _is_inside(form, lengths, place.length) else form


def _steps(array: np.ndarray[Any, Any], index: tuple[Affine, ...]) -> Affine | None:
    """A constant array with equal steps along one axis, as an affine expression of its index."""
    axes = [k for k, n in enumerate(array.shape) if n != 1]
    if len(axes) != 1 or array.size > thresholds.examined_index_elements or array.size < 2:
        return None
    steps = np.diff(array.reshape(-1).astype(np.int64))
    if (steps != steps[0]).any():
        return None
    return index[axes[0]].times(int(steps[0])).plus(int(array.reshape(-1)[0]))


def _is_inside(form: Affine, lengths: dict[int, Length], length: Length) -> bool:
    """Whether an affine index is always in range, if its counters run over the given lengths.

    The counters of a view may run over a part of an array only, so the result may be too strict.
    """
    if len(form.terms) == 1 and form.offset == 0 and is_one(form.terms[0][1]):
        own = lengths.get(form.terms[0][0])
        if own is not None and own == length:
            return True  # the counter of the whole axis, whatever its length
    if type(length) is not int or any(type(n) is not int for n in lengths.values()):
        return False
    low = high = form.offset
    for c, factor in form.terms:
        if type(factor) is not int or c not in lengths:
            return False
        far = factor * (lengths[c] - 1)
        low, high = (low + far, high) if far < 0 else (low, high + far)
    return type(low) is int and low >= 0 and high < length


# ---- one element per row -------------------------------------------------------------------------


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

"""Gathers: elements whose position in an array is given by other arrays.

    RowGather    one axis of the array: its position is an element of an index array
    Gather       an element, with some axes indexed by `RowGather` and the others affine
    known        an index array whose positions are an affine expression at compile time

The array must be in memory, or be a view of an array in memory.  Positions are checked before
anything is read: negative ones count from the end; if one is out of range the run fails, and the
interpreter raises NumPy's error.  If the position along the vectorized axis is affine (rows of a
table, for example), neighboring elements are loaded together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..ir.index_analysis import Affine, FlatIndex, Index, Length, is_one, strides_of
from ..tuning import thresholds
from .loop_ir import ElementRule, Expr, IndexValue, Read, ScalarConstant, Stored, View, strided_view


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

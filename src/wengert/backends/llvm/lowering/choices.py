"""Choices: which operand an element comes from is told by its index.

concatenate, stack, roll; slices read (a view), added into zeros, and replaced.  Indices that are
arrays are steps, or gathers (indexing.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ....core.dims import Dim
from ....core.node import Node
from ....ops.index_shapes import position_of, slice_length, slice_start
from ..forms import ZERO, Affine, Length, is_one
from ..items import Condition, Item, Select, View, aligned, number
from .registry import lowers


@lowers("concatenate")
def _concatenate(_: Any, node: Node, operands: Sequence[Item]) -> Any:
    axis = node.params["axis"] % len(node.spec.shape)
    parts = [x for x in operands if not (type(x.shape[axis]) is int and x.shape[axis] == 0)]
    if len(parts) < 2:
        return NotImplemented
    starts: list[Length] = [0]
    for x in parts:
        starts.append(starts[-1] + x.shape[axis])

    def choices(index: Any) -> Any:
        found = []
        for k, x in enumerate(parts):
            form = ZERO if is_one(x.shape[axis]) else index[axis].plus(_minus(starts[k]))
            place = (*index[:axis], form, *index[axis + 1 :])
            last = k == len(parts) - 1
            # The first that the index is below: what comes before has been chosen already.
            wanted = () if last else (Condition(index[axis], 0, starts[k + 1]),)
            found.append((place, wanted))
        return _below(found, index[axis], starts)

    return Item(Select("concatenate", choices), parts, node.spec.shape, node.spec.dtype, node)


def _minus(n: Length) -> Length:
    return -n


def _below(found: Any, form: Affine, starts: Sequence[Length]) -> Any:
    """Each place under its own conditions, so that nothing is read outside."""
    return [
        (place, (Condition(form, starts[k], starts[k + 1]),)) for k, (place, _) in enumerate(found)
    ]


@lowers("stack")
def _stack(_: Any, node: Node, operands: Sequence[Item]) -> Any:
    axis = node.params["axis"] % len(node.spec.shape)
    if len(operands) < 2 or len(operands) > 64:
        return NotImplemented

    def choices(index: Any) -> Any:
        place = (*index[:axis], *index[axis + 1 :])
        return [(place, (Condition(index[axis], k, k + 1),)) for k in range(len(operands))]

    return Item(Select("stack", choices), operands, node.spec.shape, node.spec.dtype, node)


@lowers("roll")
def _roll(_: Any, node: Node, operands: Sequence[Item]) -> Any:
    (x,) = operands
    shift, axis = node.params["shift"], node.params.get("axis")
    if axis is None and len(x.shape) != 1:
        return NotImplemented
    axes = (0,) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    if len(shifts) != len(axes) or not all(isinstance(n, int) for n in shifts):
        return NotImplemented
    for a, by in zip(axes, shifts, strict=True):
        n = x.shape[a % len(x.shape)]
        if type(n) is not int or n == 0:
            return NotImplemented
        x = _rolled(x, a % len(x.shape), by % n, n, node)
    return x


def _rolled(x: Item, axis: int, by: int, n: int, node: Node) -> Item:
    if by == 0:
        return x

    def choices(index: Any) -> Any:
        form = index[axis]
        return [
            ((*index[:axis], form.plus(moved), *index[axis + 1 :]), (Condition(form, low, high),))
            for moved, low, high in ((-by, by, n), (n - by, 0, by))
        ]

    return Item(Select("roll", choices), (x, x), x.shape, x.dtype, node)


# ---- slices --------------------------------------------------------------------------------------


_BASIC = (int, Dim, slice, type(None), type(Ellipsis))


class Part(NamedTuple):
    """What an index says of one axis of the array.

    axis : of the result, or None for a whole number.
    """

    axis: int | None
    start: Length
    step: int
    length: Length


def parts_of(index: Any, shape: Sequence[Length]) -> tuple[list[Part], int] | None:
    """What a basic index says of each axis, and the rank of the result; None if it is another."""
    entries = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(e, bool) or not isinstance(e, _BASIC) for e in entries):
        return None
    given = sum(isinstance(e, int | Dim | slice) for e in entries)
    if not any(e is Ellipsis for e in entries):
        entries.append(Ellipsis)
    at = next(k for k, e in enumerate(entries) if e is Ellipsis)
    entries[at : at + 1] = [slice(None)] * (len(shape) - given)
    parts: list[Part] = []
    axis = 0
    for e in entries:
        if e is None:
            axis += 1
            continue
        n = shape[len(parts)]
        if not isinstance(e, slice):
            parts.append(Part(None, position_of(e, n), 1, 1))
            continue
        step = 1 if e.step is None else e.step
        parts.append(Part(axis, slice_start(e, n), step, slice_length(e, n)))
        axis += 1
    return parts, axis


def _fits(parts: Any, node: Node, shape: Sequence[Length]) -> bool:
    """Whether the lengths are those that the shape rule found."""
    if parts is None:
        return False
    return all(p.axis is None or p.length == shape[p.axis] for p in parts[0])


@lowers("getitem")
def _getitem(_: Any, node: Node, operands: Sequence[Item]) -> Any:
    x = operands[0]
    found = parts_of(node.params["index"], x.shape) if len(operands) == 1 else None
    if found is None or not _fits(found, node, node.spec.shape):
        return NotImplemented
    parts, _ = found

    def place(index: Any) -> Any:
        return tuple(
            Affine(p.start, ()) if p.axis is None or is_one(p.length)
            else index[p.axis].times(p.step).plus(p.start)
            for p in parts
        )

    return Item(View("getitem", place), (x,), node.spec.shape, x.dtype, node)


def _inverse(parts: Sequence[Part], index: Any, rank: int) -> tuple[Any, list[Condition]] | None:
    """Where in what was chosen an element of the whole is, and when it is there."""
    place: list[Affine] = [ZERO] * rank
    conditions = []
    for p, form in zip(parts, index, strict=True):
        if p.axis is None:
            conditions.append(Condition(form, p.start, p.start + 1))
        elif p.step == 1:
            moved = form.plus(_minus(p.start))
            place[p.axis] = ZERO if is_one(p.length) else moved
            conditions.append(Condition(moved, 0, p.length))
        elif p.step == -1:
            moved = form.times(-1).plus(p.start)
            place[p.axis] = ZERO if is_one(p.length) else moved
            conditions.append(Condition(moved, 0, p.length))
        else:
            return None
    return tuple(place), conditions


@lowers("scatter")
def _scatter(_: Any, node: Node, operands: Sequence[Item]) -> Any:
    t = operands[0]
    shape = node.spec.shape
    found = parts_of(node.params["index"], shape) if len(operands) == 1 else None
    if found is None or not _fits(found, node, t.shape):
        return NotImplemented
    return _written(node, number(0, node.spec.dtype), t, found)


@lowers("setitem")
def _setitem(_: Any, node: Node, operands: Sequence[Item]) -> Any:
    x, v = operands[:2]
    found = parts_of(node.params["index"], x.shape) if len(operands) == 2 else None
    if found is None:
        return NotImplemented
    return _written(node, x, v, found)


def _written(node: Node, x: Item, v: Item, found: Any) -> Any:
    """x with v where the index points to."""
    parts, rank = found
    if any(p.axis is not None and p.step not in (1, -1) for p in parts):
        return NotImplemented
    chosen = [1] * rank
    for p in parts:
        if p.axis is not None:
            chosen[p.axis] = p.length
    while len(v.shape) > rank:  # NumPy drops leading axes of one
        if not is_one(v.shape[0]):
            return NotImplemented
        v = Item(View("squeeze", lambda index: (ZERO, *index), True), (v,), v.shape[1:], v.dtype)

    def choices(index: Any) -> Any:
        place, conditions = _inverse(parts, index, rank) or ((), [])
        inside = aligned(place, v.shape, tuple(chosen))
        return [(inside, tuple(conditions)), (aligned(index, x.shape, node.spec.shape), ())]

    return Item(Select(node.op.name, choices), (v, x), node.spec.shape, node.spec.dtype, node)

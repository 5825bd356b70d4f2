"""What an index selects along each axis of an array, and where the axes of the result come from.

An index is a template, with an `IndexSlot` for each operand that is an array
(ops/indexing/template.py).

    AxisIndex    a slice, one position, or an index array, for one axis
    IndexPlan    those of all axes, and the shape of the result
    chosen       the plan of an index
    moves_of     along which axes `roll` moves, and how far

NumPy's rule for the axes of index arrays: they stand where the first array stood, or come first if
a slice separates two arrays; integers count as arrays where there are some.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.ops.indexing.shapes import position_of, slice_length, slice_start
from wengert._engine.ops.indexing.template import IndexSlot

from .affine import Length, is_one

_KNOWN = (int, Dim, slice, type(None), type(Ellipsis), IndexSlot)


class AxisIndex(NamedTuple):
    """The part of an index for one axis of the array.

    axis : of the result, that a slice becomes; None for a position and an index array.
    start, step, length : of a slice; a position is its start.
    operand : which index array, None for the others.
    """

    axis: int | None
    start: Length
    step: int
    length: Length
    operand: int | None = None


class IndexPlan(NamedTuple):
    """What an index selects.

    parts : for each axis of the array.
    shape : of the result.
    place : the first axis of the result that comes from index arrays.
    depth : how many do.
    """

    parts: tuple[AxisIndex, ...]
    shape: tuple[Length, ...]
    place: int
    depth: int


def chosen(
    index: Any, shape: Sequence[Length], arrays: Sequence[tuple[Length, ...]] = ()
) -> IndexPlan | None:
    """What an index selects from an array of some shape.

    Parameters
    ----------
    index : object
        A template.
    arrays : sequence of tuple
        The shapes of the index arrays, none of them a mask.

    Returns
    -------
    Chosen, or None
        None for an index of another kind.
    """
    entries = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(e, bool) or not isinstance(e, _KNOWN) for e in entries):
        return None
    used = sum(isinstance(e, int | Dim | slice | IndexSlot) for e in entries)
    if not any(e is Ellipsis for e in entries):
        entries.append(Ellipsis)
    at = next(k for k, e in enumerate(entries) if e is Ellipsis)
    entries[at + 1 : at + 1] = [slice(None)] * (len(shape) - used)
    parts: list[AxisIndex] = []
    out: list[Length] = []
    place, gap, apart, seen = 0, False, False, False
    for e in entries:
        if e is Ellipsis or e is None:
            out += [1] if e is None else []
            gap = seen
            continue
        n = shape[len(parts)]
        if isinstance(e, slice):
            length = slice_length(e, n)
            step = 1 if e.step is None else e.step
            parts.append(AxisIndex(len(out), slice_start(e, n), step, length))
            out.append(length)
            gap = seen
            continue
        hole = isinstance(e, IndexSlot)
        parts.append(AxisIndex(None, 0 if hole else position_of(e, n), 1, 1, e.k if hole else None))
        if arrays:
            apart |= gap
            place = place if seen else len(out)
            seen = True
    both = together(arrays)
    place = 0 if apart else place
    out[place:place] = both
    moved = [
        p if p.axis is None or p.axis < place else p._replace(axis=p.axis + len(both))
        for p in parts
    ]
    return IndexPlan(tuple(moved), tuple(out), place, len(both))


def together(shapes: Sequence[tuple[Length, ...]]) -> tuple[Length, ...]:
    """The shape that arrays have together, of which it is known that they fit."""
    depth = max(map(len, shapes), default=0)
    found: list[Length] = [1] * depth
    for shape in shapes:
        for k, n in enumerate(shape, depth - len(shape)):
            found[k] = n if is_one(found[k]) else found[k]
    return tuple(found)


def moves_of(
    shift: int | tuple[int, ...], axis: int | tuple[int, ...] | None
) -> list[tuple[int, int]] | None:
    """Axes, and how far along each, broadcast as NumPy does; None if that is not known."""
    shifts = shift if isinstance(shift, tuple) else (shift,)
    axes = (0,) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if not all(type(n) is int for n in shifts):
        return None
    longest = max(len(shifts), len(axes))
    if {len(shifts), len(axes)} - {1, longest}:
        return None
    shifts, axes = [x * longest if len(x) == 1 else x for x in (shifts, axes)]
    return list(zip(axes, shifts, strict=True))

"""What an index selects along each axis of an array, and which axes the result has.

An index is a template, with an `IndexSlot` for each operand that is an array
(ops/indexing/template.py).

    AxisIndex    a slice, an integer, or an index array, for one axis
    IndexPlan    the indices of all axes, and the shape of the result
    chosen       the plan of an index
    moves_of     the axes along which `roll` shifts, and by how much

NumPy's rule for the axes of index arrays: they replace the first indexed axis, or come first if a
slice separates two index arrays; integers count as arrays if there are index arrays.

Affine index expressions: where an array is read, in terms of loop counters.

    Affine       offset + sum of factor * counter; offset and factors are integers or symbolic sizes
    FlatIndex    the position in C order, instead of one index for each axis

Views only change index expressions: a transposed array is read with its axes permuted, a slice with
`start + step * index`.  So views cost nothing, however many are composed.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.ops.indexing.shapes import position_of, slice_length, slice_start
from wengert._engine.ops.indexing.template import IndexSlot

_AXES = (int, Dim, slice, IndexSlot)
_SUPPORTED = (*_AXES, type(None), type(Ellipsis))


class AxisIndex(NamedTuple):
    """The index of one axis of the array.

    axis : the axis of the result, for a slice; None for an integer or an index array.
    start, step, length : of a slice; an integer is a start.
    operand : the number of the index array, or None.
    """

    axis: int | None
    start: Length
    step: int
    length: Length
    operand: int | None = None


class IndexPlan(NamedTuple):
    """The effect of an index.

    parts : the index of each axis of the array.
    shape : of the result.
    place : the first axis of the result that comes from index arrays.
    depth : the number of these axes.
    """

    parts: tuple[AxisIndex, ...]
    shape: tuple[Length, ...]
    place: int
    depth: int


def chosen(
    index: Any, shape: Sequence[Length], arrays: Sequence[tuple[Length, ...]] = ()
) -> IndexPlan | None:
    """The plan of an index into an array of a given shape.

    Parameters
    ----------
    index : object
        A template.
    arrays : sequence of tuple
        The shapes of the index arrays, none of which is a mask.

    Returns
    -------
    IndexPlan, or None
        None for unsupported kinds of indices.
    """
    entries = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(e, bool) or not isinstance(e, _SUPPORTED) for e in entries):
        return None
    used = sum(isinstance(e, _AXES) for e in entries)
    if not any(e is Ellipsis for e in entries):
        entries.append(Ellipsis)
    at = next(k for k, e in enumerate(entries) if e is Ellipsis)
    entries[at + 1 : at + 1] = [slice(None)] * (len(shape) - used)
    parts: list[AxisIndex] = []
    out: list[Length] = []
    place, slice_since, separated, seen = 0, False, False, False
    for e in entries:
        if e is Ellipsis or e is None:
            out += [1] if e is None else []
            slice_since = seen
            continue
        n = shape[len(parts)]
        if isinstance(e, slice):
            length = slice_length(e, n)
            step = 1 if e.step is None else e.step
            parts.append(AxisIndex(len(out), slice_start(e, n), step, length))
            out.append(length)
            slice_since = seen
            continue
        is_array = isinstance(e, IndexSlot)
        parts.append(
            AxisIndex(None, 0 if is_array else position_of(e, n), 1, 1, e.k if is_array else None)
        )
        if arrays:
            separated |= slice_since
            place = place if seen else len(out)
            seen = True
    joint = together(arrays)
    place = 0 if separated else place
    out[place:place] = joint
    moved = [
        p if p.axis is None or p.axis < place else p._replace(axis=p.axis + len(joint))
        for p in parts
    ]
    return IndexPlan(tuple(moved), tuple(out), place, len(joint))


def together(shapes: Sequence[tuple[Length, ...]]) -> tuple[Length, ...]:
    """The broadcast shape of arrays that are known to be compatible."""
    depth = max(map(len, shapes), default=0)
    found: list[Length] = [1] * depth
    for shape in shapes:
        for k, n in enumerate(shape, depth - len(shape)):
            found[k] = n if is_one(found[k]) else found[k]
    return tuple(found)


def moves_of(
    shift: int | tuple[int, ...], axis: int | tuple[int, ...] | None
) -> list[tuple[int, int]] | None:
    """Pairs of axis and shift, broadcast as in NumPy; None if the shifts are not known."""
    shifts = shift if isinstance(shift, tuple) else (shift,)
    axes = (0,) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if not all(type(n) is int for n in shifts):
        return None
    longest = max(len(shifts), len(axes))
    if {len(shifts), len(axes)} - {1, longest}:
        return None
    shifts, axes = [x * longest if len(x) == 1 else x for x in (shifts, axes)]
    return list(zip(axes, shifts, strict=True))


Length = Any  # int or Dim; a negative factor is an int
_CACHED_FORMS = 8192  # entries of each cache: the same shapes and indices recur all the time


class Affine(NamedTuple):
    """offset + sum of factor * counter.

    Attributes
    ----------
    offset : Length
    terms : tuple of (counter, factor)
        Ordered by counter; no factor is 0.
    """

    offset: Length
    terms: tuple[tuple[int, Length], ...]

    def plus(self, other: Affine | Length) -> Affine:
        """The sum."""
        if not isinstance(other, Affine):
            return Affine(self.offset + other, self.terms)
        if not other.terms:
            terms = self.terms
        elif not self.terms:
            terms = other.terms
        elif self.terms[-1][0] < other.terms[0][0]:
            terms = self.terms + other.terms
        else:
            factors = dict(self.terms)
            for counter, factor in other.terms:
                factors[counter] = factors.get(counter, 0) + factor
            terms = tuple(sorted([(c, f) for c, f in factors.items() if not _is_zero(f)]))
        return Affine(self.offset + other.offset, terms)

    def times(self, factor: Length) -> Affine:
        """The product with a number."""
        if _is_zero(factor):
            return ZERO
        if is_one(factor):
            return self
        return Affine(self.offset * factor, tuple([(c, f * factor) for c, f in self.terms]))

    def factor(self, counter: int) -> Length:
        """The factor of a counter."""
        for c, f in self.terms:
            if c == counter:
                return f
        return 0


class FlatIndex(NamedTuple):
    """A position in C order."""

    form: Affine


Index = tuple[Affine, ...] | FlatIndex

ZERO = Affine(0, ())


STRIDE = "stride."  # prefix of names of strides, not a valid name of a size


def is_stride(name: str) -> bool:
    """Whether a name is that of a stride; strides, unlike sizes, may be negative or zero."""
    return name.startswith(STRIDE)


def _is_zero(n: Length) -> bool:
    return type(n) is int and n == 0


def is_one(n: Length) -> bool:
    """Whether a length is one whatever the symbolic sizes are."""
    return type(n) is int and n == 1


@functools.cache
def counter(number: int) -> Affine:
    """The index that is the counter itself."""
    return Affine(0, ((number, 1),))


def counters(shape: Sequence[Length]) -> tuple[Affine, ...]:
    """The counter of each axis; 0 for axes of length one."""
    return _counters(tuple(shape))


@functools.lru_cache(_CACHED_FORMS)
def _counters(shape: tuple[Length, ...]) -> tuple[Affine, ...]:
    return tuple([ZERO if is_one(n) else counter(k) for k, n in enumerate(shape)])


def strides_of(shape: Sequence[Length]) -> tuple[Length, ...]:
    """The strides of a C-contiguous array, in elements."""
    return _strides(tuple(shape))


@functools.lru_cache(_CACHED_FORMS)
def _strides(shape: tuple[Length, ...]) -> tuple[Length, ...]:
    strides: list[Length] = []
    step: Length = 1
    for n in reversed(shape):
        strides.append(step)
        step = step * n
    return tuple(reversed(strides))


def size_of(shape: Sequence[Length]) -> Length:
    """The number of elements."""
    total: Length = 1
    for n in shape:
        total = total * n
    return total


def offset_of(index: Index, strides: Sequence[Length]) -> Affine:
    """The offset from the first element, in elements."""
    if isinstance(index, FlatIndex):
        return index.form
    return _offset(index, tuple(strides))


@functools.lru_cache(_CACHED_FORMS)
def _offset(index: tuple[Affine, ...], strides: tuple[Length, ...]) -> Affine:
    total = ZERO
    for form, stride in zip(index, strides, strict=True):
        total = total.plus(form.times(stride))
    return total

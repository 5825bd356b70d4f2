"""Affine index expressions: where an array is read, in terms of loop counters.

    Affine       offset + sum of factor * counter; offset and factors are integers or symbolic sizes
    FlatIndex    the position in C order, instead of one index for each axis

Views only change index expressions: a transposed array is read with its axes permuted, a slice with
`start + step * index`.  So views cost nothing, however many are composed.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

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

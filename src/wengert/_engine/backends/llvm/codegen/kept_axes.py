"""Loops over the axes that a loop group keeps, the vectorized one among them.

A selection (a store to a slice, a concatenation, a padded array) compares the index in every step.
Where all comparisons have one result in a range of an axis, this range has a loop of its own
without them (`Space.interior`); the rest, the edges, is a loop with all comparisons.

    KeptAxes    these loops; subclasses emit what is inside them
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..ir.ir_builder import Section
from ..ir.llvm_types import BOOL, I64, Dtype, in_register
from ..ir.memory_access import first_lanes
from ..ir.simd_value import Lane
from ..schedule.iteration_space import Axis
from ..tuning import thresholds
from .row_blocks import RowBlocks

_MOST_SINGLE = 8  # elements beside the interior that are not vectorized


class LoopPart(NamedTuple):
    """A part of a vectorized loop.

    start, stop : its range.
    masked : whether its last step may have fewer lanes.
    is_interior : whether comparisons of the index have one result in it.
    width : the number of lanes; 0 for that of the space.
    """

    start: str
    stop: str
    masked: bool
    is_interior: bool = False
    width: int = 0


class KeptAxes(RowBlocks):
    """Loops over the kept axes of a loop group."""

    _strip: tuple[str, str] | None = None
    _on_edge = False

    def _combine(self, section: Section, axes: list[Axis], outermost: bool) -> None:
        """Emit what is inside the kept axes."""
        raise NotImplementedError

    def _open(self, section: Section, axes: list[Axis], kept: int, outermost: bool) -> None:
        """Emit nested loops over the kept axes, and their body."""
        if kept == 0:
            self._combine(section, axes, outermost)
            return
        if outermost and self.space.strips:
            with section.loop("%lo", "%hi", str(thresholds.strip_elements)) as (inner, b):
                end = inner.value(f"add nsw i64 {b}, {thresholds.strip_elements}")
                self._strip = b, inner.smaller(end, "%hi")
                self._open(inner.inside(), axes, kept, False)
            self._leave(inner)
            self._strip = None
            return
        axis = axes[0]
        start, stop = self._range(axis, section, outermost)
        interior = None if self._on_edge else self.space.interior.get(axis.counter)
        if axis is not self._vector_axis():
            if interior is not None:
                start, stop = self._edges(section, axes, kept, (start, stop), interior)
            with self._inside(axis, interior):
                with section.loop(start, stop) as (inner, i):
                    self._count(axis, inner, i)
                    self._open(inner.inside(), axes[1:], kept - 1, False)
                self._leave(inner)
            return
        if interior is None:
            parts = self._narrowed(section, self._steps(section, axis, start, stop))
        elif int(axis.length) - (interior[1] - interior[0]) <= _MOST_SINGLE:
            with self._wide(1):
                start, stop = self._edges(section, axes, kept, (start, stop), interior)
            parts = self._narrowed(section, self._steps(section, axis, start, stop))
            parts = [x._replace(is_interior=True) for x in parts]
        else:
            parts = self._split_steps(section, start, stop, interior)
        for part in parts:
            with self._inside(axis, interior if part.is_interior else None), self._wide(part.width):
                with self._along(section, part.start, part.stop, self.space.width) as (inner, i):
                    self._enter(axis, inner, i, part.masked, part.stop)
                    self._open(inner.inside(), axes[1:], kept - 1, False)
                self._leave(inner)
                self._mask = None

    def _edges(
        self,
        section: Section,
        axes: list[Axis],
        kept: int,
        ends: tuple[str, str],
        interior: tuple[int, int],
    ) -> tuple[str, str]:
        """Emit one loop over what is before and after the interior; returns the range of that."""
        start, stop = ends
        low, high = (_within(section, n, start, stop) for n in interior)
        before = section.minus(low, start)
        count = section.plus(before, section.minus(stop, high))
        skipped = section.minus(high, low)
        with section.loop("0", count) as (inner, k):
            is_before = inner.value(f"icmp slt i64 {k}, {before}")
            here = inner.plus(start, k)
            there = inner.plus(here, skipped)
            i = inner.value(f"select i1 {is_before}, i64 {here}, i64 {there}")
            self._count(axes[0], inner, i)
            self._on_edge = True
            self._open(inner.inside(), axes[1:], kept - 1, False)
            self._on_edge = False
        self._leave(inner)
        return low, high

    @contextmanager
    def _inside(self, axis: Axis, interior: tuple[int, int] | None) -> Iterator[None]:
        """In a loop over an interior its bounds are known; its values are not used elsewhere."""
        if interior is None:
            yield
            return
        memo = dict(self._memo)
        self._bounds[axis.counter] = interior
        yield
        del self._bounds[axis.counter]
        self._memo = memo

    @contextmanager
    def _wide(self, width: int) -> Iterator[None]:
        """With another number of lanes; 0 leaves it as it is."""
        space = self.space
        if width:
            self.space = replace(space, width=width)
        yield
        self.space = space

    def _range(self, axis: Axis, section: Section, outermost: bool) -> tuple[str, str]:
        if self._strip is not None and axis is self._vector_axis():
            return self._strip
        if outermost:
            return "%lo", "%hi"
        return "0", self._name(self._number(axis.length))

    def _split_steps(
        self, section: Section, start: str, stop: str, interior: tuple[int, int]
    ) -> list[LoopPart]:
        """The parts of a vectorized loop, of which one has an interior."""
        width = self.space.width
        low, high = (_within(section, n, start, stop) for n in interior)
        middle = high
        if width > 1 and self.group.weight <= thresholds.remainder_loop_weight:
            length = section.minus(high, low)
            rest = section.value(f"and i64 {length}, {width - 1}")
            middle = section.minus(high, rest)
        masked = width > 1
        found = [
            LoopPart(start, low, masked),
            LoopPart(low, middle, masked and middle == high, True),
            LoopPart(middle, stop, masked),
        ]
        return [x for x in found if x.start != x.stop]

    def _narrowed(self, section: Section, parts: list[LoopPart]) -> list[LoopPart]:
        """The same, with one register for each value at the end, where values are masked."""
        register = self.space.register
        if len(parts) < 2 or not parts[-1].masked or register >= self.space.width:
            return parts
        *others, (start, stop, *_) = parts
        length = section.minus(stop, start)
        rest = (
            str(int(length) % register)
            if length.isdigit()
            else section.value(f"and i64 {length}, {register - 1}")
        )
        middle = section.minus(stop, rest)
        last = [
            LoopPart(start, middle, False, width=register),
            LoopPart(middle, stop, True, width=register),
        ]
        return [*others, *[x for x in last if x.start != x.stop]]

    def _steps(self, section: Section, axis: Axis, start: str, stop: str) -> list[LoopPart]:
        """The parts of a vectorized loop."""
        width = self.space.width
        if width == 1:
            return [LoopPart(start, stop, False)]
        if (
            self._on_edge
            or self.group.weight > thresholds.remainder_loop_weight
            or (type(axis.length) is int and axis.length < width)
        ):
            return [LoopPart(start, stop, True)]
        if start.isdigit() and stop.isdigit():
            last = str(int(stop) - (int(stop) - int(start)) % width)
            pieces = [LoopPart(start, last, False), LoopPart(last, stop, True)]
            return [x for x in pieces if x.start != x.stop]
        length = section.value(f"sub i64 {stop}, {start}")
        rest = section.value(f"and i64 {length}, {width - 1}")
        middle = section.value(f"sub i64 {stop}, {rest}")
        return [LoopPart(start, middle, False), LoopPart(middle, stop, True)]

    def _enter(self, axis: Axis, inner: Section, i: str, masked: bool, stop: str) -> None:
        """Set the counter of the vectorized loop, and the mask of lanes that exist."""
        width = self.space.width
        start = self._count(axis, inner, i)
        self._mask = None
        if masked and i.isdigit() and stop.isdigit():
            if int(stop) - int(i) < width:
                self._mask = self._first(int(stop) - int(i), width)
        elif masked:
            left = start.value(f"sub i64 {stop}, {i}")
            count = start.smaller(left, str(width))
            dtype = _lane_counter_dtype(width)
            kind = in_register(dtype)
            narrowed = count if kind == "i64" else start.value(f"trunc i64 {count} to {kind}")
            limit = Lane(self.language, start, narrowed, dtype, 1)
            lanes = ", ".join(f"{kind} {k}" for k in range(width))
            indices = Lane(self.language, None, f"<{lanes}>", dtype, width)
            self._mask = self.language.emit("icmp slt", BOOL, indices, limit)

    def _first(self, count: int, width: int) -> Lane:
        return Lane(self.language, None, first_lanes(count, width), BOOL, width)

    @contextmanager
    def _along(
        self, section: Section, begin: str, end: str, width: int
    ) -> Iterator[tuple[Section, str]]:
        """A vectorized loop; a single step needs no loop."""
        if begin.isdigit() and end.isdigit() and 0 < int(end) - int(begin) <= width:
            yield section.inside(), begin
            return
        with section.loop(begin, end, str(width)) as found:
            yield found

    def _count(self, axis: Axis, inner: Section, i: str) -> Section:
        """Set a counter; code that depends on it goes to the beginning of the loop body."""
        start = inner.inside()
        self._counters[axis.counter] = Lane(self.language, start, i, I64, 1)
        return start

    def _leave(self, inner: Section) -> None:
        """Discard values that were computed inside a loop."""
        for memo in (self._memo, self._numbers):
            for key in [
                k for k, x in memo.items() if x.section is not None and x.section.rank >= inner.rank
            ]:
                del memo[key]


def _within(section: Section, n: int, start: str, stop: str) -> str:
    """A number, or the end of a range that is nearest to it."""
    return section.smaller(section.larger(str(n), start), stop)


def _lane_counter_dtype(width: int) -> Dtype:
    """The dtype of lane numbers in a comparison: so wide that they fill a vector register.

    LLVM 22 compares fewer bytes in a whole register and may leave the mask of the remaining lanes
    set, so elements beyond the end were written: sixteen bytes of booleans instead of eight.
    """
    return np.dtype(f"i{max(1, 16 // width)}")

"""im2col and col2im: the windows of an image as the columns of a matrix, and their transpose.

The positions and taps of ops/neural/sliding_windows.py, for static lengths, in the layout of a
matrix product: a row for each channel and tap, a column for each position.  Positions are processed
in passes whose columns fit into a cache (`Geometry.passes`).  An image that needs padding is first
copied into a padded buffer, so no loop has a condition.

    Geometry    lengths and windows, and values derived from them
    Image       some channels of a sample: loaded, written as columns, accumulated, stored
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from math import prod
from typing import NamedTuple

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import Dtype, in_memory, literal
from ...tuning import thresholds
from ..kernel_call import KernelCall
from ..loop_helpers import clear, offset
from ..strided_vectors import STRIDES, Vectors


class PositionGroup(NamedTuple):
    """Positions that one loop processes: pieces of equal length, several in each iteration.

    length : contiguous positions along the last axis, a piece.
    rows : the number of pieces in each iteration.
    times : the number of iterations.
    sources, targets : where each piece begins, in the image and among the positions.
    """

    length: int
    rows: int
    times: int
    sources: tuple[int, ...]
    targets: tuple[int, ...]

    @property
    def width(self) -> int:
        """The number of positions in each iteration."""
        return self.length * self.rows


class Geometry(NamedTuple):
    """Windows on the spatial axes of an image, all lengths known; an entry for each axis."""

    lengths: tuple[int, ...]
    window: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]

    @property
    def padded(self) -> tuple[int, ...]:
        """Lengths with padding."""
        return tuple([n + a + b for n, (a, b) in zip(self.lengths, self.padding, strict=True)])

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of positions."""
        return tuple(
            [
                (n - d * (k - 1) - 1) // s + 1
                for n, k, s, d in zip(
                    self.padded, self.window, self.stride, self.dilation, strict=True
                )
            ]
        )

    @property
    def adjoint(self) -> Geometry:
        """The geometry of the adjoint, whose windows are on the positions, for stride 1."""
        reach = [d * (k - 1) for k, d in zip(self.window, self.dilation, strict=True)]
        padding = tuple([(r - a, r - b) for r, (a, b) in zip(reach, self.padding, strict=True)])
        return self._replace(lengths=self.counts, padding=padding)

    @property
    def is_copied(self) -> bool:
        """Whether the image is copied before windows are read."""
        return any(map(any, self.padding))

    @property
    def is_plain(self) -> bool:
        """Whether each window is one element, so that the image has the layout of the columns."""
        return not self.is_copied and prod(self.window) == prod(self.stride) == 1

    @property
    def steps(self) -> tuple[int, ...]:
        """The stride of each axis, with padding."""
        padded = self.padded
        return tuple([prod(padded[k + 1 :]) for k in range(len(padded))])

    def taps(self) -> list[int]:
        """The offsets of the elements of a window from its first element."""
        return [
            sum(j * d * step for j, d, step in zip(tap, self.dilation, self.steps, strict=True))
            for tap in product(*map(range, self.window))
        ]

    def pieces(self, first: int, length: int) -> PositionGroup:
        """The pieces of `length` positions that begin at position `first` of each row."""
        counts, steps = self.counts, self.steps
        sources, targets = [], []
        for number, row in enumerate(product(*map(range, counts[:-1]))):
            start = sum(i * s * step for i, s, step in zip(row, self.stride, steps, strict=False))
            sources.append(start + first * self.stride[-1])
            targets.append(number * counts[-1] + first)
        return PositionGroup(length, 1, len(sources), tuple(sources), tuple(targets))

    def passes(self, column_bytes: int, minimum: int = 0) -> list[PositionGroup]:
        """All positions, in blocks whose columns fit into a cache.

        Parameters
        ----------
        column_bytes : int
            The size of one column.
        minimum : int
            Bytes that the columns may take even if that is more than the threshold.
        """
        counts = self.counts
        limit = max(max(thresholds.im2col_bytes, minimum) // max(column_bytes, 1), 64)
        last = counts[-1]
        if last > thresholds.im2col_row_elements and last > limit:
            size = max(limit // 64 * 64, 64)
            groups = [self.pieces(k, size) for k in range(0, last - size + 1, size)]
            joined = _joined(groups)
            return (
                [joined, self.pieces(last - last % size, last % size)] if last % size else [joined]
            )
        all_rows = self.pieces(0, last)
        height = len(all_rows.sources)
        iterations = -(-height // max(limit // last, 1))
        rows = -(-height // iterations)
        full_iterations = height // rows
        groups = [all_rows._replace(rows=rows, times=full_iterations)]
        if height % rows:
            sources, targets = (
                all_rows.sources[full_iterations * rows :],
                all_rows.targets[full_iterations * rows :],
            )
            groups.append(PositionGroup(last, height % rows, 1, sources, targets))
        return groups


def _joined(groups: Sequence[PositionGroup]) -> PositionGroup:
    """Groups of the same length as one group."""
    sources = [n for group in groups for n in group.sources]
    targets = [n for group in groups for n in group.targets]
    return PositionGroup(groups[0].length, 1, len(sources), tuple(sources), tuple(targets))


def table(call: KernelCall, numbers: Sequence[int]) -> Name:
    """The address of a constant list of i64."""
    text = ", ".join(f"i64 {n}" for n in numbers)
    name = f"table.{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    return call.module.constant(name, f"[{len(numbers)} x i64]", f"[{text}]", 8)


def entry(s: Section, numbers: Name, index: Name) -> Name:
    """An element of such a list."""
    return s.value(f"load i64, ptr {s.value(f'getelementptr i64, ptr {numbers}, i64 {index}')}")


class Image:
    """Some channels of a sample, and their padded copy.

    Parameters
    ----------
    channels : int
        The number of channels at a time.
    """

    def __init__(self, call: KernelCall, geometry: Geometry, channels: int, dtype: Dtype) -> None:
        self.call, self.geometry, self.channels, self.dtype = call, geometry, channels, dtype
        self.plane = prod(geometry.padded)
        self.image_size = prod(geometry.lengths)
        self.taps = geometry.taps()
        self.size = channels * self.plane
        self.padded_copy = ""
        if geometry.is_copied:
            self.padded_copy = call.scratch(self.size * dtype.itemsize)

    def prepare(self, s: Section, value: float = 0.0) -> None:
        """Fill the padded copy with a number; the padding keeps it."""
        if not self.padded_copy:
            return
        if value == 0.0:
            clear(self.call, s, self.padded_copy, self.size, self.dtype)
            return
        text = literal(value, self.dtype)
        with s.loop("0", str(self.size)) as (t, k):
            to = offset(t, self.padded_copy, k, self.dtype)
            t.write(f"store {in_memory(self.dtype)} {text}, ptr {to}")

    def fill(self, s: Section, value: float) -> None:
        """Fill the padded copy with a number, except the padding."""
        _, offsets, length = self._rows()
        if not offsets or length <= 0:
            return
        row_offsets, text = table(self.call, offsets), literal(value, self.dtype)
        with s.loop("0", str(len(offsets))) as (t, r), t.loop("0", str(length)) as (u, k):
            to = offset(u, self.padded_copy, u.plus(entry(u, row_offsets, r), k), self.dtype)
            u.write(f"store {in_memory(self.dtype)} {text}, ptr {to}")

    def _rows(self) -> tuple[list[int], list[int], int]:
        """The offsets of rows in the image and the padded copy, and their length, all cropped."""
        g = self.geometry
        inside = [
            range(max(-a, 0), n - max(-b, 0))
            for n, (a, b) in zip(g.lengths, g.padding, strict=True)
        ]
        unpadded, padded = [], []
        for index in product(*inside[:-1]):
            index = (*index, inside[-1].start)
            unpadded.append(sum(i * prod(g.lengths[k + 1 :]) for k, i in enumerate(index)))
            padded.append(sum((i + g.padding[k][0]) * g.steps[k] for k, i in enumerate(index)))
        return unpadded, padded, len(inside[-1])

    def load(self, s: Section, source: Name) -> Name:
        """Copy the channels at an address if they need padding; return the address to read from."""
        if not self.padded_copy:
            return source
        self._copy_rows(s, source, to_padded=True)
        return self.padded_copy

    def store(self, s: Section, target: Name) -> None:
        """Copy the accumulated channels to an address, without padding."""
        if not self.padded_copy:
            return
        if any(n < 0 for pair in self.geometry.padding for n in pair):  # the cropped part
            clear(self.call, s, target, self.channels * self.image_size, self.dtype)
        self._copy_rows(s, target, to_padded=False)

    def _copy_rows(self, s: Section, image: Name, to_padded: bool) -> None:
        unpadded, padded, length = self._rows()
        if not unpadded or length <= 0:
            return
        unpadded_offsets, padded_offsets = table(self.call, unpadded), table(self.call, padded)
        v, dtype = Vectors(self.call, self.dtype, length), self.dtype
        with s.loop("0", str(self.channels)) as (t, c):
            first = offset(t, image, t.times(c, str(self.image_size)), dtype)
            second = offset(t, self.padded_copy, t.times(c, str(self.plane)), dtype)
            with t.loop("0", str(len(unpadded))) as (u, r):
                image_row = offset(u, first, entry(u, unpadded_offsets, r), dtype)
                padded_row = offset(u, second, entry(u, padded_offsets, r), dtype)
                target, source = (padded_row, image_row) if to_padded else (image_row, padded_row)

                def copy(
                    w: Section, k: Name, count: int, target: Name = target, source: Name = source
                ) -> None:
                    value = v.load(w, offset(w, source, k, dtype), count)
                    v.store(w, offset(w, target, k, dtype), value, count)

                v.along(u, length, copy)

    @contextmanager
    def _loop_over_windows(
        self, s: Section, image: Name, part: PositionGroup, first: Name, columns: Name
    ) -> Iterator[tuple[Section, Name, Name]]:
        """Loops over channels, taps and pieces: their addresses in the image and the columns."""
        taps, sources = table(self.call, self.taps), table(self.call, part.sources)
        dtype, count = self.dtype, len(self.taps)
        with s.loop("0", str(self.channels)) as (t, c), t.loop("0", str(count)) as (u, j):
            start = u.plus(u.times(c, str(self.plane)), entry(u, taps, j))
            row_start = u.times(u.plus(u.times(c, str(count)), j), str(part.width))
            with u.loop("0", str(part.rows)) as (w, r):
                position = entry(w, sources, w.plus(first, r))
                source = offset(w, image, w.plus(start, position), dtype)
                target = offset(w, columns, w.plus(row_start, w.times(r, str(part.length))), dtype)
                yield w, source, target

    def im2col(
        self, s: Section, image: Name, part: PositionGroup, first: Name, columns: Name
    ) -> None:
        """Write windows as columns."""
        v = Vectors(self.call, self.dtype, part.length)
        step, dtype = self.geometry.stride[-1], self.dtype
        with self._loop_over_windows(s, image, part, first, columns) as (t, source, target):
            if step > STRIDES:
                with t.loop("0", str(part.length)) as (u, k):
                    pointer = offset(u, source, u.times(k, str(step)), dtype)
                    value = u.value(f"load {v.scalar}, ptr {pointer}")
                    u.write(f"store {v.scalar} {value}, ptr {offset(u, target, k, dtype)}")
                return

            def write(u: Section, k: Name, count: int) -> None:
                pointer = offset(u, source, u.times(k, str(step)), dtype)
                v.store(
                    u, offset(u, target, k, dtype), v.load_strided(u, pointer, step, count), count
                )

            v.along(t, part.length, write)

    def col2im(
        self, s: Section, image: Name, part: PositionGroup, first: Name, columns: Name
    ) -> None:
        """Add columns to the windows."""
        v = Vectors(self.call, self.dtype, part.length)
        step, dtype = self.geometry.stride[-1], self.dtype
        with self._loop_over_windows(s, image, part, first, columns) as (t, source, target):
            if step > STRIDES:
                with t.loop("0", str(part.length)) as (u, k):
                    pointer = offset(u, source, u.times(k, str(step)), dtype)
                    value = u.value(f"load {v.scalar}, ptr {offset(u, target, k, dtype)}")
                    old = u.value(f"load {v.scalar}, ptr {pointer}")
                    u.write(
                        f"store {v.scalar} {u.value(f'fadd {v.scalar} {old}, {value}')}, "
                        f"ptr {pointer}"
                    )
                return

            def write(u: Section, k: Name, count: int) -> None:
                pointer = offset(u, source, u.times(k, str(step)), dtype)
                value = v.load(u, offset(u, target, k, dtype), count)
                v.add_strided(u, pointer, step, value, count)

            v.along(t, part.length, write)

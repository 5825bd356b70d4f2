"""im2col and col2im: the windows of an image as the columns of a matrix, and their transpose.

The positions and taps of ops/neural/sliding_windows.py, for static lengths, in the layout of a
matrix product: a row for each channel and tap, a column for each position.  Only as many positions
at a time as fit into a cache (`Geometry.passes`).  An image that needs padding is first copied into
a padded buffer, so no loop has a condition.

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


class PlaceGroup(NamedTuple):
    """Positions with the same treatment.

    length : contiguous positions along the last axis.
    rows : the number of such pieces at a time.
    times : the number of repetitions.
    sources, targets : where each piece begins, in the image and among the positions.
    """

    length: int
    rows: int
    times: int
    sources: tuple[int, ...]
    targets: tuple[int, ...]

    @property
    def width(self) -> int:
        """The number of positions at a time."""
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
    def turned(self) -> Geometry:
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
        """Whether positions are the elements themselves."""
        return not self.is_copied and prod(self.window) == prod(self.stride) == 1

    @property
    def steps(self) -> tuple[int, ...]:
        """The stride of each axis, with padding."""
        padded = self.padded
        return tuple([prod(padded[k + 1 :]) for k in range(len(padded))])

    def taps(self) -> list[int]:
        """The offsets of the elements of a window from its first."""
        return [
            sum(j * d * step for j, d, step in zip(tap, self.dilation, self.steps, strict=True))
            for tap in product(*map(range, self.window))
        ]

    def pieces(self, first: int, length: int) -> PlaceGroup:
        """All pieces of rows from a position of the last axis on, one at a time."""
        counts, steps = self.counts, self.steps
        sources, targets = [], []
        for number, row in enumerate(product(*map(range, counts[:-1]))):
            start = sum(i * s * step for i, s, step in zip(row, self.stride, steps, strict=False))
            sources.append(start + first * self.stride[-1])
            targets.append(number * counts[-1] + first)
        return PlaceGroup(length, 1, len(sources), tuple(sources), tuple(targets))

    def passes(self, bytes_of_place: int, least: int = 0) -> list[PlaceGroup]:
        """All positions, in blocks whose columns fit into a cache.

        Parameters
        ----------
        bytes_of_place : int
            Of one column.
        least : int
            Bytes that may be taken anyway.
        """
        counts = self.counts
        most = max(max(thresholds.im2col_bytes, least) // max(bytes_of_place, 1), 64)
        last = counts[-1]
        if last > thresholds.im2col_row_elements and last > most:
            size = max(most // 64 * 64, 64)
            found = [self.pieces(k, size) for k in range(0, last - size + 1, size)]
            whole = _joined(found)
            return [whole, self.pieces(last - last % size, last % size)] if last % size else [whole]
        every = self.pieces(0, last)
        height = len(every.sources)
        some = -(-height // max(most // last, 1))
        rows = -(-height // some)
        full = height // rows
        found = [every._replace(rows=rows, times=full)]
        if height % rows:
            sources, targets = every.sources[full * rows :], every.targets[full * rows :]
            found.append(PlaceGroup(last, height % rows, 1, sources, targets))
        return found


def _joined(passes: Sequence[PlaceGroup]) -> PlaceGroup:
    """Pieces of the same length as one pass."""
    sources = [n for p in passes for n in p.sources]
    targets = [n for p in passes for n in p.targets]
    return PlaceGroup(passes[0].length, 1, len(sources), tuple(sources), tuple(targets))


def table(call: KernelCall, numbers: Sequence[int]) -> Name:
    """The address of a constant list of i64."""
    text = ", ".join(f"i64 {n}" for n in numbers)
    name = f"table.{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    return call.module.constant(name, f"[{len(numbers)} x i64]", f"[{text}]", 8)


def entry(s: Section, numbers: Name, index: Name) -> Name:
    """A number of such a list."""
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
        self.own = prod(geometry.lengths)
        self.taps = geometry.taps()
        self.size = channels * self.plane
        self.memory = ""
        if geometry.is_copied:
            self.memory = call.scratch(self.size * dtype.itemsize)

    def prepare(self, s: Section, value: float = 0.0) -> None:
        """Fill the padded copy with a number, which the padding keeps."""
        if not self.memory:
            return
        if value == 0.0:
            clear(self.call, s, self.memory, self.size, self.dtype)
            return
        text = literal(value, self.dtype)
        with s.loop("0", str(self.size)) as (t, k):
            to = offset(t, self.memory, k, self.dtype)
            t.write(f"store {in_memory(self.dtype)} {text}, ptr {to}")

    def fill(self, s: Section, value: float) -> None:
        """Fill the image with a number, without the padding."""
        _, there, length = self._rows()
        if not there or length <= 0:
            return
        rows, text = table(self.call, there), literal(value, self.dtype)
        with s.loop("0", str(len(there))) as (t, r), t.loop("0", str(length)) as (u, k):
            to = offset(u, self.memory, u.plus(entry(u, rows, r), k), self.dtype)
            u.write(f"store {in_memory(self.dtype)} {text}, ptr {to}")

    def _rows(self) -> tuple[list[int], list[int], int]:
        """The offsets of rows, without and with padding, and their length, without cropped rows."""
        g = self.geometry
        kept = [
            range(max(-a, 0), n - max(-b, 0))
            for n, (a, b) in zip(g.lengths, g.padding, strict=True)
        ]
        own, there = [], []
        for index in product(*kept[:-1]):
            index = (*index, kept[-1].start)
            own.append(sum(i * prod(g.lengths[k + 1 :]) for k, i in enumerate(index)))
            there.append(sum((i + g.padding[k][0]) * g.steps[k] for k, i in enumerate(index)))
        return own, there, len(kept[-1])

    def bring(self, s: Section, source: Name) -> Name:
        """Copy the channels at an address, if they need padding; the address to read from."""
        if not self.memory:
            return source
        self._move(s, source, inwards=True)
        return self.memory

    def take(self, s: Section, target: Name) -> None:
        """Copy the accumulated channels to an address, without padding."""
        if not self.memory:
            return
        if any(n < 0 for pair in self.geometry.padding for n in pair):  # the cropped part
            clear(self.call, s, target, self.channels * self.own, self.dtype)
        self._move(s, target, inwards=False)

    def _move(self, s: Section, outside: Name, inwards: bool) -> None:
        own, there, length = self._rows()
        if not own or length <= 0:
            return
        one, two = table(self.call, own), table(self.call, there)
        v, dtype = Vectors(self.call, self.dtype, length), self.dtype
        with s.loop("0", str(self.channels)) as (t, c):
            first = offset(t, outside, t.times(c, str(self.own)), dtype)
            second = offset(t, self.memory, t.times(c, str(self.plane)), dtype)
            with t.loop("0", str(len(own))) as (u, r):
                here = offset(u, first, entry(u, one, r), dtype)
                inside = offset(u, second, entry(u, two, r), dtype)
                to, of = (inside, here) if inwards else (here, inside)

                def copy(w: Section, k: Name, count: int, to: Name = to, of: Name = of) -> None:
                    value = v.load(w, offset(w, of, k, dtype), count)
                    v.store(w, offset(w, to, k, dtype), value, count)

                v.along(u, length, copy)

    @contextmanager
    def _each(
        self, s: Section, image: Name, part: PlaceGroup, first: Name, columns: Name
    ) -> Iterator[tuple[Section, Name, Name]]:
        """Loops over channels, taps and pieces: their addresses in the image and the columns."""
        taps, sources = table(self.call, self.taps), table(self.call, part.sources)
        dtype, count = self.dtype, len(self.taps)
        with s.loop("0", str(self.channels)) as (t, c), t.loop("0", str(count)) as (u, j):
            start = u.plus(u.times(c, str(self.plane)), entry(u, taps, j))
            line = u.times(u.plus(u.times(c, str(count)), j), str(part.width))
            with u.loop("0", str(part.rows)) as (w, r):
                place = entry(w, sources, w.plus(first, r))
                source = offset(w, image, w.plus(start, place), dtype)
                target = offset(w, columns, w.plus(line, w.times(r, str(part.length))), dtype)
                yield w, source, target

    def write_out(
        self, s: Section, image: Name, part: PlaceGroup, first: Name, columns: Name
    ) -> None:
        """Write windows as columns (im2col)."""
        v = Vectors(self.call, self.dtype, part.length)
        step, dtype = self.geometry.stride[-1], self.dtype
        with self._each(s, image, part, first, columns) as (t, source, target):
            if step > STRIDES:
                with t.loop("0", str(part.length)) as (u, k):
                    at = offset(u, source, u.times(k, str(step)), dtype)
                    one = u.value(f"load {v.scalar}, ptr {at}")
                    u.write(f"store {v.scalar} {one}, ptr {offset(u, target, k, dtype)}")
                return

            def write(u: Section, k: Name, count: int) -> None:
                at = offset(u, source, u.times(k, str(step)), dtype)
                v.store(u, offset(u, target, k, dtype), v.every(u, at, step, count), count)

            v.along(t, part.length, write)

    def add_up(self, s: Section, image: Name, part: PlaceGroup, first: Name, columns: Name) -> None:
        """Add columns to the windows (col2im)."""
        v = Vectors(self.call, self.dtype, part.length)
        step, dtype = self.geometry.stride[-1], self.dtype
        with self._each(s, image, part, first, columns) as (t, source, target):
            if step > STRIDES:
                with t.loop("0", str(part.length)) as (u, k):
                    at = offset(u, source, u.times(k, str(step)), dtype)
                    one = u.value(f"load {v.scalar}, ptr {offset(u, target, k, dtype)}")
                    old = u.value(f"load {v.scalar}, ptr {at}")
                    u.write(
                        f"store {v.scalar} {u.value(f'fadd {v.scalar} {old}, {one}')}, ptr {at}"
                    )
                return

            def write(u: Section, k: Name, count: int) -> None:
                at = offset(u, source, u.times(k, str(step)), dtype)
                value = v.load(u, offset(u, target, k, dtype), count)
                v.add_to_every(u, at, step, value, count)

            v.along(t, part.length, write)

"""Pooling: the operations of ops/neural/pooling.py as loops over vectors of neighboring windows.

    sum_pool, sum_pool_adjoint      sums over windows, and each number added to all of its window
    max_pool                        the largest elements
    max_pool_tangent                the elements of another array at the positions of the largest
    max_pool_adjoint                numbers added at the positions of the largest elements

The leading axes are a batch of images, which is divided among threads.  The last two search for the
largest elements again: that costs less than storing their positions.  With padding, a second image
marks the elements that exist: padding is never the largest, even if all elements are -inf.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from wengert._engine.core.node import Node

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import F32, F64, Dtype, literal, of_width
from ...tuning import thresholds
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import clear, offset
from ..strided_vectors import STRIDES, Vectors
from .im2col import Geometry, Image, entry, table


def _serves(node: Node) -> bool:
    k = len(node.params["window"])
    specs = [a.spec for a in node.inputs] + [node.spec]
    return (
        all(s.dtype == node.spec.dtype for s in specs)
        and node.spec.dtype in (F32, F64)
        and all(type(n) is int and n > 0 for s in specs for n in s.shape[s.ndim - k :])
        and node.params["stride"][-1] <= STRIDES
    )


class _Pooling:
    """The windows of an image, and loops over them.

    Parameters
    ----------
    call : KernelCall
        Of a part of the lines.
    """

    def __init__(self, call: KernelCall, geometry: Geometry, dtype: Dtype) -> None:
        self.call, self.geometry, self.dtype = call, geometry, dtype
        self.vectors = Vectors(call, dtype, geometry.counts[-1])
        self.own, self.places = prod(geometry.lengths), prod(geometry.counts)
        self.taps = geometry.taps()
        self.step = geometry.stride[-1]
        self.width = geometry.window[-1]
        # Windows that do not overlap along the last axis are read and written row by row.
        self.by_rows = (
            self.width <= self.step
            and geometry.dilation[-1] == 1
            and len(self.taps) <= thresholds.unrolled_window_elements
        )
        spans = [d * (k - 1) + 1 for k, d in zip(geometry.window, geometry.dilation, strict=True)]
        self.apart = all(n <= s for n, s in zip(spans, geometry.stride, strict=True))
        self._read: dict[Any, list[Name]] = {}
        bits = 8 * dtype.itemsize
        self.numbers = of_width(f"i{bits}", self.vectors.width)  # of the taps
        self.bits = of_width("i1", self.vectors.width)

    def image(self) -> Image:
        """Memory for the elements of an image."""
        return Image(self.call, self.geometry, 1, self.dtype)

    def each(self, s: Section, write: Callable[[Section, Name, Name, int], None]) -> None:
        """Write ``write(section, source, target, count)`` for each vector of windows of a line."""
        part = self.geometry.pieces(0, self.geometry.counts[-1])
        sources, targets = table(self.call, part.sources), table(self.call, part.targets)
        with s.loop("0", str(len(part.sources))) as (t, r):
            source, target = entry(t, sources, r), entry(t, targets, r)

            def one(u: Section, k: Name, count: int) -> None:
                at = u.plus(source, u.times(k, str(self.step)))
                write(u, at, u.plus(target, k), count)

            self.vectors.along(
                t, part.length, one, min(len(self.taps), thresholds.unrolled_window_elements)
            )

    def over_taps(
        self, s: Section, write: Callable[[Section, Name, Name], None], first: int = 0
    ) -> None:
        """Write ``write(section, number, offset)`` for each element of a window."""
        if len(self.taps) <= thresholds.unrolled_window_elements:
            for number, place in enumerate(self.taps[first:], first):
                write(s, str(number), str(place))
            return
        taps = table(self.call, self.taps)
        with s.loop(str(first), str(len(self.taps))) as (t, k):
            write(t, k, entry(t, taps, k))

    def at(
        self, s: Section, image: Name, source: Name, number: Name, tap: Name, count: int
    ) -> Name:
        """An element of neighboring windows."""
        if not self.by_rows:
            place = offset(s, image, s.plus(source, tap), self.dtype)
            return self.vectors.every(s, place, self.step, count)
        row, j = divmod(int(number), self.width)
        key = (s.rank, image, source, row, count)
        if key not in self._read:
            first = str(self.taps[row * self.width])
            place = offset(s, image, s.plus(source, first), self.dtype)
            self._read[key] = self.vectors.row(s, place, self.step, self.width, count)
        return self._read[key][j]

    def add(
        self,
        s: Section,
        image: Name,
        source: Name,
        count: int,
        value: Callable[[Section, Name], Name],
    ) -> None:
        """Add ``value(section, number)`` to each element of neighboring windows."""
        waiting: list[Name] = []

        def one(t: Section, number: Name, tap: Name) -> None:
            new = value(t, number)
            if not self.by_rows:
                at = offset(t, image, t.plus(source, tap), self.dtype)
                self.vectors.add_to_every(t, at, self.step, new, count)
                return
            waiting.append(new)
            if len(waiting) == self.width:
                first = str(self.taps[int(number) - self.width + 1])
                at = offset(t, image, t.plus(source, first), self.dtype)
                self.vectors.put_row(t, at, self.step, waiting, count, not self.apart)
                waiting.clear()

        self.over_taps(s, one)

    def load(self, s: Section, cell: Name, kind: str = "") -> Name:
        """Load a cell."""
        return s.value(f"load {kind or self.vectors.kind}, ptr {cell}")

    def spread(self, s: Section, number: Name) -> Name:
        """A number of a tap in all lanes."""
        scalar = f"i{8 * self.dtype.itemsize}"
        if number.isdigit():
            return f"splat ({scalar} {number})"
        if scalar != "i64":
            number = s.value(f"trunc i64 {number} to {scalar}")
        first = s.value(f"insertelement {self.numbers} poison, {scalar} {number}, i64 0")
        zeros = of_width("i32", self.vectors.width)
        return s.value(
            f"shufflevector {self.numbers} {first}, {self.numbers} poison, {zeros} zeroinitializer"
        )


class _Largest:
    """The position of the largest element of windows: the first of equal ones, or the first NaN."""

    def __init__(self, work: _Pooling) -> None:
        self.work = work
        self.image = work.image()
        self.inside = work.image() if self.image.memory else None
        slot = work.call.function.slot
        self.best, self.which = slot(work.vectors.kind), slot(work.numbers)
        self.found = slot(work.vectors.kind)

    def prepare(self, s: Section) -> None:
        """Before the first line."""
        self.image.prepare(s, float("-inf"))
        if self.inside is not None:
            self.inside.prepare(s)
            self.inside.fill(s, 1.0)

    def look(self, s: Section, image: Name, source: Name, count: int) -> Name:
        """The numbers of the elements."""
        work, kind = self.work, self.work.vectors.kind
        s.write(f"store {kind} {work.at(s, image, source, '0', '0', count)}, ptr {self.best}")
        s.write(f"store {work.numbers} zeroinitializer, ptr {self.which}")
        if self.inside is not None:
            flag = work.at(s, self.inside.memory, source, "0", "0", count)
            s.write(f"store {kind} {flag}, ptr {self.found}")

        def compare(t: Section, number: Name, tap: Name) -> None:
            best, new = work.load(t, self.best), work.at(t, image, source, number, tap, count)
            larger = t.value(f"fcmp ugt {kind} {new}, {best}")
            sound = t.value(f"fcmp ord {kind} {best}, zeroinitializer")
            better = t.value(f"and {work.bits} {larger}, {sound}")
            if self.inside is not None:
                flag = work.at(t, self.inside.memory, source, number, tap, count)
                found = work.load(t, self.found)
                first = t.value(f"fcmp ogt {kind} {flag}, {found}")
                better = t.value(f"or {work.bits} {better}, {first}")
                more = t.value(f"select {work.bits} {first}, {kind} {flag}, {kind} {found}")
                t.write(f"store {kind} {more}, ptr {self.found}")
            chosen = t.value(f"select {work.bits} {better}, {kind} {new}, {kind} {best}")
            t.write(f"store {kind} {chosen}, ptr {self.best}")
            old, own = work.load(t, self.which, work.numbers), work.spread(t, number)
            some = f"{work.numbers} {own}, {work.numbers} {old}"
            t.write(
                f"store {work.numbers} {t.value(f'select {work.bits} {better}, {some}')}, "
                f"ptr {self.which}"
            )

        work.over_taps(s, compare, 1)
        return work.load(s, self.which, work.numbers)


def _geometry(call: KernelCall, shape: tuple[int, ...]) -> Geometry:
    params = call.params
    window = tuple(params["window"])
    lengths = tuple(shape[len(shape) - len(window) :])
    dilation = tuple(params.get("dilation", (1,) * len(window)))
    return Geometry(lengths, window, tuple(params["stride"]), tuple(params["padding"]), dilation)


def _on_lines(
    call: KernelCall, shape: Any, write: Callable[[_Pooling], Callable[[Section, Name], None]]
) -> None:
    """Prepare with ``write``, and write what it returns for each line."""
    geometry = _geometry(call, shape)
    count: Any = 1
    for n in shape[: len(shape) - len(geometry.window)]:
        count = count * n
    dtype = call.results[0].dtype

    def part(inner: KernelCall, start: Name, stop: Name) -> None:
        line = write(_Pooling(inner, geometry, dtype))
        with inner.section.loop(start, stop) as (t, q):
            line(t, q)

    work = prod(geometry.counts) * prod(geometry.window) + prod(geometry.lengths)
    call.in_parts(count, max(1, thresholds.parallel_pooling_elements // max(work, 1)), part)


def _line(s: Section, array: ArrayPointer, q: Name, size: int) -> Name:
    return offset(s, array.pointer, s.times(q, str(size)), array.dtype)


@kernel("sum_pool", serves=_serves)
def sum_pool(call: KernelCall) -> None:
    """Sums over windows."""

    def begin(work: _Pooling) -> Callable[[Section, Name], None]:
        (x,), (y,), v = work.call.operands, work.call.results, work.vectors
        image, total = work.image(), work.call.function.slot(v.kind)
        image.prepare(work.call.section)

        def line(s: Section, q: Name) -> None:
            ready = image.bring(s, _line(s, x, q, work.own))
            target = _line(s, y, q, work.places)

            def piece(t: Section, source: Name, place: Name, count: int) -> None:
                t.write(f"store {v.kind} zeroinitializer, ptr {total}")

                def more(u: Section, number: Name, tap: Name) -> None:
                    new = work.at(u, ready, source, number, tap, count)
                    sum_ = u.value(f"fadd {v.kind} {work.load(u, total)}, {new}")
                    u.write(f"store {v.kind} {sum_}, ptr {total}")

                work.over_taps(t, more)
                v.store(t, offset(t, target, place, work.dtype), work.load(t, total), count)

            work.each(s, piece)

        return line

    _on_lines(call, call.operands[0].shape, begin)


@kernel("sum_pool_adjoint", serves=_serves)
def sum_pool_adjoint(call: KernelCall) -> None:
    """Each number to all elements of its window."""

    def begin(work: _Pooling) -> Callable[[Section, Name], None]:
        (y,), (x,), v = work.call.operands, work.call.results, work.vectors
        image = work.image()

        def line(s: Section, q: Name) -> None:
            target, given = _line(s, x, q, work.own), _line(s, y, q, work.places)
            image.prepare(s)
            if not image.memory:
                clear(work.call, s, target, work.own, work.dtype)
            ready = image.memory or target

            def piece(t: Section, source: Name, place: Name, count: int) -> None:
                one = v.load(t, offset(t, given, place, work.dtype), count)
                work.add(t, ready, source, count, lambda section, number: one)

            work.each(s, piece)
            image.take(s, target)

        return line

    _on_lines(call, call.results[0].shape, begin)


@kernel("max_pool", serves=_serves)
def max_pool(call: KernelCall) -> None:
    """The largest elements of windows; NaN where there is one."""

    def begin(work: _Pooling) -> Callable[[Section, Name], None]:
        (x,), (y,), v = work.call.operands, work.call.results, work.vectors
        image, best = work.image(), work.call.function.slot(v.kind)
        image.prepare(work.call.section, float("-inf"))
        suffix = f"v{v.width}f{8 * work.dtype.itemsize}"
        larger = work.call.module.declare(f"llvm.maximum.{suffix}", v.kind, [v.kind] * 2)

        def line(s: Section, q: Name) -> None:
            ready = image.bring(s, _line(s, x, q, work.own))
            target = _line(s, y, q, work.places)

            def piece(t: Section, source: Name, place: Name, count: int) -> None:
                first = work.at(t, ready, source, "0", "0", count)
                t.write(f"store {v.kind} {first}, ptr {best}")

                def more(u: Section, number: Name, tap: Name) -> None:
                    new, old = work.at(u, ready, source, number, tap, count), work.load(u, best)
                    found = u.value(f"call {v.kind} {larger}({v.kind} {old}, {v.kind} {new})")
                    u.write(f"store {v.kind} {found}, ptr {best}")

                work.over_taps(t, more, 1)
                v.store(t, offset(t, target, place, work.dtype), work.load(t, best), count)

            work.each(s, piece)

        return line

    _on_lines(call, call.operands[0].shape, begin)


@kernel("max_pool_tangent", serves=_serves)
def max_pool_tangent(call: KernelCall) -> None:
    """The elements of one array at the positions of the largest of the other."""

    def begin(work: _Pooling) -> Callable[[Section, Name], None]:
        (given, x), (y,), v = work.call.operands, work.call.results, work.vectors
        largest, other = _Largest(work), work.image()
        chosen = work.call.function.slot(v.kind)
        largest.prepare(work.call.section)
        other.prepare(work.call.section)

        def line(s: Section, q: Name) -> None:
            ready = largest.image.bring(s, _line(s, x, q, work.own))
            values = other.bring(s, _line(s, given, q, work.own))
            target = _line(s, y, q, work.places)

            def piece(t: Section, source: Name, place: Name, count: int) -> None:
                which = largest.look(t, ready, source, count)
                t.write(f"store {v.kind} zeroinitializer, ptr {chosen}")

                def choose(u: Section, number: Name, tap: Name) -> None:
                    same = f"icmp eq {work.numbers} {which}, {work.spread(u, number)}"
                    new, old = work.at(u, values, source, number, tap, count), work.load(u, chosen)
                    some = f"{work.bits} {u.value(same)}, {v.kind} {new}, {v.kind} {old}"
                    u.write(f"store {v.kind} {u.value(f'select {some}')}, ptr {chosen}")

                work.over_taps(t, choose)
                v.store(t, offset(t, target, place, work.dtype), work.load(t, chosen), count)

            work.each(s, piece)

        return line

    _on_lines(call, call.operands[1].shape, begin)


@kernel("max_pool_adjoint", serves=_serves)
def max_pool_adjoint(call: KernelCall) -> None:
    """Numbers added at the positions of the largest elements."""

    def begin(work: _Pooling) -> Callable[[Section, Name], None]:
        (given, x), (out,), v = work.call.operands, work.call.results, work.vectors
        largest, sums = _Largest(work), work.image()
        largest.prepare(work.call.section)
        nothing = literal(0.0, work.dtype)

        def line(s: Section, q: Name) -> None:
            ready = largest.image.bring(s, _line(s, x, q, work.own))
            target, numbers = _line(s, out, q, work.own), _line(s, given, q, work.places)
            sums.prepare(s)
            if not sums.memory:
                clear(work.call, s, target, work.own, work.dtype)
            into = sums.memory or target

            def piece(t: Section, source: Name, place: Name, count: int) -> None:
                which = largest.look(t, ready, source, count)
                one = v.load(t, offset(t, numbers, place, work.dtype), count)

                def share(u: Section, number: Name) -> Name:
                    same = u.value(f"icmp eq {work.numbers} {which}, {work.spread(u, number)}")
                    zero = f"splat ({v.scalar} {nothing})"
                    some = f"{work.bits} {same}, {v.kind} {one}, {v.kind} {zero}"
                    return u.value(f"select {some}")

                work.add(t, into, source, count, share)

            work.each(s, piece)
            sums.take(s, target)

        return line

    _on_lines(call, call.operands[1].shape, begin)

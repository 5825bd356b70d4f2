"""Pooling: the operations of ops/neural/pooling.py as loops over vectors of neighboring windows.

    sum_pool, sum_pool_adjoint      sums over windows, and the transpose
    max_pool                        the largest elements
    max_pool_tangent                the elements of another array at the positions of the largest
    max_pool_adjoint                numbers added at the positions of the largest elements

The leading axes are a batch of images, which is divided among threads.  The last two search for the
largest elements again, which costs less than storing their positions.  With padding, a second image
marks the elements that are not padding, which is never the largest, even if all elements are -inf.
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
        The call for a part of the batch.
    """

    def __init__(self, call: KernelCall, geometry: Geometry, dtype: Dtype) -> None:
        self.call, self.geometry, self.dtype = call, geometry, dtype
        self.vectors = Vectors(call, dtype, geometry.counts[-1])
        self.image_size, self.positions = prod(geometry.lengths), prod(geometry.counts)
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
        self.is_disjoint = all(n <= s for n, s in zip(spans, geometry.stride, strict=True))
        self._loaded_rows: dict[Any, list[Name]] = {}
        bits = 8 * dtype.itemsize
        self.int_kind = of_width(f"i{bits}", self.vectors.width)  # a vector of tap numbers
        self.mask_kind = of_width("i1", self.vectors.width)

    def make_image(self) -> Image:
        return Image(self.call, self.geometry, 1, self.dtype)

    def loop_over_windows(
        self, s: Section, write: Callable[[Section, Name, Name, int], None]
    ) -> None:
        """Call ``write(section, source, target, count)`` for each vector of windows of an image."""
        part = self.geometry.pieces(0, self.geometry.counts[-1])
        sources, targets = table(self.call, part.sources), table(self.call, part.targets)
        with s.loop("0", str(len(part.sources))) as (t, r):
            source, target = entry(t, sources, r), entry(t, targets, r)

            def write_vector(u: Section, k: Name, count: int) -> None:
                start = u.plus(source, u.times(k, str(self.step)))
                write(u, start, u.plus(target, k), count)

            self.vectors.along(
                t,
                part.length,
                write_vector,
                min(len(self.taps), thresholds.unrolled_window_elements),
            )

    def loop_over_taps(
        self, s: Section, write: Callable[[Section, Name, Name], None], first: int = 0
    ) -> None:
        """Call ``write(section, number, offset)`` for each tap of a window."""
        if len(self.taps) <= thresholds.unrolled_window_elements:
            for number, tap in enumerate(self.taps[first:], first):
                write(s, str(number), str(tap))
            return
        taps = table(self.call, self.taps)
        with s.loop(str(first), str(len(self.taps))) as (t, k):
            write(t, k, entry(t, taps, k))

    def tap(
        self, s: Section, image: Name, source: Name, number: Name, tap: Name, count: int
    ) -> Name:
        """One tap of neighboring windows, as a vector."""
        if not self.by_rows:
            pointer = offset(s, image, s.plus(source, tap), self.dtype)
            return self.vectors.load_strided(s, pointer, self.step, count)
        row, j = divmod(int(number), self.width)
        key = (s.rank, image, source, row, count)
        if key not in self._loaded_rows:
            first = str(self.taps[row * self.width])
            pointer = offset(s, image, s.plus(source, first), self.dtype)
            self._loaded_rows[key] = self.vectors.load_windows(
                s, pointer, self.step, self.width, count
            )
        return self._loaded_rows[key][j]

    def add(
        self,
        s: Section,
        image: Name,
        source: Name,
        count: int,
        value: Callable[[Section, Name], Name],
    ) -> None:
        """Add ``value(section, number)`` to each tap of neighboring windows."""
        pending: list[Name] = []

        def add_tap(t: Section, number: Name, tap: Name) -> None:
            new = value(t, number)
            if not self.by_rows:
                pointer = offset(t, image, t.plus(source, tap), self.dtype)
                self.vectors.add_strided(t, pointer, self.step, new, count)
                return
            pending.append(new)
            if len(pending) == self.width:
                first = str(self.taps[int(number) - self.width + 1])
                pointer = offset(t, image, t.plus(source, first), self.dtype)
                self.vectors.store_windows(
                    t, pointer, self.step, pending, count, not self.is_disjoint
                )
                pending.clear()

        self.loop_over_taps(s, add_tap)

    def load(self, s: Section, cell: Name, kind: str = "") -> Name:
        return s.value(f"load {kind or self.vectors.kind}, ptr {cell}")

    def broadcast_number(self, s: Section, number: Name) -> Name:
        """The number of a tap in all lanes."""
        scalar = f"i{8 * self.dtype.itemsize}"
        if number.isdigit():
            return f"splat ({scalar} {number})"
        if scalar != "i64":
            number = s.value(f"trunc i64 {number} to {scalar}")
        first = s.value(f"insertelement {self.int_kind} poison, {scalar} {number}, i64 0")
        zeros = of_width("i32", self.vectors.width)
        return s.value(
            f"shufflevector {self.int_kind} {first}, {self.int_kind} poison, "
            f"{zeros} zeroinitializer"
        )


class _ArgMax:
    """The position of the largest element of windows: the first of equal ones, or the first NaN."""

    def __init__(self, work: _Pooling) -> None:
        self.work = work
        self.image = work.make_image()
        self.mask = work.make_image() if self.image.padded_copy else None
        slot = work.call.function.slot
        self.best, self.number = slot(work.vectors.kind), slot(work.int_kind)
        self.best_flag = slot(work.vectors.kind)

    def prepare(self, s: Section) -> None:
        """Initialize the padded copies, before the first image."""
        self.image.prepare(s, float("-inf"))
        if self.mask is not None:
            self.mask.prepare(s)
            self.mask.fill(s, 1.0)

    def write(self, s: Section, image: Name, source: Name, count: int) -> Name:
        """The numbers of the taps that are largest, as a vector."""
        work, kind = self.work, self.work.vectors.kind
        s.write(f"store {kind} {work.tap(s, image, source, '0', '0', count)}, ptr {self.best}")
        s.write(f"store {work.int_kind} zeroinitializer, ptr {self.number}")
        if self.mask is not None:
            flag = work.tap(s, self.mask.padded_copy, source, "0", "0", count)
            s.write(f"store {kind} {flag}, ptr {self.best_flag}")

        def compare(t: Section, number: Name, tap: Name) -> None:
            best, new = work.load(t, self.best), work.tap(t, image, source, number, tap, count)
            larger = t.value(f"fcmp ugt {kind} {new}, {best}")
            is_number = t.value(f"fcmp ord {kind} {best}, zeroinitializer")
            is_better = t.value(f"and {work.mask_kind} {larger}, {is_number}")
            if self.mask is not None:
                flag = work.tap(t, self.mask.padded_copy, source, number, tap, count)
                seen = work.load(t, self.best_flag)
                first = t.value(f"fcmp ogt {kind} {flag}, {seen}")
                is_better = t.value(f"or {work.mask_kind} {is_better}, {first}")
                new_flag = t.value(f"select {work.mask_kind} {first}, {kind} {flag}, {kind} {seen}")
                t.write(f"store {kind} {new_flag}, ptr {self.best_flag}")
            value = t.value(f"select {work.mask_kind} {is_better}, {kind} {new}, {kind} {best}")
            t.write(f"store {kind} {value}, ptr {self.best}")
            old, own = work.load(t, self.number, work.int_kind), work.broadcast_number(t, number)
            operands = f"{work.int_kind} {own}, {work.int_kind} {old}"
            chosen = t.value(f"select {work.mask_kind} {is_better}, {operands}")
            t.write(f"store {work.int_kind} {chosen}, ptr {self.number}")

        work.loop_over_taps(s, compare, 1)
        return work.load(s, self.number, work.int_kind)


def _geometry(call: KernelCall, shape: tuple[int, ...]) -> Geometry:
    params = call.params
    window = tuple(params["window"])
    lengths = tuple(shape[len(shape) - len(window) :])
    dilation = tuple(params.get("dilation", (1,) * len(window)))
    return Geometry(lengths, window, tuple(params["stride"]), tuple(params["padding"]), dilation)


def _loop_over_images(
    call: KernelCall, shape: Any, write: Callable[[_Pooling], Callable[[Section, Name], None]]
) -> None:
    """Divide the images among threads.

    ``write`` emits the code before the loop, and returns a function that emits that of an image.
    """
    geometry = _geometry(call, shape)
    count: Any = 1
    for n in shape[: len(shape) - len(geometry.window)]:
        count = count * n
    dtype = call.results[0].dtype

    def write_part(inner: KernelCall, start: Name, stop: Name) -> None:
        write_image = write(_Pooling(inner, geometry, dtype))
        with inner.section.loop(start, stop) as (t, q):
            write_image(t, q)

    work = prod(geometry.counts) * prod(geometry.window) + prod(geometry.lengths)
    call.in_parts(count, max(1, thresholds.parallel_pooling_elements // max(work, 1)), write_part)


def _image_address(s: Section, array: ArrayPointer, q: Name, size: int) -> Name:
    """The address of image q, of `size` elements."""
    return offset(s, array.pointer, s.times(q, str(size)), array.dtype)


@kernel("sum_pool", serves=_serves)
def sum_pool(call: KernelCall) -> None:
    """Sums over windows."""

    def prepare(work: _Pooling) -> Callable[[Section, Name], None]:
        (x,), (y,), v = work.call.operands, work.call.results, work.vectors
        image, total = work.make_image(), work.call.function.slot(v.kind)
        image.prepare(work.call.section)

        def write_image(s: Section, q: Name) -> None:
            ready = image.load(s, _image_address(s, x, q, work.image_size))
            target = _image_address(s, y, q, work.positions)

            def write_vector(t: Section, source: Name, position: Name, count: int) -> None:
                t.write(f"store {v.kind} zeroinitializer, ptr {total}")

                def add_tap(u: Section, number: Name, tap: Name) -> None:
                    new = work.tap(u, ready, source, number, tap, count)
                    sum_ = u.value(f"fadd {v.kind} {work.load(u, total)}, {new}")
                    u.write(f"store {v.kind} {sum_}, ptr {total}")

                work.loop_over_taps(t, add_tap)
                v.store(t, offset(t, target, position, work.dtype), work.load(t, total), count)

            work.loop_over_windows(s, write_vector)

        return write_image

    _loop_over_images(call, call.operands[0].shape, prepare)


@kernel("sum_pool_adjoint", serves=_serves)
def sum_pool_adjoint(call: KernelCall) -> None:
    """Add each number to all elements of its window."""

    def prepare(work: _Pooling) -> Callable[[Section, Name], None]:
        (y,), (x,), v = work.call.operands, work.call.results, work.vectors
        image = work.make_image()

        def write_image(s: Section, q: Name) -> None:
            target, y_image = (
                _image_address(s, x, q, work.image_size),
                _image_address(s, y, q, work.positions),
            )
            image.prepare(s)
            if not image.padded_copy:
                clear(work.call, s, target, work.image_size, work.dtype)
            ready = image.padded_copy or target

            def write_vector(t: Section, source: Name, position: Name, count: int) -> None:
                one = v.load(t, offset(t, y_image, position, work.dtype), count)
                work.add(t, ready, source, count, lambda section, number: one)

            work.loop_over_windows(s, write_vector)
            image.store(s, target)

        return write_image

    _loop_over_images(call, call.results[0].shape, prepare)


@kernel("max_pool", serves=_serves)
def max_pool(call: KernelCall) -> None:
    """The largest elements of windows; NaN if a window contains NaN."""

    def prepare(work: _Pooling) -> Callable[[Section, Name], None]:
        (x,), (y,), v = work.call.operands, work.call.results, work.vectors
        image, best = work.make_image(), work.call.function.slot(v.kind)
        image.prepare(work.call.section, float("-inf"))
        suffix = f"v{v.width}f{8 * work.dtype.itemsize}"
        larger = work.call.module.declare(f"llvm.maximum.{suffix}", v.kind, [v.kind] * 2)

        def write_image(s: Section, q: Name) -> None:
            ready = image.load(s, _image_address(s, x, q, work.image_size))
            target = _image_address(s, y, q, work.positions)

            def write_vector(t: Section, source: Name, position: Name, count: int) -> None:
                first = work.tap(t, ready, source, "0", "0", count)
                t.write(f"store {v.kind} {first}, ptr {best}")

                def compare_tap(u: Section, number: Name, tap: Name) -> None:
                    new, old = work.tap(u, ready, source, number, tap, count), work.load(u, best)
                    larger_one = u.value(f"call {v.kind} {larger}({v.kind} {old}, {v.kind} {new})")
                    u.write(f"store {v.kind} {larger_one}, ptr {best}")

                work.loop_over_taps(t, compare_tap, 1)
                v.store(t, offset(t, target, position, work.dtype), work.load(t, best), count)

            work.loop_over_windows(s, write_vector)

        return write_image

    _loop_over_images(call, call.operands[0].shape, prepare)


@kernel("max_pool_tangent", serves=_serves)
def max_pool_tangent(call: KernelCall) -> None:
    """The elements of one array at the positions of the largest of the other."""

    def prepare(work: _Pooling) -> Callable[[Section, Name], None]:
        (tangent, x), (y,), v = work.call.operands, work.call.results, work.vectors
        largest, other = _ArgMax(work), work.make_image()
        chosen = work.call.function.slot(v.kind)
        largest.prepare(work.call.section)
        other.prepare(work.call.section)

        def write_image(s: Section, q: Name) -> None:
            ready = largest.image.load(s, _image_address(s, x, q, work.image_size))
            values = other.load(s, _image_address(s, tangent, q, work.image_size))
            target = _image_address(s, y, q, work.positions)

            def write_vector(t: Section, source: Name, position: Name, count: int) -> None:
                index = largest.write(t, ready, source, count)
                t.write(f"store {v.kind} zeroinitializer, ptr {chosen}")

                def choose(u: Section, number: Name, tap: Name) -> None:
                    same = f"icmp eq {work.int_kind} {index}, {work.broadcast_number(u, number)}"
                    new, old = work.tap(u, values, source, number, tap, count), work.load(u, chosen)
                    operands = f"{work.mask_kind} {u.value(same)}, {v.kind} {new}, {v.kind} {old}"
                    u.write(f"store {v.kind} {u.value(f'select {operands}')}, ptr {chosen}")

                work.loop_over_taps(t, choose)
                v.store(t, offset(t, target, position, work.dtype), work.load(t, chosen), count)

            work.loop_over_windows(s, write_vector)

        return write_image

    _loop_over_images(call, call.operands[1].shape, prepare)


@kernel("max_pool_adjoint", serves=_serves)
def max_pool_adjoint(call: KernelCall) -> None:
    """Numbers added at the positions of the largest elements."""

    def prepare(work: _Pooling) -> Callable[[Section, Name], None]:
        (y, x), (out,), v = work.call.operands, work.call.results, work.vectors
        largest, sums = _ArgMax(work), work.make_image()
        largest.prepare(work.call.section)
        zero_literal = literal(0.0, work.dtype)

        def write_image(s: Section, q: Name) -> None:
            ready = largest.image.load(s, _image_address(s, x, q, work.image_size))
            target, y_image = (
                _image_address(s, out, q, work.image_size),
                _image_address(s, y, q, work.positions),
            )
            sums.prepare(s)
            if not sums.padded_copy:
                clear(work.call, s, target, work.image_size, work.dtype)
            target_image = sums.padded_copy or target

            def write_vector(t: Section, source: Name, position: Name, count: int) -> None:
                index = largest.write(t, ready, source, count)
                one = v.load(t, offset(t, y_image, position, work.dtype), count)

                def value_of_tap(u: Section, number: Name) -> Name:
                    same = u.value(
                        f"icmp eq {work.int_kind} {index}, {work.broadcast_number(u, number)}"
                    )
                    zero = f"splat ({v.scalar} {zero_literal})"
                    operands = f"{work.mask_kind} {same}, {v.kind} {one}, {v.kind} {zero}"
                    return u.value(f"select {operands}")

                work.add(t, target_image, source, count, value_of_tap)

            work.loop_over_windows(s, write_vector)
            sums.store(s, target)

        return write_image

    _loop_over_images(call, call.operands[1].shape, prepare)

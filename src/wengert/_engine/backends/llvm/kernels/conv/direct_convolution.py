"""Convolutions as loops: of two sequences, along any number of axes, and depthwise.

    slide       s_i = sum_k x_{i+k} v_k, where v fits
    convolve    c_i = sum_k x_{i-k} v_k, for all i where they overlap

Where all of v overlaps x, neighboring sums are computed in SIMD vectors; at the ends of a
convolution, where only a part of it does, one by one.  x is not padded with zeros, since 0 * inf is
NaN.

    slide_axes, convolve_axes    the same along any number of axes (signal.slide, signal.convolve)

For each element of v, x times that element is added to the result, row by row, so that the
innermost loop has no condition.

    is_depthwise        whether each input channel has only a few kernels of its own
    depthwise           the convolution: y from x and w
    depthwise_input     its transpose with respect to x: x from y and w
    depthwise_weight    its transpose with respect to w: w from x and y

A matrix product would have one row.  Here neighboring positions form a SIMD vector, and the
elements of a kernel, or their sums, are kept in registers.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from wengert._engine.core.node import Node

from ...ir import execution_engine
from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import F16, F32
from ...ir.memory_access import load, store
from ...tuning import thresholds
from ..kernel_call import KernelCall, kernel
from ..loop_helpers import (
    address,
    clear,
    in_section,
    nest,
    offset,
    read,
    size_of,
    stack_slot,
    write,
)
from ..strided_vectors import STRIDES, Vectors
from .im2col import Image, PositionGroup, entry, table

_VECTORS = 4  # independent sums, to hide the latency of additions


def _is_not_boolean(node: Node) -> bool:
    return bool(node.spec.dtype.kind != "b")


@kernel("slide", strided=True, serves=_is_not_boolean)
def slide(call: KernelCall) -> None:
    """s_i = sum_k x_{i+k} v_k."""
    sums = _Sums(call, backwards=False)
    sums.full_sums(call.section, "0", call.number(call.results[0].shape[0]))


@kernel("convolve", strided=True, serves=_is_not_boolean)
def convolve(call: KernelCall) -> None:
    """c_i = sum_k x_{i-k} v_k, for all i where they overlap."""
    sums, s = _Sums(call, backwards=True), call.section
    x, v = call.operands
    n, k = call.number(x.shape[0]), call.number(v.shape[0])
    count = call.number(call.results[0].shape[0])
    first = s.minus(k, "1")
    last = s.larger(first, n)
    sums.partial_sums(s, "0", first)
    sums.full_sums(s, first, n)
    sums.partial_sums(s, last, count)


class _Sums:
    """The sums of one call.

    Parameters
    ----------
    backwards : bool
        Whether x is read at i - k, and not at i + k.
    """

    def __init__(self, call: KernelCall, backwards: bool) -> None:
        self.call, self.backwards = call, backwards
        self.x, self.v = call.operands
        (self.y,) = call.results
        self.sum_dtype = F32 if self.y.dtype == F16 else self.y.dtype  # rounded once, at the end
        self.cell = stack_slot(call, self.sum_dtype)
        self.n, self.k = call.number(self.x.shape[0]), call.number(self.v.shape[0])

    def _index(self, s: Section, i: Name, k: Name) -> Name:
        return s.minus(i, k) if self.backwards else s.plus(i, k)

    def partial_sums(self, s: Section, start: Name, stop: Name) -> None:
        """The partial sums at the ends of a convolution, one by one."""
        call, language, sum_dtype = self.call, self.call.language, self.sum_dtype
        with s.loop(start, stop) as (t, i):
            write(t, self.cell, language.constant(0, sum_dtype))
            low, high = "0", self.k
            if self.backwards:
                low = t.larger("0", t.plus(t.minus(i, self.n), "1"))
                high = t.smaller(self.k, t.plus(i, "1"))
            with t.loop(low, high) as (u, k):
                factors = []
                for array, index in ((self.x, self._index(u, i, k)), (self.v, k)):
                    value = read(language, u, address(call, u, array, [index]), array.dtype)
                    factors.append(language.cast(value, sum_dtype))
                write(
                    u, self.cell, _multiply_add(read(language, u, self.cell, sum_dtype), *factors)
                )
            total = language.cast(read(language, t, self.cell, sum_dtype), self.y.dtype)
            write(t, address(call, t, self.y, [i]), total)

    def full_sums(self, s: Section, start: Name, stop: Name) -> None:
        """Sums over the whole of v, in vectors if x is contiguous."""
        if self.x.strides != (1,) or self.y.strides != (1,):
            self.partial_sums(s, start, stop)
            return
        call, language, sum_dtype, x = self.call, self.call.language, self.sum_dtype, self.x
        width = _VECTORS * execution_engine.vector_bytes() // sum_dtype.itemsize
        memory = call.scratch(width * sum_dtype.itemsize)
        steps = s.value(f"sdiv i64 {s.larger(s.minus(stop, start), '0')}, {width}")
        middle = s.plus(start, s.times(steps, str(width)))
        with s.loop(start, middle, str(width)) as (t, i):
            zero = language.constant(0, sum_dtype)
            store(language, t, memory, _in_all_lanes(language, zero, width), width, None)
            with t.loop("0", self.k) as (u, k):
                pointer = offset(u, x.pointer, self._index(u, i, k), x.dtype)
                x_value = language.cast(load(language, u, pointer, x.dtype, width, None), sum_dtype)
                pointer = address(call, u, self.v, [k])
                v_value = language.cast(read(language, u, pointer, self.v.dtype), sum_dtype)
                total = _multiply_add(
                    load(language, u, memory, sum_dtype, width, None), x_value, v_value
                )
                store(language, u, memory, total, width, None)
            result = language.cast(load(language, t, memory, sum_dtype, width, None), self.y.dtype)
            store(language, t, offset(t, self.y.pointer, i, self.y.dtype), result, width, None)
        self.partial_sums(s, middle, stop)


def _in_all_lanes(language: Any, x: Any, width: int) -> Any:
    """A constant, in all lanes of a vector."""
    if x.dtype.kind != "c":
        return language.widened(x, width)
    real, imag = (language.widened(p, width) for p in (x.real, x.imag))
    return type(x)(language, real, imag, x.dtype)


def _multiply_add(total: Any, x: Any, y: Any) -> Any:
    language = total.language
    if total.dtype.kind == "f":
        return language.fma(x, y, total)
    return total + x * y


# ---- any number of axes --------------------------------------------------------------------------


def _is_floating(node: Node) -> bool:
    return node.spec.dtype.kind in "fc" and node.spec.dtype != F16


@kernel("signal.convolve", strided=True, serves=_is_floating)
def convolve_axes(call: KernelCall) -> None:
    """Each product of elements is added at the sum of their positions."""
    _accumulate(call, [call.number(n) for n in call.operands[0].shape], to_result=True)


@kernel("signal.slide", strided=True, serves=_is_floating)
def slide_axes(call: KernelCall) -> None:
    """Each sum has the products of v with the elements of x at its position."""
    _accumulate(call, [call.number(n) for n in call.results[0].shape], to_result=False)


def _accumulate(call: KernelCall, lengths: list[Name], to_result: bool) -> None:
    """Add all products: element k of v shifts the index into the result, or into x, by k."""
    (x, v), (y,) = call.operands, call.results
    language, dtype = call.language, y.dtype
    clear(call, call.section, y.pointer, size_of(y), dtype)
    with nest(call.section, [call.number(n) for n in v.shape]) as (s, k):
        factor = language.cast(read(language, s, address(call, s, v, k), v.dtype), dtype)
        with nest(s, lengths[:-1]) as (t, i):
            shifted = [t.plus(a, b) for a, b in zip(i, k, strict=False)]
            shifted_index, plain_index = ([*shifted, k[-1]], [*i, "0"])
            target = address(call, t, y, shifted_index if to_result else plain_index)
            source = address(call, t, x, plain_index if to_result else shifted_index)
            steps = [call.number(a.strides[-1]) for a in (x, y)]
            with t.loop("0", lengths[-1]) as (u, j):
                start = offset(u, source, u.times(j, steps[0]), x.dtype)
                x_value = language.cast(read(language, u, start, x.dtype), dtype)
                pointer = offset(u, target, u.times(j, steps[1]), dtype)
                product = x_value * in_section(u, factor)
                write(u, pointer, read(language, u, pointer, dtype) + product)


# ---- depthwise -----------------------------------------------------------------------------------


def is_depthwise(form: Any) -> bool:
    """Whether these loops support a node."""
    return bool(
        form.inputs == 1
        and form.outputs <= thresholds.depthwise_filters
        and (form.groups > 1 or form.outputs == 1)
        and form.outputs * prod(form.geometry.window) <= thresholds.depthwise_taps
        and form.geometry.stride[-1] <= STRIDES
    )


def _in_parts(
    call: KernelCall, extent: Any, work: int, write: Callable[[KernelCall, Name, Name], None]
) -> None:
    call.in_parts(extent, max(1, thresholds.parallel_depthwise_flops // max(work, 1)), write)


def _vectors(call: KernelCall, form: Any) -> Vectors:
    return Vectors(call, form.dtype, form.geometry.counts[-1])


def _loop_over_vectors(
    call: KernelCall, s: Section, form: Any, write: Callable[[Section, Name, Name, int], None]
) -> None:
    """Call ``write(section, source, target, count)`` for each vector of positions of a channel."""
    geometry = form.geometry
    part: PositionGroup = geometry.pieces(0, geometry.counts[-1])
    sources, targets = table(call, part.sources), table(call, part.targets)
    step, vectors = geometry.stride[-1], _vectors(call, form)
    with s.loop("0", str(len(part.sources))) as (t, r):
        source, target = entry(t, sources, r), entry(t, targets, r)

        def write_vector(u: Section, k: Name, count: int) -> None:
            start = u.plus(source, u.times(k, str(step)))
            write(u, start, u.plus(target, k), count)

        weight = form.outputs * prod(geometry.window)
        vectors.along(t, part.length, write_vector, weight)


def _kernels(
    call: KernelCall, s: Section, form: Any, pointer: Name, channel: Name
) -> tuple[Name, Callable[[Section, int], Name]]:
    """The index of the first kernel of a channel, and a function that returns its elements."""
    taps = prod(form.geometry.window)
    first = s.times(channel, str(form.outputs))
    start = offset(s, pointer, s.times(first, str(taps)), form.dtype)
    vectors = _vectors(call, form)
    elements = [
        vectors.broadcast(s, offset(s, start, str(k), form.dtype))
        for k in range(taps * form.outputs)
    ]
    return first, lambda section, k: elements[k]


def _all_outputs(
    s: Section, form: Any, vectors: Vectors, y: Name, position: Name, count: int
) -> list[Name]:
    """All output channels of an input channel, at some positions."""
    distances = [str(o * form.positions) for o in range(form.outputs)]
    return [
        vectors.load(s, offset(s, y, s.plus(position, d), form.dtype), count) for d in distances
    ]


def depthwise(call: KernelCall, form: Any) -> None:
    """The convolution, for each sample and channel."""

    def write_part(inner: KernelCall, start: Name, stop: Name) -> None:
        (x, w), (y,) = inner.operands, inner.results
        s, dtype, vectors = inner.section, form.dtype, _vectors(inner, form)
        image = Image(inner, form.geometry, 1, dtype)
        image.prepare(s)
        step, taps = form.geometry.stride[-1], image.taps
        with s.loop(start, stop) as (t, q):
            source_image = image.load(t, offset(t, x.pointer, t.times(q, str(form.x_size)), dtype))
            target = offset(t, y.pointer, t.times(q, str(form.outputs * form.positions)), dtype)
            channel = t.value(f"srem i64 {q}, {form.groups}")
            _, factor = _kernels(inner, t, form, w.pointer, channel)

            def write_vector(u: Section, source: Name, position: Name, count: int) -> None:
                totals = ["zeroinitializer"] * form.outputs
                for k, tap in enumerate(taps):
                    pointer = offset(u, source_image, u.plus(source, str(tap)), dtype)
                    x_values = vectors.load_strided(u, pointer, step, count)
                    for o in range(form.outputs):
                        totals[o] = vectors.fma(
                            u, x_values, factor(u, o * len(taps) + k), totals[o]
                        )
                for o, total in enumerate(totals):
                    pointer_of_y = offset(
                        u, target, u.plus(position, str(o * form.positions)), dtype
                    )
                    vectors.store(u, pointer_of_y, total, count)

            _loop_over_vectors(inner, t, form, write_vector)

    _in_parts(call, call.operands[0].shape[0] * form.groups, form.work, write_part)


def depthwise_input(call: KernelCall, form: Any) -> None:
    """The transpose with respect to the input, for each sample and channel."""
    write = _as_convolution if set(form.geometry.stride) == {1} else _by_accumulation

    def write_part(inner: KernelCall, start: Name, stop: Name) -> None:
        write(inner, start, stop, form)

    _in_parts(call, call.operands[0].shape[0] * form.groups, form.work, write_part)


def _as_convolution(inner: KernelCall, start: Name, stop: Name, form: Any) -> None:
    """For stride 1: the convolution of y with the flipped kernel.

    Each element is written once. Adding to elements that were just written, at an offset that is
    not a multiple of a vector, stalls on store forwarding, which takes ten times as long.
    """
    (y, w), (x,) = inner.operands, inner.results
    s, dtype = inner.section, form.dtype
    adjoint_form = form._replace(geometry=form.geometry.adjoint)
    vectors = _vectors(inner, adjoint_form)
    image = Image(inner, adjoint_form.geometry, form.outputs, dtype)
    image.prepare(s)
    taps = [tap + o * image.plane for o in range(form.outputs) for tap in reversed(image.taps)]
    with s.loop(start, stop) as (t, q):
        size = str(form.outputs * form.positions)
        source_image = image.load(t, offset(t, y.pointer, t.times(q, size), dtype))
        target = offset(t, x.pointer, t.times(q, str(form.x_size)), dtype)
        channel = t.value(f"srem i64 {q}, {form.groups}")
        _, factor = _kernels(inner, t, adjoint_form, w.pointer, channel)

        def write_vector(u: Section, source: Name, position: Name, count: int) -> None:
            total = "zeroinitializer"
            for k, tap in enumerate(taps):
                y_values = vectors.load(
                    u, offset(u, source_image, u.plus(source, str(tap)), dtype), count
                )
                total = vectors.fma(u, y_values, factor(u, k), total)
            vectors.store(u, offset(u, target, position, dtype), total, count)

        _loop_over_vectors(inner, t, adjoint_form, write_vector)


def _by_accumulation(inner: KernelCall, start: Name, stop: Name, form: Any) -> None:
    """Each window of y times the kernel, added to the window."""
    (y, w), (x,) = inner.operands, inner.results
    s, dtype, vectors = inner.section, form.dtype, _vectors(inner, form)
    image = Image(inner, form.geometry, 1, dtype)
    step, taps = form.geometry.stride[-1], image.taps
    with s.loop(start, stop) as (t, q):
        target = offset(t, x.pointer, t.times(q, str(form.x_size)), dtype)
        y_image = offset(t, y.pointer, t.times(q, str(form.outputs * form.positions)), dtype)
        channel = t.value(f"srem i64 {q}, {form.groups}")
        _, factor = _kernels(inner, t, form, w.pointer, channel)
        image.prepare(t)
        if not image.padded_copy:
            clear(inner, t, target, form.x_size, dtype)
        target_image = image.padded_copy or target

        def write_vector(u: Section, source: Name, position: Name, count: int) -> None:
            outputs = _all_outputs(u, form, vectors, y_image, position, count)
            for k, tap in enumerate(taps):
                total = "zeroinitializer"
                for o, output in enumerate(outputs):
                    total = vectors.fma(u, output, factor(u, o * len(taps) + k), total)
                pointer = offset(u, target_image, u.plus(source, str(tap)), dtype)
                vectors.add_strided(u, pointer, step, total, count)

        _loop_over_vectors(inner, t, form, write_vector)
        image.store(t, target)


def depthwise_weight(call: KernelCall, form: Any) -> None:
    """The transpose with respect to the kernels, for each channel; lanes are summed at the end."""

    def write_part(inner: KernelCall, start: Name, stop: Name) -> None:
        (x, y), (w,) = inner.operands, inner.results
        s, dtype, vectors = inner.section, form.dtype, _vectors(inner, form)
        image = Image(inner, form.geometry, 1, dtype)
        image.prepare(s)
        step, taps = form.geometry.stride[-1], image.taps
        sums = [inner.function.slot(vectors.kind) for _ in range(len(taps) * form.outputs)]
        with s.loop(start, stop) as (t, channel):
            for cell in sums:
                t.write(f"store {vectors.kind} zeroinitializer, ptr {cell}")
            with t.loop("0", inner.number(x.shape[0])) as (u, n):
                q = u.plus(u.times(n, str(form.groups)), channel)
                source = offset(u, x.pointer, u.times(q, str(form.x_size)), dtype)
                source_image = image.load(u, source)
                size = str(form.outputs * form.positions)
                y_image = offset(u, y.pointer, u.times(q, size), dtype)

                def write_vector(v: Section, source: Name, position: Name, count: int) -> None:
                    outputs = _all_outputs(v, form, vectors, y_image, position, count)
                    for k, tap in enumerate(taps):
                        pointer = offset(v, source_image, v.plus(source, str(tap)), dtype)
                        x_values = vectors.load_strided(v, pointer, step, count)
                        for o, output in enumerate(outputs):
                            cell = sums[o * len(taps) + k]
                            old = v.value(f"load {vectors.kind}, ptr {cell}")
                            new = vectors.fma(v, output, x_values, old)
                            v.write(f"store {vectors.kind} {new}, ptr {cell}")

                _loop_over_vectors(inner, u, form, write_vector)
            first = t.times(channel, str(len(sums)))
            for k, cell in enumerate(sums):
                total = vectors.total(t, t.value(f"load {vectors.kind}, ptr {cell}"))
                pointer = offset(t, w.pointer, t.plus(first, str(k)), dtype)
                t.write(f"store {vectors.scalar} {total}, ptr {pointer}")

    samples = call.operands[0].shape[0]
    work = form.work * samples if isinstance(samples, int) else form.work * 64
    _in_parts(call, form.groups, work, write_part)

"""Depthwise convolution: each input channel has its own kernels.

    serves       whether each input channel has only a few kernels of its own
    value        the convolution: y from x and w
    of_input     its transpose with respect to x: x from y and w
    of_weight    its transpose with respect to w: w from x and y

A matrix product would have one row.  Here neighboring positions form a SIMD vector, and the
elements of a kernel, or their sums, are kept in registers.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from ...ir.ir_builder import Name, Section
from ...tuning import thresholds
from ..kernel_call import KernelCall
from ..loop_helpers import clear, offset
from ..strided_vectors import STRIDES, Vectors
from .im2col import Image, PositionGroup, entry, table


def serves(form: Any) -> bool:
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


def value(call: KernelCall, form: Any) -> None:
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


def of_input(call: KernelCall, form: Any) -> None:
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


def of_weight(call: KernelCall, form: Any) -> None:
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

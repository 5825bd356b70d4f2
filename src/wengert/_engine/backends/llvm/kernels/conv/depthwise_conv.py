"""Depthwise convolution: each input channel has its own kernels.

    serves       whether each input channel has a few kernels, shared with no other channel
    value        y from x and w
    of_input     x from y and w
    of_weight    w from x and y

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
from .im2col import Image, PlaceGroup, entry, table


def serves(form: Any) -> bool:
    """Whether these loops support a node."""
    return bool(
        form.inputs == 1
        and form.outputs <= thresholds.depthwise_filters
        and (form.groups > 1 or form.outputs == 1)
        and form.outputs * prod(form.geometry.window) <= thresholds.depthwise_taps
        and form.geometry.stride[-1] <= STRIDES
    )


def _shared(
    call: KernelCall, extent: Any, work: int, write: Callable[[KernelCall, Name, Name], None]
) -> None:
    call.in_parts(extent, max(1, thresholds.parallel_depthwise_flops // max(work, 1)), write)


def _vectors(call: KernelCall, form: Any) -> Vectors:
    return Vectors(call, form.dtype, form.geometry.counts[-1])


def _each_piece(
    call: KernelCall, s: Section, form: Any, write: Callable[[Section, Name, Name, int], None]
) -> None:
    """Write ``write(section, source, target, count)`` for each vector of positions of a channel."""
    geometry = form.geometry
    part: PlaceGroup = geometry.pieces(0, geometry.counts[-1])
    sources, targets = table(call, part.sources), table(call, part.targets)
    step, vectors = geometry.stride[-1], _vectors(call, form)
    with s.loop("0", str(len(part.sources))) as (t, r):
        source, target = entry(t, sources, r), entry(t, targets, r)

        def one(u: Section, k: Name, count: int) -> None:
            at = u.plus(source, u.times(k, str(step)))
            write(u, at, u.plus(target, k), count)

        weight = form.outputs * prod(geometry.window)
        vectors.along(t, part.length, one, weight)


def _kernels(
    call: KernelCall, s: Section, form: Any, pointer: Name, channel: Name
) -> tuple[Name, Callable[[Section, int], Name]]:
    """The number of the first kernel of a channel, and a reader of its elements."""
    taps = prod(form.geometry.window)
    first = s.times(channel, str(form.outputs))
    start = offset(s, pointer, s.times(first, str(taps)), form.dtype)
    vectors = _vectors(call, form)
    known = [
        vectors.spread(s, offset(s, start, str(k), form.dtype)) for k in range(taps * form.outputs)
    ]
    return first, lambda section, k: known[k]


def _all_outputs(
    s: Section, form: Any, vectors: Vectors, y: Name, place: Name, count: int
) -> list[Name]:
    """All output channels of an input channel, at some positions."""
    distances = [str(o * form.places) for o in range(form.outputs)]
    return [vectors.load(s, offset(s, y, s.plus(place, d), form.dtype), count) for d in distances]


def value(call: KernelCall, form: Any) -> None:
    """Sums of products, for each sample and channel."""

    def part(inner: KernelCall, start: Name, stop: Name) -> None:
        (x, w), (y,) = inner.operands, inner.results
        s, dtype, vectors = inner.section, form.dtype, _vectors(inner, form)
        image = Image(inner, form.geometry, 1, dtype)
        image.prepare(s)
        step, taps = form.geometry.stride[-1], image.taps
        with s.loop(start, stop) as (t, q):
            ready = image.bring(t, offset(t, x.pointer, t.times(q, str(form.x_size)), dtype))
            target = offset(t, y.pointer, t.times(q, str(form.outputs * form.places)), dtype)
            channel = t.value(f"srem i64 {q}, {form.groups}")
            _, factor = _kernels(inner, t, form, w.pointer, channel)

            def piece(u: Section, source: Name, place: Name, count: int) -> None:
                totals = ["zeroinitializer"] * form.outputs
                for k, tap in enumerate(taps):
                    at = offset(u, ready, u.plus(source, str(tap)), dtype)
                    one = vectors.every(u, at, step, count)
                    for o in range(form.outputs):
                        totals[o] = vectors.fma(u, one, factor(u, o * len(taps) + k), totals[o])
                for o, total in enumerate(totals):
                    to = offset(u, target, u.plus(place, str(o * form.places)), dtype)
                    vectors.store(u, to, total, count)

            _each_piece(inner, t, form, piece)

    _shared(call, call.operands[0].shape[0] * form.groups, form.work, part)


def of_input(call: KernelCall, form: Any) -> None:
    """Products added to the windows, for each sample and channel."""
    write = _turned if set(form.geometry.stride) == {1} else _added_up

    def part(inner: KernelCall, start: Name, stop: Name) -> None:
        write(inner, start, stop, form)

    _shared(call, call.operands[0].shape[0] * form.groups, form.work, part)


def _turned(inner: KernelCall, start: Name, stop: Name, form: Any) -> None:
    """For stride 1: the convolution of y with the flipped kernel.

    Each element is written once. Adding to elements that were just written, at an offset that is
    not a multiple of a vector, stalls on store forwarding, which takes ten times as long.
    """
    (y, w), (x,) = inner.operands, inner.results
    s, dtype = inner.section, form.dtype
    turned = form._replace(geometry=form.geometry.turned)
    vectors = _vectors(inner, turned)
    image = Image(inner, turned.geometry, form.outputs, dtype)
    image.prepare(s)
    taps = [tap + o * image.plane for o in range(form.outputs) for tap in reversed(image.taps)]
    with s.loop(start, stop) as (t, q):
        size = str(form.outputs * form.places)
        ready = image.bring(t, offset(t, y.pointer, t.times(q, size), dtype))
        target = offset(t, x.pointer, t.times(q, str(form.x_size)), dtype)
        channel = t.value(f"srem i64 {q}, {form.groups}")
        _, factor = _kernels(inner, t, turned, w.pointer, channel)

        def piece(u: Section, source: Name, place: Name, count: int) -> None:
            total = "zeroinitializer"
            for k, tap in enumerate(taps):
                one = vectors.load(u, offset(u, ready, u.plus(source, str(tap)), dtype), count)
                total = vectors.fma(u, one, factor(u, k), total)
            vectors.store(u, offset(u, target, place, dtype), total, count)

        _each_piece(inner, t, turned, piece)


def _added_up(inner: KernelCall, start: Name, stop: Name, form: Any) -> None:
    """Each window of y times the kernel, added to the window."""
    (y, w), (x,) = inner.operands, inner.results
    s, dtype, vectors = inner.section, form.dtype, _vectors(inner, form)
    image = Image(inner, form.geometry, 1, dtype)
    step, taps = form.geometry.stride[-1], image.taps
    with s.loop(start, stop) as (t, q):
        target = offset(t, x.pointer, t.times(q, str(form.x_size)), dtype)
        given = offset(t, y.pointer, t.times(q, str(form.outputs * form.places)), dtype)
        channel = t.value(f"srem i64 {q}, {form.groups}")
        _, factor = _kernels(inner, t, form, w.pointer, channel)
        image.prepare(t)
        if not image.memory:
            clear(inner, t, target, form.x_size, dtype)
        ready = image.memory or target

        def piece(u: Section, source: Name, place: Name, count: int) -> None:
            ones = _all_outputs(u, form, vectors, given, place, count)
            for k, tap in enumerate(taps):
                total = "zeroinitializer"
                for o, one in enumerate(ones):
                    total = vectors.fma(u, one, factor(u, o * len(taps) + k), total)
                at = offset(u, ready, u.plus(source, str(tap)), dtype)
                vectors.add_to_every(u, at, step, total, count)

        _each_piece(inner, t, form, piece)
        image.take(t, target)


def of_weight(call: KernelCall, form: Any) -> None:
    """Sums over positions and samples for each channel; lanes are summed at the end."""

    def part(inner: KernelCall, start: Name, stop: Name) -> None:
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
                ready = image.bring(u, source)
                size = str(form.outputs * form.places)
                given = offset(u, y.pointer, u.times(q, size), dtype)

                def piece(v: Section, source: Name, place: Name, count: int) -> None:
                    ones = _all_outputs(v, form, vectors, given, place, count)
                    for k, tap in enumerate(taps):
                        at = offset(v, ready, v.plus(source, str(tap)), dtype)
                        other = vectors.every(v, at, step, count)
                        for o, one in enumerate(ones):
                            cell = sums[o * len(taps) + k]
                            old = v.value(f"load {vectors.kind}, ptr {cell}")
                            new = vectors.fma(v, one, other, old)
                            v.write(f"store {vectors.kind} {new}, ptr {cell}")

                _each_piece(inner, u, form, piece)
            first = t.times(channel, str(len(sums)))
            for k, cell in enumerate(sums):
                total = vectors.total(t, t.value(f"load {vectors.kind}, ptr {cell}"))
                at = offset(t, w.pointer, t.plus(first, str(k)), dtype)
                t.write(f"store {vectors.scalar} {total}, ptr {at}")

    samples = call.operands[0].shape[0]
    work = form.work * samples if isinstance(samples, int) else form.work * 64
    _shared(call, form.groups, work, part)

"""Convolution as matrix products: the operations of ops/neural/convolution.py.

    convolution          y = w @ columns, where columns are the windows (im2col)
    convolution_input    columns = w.T @ y, added to the windows (col2im)
    convolution_weight   w.T = columns @ y.T, summed over all samples

One sample is computed at a time, in blocks of positions that fit into a cache, so writing the
columns takes a twentieth of the time of the products.  Samples are divided among threads; for the
gradient of the weights, blocks of channels are, so no partial results have to be combined.
Depthwise convolutions have separate loops (direct_convolution.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, NamedTuple

from wengert._engine.core.node import Node

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import F32, F64, Dtype
from ...tuning import thresholds
from ..gemm.operands import Matrix, MatrixAxis, Product
from ..gemm.write_product import write_product
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import clear, copy, offset
from . import direct_convolution
from .im2col import Geometry, Image, PositionGroup, entry, table


class Form(NamedTuple):
    """The sizes of a convolution; only the number of samples may be unknown.

    geometry : Geometry
    inputs, outputs : channels of a group.
    groups : int
    """

    geometry: Geometry
    inputs: int
    outputs: int
    groups: int
    dtype: Dtype

    @property
    def depth(self) -> int:
        """The number of products in one element of y."""
        return self.inputs * prod(self.geometry.window)

    @property
    def positions(self) -> int:
        """Elements of a channel of y."""
        return prod(self.geometry.counts)

    @property
    def x_size(self) -> int:
        """Elements of the input channels of a group."""
        return self.inputs * prod(self.geometry.lengths)

    @property
    def work(self) -> int:
        """Operations of a group for a sample."""
        return 2 * self.outputs * self.depth * self.positions

    def passes(self) -> list[PositionGroup]:
        """The positions of each pass."""
        size = self.dtype.itemsize
        if self.geometry.is_plain:
            return [
                self.geometry.pieces(0, self.positions)._replace(
                    length=self.positions, rows=1, times=1, sources=(0,), targets=(0,)
                )
            ]
        return self.geometry.passes(self.depth * size, self.outputs * self.depth * size // 2)


def _form(x_shape: Any, w_shape: Any, params: Any, dtype: Dtype) -> Form:
    geometry = Geometry(
        tuple(x_shape[2:]),
        tuple(w_shape[2:]),
        *(tuple(params[k]) for k in ("stride", "padding", "dilation")),
    )
    groups = params["groups"]
    return Form(geometry, w_shape[1], w_shape[0] // groups, groups, dtype)


def _serves(node: Node) -> bool:
    specs = [a.spec for a in node.inputs] + [node.spec]
    return (
        node.spec.dtype in (F32, F64)
        and all(s.dtype == node.spec.dtype for s in specs)
        and all(type(n) is int and n > 0 for s in specs for n in s.shape[1:])
        and all(s.shape[0] != 0 for s in specs)
    )


def _in_parts(call: KernelCall, extent: int, work: int, write: Callable[..., Any]) -> None:
    """Divide a range among threads; each calls BLAS with one thread."""
    call.in_parts(extent, max(1, thresholds.parallel_convolution_flops // max(work, 1)), write)


@kernel("convolution", serves=_serves)
def convolution(call: KernelCall) -> None:
    """y = w @ columns, for each sample and group."""
    x, w = call.operands
    form = _form(x.shape, w.shape, call.params, x.dtype)
    if direct_convolution.is_depthwise(form):
        direct_convolution.depthwise(call, form)
        return
    extent = x.shape[0] * form.groups
    _in_parts(call, extent, form.work, lambda part, a, b: _values(part, a, b, form))


def _values(call: KernelCall, start: Name, stop: Name, form: Form) -> None:
    """The outputs of some samples and groups."""
    (x, w), (y,) = call.operands, call.results
    call.record_flops(thresholds.blas_single_thread_flops)
    s, dtype, passes = call.section, form.dtype, form.passes()
    image = Image(call, form.geometry, form.inputs, dtype)
    columns = _columns(call, form, passes)
    image.prepare(s)
    with s.loop(start, stop) as (t, q):
        source = image.load(t, offset(t, x.pointer, t.times(q, str(form.x_size)), dtype))
        target = offset(t, y.pointer, t.times(q, str(form.outputs * form.positions)), dtype)
        weights = _weights(t, form, w.pointer, q)
        for u, part, first, position in _loop_over_passes(call, t, passes):
            if columns:
                image.im2col(u, source, part, first, columns)
            column_matrix = _rows(columns or source, form.depth, part.width)
            target_matrix = _outputs(u, form, target, position, part)
            write_product(call, u, Product(weights, column_matrix, target_matrix, dtype))


@kernel("convolution_input", serves=_serves)
def convolution_input(call: KernelCall) -> None:
    """columns = w.T @ y, added up, for each sample and group."""
    y, w = call.operands
    form = _form(call.results[0].shape, w.shape, call.params, y.dtype)
    if direct_convolution.is_depthwise(form):
        direct_convolution.depthwise_input(call, form)
        return
    extent = y.shape[0] * form.groups
    _in_parts(call, extent, form.work, lambda part, a, b: _inputs(part, a, b, form))


def _inputs(call: KernelCall, start: Name, stop: Name, form: Form) -> None:
    (y, w), (x,) = call.operands, call.results
    call.record_flops(thresholds.blas_single_thread_flops)
    s, dtype, passes = call.section, form.dtype, form.passes()
    image = Image(call, form.geometry, form.inputs, dtype)
    columns = _columns(call, form, passes)
    transposed = _transposed_weights(call, form, w.pointer)
    with s.loop(start, stop) as (t, q):
        target = offset(t, x.pointer, t.times(q, str(form.x_size)), dtype)
        source = offset(t, y.pointer, t.times(q, str(form.outputs * form.positions)), dtype)
        group = t.value(f"srem i64 {q}, {form.groups}")
        group_weights = offset(t, transposed, t.times(group, str(form.outputs * form.depth)), dtype)
        weights = _rows(group_weights, form.depth, form.outputs)
        image.prepare(t)
        if columns and not image.padded_copy:
            clear(call, t, target, form.x_size, dtype)
        for u, part, first, position in _loop_over_passes(call, t, passes):
            y_matrix = _outputs(u, form, source, position, part)
            x_matrix = _rows(columns or target, form.depth, part.width)
            write_product(call, u, Product(weights, y_matrix, x_matrix, dtype))
            if columns:
                image.col2im(u, image.padded_copy or target, part, first, columns)
        image.store(t, target)


@kernel("convolution_weight", serves=_serves)
def convolution_weight(call: KernelCall) -> None:
    """w.T = columns @ y.T, summed over samples, for blocks of channels of each group."""
    x, y = call.operands
    form = _form(x.shape, call.results[0].shape, call.params, y.dtype)
    if direct_convolution.is_depthwise(form):
        direct_convolution.depthwise_weight(call, form)
        return
    half = -(-form.inputs // 2)
    block = next(n for n in range(half, 0, -1) if form.inputs % n == 0)
    if block * prod(form.geometry.window) < 32:
        block = form.inputs
    extent = form.groups * (form.inputs // block)
    _in_parts(
        call,
        extent,
        thresholds.parallel_convolution_flops,
        lambda part, a, b: _gradients(part, a, b, form, block),
    )


def _gradients(call: KernelCall, start: Name, stop: Name, form: Form, block: int) -> None:
    """The gradients of the weights of some blocks of channels."""
    (x, y), (w,) = call.operands, call.results
    call.record_flops(thresholds.blas_single_thread_flops)
    s, dtype, taps = call.section, form.dtype, prod(form.geometry.window)
    block_form = form._replace(inputs=block)
    passes = block_form.passes()
    image = Image(call, form.geometry, block, dtype)
    columns = _columns(call, block_form, passes)
    total = call.scratch(block_form.depth * form.outputs * dtype.itemsize)
    image.prepare(s)
    blocks = form.inputs // block
    with s.loop(start, stop) as (t, q):
        group = t.value(f"sdiv i64 {q}, {blocks}")
        clear(call, t, total, block_form.depth * form.outputs, dtype)
        with t.loop("0", call.number(x.shape[0])) as (u, n):
            sample = u.plus(u.times(n, str(form.groups * blocks)), q)
            source = offset(u, x.pointer, u.times(sample, str(block_form.x_size)), dtype)
            image_source = image.load(u, source)
            sample = u.plus(u.times(n, str(form.groups)), group)
            target = offset(
                u, y.pointer, u.times(sample, str(form.outputs * form.positions)), dtype
            )
            for v, part, first, position in _loop_over_passes(call, u, passes):
                if columns:
                    image.im2col(v, image_source, part, first, columns)
                right = _outputs(v, form, target, position, part)
                total_matrix = _rows(total, block_form.depth, form.outputs)
                left = _rows(columns or image_source, block_form.depth, part.width)
                write_product(
                    call, v, Product(left, right.transposed, total_matrix, dtype, beta=1.0)
                )
        size = form.outputs * form.depth
        block_number = t.value(f"srem i64 {q}, {blocks}")
        first_weight = t.plus(
            t.times(group, str(size)), t.times(block_number, str(block_form.depth))
        )
        shape = (form.outputs, block_form.depth)
        copy(
            *(call, t),
            ArrayPointer(
                offset(t, w.pointer, first_weight, dtype), shape, (form.inputs * taps, 1), dtype
            ),
            ArrayPointer(total, shape, (1, form.outputs), dtype),
        )


# ---- shared by all passes ----------------------------------------------------------------------


def _columns(call: KernelCall, form: Form, passes: list[PositionGroup]) -> Name:
    """Memory for columns; an empty name if each window is one element."""
    if form.geometry.is_plain:
        return ""
    return call.scratch(form.depth * max(p.width for p in passes) * form.dtype.itemsize)


def _loop_over_passes(
    call: KernelCall, s: Section, passes: list[PositionGroup]
) -> Iterator[tuple[Section, PositionGroup, Name, Name]]:
    """Loops over passes: the section, the pass, its first piece, and the position of that piece."""
    for part in passes:
        with s.loop("0", str(part.times)) as (t, k):
            first = t.times(k, str(part.rows))
            yield t, part, first, entry(t, table(call, part.targets), first)


def _outputs(s: Section, form: Form, base: Name, position: Name, part: PositionGroup) -> Matrix:
    pointer = offset(s, base, position, form.dtype)
    return Matrix(pointer, MatrixAxis(form.outputs, form.positions), MatrixAxis(part.width, 1))


def _weights(s: Section, form: Form, pointer: Name, q: Name) -> Matrix:
    """The weights of the group of a sample and group."""
    size = form.outputs * form.depth
    if form.groups > 1:
        group = s.value(f"srem i64 {q}, {form.groups}")
        pointer = offset(s, pointer, s.times(group, str(size)), form.dtype)
    return Matrix(pointer, MatrixAxis(form.outputs, form.depth), MatrixAxis(form.depth, 1))


def _transposed_weights(call: KernelCall, form: Form, pointer: Name) -> Name:
    """The transposed weights of each group, in the order in which they are in memory."""
    rows, columns, dtype = form.outputs, form.depth, form.dtype
    memory = call.scratch(form.groups * rows * columns * dtype.itemsize)
    shape, size = (form.groups, columns, rows), rows * columns
    to = ArrayPointer(memory, shape, (size, rows, 1), dtype)
    copy(call, call.section, to, ArrayPointer(pointer, shape, (size, 1, columns), dtype))
    return memory


def _rows(pointer: Name, rows: int, columns: int) -> Matrix:
    return Matrix(pointer, MatrixAxis(rows, columns), MatrixAxis(columns, 1))

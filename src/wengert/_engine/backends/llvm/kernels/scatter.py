"""Indexed writes: setting and adding elements at indices and slices.

    getitem          without elements; other reads are gathers (lowering/gathers.py)
    scatter          zeros, with t added at an index
    setitem          an array with elements replaced; of several writes to one element the last wins
    scatter_along    zeros, with t added at positions along one axis

All are loops over the written values, in C order, as in NumPy.  A position is checked before it is
written to; the kernel fails if one is out of range.  Contiguous elements after the index arrays,
such as rows of a table, are written in vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from wengert._engine.core.node import Node
from wengert._engine.core.symbolic.dim import LOCAL, Length, names_in
from wengert._engine.core.types import Scalar
from wengert._engine.ops.indexing.template import IndexSlot

from ..ir.index_analysis import chosen
from ..ir.ir_builder import Function, Name, Section
from ..ir.llvm_types import I64, Dtype, part_of
from ..ir.memory_access import load, store
from ..ir.scalar_language import Language
from .kernel_call import ArrayPointer, KernelCall, kernel
from .loop_helpers import clear, copy_apart, nest, offset, read, size_of, write

_BYTES = 64  # per store


class ScatterLoop(NamedTuple):
    """A loop over the written values: its length, and the strides of the array and the value."""

    length: Length
    step: Length
    value_step: Length


class Along(NamedTuple):
    """An index array: its stride in each loop; length and stride of the axis that it indexes."""

    array: ArrayPointer
    steps: tuple[Length, ...]
    length: Length
    stride: Length


def _is_whole(node: Node) -> bool:
    """Whether the index arrays are positions, and all sizes follow from the arrays."""
    specs = [node.spec, *[a.spec for a in node.inputs]]
    first = 2 if node.op.name == "setitem" else 1
    known = set(names_in(n for s in specs for n in s.shape))
    arrays = [a.spec for a in node.inputs[first:]]
    found = chosen(node.params["index"], node.spec.shape, [a.shape for a in arrays])
    if found is None or any(a.dtype.kind not in "iu" for a in arrays):
        return False
    # The lengths of a loop's step are given to all calls in it (kernel_call.py).
    needed = names_in([*found.shape, *[p.start for p in found.parts]])
    return {n for n in needed if not n.startswith(LOCAL)} <= known


@kernel("scatter", strided=True, serves=_is_whole)
def scatter(call: KernelCall) -> None:
    """Zeros, with t added."""
    t, *arrays = call.operands
    (z,) = call.results
    clear(call, call.section, z.pointer, size_of(z), z.dtype)
    at_index(call, z, t, arrays, call.params["index"], bool(arrays))


@kernel("setitem", strided=True, serves=_is_whole, updates=lambda _: True)
def setitem(call: KernelCall) -> None:
    """A copy of x with v stored into it; in place if x has the memory of the result."""
    x, v, *arrays = call.operands
    (z,) = call.results
    copy_apart(call, call.section, z, x)
    at_index(call, z, v, arrays, call.params["index"], False)


def _is_nothing(node: Node) -> bool:
    """Whether the result is empty; index arrays may be out of range even so."""
    empty = any(type(n) is int and n == 0 for n in node.spec.shape)
    return (
        empty and len(node.inputs) > 1 and all(a.spec.dtype.kind in "iu" for a in node.inputs[1:])
    )


@kernel("getitem", strided=True, serves=_is_nothing)
def getitem(call: KernelCall) -> None:
    """No element; the positions are checked, as NumPy does."""
    x, *arrays = call.operands
    found = chosen(call.params["index"], x.shape, [a.shape for a in arrays])
    assert found is not None
    around = found.shape[found.place : found.place + found.depth]
    with nest(call.section, [call.number(n) for n in around]) as (s, indices):
        for part, n in zip(found.parts, x.shape, strict=True):
            if part.operand is not None:
                array = arrays[part.operand]
                _position(call, s, Along(array, _broadcast(array, found.depth), n, 0), indices)


def _is_as_large(node: Node) -> bool:
    t, positions = [a.spec for a in node.inputs]
    return bool(positions.dtype.kind in "iu" and t.shape == positions.shape)


@kernel("scatter_along", strided=True, serves=_is_as_large)
def scatter_along(call: KernelCall) -> None:
    """Zeros, with t added at the positions along an axis."""
    t, positions = call.operands
    (z,) = call.results
    axis = call.params["axis"] % len(t.shape)
    clear(call, call.section, z.pointer, size_of(z), z.dtype)
    axes = [
        ScatterLoop(n, 0 if k == axis else stride, step)
        for k, (n, stride, step) in enumerate(zip(t.shape, z.strides, t.strides, strict=True))
    ]
    along = Along(positions, positions.strides, z.shape[axis], z.strides[axis])
    _write(call, z, t, (axes, []), [along], 0, not call.params.get("unique"))


def at_index(
    call: KernelCall,
    z: ArrayPointer,
    v: ArrayPointer,
    arrays: Sequence[ArrayPointer],
    index: tuple[Any, ...] | IndexSlot,
    adds: bool,
) -> None:
    """Write v into z at an index, in which the arrays belong."""
    found = chosen(index, z.shape, [a.shape for a in arrays])
    assert found is not None
    rank = len(found.shape)
    steps: list[Length] = [0] * rank
    start: Length = 0
    for part, stride in zip(found.parts, z.strides, strict=True):
        start = start + part.start * stride
        if part.axis is not None:
            steps[part.axis] = stride * part.step
    value_steps = _broadcast(v, rank)
    axes = [ScatterLoop(*a) for a in zip(found.shape, steps, value_steps, strict=True)]
    looked = found.place + found.depth if arrays else 0
    alongs = []
    for part, n, stride in zip(found.parts, z.shape, z.strides, strict=True):
        if part.operand is not None:
            array = arrays[part.operand]
            own = _broadcast(array, found.depth)
            alongs.append(Along(array, ((0,) * found.place + own), n, stride))
    _write(call, z, v, (axes[:looked], _joined(axes[looked:])), alongs, start, adds)


def _broadcast(array: ArrayPointer, rank: int) -> tuple[Length, ...]:
    """Steps of an array for axes with which its last ones are broadcast."""
    own = [0 if n == 1 else s for n, s in zip(array.shape, array.strides, strict=True)]
    missing = rank - len(own)
    return (*[0] * missing, *own[max(-missing, 0) :])


def _joined(axes: Sequence[ScatterLoop]) -> list[ScatterLoop]:
    """The axes; those that can be merged in both arrays are merged."""
    found: list[ScatterLoop] = []
    for axis in axes:
        if type(axis.length) is int and axis.length == 1:
            continue
        if found:
            before = found[-1]
            if (before.step, before.value_step) == (
                axis.step * axis.length,
                axis.value_step * axis.length,
            ):
                found[-1] = ScatterLoop(before.length * axis.length, axis.step, axis.value_step)
                continue
        found.append(axis)
    return found


def _write(
    call: KernelCall,
    z: ArrayPointer,
    v: ArrayPointer,
    axes: tuple[Sequence[ScatterLoop], Sequence[ScatterLoop]],
    alongs: Sequence[Along],
    start: Length,
    adds: bool,
) -> None:
    """Loops over the index arrays, and loops inside them."""
    outer, inner = axes
    with nest(call.section, [call.number(a.length) for a in outer]) as (s, indices):
        to = _moved(call, s, call.number(start), indices, [a.step for a in outer])
        of = _moved(call, s, "0", indices, [a.value_step for a in outer])
        for along in alongs:
            to = s.plus(to, _position(call, s, along, indices))
        row = inner[-1] if inner else ScatterLoop(1, 0, 0)
        rest = inner[:-1]
        with nest(s, [call.number(a.length) for a in rest]) as (r, more):
            to = _moved(call, r, to, more, [a.step for a in rest])
            of = _moved(call, r, of, more, [a.value_step for a in rest])
            target = offset(r, z.pointer, to, z.dtype)
            source = offset(r, v.pointer, of, v.dtype)
            _row(call, r, (target, z.dtype), (source, v.dtype), row, adds)


def _moved(
    call: KernelCall, s: Section, total: Name, indices: Sequence[Name], steps: Sequence[Length]
) -> Name:
    for i, step in zip(indices, steps, strict=True):
        total = s.plus(total, s.times(i, call.number(step)))
    return total


def _position(call: KernelCall, s: Section, along: Along, indices: Sequence[Name]) -> Name:
    """The offset of a position; it has been checked."""
    distance = _moved(call, s, "0", indices, along.steps)
    array = along.array
    found = read(call.language, s, offset(s, array.pointer, distance, array.dtype), array.dtype)
    name = call.language.cast(found, I64).name
    n = call.number(along.length)
    negative = s.value(f"icmp slt i64 {name}, 0")
    back = s.value(f"add i64 {name}, {n}")
    name = s.value(f"select i1 {negative}, i64 {back}, i64 {name}")
    call.fail_if(s.value(f"icmp uge i64 {name}, {n}"), 1, s)
    return s.times(name, call.number(along.stride))


# ---- one row -------------------------------------------------------------------------------------


def _row(
    call: KernelCall,
    s: Section,
    to: tuple[Name, Dtype],
    of: tuple[Name, Dtype],
    row: ScatterLoop,
    adds: bool,
) -> None:
    """Write contiguous or strided elements."""
    count = call.number(row.length)
    if row.step == 1 and row.value_step in (0, 1) and count != "1" and to[1] == of[1]:
        function = _rows(call.language, to[1], row.value_step == 0, adds)
        s.write(f"call void @{function}(ptr {to[0]}, ptr {of[0]}, i64 {count})")
        return
    with nest(s, [count]) as (inner, (i,)):
        target = offset(inner, to[0], inner.times(i, call.number(row.step)), to[1])
        source = offset(inner, of[0], inner.times(i, call.number(row.value_step)), of[1])
        _element(
            call.language, inner, (target, to[1]), read(call.language, inner, source, of[1]), adds
        )


def _element(
    language: Language, s: Section, to: tuple[Name, Dtype], value: Scalar, adds: bool
) -> None:
    pointer, dtype = to
    value = language.cast(value, dtype)
    if adds:
        value = language.cast(read(language, s, pointer, dtype) + value, dtype)
    write(s, pointer, value)


def _rows(language: Language, dtype: Dtype, repeats: bool, adds: bool) -> str:
    """The function that writes a row of a dtype: of a row, or of one number."""
    module = language.module
    name = f"row.{dtype.str[1:]}" + ".one" * repeats + ".add" * adds
    if name in module:
        return name
    arguments = [("ptr", "to"), ("ptr", "of"), ("i64", "count")]
    function = Function(module, name, arguments, attributes="nounwind #1")
    body = function.body
    width = _BYTES // part_of(dtype).itemsize
    rest = body.value(f"and i64 %count, {width - 1}")
    middle = body.minus("%count", rest)
    for start, stop, step in (("0", middle, width), (middle, "%count", 1)):
        with body.loop(start, stop, str(step)) as (s, i):
            target = offset(s, "%to", i, dtype)
            source = "%of" if repeats else offset(s, "%of", i, dtype)
            value = load(language, s, source, dtype, 1 if repeats else step, None)
            if adds:
                value = language.cast(load(language, s, target, dtype, step, None) + value, dtype)
            store(language, s, target, value, step, None)
    body.write("ret void")
    module.add(function)
    return name

"""Indexed writes: setting and adding elements at indices and slices.

    getitem          of no elements; other reads are gathers (lowering/gathers.py)
    scatter          zeros, with t added at an index
    scatter_add      an array, with t added at an index
    setitem          an array with elements replaced; the last of several writes to an element wins
    scatter_along    zeros, with t added at positions along one axis

All are loops over the written values in C order, as in NumPy.  The kernel fails if a position is
out of range; each is checked before it is written to.  Contiguous elements after the index arrays,
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
from .loop_helpers import clear, copy_unless_same, nest, offset, read, size_of, write

_STORE_BYTES = 64
_COPIES = 4  # of few destinations, so that additions to the same one do not wait for each other
_VALUES_OF_A_COPIED_DESTINATION = 8  # at least, for copies to be worth while
_COPIED_DESTINATIONS = 1024  # at most: with their copies they stay in the cache


class ScatterLoop(NamedTuple):
    """A loop over the written values: its length, and the strides of the array and the value."""

    length: Length
    step: Length
    value_step: Length


class IndexArray(NamedTuple):
    """An index array: its stride in each loop; length and stride of the axis that it indexes."""

    array: ArrayPointer
    steps: tuple[Length, ...]
    length: Length
    stride: Length


def _is_supported(node: Node) -> bool:
    """Whether the index arrays are positions, and all sizes follow from the arrays."""
    specs = [node.spec, *[a.spec for a in node.inputs]]
    first = 1 if node.op.name == "scatter" else 2
    sizes = set(names_in(n for s in specs for n in s.shape))
    arrays = [a.spec for a in node.inputs[first:]]
    selection = chosen(node.params["index"], node.spec.shape, [a.shape for a in arrays])
    if selection is None or any(a.dtype.kind not in "iu" for a in arrays):
        return False
    # Lengths that vary between loop steps are passed to all kernel calls (kernel_call.py).
    needed = names_in([*selection.shape, *[p.start for p in selection.parts]])
    return {n for n in needed if not n.startswith(LOCAL)} <= sizes


@kernel("scatter", strided=True, serves=_is_supported)
def scatter(call: KernelCall) -> None:
    """Zeros, with t added."""
    t, *arrays = call.operands
    (z,) = call.results
    clear(call, call.section, z.pointer, size_of(z), z.dtype)
    store_at_index(call, z, t, arrays, call.params["index"], bool(arrays))


@kernel("scatter_add", strided=True, serves=_is_supported, updates=lambda _: True)
def scatter_add(call: KernelCall) -> None:
    """A copy of x with t added at an index; in place if x has the memory of the result."""
    x, t, *arrays = call.operands
    (z,) = call.results
    copy_unless_same(call, call.section, z, x)
    store_at_index(call, z, t, arrays, call.params["index"], True)


@kernel("setitem", strided=True, serves=_is_supported, updates=lambda _: True)
def setitem(call: KernelCall) -> None:
    """A copy of x with v stored at an index; in place if x has the memory of the result."""
    x, v, *arrays = call.operands
    (z,) = call.results
    copy_unless_same(call, call.section, z, x)
    store_at_index(call, z, v, arrays, call.params["index"], False)


def _is_empty(node: Node) -> bool:
    """Whether the result is empty; even then index arrays may be out of range."""
    empty = any(type(n) is int and n == 0 for n in node.spec.shape)
    return (
        empty and len(node.inputs) > 1 and all(a.spec.dtype.kind in "iu" for a in node.inputs[1:])
    )


@kernel("getitem", strided=True, serves=_is_empty)
def getitem(call: KernelCall) -> None:
    """Read no elements; the positions are checked, as NumPy does."""
    x, *arrays = call.operands
    selection = chosen(call.params["index"], x.shape, [a.shape for a in arrays])
    assert selection is not None
    lengths = selection.shape[selection.place : selection.place + selection.depth]
    with nest(call.section, [call.number(n) for n in lengths]) as (s, indices):
        for part, n in zip(selection.parts, x.shape, strict=True):
            if part.operand is not None:
                array = arrays[part.operand]
                _axis_offset(
                    call, s, IndexArray(array, _broadcast(array, selection.depth), n, 0), indices
                )


def _has_same_shape(node: Node) -> bool:
    t, positions = [a.spec for a in node.inputs]
    return bool(positions.dtype.kind in "iu" and t.shape == positions.shape)


@kernel("scatter_along", strided=True, serves=_has_same_shape)
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
    index_array = IndexArray(positions, positions.strides, z.shape[axis], z.strides[axis])
    _write(call, z, t, (axes, []), [index_array], 0, not call.params.get("unique"))


def store_at_index(
    call: KernelCall,
    z: ArrayPointer,
    v: ArrayPointer,
    arrays: Sequence[ArrayPointer],
    index: tuple[Any, ...] | IndexSlot,
    adds: bool,
    shared: bool = False,
) -> None:
    """Store or add v at an index of z; `arrays` are the index arrays.

    If `shared`, slices are stored by functions that all such stores of the module call: a tenth of
    the code of loops of their own.
    """
    selection = chosen(index, z.shape, [a.shape for a in arrays])
    assert selection is not None
    rank = len(selection.shape)
    steps: list[Length] = [0] * rank
    start: Length = 0
    for part, stride in zip(selection.parts, z.strides, strict=True):
        start = start + part.start * stride
        if part.axis is not None:
            steps[part.axis] = stride * part.step
    value_steps = _broadcast(v, rank)
    axes = [ScatterLoop(*a) for a in zip(selection.shape, steps, value_steps, strict=True)]
    outer_count = selection.place + selection.depth if arrays else 0
    index_arrays = []
    for part, n, stride in zip(selection.parts, z.shape, z.strides, strict=True):
        if part.operand is not None:
            array = arrays[part.operand]
            array_strides = _broadcast(array, selection.depth)
            index_arrays.append(
                IndexArray(array, ((0,) * selection.place + array_strides), n, stride)
            )
    outer, inner = axes[:outer_count], _merged(axes[outer_count:])
    if shared and not arrays and len(inner) in (1, 2) and z.dtype == v.dtype:
        target = offset(call.section, z.pointer, call.number(start), z.dtype)
        _store_by_function(call, (target, v.pointer), z.dtype, inner, adds)
        return
    _write(call, z, v, (outer, inner), index_arrays, start, adds)


def _broadcast(array: ArrayPointer, rank: int) -> tuple[Length, ...]:
    """The strides of an array that is broadcast to `rank` axes."""
    strides = [0 if n == 1 else s for n, s in zip(array.shape, array.strides, strict=True)]
    missing = rank - len(strides)
    return (*[0] * missing, *strides[max(-missing, 0) :])


def _merged(axes: Sequence[ScatterLoop]) -> list[ScatterLoop]:
    """The axes; those that can be merged in both arrays are merged."""
    merged: list[ScatterLoop] = []
    for axis in axes:
        if type(axis.length) is int and axis.length == 1:
            continue
        if merged:
            previous = merged[-1]
            if (previous.step, previous.value_step) == (
                axis.step * axis.length,
                axis.value_step * axis.length,
            ):
                merged[-1] = ScatterLoop(previous.length * axis.length, axis.step, axis.value_step)
                continue
        merged.append(axis)
    return merged


def _write(
    call: KernelCall,
    z: ArrayPointer,
    v: ArrayPointer,
    axes: tuple[Sequence[ScatterLoop], Sequence[ScatterLoop]],
    index_arrays: Sequence[IndexArray],
    start: Length,
    adds: bool,
) -> None:
    """Loops over the index arrays, and loops inside them."""
    outer, inner = axes
    if adds and not inner and _has_few_destinations(z, v, outer, index_arrays):
        _add_to_copies(call, z, v, outer[0], index_arrays[0])
        return
    with nest(call.section, [call.number(a.length) for a in outer]) as (s, indices):
        target_offset = _distance(call, s, call.number(start), indices, [a.step for a in outer])
        source_offset = _distance(call, s, "0", indices, [a.value_step for a in outer])
        for index_array in index_arrays:
            target_offset = s.plus(target_offset, _axis_offset(call, s, index_array, indices))
        row = inner[-1] if inner else ScatterLoop(1, 0, 0)
        inner_axes = inner[:-1]
        with nest(s, [call.number(a.length) for a in inner_axes]) as (r, inner_indices):
            target_offset = _distance(
                call, r, target_offset, inner_indices, [a.step for a in inner_axes]
            )
            source_offset = _distance(
                call, r, source_offset, inner_indices, [a.value_step for a in inner_axes]
            )
            target = offset(r, z.pointer, target_offset, z.dtype)
            source = offset(r, v.pointer, source_offset, v.dtype)
            _row(call, r, (target, z.dtype), (source, v.dtype), row, adds)


def _has_few_destinations(
    z: ArrayPointer, v: ArrayPointer, outer: Sequence[ScatterLoop], arrays: Sequence[IndexArray]
) -> bool:
    """Whether numbers are added to the elements of a short vector, many to each."""
    if len(outer) != 1 or len(arrays) != 1 or z.strides != (1,) or z.dtype != v.dtype:
        return False
    length, count = z.shape[0], outer[0].length
    return (
        z.dtype.char in "fd"
        and isinstance(length, int)
        and isinstance(count, int)
        and 0 < length <= _COPIED_DESTINATIONS
        and count >= _VALUES_OF_A_COPIED_DESTINATION * length
    )


def _add_to_copies(
    call: KernelCall, z: ArrayPointer, v: ArrayPointer, axis: ScatterLoop, index_array: IndexArray
) -> None:
    """Add in turn to the vector and to copies, which are then added to it.

    An addition in memory takes ten cycles, and the next one to the same element waits for it.
    """
    length, count = z.shape[0], axis.length
    assert isinstance(length, int)
    assert isinstance(count, int)
    copies = call.scratch((_COPIES - 1) * length * z.dtype.itemsize)
    clear(call, call.section, copies, (_COPIES - 1) * length, z.dtype)
    places = [offset(call.section, copies, str(k * length), z.dtype) for k in range(_COPIES - 1)]
    middle = count - count % _COPIES
    for start, stop, targets in ((0, middle, [z.pointer, *places]), (middle, count, [z.pointer])):
        with call.section.loop(str(start), str(stop), str(len(targets))) as (s, first):
            for k, target in enumerate(targets):
                i = s.plus(first, str(k))
                place = offset(s, target, _axis_offset(call, s, index_array, [i]), z.dtype)
                step = s.times(i, call.number(axis.value_step))
                value = read(call.language, s, offset(s, v.pointer, step, v.dtype), v.dtype)
                _element(call.language, s, (place, z.dtype), value, True)
    row = _row_function(call.language, z.dtype, False, True)
    for place in places:
        call.section.write(f"call void @{row}(ptr {z.pointer}, ptr {place}, i64 {length})")


def _distance(
    call: KernelCall, s: Section, total: Name, indices: Sequence[Name], steps: Sequence[Length]
) -> Name:
    """`total` plus the offset of some indices."""
    for i, step in zip(indices, steps, strict=True):
        total = s.plus(total, s.times(i, call.number(step)))
    return total


def _axis_offset(
    call: KernelCall, s: Section, index_array: IndexArray, indices: Sequence[Name]
) -> Name:
    """The offset that an index array selects along its axis; checks the position."""
    distance = _distance(call, s, "0", indices, index_array.steps)
    array = index_array.array
    position = read(call.language, s, offset(s, array.pointer, distance, array.dtype), array.dtype)
    name = call.language.cast(position, I64).name
    n = call.number(index_array.length)
    negative = s.value(f"icmp slt i64 {name}, 0")
    wrapped = s.value(f"add i64 {name}, {n}")
    name = s.value(f"select i1 {negative}, i64 {wrapped}, i64 {name}")
    call.fail_if(s.value(f"icmp uge i64 {name}, {n}"), 1, s)
    return s.times(name, call.number(index_array.stride))


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
        function = _row_function(call.language, to[1], row.value_step == 0, adds)
        s.write(f"call void @{function}(ptr {to[0]}, ptr {of[0]}, i64 {count})")
        return
    with nest(s, [count]) as (inner, (i,)):
        target = offset(inner, to[0], inner.times(i, call.number(row.step)), to[1])
        source = offset(inner, of[0], inner.times(i, call.number(row.value_step)), of[1])
        _element(
            call.language, inner, (target, to[1]), read(call.language, inner, source, of[1]), adds
        )


def _store_by_function(
    call: KernelCall,
    pointers: tuple[Name, Name],
    dtype: Dtype,
    axes: Sequence[ScatterLoop],
    adds: bool,
) -> None:
    """Write the elements of one or two axes by a function of the module."""
    outer, row = (ScatterLoop(1, 0, 0), *axes)[-2:]
    is_row = row.step == 1 and row.value_step in (0, 1)
    function = _rows_function(call.language, dtype, is_row, row.value_step == 0, adds)
    numbers = [outer.length, outer.step, outer.value_step, row.length]
    numbers += [] if is_row else [row.step, row.value_step]
    listed = ", ".join(f"i64 {call.number(n)}" for n in numbers)
    to, of = pointers
    call.section.write(f"call void @{function}(ptr {to}, ptr {of}, {listed})")


def _rows_function(
    language: Language, dtype: Dtype, is_row: bool, repeats: bool, adds: bool
) -> str:
    """The function that writes several rows, of contiguous or strided elements."""
    module = language.module
    name = f"rows.{dtype.str[1:]}" + (".one" * repeats if is_row else ".strided") + ".add" * adds
    if name in module:
        return name
    arguments = [("ptr", "to"), ("ptr", "of"), ("i64", "rows"), ("i64", "to_step")]
    arguments += [("i64", "of_step"), ("i64", "count")]
    arguments += [] if is_row else [("i64", "to_stride"), ("i64", "of_stride")]
    function = Function(module, name, arguments, attributes="nounwind #1")
    row = _row_function(language, dtype, repeats, adds) if is_row else ""
    with function.body.loop("0", "%rows") as (s, k):
        target = offset(s, "%to", s.times(k, "%to_step"), dtype)
        source = offset(s, "%of", s.times(k, "%of_step"), dtype)
        if is_row:
            s.write(f"call void @{row}(ptr {target}, ptr {source}, i64 %count)")
        else:
            with s.loop("0", "%count") as (inner, i):
                to = offset(inner, target, inner.times(i, "%to_stride"), dtype)
                of = offset(inner, source, inner.times(i, "%of_stride"), dtype)
                _element(language, inner, (to, dtype), read(language, inner, of, dtype), adds)
    function.body.write("ret void")
    module.add(function)
    return name


def _element(
    language: Language, s: Section, to: tuple[Name, Dtype], value: Scalar, adds: bool
) -> None:
    pointer, dtype = to
    value = language.cast(value, dtype)
    if adds:
        value = language.cast(read(language, s, pointer, dtype) + value, dtype)
    write(s, pointer, value)


def _row_function(language: Language, dtype: Dtype, repeats: bool, adds: bool) -> str:
    """The function that writes a row, from a row or from one number that is repeated."""
    module = language.module
    name = f"row.{dtype.str[1:]}" + ".one" * repeats + ".add" * adds
    if name in module:
        return name
    arguments = [("ptr", "to"), ("ptr", "of"), ("i64", "count")]
    function = Function(module, name, arguments, attributes="nounwind #1")
    body = function.body
    width = _STORE_BYTES // part_of(dtype).itemsize
    remainder = body.value(f"and i64 %count, {width - 1}")
    middle = body.minus("%count", remainder)
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

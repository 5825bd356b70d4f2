"""Helpers of kernels: loads and stores of elements, loops and copies.

    address, read, write    an element of an array
    in_section              a lane, for computations in a nested section
    stack_slot              memory for one value
    nest                    loops over all indices of a shape
    copy, clear             whole arrays; a copy may have another layout and dtype
    transposer              the function that copies transposed elements of four or eight bytes
    transposed              a square of vectors in registers

Loops are scalar.  The expensive parts of a kernel are in BLAS and LAPACK, or are vectorized in the
kernel.  A transposed copy reads a square block, whose side is the width of a vector, row by row,
transposes it in registers and writes it row by row: in stages of increasing distance, each row
swaps half of its elements with another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from wengert._engine.core.symbolic.dim import Length

from ..ir import execution_engine
from ..ir.ir_builder import Function, ModuleBuilder, Name, Section
from ..ir.llvm_types import BOOL, Dtype, in_memory, of_width, part_of
from ..ir.scalar_language import Language
from ..ir.simd_value import ComplexLane, Lane
from .kernel_call import ArrayPointer, KernelCall


def transposer(module: ModuleBuilder, size: int) -> str:
    """The function for elements of a given size in bytes: to[i, j] = of[j, i].

    Its arguments are `to`, `of`, the lengths of i and j, and the row strides of `to` and `of`.
    """
    name = f"transpose.{size}"
    if name in module:
        return name
    arguments = [("ptr", "to"), ("ptr", "of")]
    arguments += [("i64", n) for n in ("high", "wide", "down0", "down1")]
    function = Function(module, name, arguments, attributes="noinline nounwind #1")
    body, kind, width = function.body, f"i{8 * size}", execution_engine.vector_bytes() // size
    high, wide = (body.value(f"and i64 %{n}, {-width}") for n in ("high", "wide"))
    with body.loop("0", high, str(width)) as (s, i), s.loop("0", wide, str(width)) as (t, j):
        _transpose_square(t, kind, width, i, j)
    for first, last, begin in (("0", high, wide), (high, "%high", "0")):
        with body.loop(first, last) as (s, i), s.loop(begin, "%wide") as (t, j):
            value = t.value(f"load {kind}, ptr {_element(t, kind, '%of', j, '%down1', i)}, align 4")
            t.write(
                f"store {kind} {value}, ptr {_element(t, kind, '%to', i, '%down0', j)}, align 4"
            )
    body.write("ret void")
    module.add(function)
    return name


def _element(s: Section, kind: str, pointer: Name, row: Name, down: Name, column: Name) -> Name:
    count = s.value(f"add nsw i64 {s.value(f'mul nsw i64 {row}, {down}')}, {column}")
    return s.value(f"getelementptr {kind}, ptr {pointer}, i64 {count}")


def _transpose_square(s: Section, kind: str, width: int, i: Name, j: Name) -> None:
    vector = of_width(kind, width)
    rows = []
    for k in range(width):
        pointer = _element(s, kind, "%of", s.value(f"add nsw i64 {j}, {k}"), "%down1", i)
        rows.append(s.value(f"load {vector}, ptr {pointer}, align 4"))
    rows = transposed(s, vector, rows)
    for k in range(width):
        pointer = _element(s, kind, "%to", s.value(f"add nsw i64 {i}, {k}"), "%down0", j)
        s.write(f"store {vector} {rows[k]}, ptr {pointer}, align 4")


def transposed(s: Section, vector: str, rows: Sequence[Name]) -> list[Name]:
    """The columns of a square of vectors."""
    rows, width, distance = list(rows), len(rows), 1
    while distance < width:
        for k in range(width):
            if not k & distance:
                rows[k], rows[k + distance] = _swapped(
                    s, vector, width, distance, rows[k], rows[k + distance]
                )
        distance *= 2
    return rows


def _swapped(
    s: Section, vector: str, width: int, distance: int, x: Name, y: Name
) -> tuple[Name, Name]:
    """Exchange halves of two rows."""
    low = [width + k - distance if k & distance else k for k in range(width)]
    high = [width + k if k & distance else k + distance for k in range(width)]
    rows = []
    for mask in (low, high):
        listed = ", ".join(f"i32 {k}" for k in mask)
        rows.append(
            s.value(f"shufflevector {vector} {x}, {vector} {y}, <{width} x i32> <{listed}>")
        )
    return rows[0], rows[1]


_TILE = 8  # rows and columns of a tile: one of its columns is in eight cache lines


# ---- elements ----------------------------------------------------------------------------------


def kind_of(dtype: Dtype) -> str:
    """LLVM's type of an element in memory."""
    return f"[2 x {in_memory(part_of(dtype))}]" if dtype.kind == "c" else in_memory(dtype)


def offset(s: Section, pointer: Name, count: Name, dtype: Dtype) -> Name:
    """The address of an element, `count` elements after a pointer."""
    if count == "0":
        return pointer
    return s.value(f"getelementptr {kind_of(dtype)}, ptr {pointer}, i64 {count}")


def address(call: KernelCall, s: Section, array: ArrayPointer, indices: Sequence[Name]) -> Name:
    """The address of an element."""
    total = "0"
    for i, stride in zip(indices, array.strides, strict=True):
        total = s.plus(total, s.times(i, call.number(stride)))
    return offset(s, array.pointer, total, array.dtype)


def read(language: Language, s: Section, pointer: Name, dtype: Dtype) -> Any:
    """The element at an address, as a lane."""
    if dtype.kind == "c":
        part = part_of(dtype)
        imaginary_part = s.value(f"getelementptr {in_memory(part)}, ptr {pointer}, i64 1")
        real = read(language, s, pointer, part)
        return ComplexLane(language, real, read(language, s, imaginary_part, part), dtype)
    name = s.value(f"load {in_memory(dtype)}, ptr {pointer}")
    if dtype.kind == "b":
        name = s.value(f"trunc i8 {name} to i1")
    return Lane(language, s, name, dtype, 1)


def write(s: Section, pointer: Name, value: Any) -> None:
    """Store a lane at an address."""
    if type(value) is ComplexLane:
        part = in_memory(value.real.dtype)
        imaginary_part = s.value(f"getelementptr {part}, ptr {pointer}, i64 1")
        write(s, pointer, value.real)
        write(s, imaginary_part, value.imag)
        return
    name = value.name
    if value.dtype == BOOL:
        name = s.value(f"zext i1 {name} to i8")
    s.write(f"store {in_memory(value.dtype)} {name}, ptr {pointer}")


def in_section(s: Section, value: Any) -> Any:
    """The same lane in a nested section, so that computations with it are emitted there."""
    if type(value) is ComplexLane:
        real, imag = in_section(s, value.real), in_section(s, value.imag)
        return ComplexLane(value.language, real, imag, value.dtype)
    section = None if value.width == 0 else s
    return Lane(value.language, section, value.name, value.dtype, value.width)


def stack_slot(call: KernelCall, dtype: Dtype) -> Name:
    """A stack slot for one value of a dtype."""
    return call.function.slot(kind_of(dtype))


# ---- arrays ------------------------------------------------------------------------------------


@contextmanager
def nest(s: Section, lengths: Sequence[Name]) -> Iterator[tuple[Section, list[Name]]]:
    """Nested loops over all indices of an array of these lengths, in C order."""
    with ExitStack() as stack:
        indices: list[Name] = []
        for n in lengths:
            if n == "1":
                indices.append("0")
                continue
            s, i = stack.enter_context(s.loop("0", n))
            indices.append(i)
        yield s, indices


def clear(call: KernelCall, s: Section, pointer: Name, count: Length, dtype: Dtype) -> None:
    """Write zeros to `count` elements."""
    callee = call.module.declare("llvm.memset.p0.i64", "void", ["ptr", "i8", "i64", "i1"])
    size = call.number(count * dtype.itemsize)
    s.write(f"call void {callee}(ptr {pointer}, i8 0, i64 {size}, i1 false)")


def is_c_contiguous(array: ArrayPointer) -> bool:
    """Whether an array is C-contiguous for all sizes."""
    step: Length = 1
    for n, stride in zip(reversed(array.shape), reversed(array.strides), strict=True):
        if n != 1 and stride != step:
            return False
        step = step * n
    return True


def size_of(array: ArrayPointer) -> Length:
    """The number of elements of an array."""
    total: Length = 1
    for n in array.shape:
        total = total * n
    return total


def copy_unless_same(
    call: KernelCall, s: Section, target: ArrayPointer, source: ArrayPointer
) -> None:
    """Copy an array into another one, unless both are at the same address."""
    differs = s.value(f"icmp ne ptr {source.pointer}, {target.pointer}")
    with s.when(differs) as section:
        copy(call, section, target, source)


def copy(
    call: KernelCall,
    s: Section,
    target: ArrayPointer,
    source: ArrayPointer,
    conjugate: bool = False,
) -> None:
    """Copy an array into another one of the same shape; the dtype may differ.

    The last two axes are copied by a function that all copies of these dtypes share.
    """
    is_plain = target.dtype == source.dtype and not conjugate
    if is_plain and is_c_contiguous(target) and is_c_contiguous(source):
        count = s.times(call.number(size_of(target)), str(target.dtype.itemsize))
        s.copy_bytes(target.pointer, source.pointer, count)
        return
    axes = [k for k, n in enumerate(target.shape) if n != 1]
    inner_axis = next((k for k in axes if target.strides[k] == 1), axes[-1] if axes else None)
    outer_axis = next((k for k in axes if source.strides[k] == 1 and k != inner_axis), None)
    if outer_axis is None:
        outer_axis = next((k for k in reversed(axes) if k != inner_axis), None)
    other_axes = [k for k in axes if k not in (inner_axis, outer_axis)]
    contiguous_rows = (
        is_plain
        and inner_axis is not None
        and target.strides[inner_axis] == source.strides[inner_axis] == 1
    )
    is_transposed = (
        inner_axis is not None
        and outer_axis is not None
        and target.strides[inner_axis] == source.strides[outer_axis] == 1
    )
    if is_plain and is_transposed and target.dtype.itemsize in (4, 8) and not contiguous_rows:
        function = transposer(call.module, target.dtype.itemsize)
    else:
        is_transposed = False
        function = _copier(call.language, target.dtype, source.dtype, conjugate, contiguous_rows)
    with nest(s, [call.number(target.shape[k]) for k in other_axes]) as (inner, outer_indices):
        arguments = []
        for array in (target, source):
            total = "0"
            for k, i in zip(other_axes, outer_indices, strict=True):
                total = inner.plus(total, inner.times(i, call.number(array.strides[k])))
            arguments.append(f"ptr {offset(inner, array.pointer, total, array.dtype)}")
        if is_transposed:
            assert inner_axis is not None and outer_axis is not None
            lengths = (
                target.shape[outer_axis],
                target.shape[inner_axis],
                target.strides[outer_axis],
                source.strides[inner_axis],
            )
            arguments += [f"i64 {call.number(n)}" for n in lengths]
        for axis in () if is_transposed else (outer_axis, inner_axis):
            sizes: tuple[Length, ...] = (1, 0, 0)
            if axis is not None:
                sizes = target.shape[axis], target.strides[axis], source.strides[axis]
            arguments += [f"i64 {call.number(n)}" for n in sizes]
        inner.write(f"call void @{function}({', '.join(arguments)})")


def _copier(
    language: Language, target: Dtype, source: Dtype, conjugate: bool, contiguous_rows: bool
) -> str:
    """The function that copies matrices: row by row, or in square tiles."""
    module = language.module
    name = (
        f"copy.{source.str[1:]}.{target.str[1:]}"
        + ".conjugate" * conjugate
        + ".rows" * contiguous_rows
    )
    if name in module:
        return name
    arguments = [("ptr", "to"), ("ptr", "of")]
    arguments += [("i64", n) for n in ("high", "down0", "down1", "wide", "across0", "across1")]
    function = Function(module, name, arguments, attributes="noinline nounwind")
    if contiguous_rows:
        with function.body.loop("0", "%high") as (s, i):
            first = offset(s, "%to", s.times(i, "%down0"), target)
            second = offset(s, "%of", s.times(i, "%down1"), source)
            s.copy_bytes(first, second, s.times("%wide", str(target.itemsize)))
    else:
        _in_tiles(language, function, target, source, conjugate)
    function.body.write("ret void")
    module.add(function)
    return name


def _in_tiles(
    language: Language, function: Function, target: Dtype, source: Dtype, conjugate: bool
) -> None:
    """Emit a copy in square tiles, so that transpositions use whole cache lines."""
    step = str(_TILE)
    with function.body.loop("0", "%high", step) as (a, i0), a.loop("0", "%wide", step) as (b, j0):
        i1 = b.smaller("%high", b.plus(i0, step))
        j1 = b.smaller("%wide", b.plus(j0, step))
        with b.loop(i0, i1) as (c, i):
            row_offsets = [c.times(i, f"%down{k}") for k in range(2)]
            with c.loop(j0, j1) as (d, j):
                pointers = []
                for k, (pointer, dtype) in enumerate((("%to", target), ("%of", source))):
                    distance = d.plus(row_offsets[k], d.times(j, f"%across{k}"))
                    pointers.append(offset(d, pointer, distance, dtype))
                value = read(language, d, pointers[1], source)
                if conjugate and type(value) is ComplexLane:
                    value = ComplexLane(language, value.real, -value.imag, value.dtype)
                write(d, pointers[0], language.cast(value, target))

"""Helpers of kernels: loads and stores of elements, loops and copies.

    place, read, write    an element of an array
    moved                 a lane, for computations in a nested section
    nest                  loops over all indices of a shape
    copy, clear           whole arrays, with another layout and dtype

These loops are scalar.  The expensive parts of a kernel are in BLAS and LAPACK, or are vectorized
in the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from wengert._engine.core.symbolic.dim import Length

from ..ir.ir_builder import Function, Name, Section
from ..ir.llvm_types import BOOL, Dtype, in_memory, part_of
from ..ir.scalar_language import Language
from ..ir.simd_value import ComplexLane, Lane
from .kernel_call import ArrayPointer, KernelCall
from .transpose import transposer

_TILE = 8  # elements in each direction: a column of a square is in eight cache lines


# ---- elements ----------------------------------------------------------------------------------


def kind_of(dtype: Dtype) -> str:
    """LLVM's type of an element in memory."""
    return f"[2 x {in_memory(part_of(dtype))}]" if dtype.kind == "c" else in_memory(dtype)


def offset(s: Section, pointer: Name, count: Name, dtype: Dtype) -> Name:
    """The address of an element at a distance."""
    if count == "0":
        return pointer
    return s.value(f"getelementptr {kind_of(dtype)}, ptr {pointer}, i64 {count}")


def place(call: KernelCall, s: Section, array: ArrayPointer, indices: Sequence[Name]) -> Name:
    """The address of an element."""
    total = "0"
    for i, stride in zip(indices, array.strides, strict=True):
        total = s.plus(total, s.times(i, call.number(stride)))
    return offset(s, array.pointer, total, array.dtype)


def read(language: Language, s: Section, pointer: Name, dtype: Dtype) -> Any:
    """The element at an address, as a lane."""
    if dtype.kind == "c":
        part = part_of(dtype)
        other = s.value(f"getelementptr {in_memory(part)}, ptr {pointer}, i64 1")
        real = read(language, s, pointer, part)
        return ComplexLane(language, real, read(language, s, other, part), dtype)
    name = s.value(f"load {in_memory(dtype)}, ptr {pointer}")
    if dtype.kind == "b":
        name = s.value(f"trunc i8 {name} to i1")
    return Lane(language, s, name, dtype, 1)


def write(s: Section, pointer: Name, value: Any) -> None:
    """Store a lane at an address."""
    if type(value) is ComplexLane:
        part = in_memory(value.real.dtype)
        other = s.value(f"getelementptr {part}, ptr {pointer}, i64 1")
        write(s, pointer, value.real)
        write(s, other, value.imag)
        return
    name = value.name
    if value.dtype == BOOL:
        name = s.value(f"zext i1 {name} to i8")
    s.write(f"store {in_memory(value.dtype)} {name}, ptr {pointer}")


def moved(s: Section, value: Any) -> Any:
    """A lane of a nested section, so that computations with it are emitted there."""
    if type(value) is ComplexLane:
        real, imag = moved(s, value.real), moved(s, value.imag)
        return ComplexLane(value.language, real, imag, value.dtype)
    section = None if value.width == 0 else s
    return Lane(value.language, section, value.name, value.dtype, value.width)


def held(call: KernelCall, dtype: Dtype) -> Name:
    """A stack slot for one value of a dtype."""
    return call.function.slot(kind_of(dtype))


# ---- arrays ------------------------------------------------------------------------------------


@contextmanager
def nest(s: Section, lengths: Sequence[Name]) -> Iterator[tuple[Section, list[Name]]]:
    """Loops over all indices below some lengths, the last one inside."""
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
    """Write zeros from an address on."""
    callee = call.module.declare("llvm.memset.p0.i64", "void", ["ptr", "i8", "i64", "i1"])
    size = call.number(count * dtype.itemsize)
    s.write(f"call void {callee}(ptr {pointer}, i8 0, i64 {size}, i1 false)")


def is_in_order(array: ArrayPointer) -> bool:
    """Whether its elements lie in C order, for all sizes."""
    step: Length = 1
    for n, stride in zip(reversed(array.shape), reversed(array.strides), strict=True):
        if n != 1 and stride != step:
            return False
        step = step * n
    return True


def size_of(array: ArrayPointer) -> Length:
    """The number of its elements."""
    total: Length = 1
    for n in array.shape:
        total = total * n
    return total


def copy_apart(call: KernelCall, s: Section, to: ArrayPointer, of: ArrayPointer) -> None:
    """Copy an array into another one, unless it is the same memory."""
    apart = s.value(f"icmp ne ptr {of.pointer}, {to.pointer}")
    with s.when(apart) as section:
        copy(call, section, to, of)


def copy(
    call: KernelCall, s: Section, to: ArrayPointer, of: ArrayPointer, conjugate: bool = False
) -> None:
    """Copy an array into another one of the same shape; the dtype may differ.

    The last two axes are copied by a function that all copies of these dtypes share.
    """
    plain = to.dtype == of.dtype and not conjugate
    if plain and is_in_order(to) and is_in_order(of):
        count = s.times(call.number(size_of(to)), str(to.dtype.itemsize))
        s.copy_bytes(to.pointer, of.pointer, count)
        return
    axes = [k for k, n in enumerate(to.shape) if n != 1]
    near = next((k for k in axes if to.strides[k] == 1), axes[-1] if axes else None)
    far = next((k for k in axes if of.strides[k] == 1 and k != near), None)
    if far is None:
        far = next((k for k in reversed(axes) if k != near), None)
    outer = [k for k in axes if k not in (near, far)]
    rows = plain and near is not None and to.strides[near] == of.strides[near] == 1
    crossed = near is not None and far is not None and to.strides[near] == of.strides[far] == 1
    if plain and crossed and to.dtype.itemsize in (4, 8) and not rows:
        function = transposer(call.module, to.dtype.itemsize)
    else:
        crossed = False
        function = _copier(call.language, to.dtype, of.dtype, conjugate, rows)
    with nest(s, [call.number(to.shape[k]) for k in outer]) as (inner, found):
        given = []
        for array in (to, of):
            total = "0"
            for k, i in zip(outer, found, strict=True):
                total = inner.plus(total, inner.times(i, call.number(array.strides[k])))
            given.append(f"ptr {offset(inner, array.pointer, total, array.dtype)}")
        if crossed:
            assert near is not None and far is not None
            lengths = to.shape[far], to.shape[near], to.strides[far], of.strides[near]
            given += [f"i64 {call.number(n)}" for n in lengths]
        for axis in () if crossed else (far, near):
            sizes: tuple[Length, ...] = (1, 0, 0)
            if axis is not None:
                sizes = to.shape[axis], to.strides[axis], of.strides[axis]
            given += [f"i64 {call.number(n)}" for n in sizes]
        inner.write(f"call void @{function}({', '.join(given)})")


def _copier(language: Language, to: Dtype, of: Dtype, conjugate: bool, rows: bool) -> str:
    """The function that copies matrices: row by row, or in squares."""
    module = language.module
    name = f"copy.{of.str[1:]}.{to.str[1:]}" + ".conjugate" * conjugate + ".rows" * rows
    if name in module:
        return name
    arguments = [("ptr", "to"), ("ptr", "of")]
    arguments += [("i64", n) for n in ("high", "down0", "down1", "wide", "across0", "across1")]
    function = Function(module, name, arguments, attributes="noinline nounwind")
    if rows:
        with function.body.loop("0", "%high") as (s, i):
            first = offset(s, "%to", s.times(i, "%down0"), to)
            second = offset(s, "%of", s.times(i, "%down1"), of)
            s.copy_bytes(first, second, s.times("%wide", str(to.itemsize)))
    else:
        _in_squares(language, function, to, of, conjugate)
    function.body.write("ret void")
    module.add(function)
    return name


def _in_squares(
    language: Language, function: Function, to: Dtype, of: Dtype, conjugate: bool
) -> None:
    """In squares: a transposition uses whole cache lines."""
    step = str(_TILE)
    with function.body.loop("0", "%high", step) as (a, i0), a.loop("0", "%wide", step) as (b, j0):
        i1 = b.smaller("%high", b.plus(i0, step))
        j1 = b.smaller("%wide", b.plus(j0, step))
        with b.loop(i0, i1) as (c, i):
            down = [c.times(i, f"%down{k}") for k in range(2)]
            with c.loop(j0, j1) as (d, j):
                places = []
                for k, (pointer, dtype) in enumerate((("%to", to), ("%of", of))):
                    distance = d.plus(down[k], d.times(j, f"%across{k}"))
                    places.append(offset(d, pointer, distance, dtype))
                value = read(language, d, places[1], of)
                if conjugate and type(value) is ComplexLane:
                    value = ComplexLane(language, value.real, -value.imag, value.dtype)
                write(d, places[0], language.cast(value, to))

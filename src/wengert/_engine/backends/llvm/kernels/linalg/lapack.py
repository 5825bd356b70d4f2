"""Helpers of the kernels that call LAPACK.

    batches      loops over the leading axes
    one          the matrix of an operand or a result at an index of these
    by_columns   a matrix in Fortran order
    working      the dtype that numpy.linalg computes in
    fail_if_refused, Workspace
                 the error status of a routine, and the workspace it queries
    into_range   a matrix scaled by a power of two, so that products of its elements are finite

Matrices are copied as numpy.linalg does, and passed to the same routines, so the sign and order of
what is not unique are those of eager execution.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from wengert._engine.core.symbolic.dim import Length, bounds

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import C128, F64, Dtype, in_register, part_of
from ...ir.simd_value import Lane
from .. import fortran_calls
from ..kernel_call import ArrayPointer, KernelCall
from ..loop_helpers import held, nest, offset, place, read, write


@contextmanager
def batches(
    call: KernelCall, array: ArrayPointer, core: int
) -> Iterator[tuple[Section, list[Name]]]:
    """Loops over the axes of a result before its last `core` ones."""
    lead = array.shape[: len(array.shape) - core]
    with nest(call.section, [call.number(n) for n in lead]) as (s, indices):
        yield s, indices


def one(
    call: KernelCall, s: Section, array: ArrayPointer, indices: Sequence[Name], core: int
) -> ArrayPointer:
    """The last `core` axes of an array at an index of the others, which are broadcast."""
    count = len(array.shape) - core
    lead = array._replace(shape=array.shape[:count], strides=array.strides[:count])
    own = indices[len(indices) - count :]
    own = ["0" if n == 1 else i for i, n in zip(own, lead.shape, strict=True)]
    pointer = place(call, s, lead, own)
    return ArrayPointer(pointer, array.shape[count:], array.strides[count:], array.dtype)


def memory(call: KernelCall, count: Length, dtype: Dtype) -> Name:
    """Scratch memory for a number of elements."""
    return call.scratch(count * dtype.itemsize)


def by_columns(pointer: Name, rows: Length, columns: Length, dtype: Dtype) -> ArrayPointer:
    """A matrix in the order of Fortran."""
    return ArrayPointer(pointer, (rows, columns), (1, rows), dtype)


def length(call: KernelCall, n: Length) -> tuple[str, Name]:
    """A length as an argument."""
    return "int", call.number(n)


def distance(call: KernelCall, s: Section, n: Length) -> tuple[str, Name]:
    """The distance of columns as an argument: at least one."""
    return "int", s.larger(call.number(n), "1")


def fail_if_refused(call: KernelCall, s: Section, info: Name) -> None:
    """Fail unless the error status of the routine is 0."""
    value = s.value(f"load i32, ptr {info}")
    call.fail_if(s.value(f"icmp ne i32 {value}, 0"), 1, s)


class Workspace:
    """The workspace of a LAPACK routine, of the length that it queries.

    Parameters
    ----------
    dtype : numpy.dtype
        The dtype of the computation.
    """

    def __init__(self, call: KernelCall, dtype: Dtype) -> None:
        self.call, self.dtype = call, dtype
        self.cell = held(call, dtype)
        self.whole = call.function.slot("i32")
        self.real = held(call, part_of(dtype))

    def asked(self, routine: str, *arguments: Any) -> tuple[Name, tuple[str, Name]]:
        """The workspace and its length, after a workspace query.

        In the arguments, `self.cell` represents the workspace, and -1 its length.
        """
        call, s = self.call, self.call.section
        fortran_calls.run(call, s, routine, self.dtype, *arguments)
        part = part_of(self.dtype)
        asked = s.value(f"load {in_register(part)}, ptr {self.cell}")
        count = s.larger(s.value(f"fptosi {in_register(part)} {asked} to i64"), "1")
        size = s.value(f"mul i64 {count}, {self.dtype.itemsize}")
        fortran_calls.check_lengths(call, count)
        return call.scratch(size), ("int", count)

    def whole_asked(self) -> tuple[Name, tuple[str, Name]]:
        """The memory for integers, as asked for in `self.whole`."""
        return self._other(self.whole, "i32", 4)

    def real_asked(self) -> tuple[Name, tuple[str, Name]]:
        """The memory for real numbers, as asked for in `self.real`."""
        part = part_of(self.dtype)
        return self._other(self.real, in_register(part), part.itemsize)

    def _other(self, cell: Name, kind: str, itemsize: int) -> tuple[Name, tuple[str, Name]]:
        s = self.call.section
        asked = s.value(f"load {kind}, ptr {cell}")
        word = "sext" if kind == "i32" else "fptosi"
        count = s.larger(s.value(f"{word} {kind} {asked} to i64"), "1")
        return self.call.scratch(s.value(f"mul i64 {count}, {itemsize}")), ("int", count)


def fails_unless_finite(call: KernelCall, s: Section, matrix: ArrayPointer) -> None:
    """Fail if an element is NaN or infinite."""
    part = part_of(matrix.dtype)
    each = 2 if matrix.dtype.kind == "c" else 1
    count = s.times(s.times(*[call.number(n) for n in matrix.shape]), str(each))
    cell = held(call, part)
    kind = in_register(part)
    s.write(f"store {kind} {call.language.constant(0, part).name}, ptr {cell}")
    with s.loop("0", count) as (t, i):  # 0 * x is not 0 where x is not finite
        x = read(call.language, t, offset(t, matrix.pointer, i, part), part)
        zero = t.value(f"fmul {kind} {x.name}, {call.language.constant(0, part).name}")
        old = t.value(f"load {kind}, ptr {cell}")
        t.write(f"store {kind} {t.value(f'fadd {kind} {old}, {zero}')}, ptr {cell}")
    total = s.value(f"load {kind}, ptr {cell}")
    call.fail_if(s.value(f"fcmp uno {kind} {total}, {total}"), 1, s)


def into_range(call: KernelCall, s: Section, matrix: ArrayPointer) -> Lane:
    """Scale a matrix in double precision by a power of two; returns the factor that undoes it.

    If the largest element is between 2**-450 and 2**450 the power is one.  geev scales such
    matrices itself, but in SciPy's build it does not undo that for the eigenvalues.
    """
    language, parts = call.language, 2 if matrix.dtype.kind == "c" else 1
    count = s.times(s.times(*[call.number(n) for n in matrix.shape]), str(parts))
    cell = held(call, F64)
    write(s, cell, language.constant(0, F64))
    with s.loop("0", count) as (t, i):
        size = language.unary("absolute", read(language, t, offset(t, matrix.pointer, i, F64), F64))
        write(t, cell, language.binary("maximum", read(language, t, cell, F64), size))
    bits = s.value(f"load i64, ptr {cell}")
    exponent = s.smaller(s.larger(s.value(f"lshr i64 {bits}, 52"), "1"), "2045")
    outside = s.value(f"icmp ugt i64 {s.value(f'sub i64 {exponent}, {1023 - 450}')}, 900")
    exponent = s.value(f"select i1 {outside}, i64 {exponent}, i64 1023")
    power = s.value(f"shl i64 {s.value(f'sub i64 2046, {exponent}')}, 52")
    with s.when(outside) as u:
        write(u, cell, Lane(language, u, u.value(f"bitcast i64 {power} to double"), F64, 1))
        with u.loop("0", count) as (t, i):
            pointer = offset(t, matrix.pointer, i, F64)
            factor = read(language, t, cell, F64)
            write(t, pointer, read(language, t, pointer, F64) * factor)
    undone = s.value(f"bitcast i64 {s.value(f'shl i64 {exponent}, 52')} to double")
    return Lane(language, s, undone, F64, 1)


def element(call: KernelCall, s: Section, matrix: ArrayPointer, i: Name, j: Name) -> Any:
    """An element as a lane."""
    return read(call.language, s, place(call, s, matrix, [i, j]), matrix.dtype)


def has_elements(node: Any) -> bool:
    """Whether no axis of an operand can have length zero."""
    lows = [bounds(n)[0] for a in node.inputs for n in a.spec.shape]
    return not any(low is None or low < 1 for low in lows)


def is_for_lapack(node: Any) -> bool:
    """Whether operands have elements, and the first result has a dtype of LAPACK."""
    spec = node.spec[0] if isinstance(node.spec, tuple) else node.spec
    return has_elements(node) and fortran_calls.is_of_blas(spec.dtype)


def working(dtype: Dtype) -> Dtype:
    """The dtype in which numpy.linalg computes: of double precision, float32 included."""
    return C128 if dtype.kind == "c" else F64

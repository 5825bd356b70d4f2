"""Calls of BLAS and LAPACK routines, whose arguments are passed by reference.

    run                emits the call of a routine
    call_shared        emits the call of a function that all programs share (index.py)
    number, integer    the address of an argument
    check_lengths      the kernel fails if a length does not fit into 32 bits

Numbers are stored in stack slots; constants are globals of the module.  Integers have 32 bits: if a
length needs more, the kernel fails, and the interpreter takes over.

    batches             loops over the leading axes
    batch_item          the matrix of an operand or a result at an index of these
    column_major        a matrix in Fortran order
    leading_dimension   the argument of that name
    working_dtype       the dtype in which numpy.linalg computes
    fail_on_error       the kernel fails if a routine does
    Workspace           the workspace of a routine, of the length that it queries
    scale_into_range    scales a matrix so that products of its elements are finite

Matrices are copied as by numpy.linalg, and passed to the same routines, so signs and orders that
are not unique are those of eager execution.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from wengert._engine.core.symbolic.dim import Length, bounds

from ..ir.ir_builder import Name, Section
from ..ir.llvm_types import C64, C128, F32, F64, Dtype, in_register, literal, part_of
from ..ir.simd_value import Lane
from ..runtime import library_symbols
from .index import address_of
from .kernel_call import ArrayPointer, KernelCall
from .loop_helpers import address, kind_of, nest, offset, read, stack_slot, write

_TYPE_PREFIXES = {F32: "s", F64: "d", C64: "c", C128: "z"}
_MAX_FORTRAN_INTEGER = 2**31 - 1
_BLAS = frozenset("gemm gemv syrk swap trmm trsm trsv".split())
_COMPLEX = {"syevd": "heevd", "orgqr": "ungqr"}  # routines with another name
# OpenBLAS uses all threads for these even for a 4 x 4 matrix, which takes 20 us, and milliseconds
# on a busy machine; for the others it decides by the size.
_WITH_ALL_THREADS = frozenset(["getrs", "laswp"])


def type_prefix(dtype: Dtype) -> str:
    """The letter of a dtype, with which the names of its routines begin."""
    return _TYPE_PREFIXES[dtype]


def is_of_blas(dtype: Dtype) -> bool:
    """Whether BLAS computes in this dtype."""
    return dtype in _TYPE_PREFIXES


def character(call: KernelCall, text: str) -> Name:
    """The address of a one-letter argument: "N", "U"."""
    return call.module.constant(f"character.{text}", "i8", str(ord(text)), 1)


def number(call: KernelCall, value: Any, dtype: Dtype) -> Name:
    """The address of a constant."""
    part = part_of(dtype)
    kind = kind_of(dtype)
    if dtype.kind == "c":
        z = complex(value)
        parts = [literal(z.real, part), literal(z.imag, part)]
        text = f"[{', '.join(f'{kind[5:-1]} {x}' for x in parts)}]"
        name = "_".join(parts)
    else:
        text = name = literal(value, part)
    return call.module.constant(f"number.{dtype.str[1:]}.{name}", kind, text, 16)


def integer(call: KernelCall, s: Section, value: Name) -> Name:
    """The address of an integer of 32 bits."""
    if value.lstrip("-").isdigit():
        return call.module.constant(f"number.i4.{value}", "i32", value, 4)
    cell = call.function.slot("i32")
    narrow = s.value(f"trunc i64 {value} to i32")
    s.write(f"store i32 {narrow}, ptr {cell}")
    return cell


def check_lengths(call: KernelCall, *lengths: Length | Name) -> None:
    """Fail if a length needs more than 32 bits."""
    for n in dict.fromkeys(map(call.number, lengths)):
        if n.isdigit():
            if int(n) > _MAX_FORTRAN_INTEGER:
                call.fail_if("true")
        else:
            call.fail_if(call.section.value(f"icmp sgt i64 {n}, {_MAX_FORTRAN_INTEGER}"))


def run(call: KernelCall, s: Section, routine: str, dtype: Dtype, *arguments: Any) -> None:
    """Write the call of a routine.

    Parameters
    ----------
    routine : str
        Its name for real numbers, without the letter of the dtype.
    *arguments
        A letter ("N"), an int, the i64 of an integer in a pair ("int", name), or a pointer.
    """
    if routine in _WITH_ALL_THREADS:
        call.limit_blas_threads()
    library = "blas" if routine in _BLAS else "lapack"
    name = type_prefix(dtype) + (_COMPLEX.get(routine, routine) if dtype.kind == "c" else routine)
    symbol = f"{library}.{name}"
    addresses = [_argument(call, s, a) for a in arguments]
    callee = call.external(
        symbol, library_symbols.address_of(symbol), "void", ["ptr"] * len(addresses)
    )
    s.write(f"call void {callee}({', '.join(f'ptr {a}' for a in addresses)})")


def _argument(call: KernelCall, s: Section, argument: int | str | tuple[str, ...]) -> Name:
    if isinstance(argument, tuple):
        return integer(call, s, argument[1])
    if isinstance(argument, int | np.integer):
        return integer(call, s, str(argument))
    if len(argument) == 1 and argument.isalpha():
        return character(call, argument)
    return str(argument)


def integer_slot(call: KernelCall) -> Name:
    """A stack slot for an integer that a routine writes: `info`."""
    return call.function.slot("i32")


def call_shared(
    call: KernelCall,
    s: Section,
    name: str,
    arguments: Sequence[tuple[str, Name]],
    result: str = "i64",
) -> None:
    """Write the call of a function; the kernel fails if it returns a status that is not zero.

    arguments : types and values.
    result : "void" if it returns none.
    """
    callee = call.external(name, address_of(name), result, [kind for kind, _ in arguments])
    text = f"call {result} {callee}({', '.join(f'{kind} {x}' for kind, x in arguments)})"
    if result == "void":
        s.write(text)
    else:
        call.fail_if(s.value(f"icmp ne i64 {s.value(text)}, 0"), 1, s)


# ---- matrices and workspaces for LAPACK ----------------------------------------------------------


@contextmanager
def batches(
    call: KernelCall, array: ArrayPointer, core: int
) -> Iterator[tuple[Section, list[Name]]]:
    """Loops over the axes of a result before its last `core` ones."""
    lead = array.shape[: len(array.shape) - core]
    with nest(call.section, [call.number(n) for n in lead]) as (s, indices):
        yield s, indices


def batch_item(
    call: KernelCall, s: Section, array: ArrayPointer, indices: Sequence[Name], core: int
) -> ArrayPointer:
    """The last `core` axes of an array, at an index of the other axes, which are broadcast."""
    count = len(array.shape) - core
    lead = array._replace(shape=array.shape[:count], strides=array.strides[:count])
    own_indices = indices[len(indices) - count :]
    own_indices = ["0" if n == 1 else i for i, n in zip(own_indices, lead.shape, strict=True)]
    pointer = address(call, s, lead, own_indices)
    return ArrayPointer(pointer, array.shape[count:], array.strides[count:], array.dtype)


def memory(call: KernelCall, count: Length, dtype: Dtype) -> Name:
    """Scratch memory for a number of elements."""
    return call.scratch(count * dtype.itemsize)


def column_major(pointer: Name, rows: Length, columns: Length, dtype: Dtype) -> ArrayPointer:
    """A matrix in Fortran order."""
    return ArrayPointer(pointer, (rows, columns), (1, rows), dtype)


def length(call: KernelCall, n: Length) -> tuple[str, Name]:
    """A length, as an argument of a routine."""
    return "int", call.number(n)


def leading_dimension(call: KernelCall, s: Section, n: Length) -> tuple[str, Name]:
    """The leading dimension of a matrix of n rows, as an argument; LAPACK requires at least one."""
    return "int", s.larger(call.number(n), "1")


def fail_on_error(call: KernelCall, s: Section, info: Name) -> None:
    """Fail unless `info`, the status of a routine, is 0."""
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
        self.cell = stack_slot(call, dtype)
        self.integer = call.function.slot("i32")
        self.real = stack_slot(call, part_of(dtype))

    def query(self, routine: str, *arguments: Any) -> tuple[Name, tuple[str, Name]]:
        """The workspace and its length, by a workspace query.

        `arguments` are those of the query: `self.cell` for the workspace, -1 for its length.
        """
        call, s = self.call, self.call.section
        run(call, s, routine, self.dtype, *arguments)
        part = part_of(self.dtype)
        query = s.value(f"load {in_register(part)}, ptr {self.cell}")
        count = s.larger(s.value(f"fptosi {in_register(part)} {query} to i64"), "1")
        size = s.value(f"mul i64 {count}, {self.dtype.itemsize}")
        check_lengths(call, count)
        return call.scratch(size), ("int", count)

    def integers(self) -> tuple[Name, tuple[str, Name]]:
        """The integer workspace and its length, which the query has written to `self.integer`."""
        return self._allocate(self.integer, "i32", 4)

    def reals(self) -> tuple[Name, tuple[str, Name]]:
        """The real workspace and its length, which the query has written to `self.real`."""
        part = part_of(self.dtype)
        return self._allocate(self.real, in_register(part), part.itemsize)

    def _allocate(self, cell: Name, kind: str, itemsize: int) -> tuple[Name, tuple[str, Name]]:
        s = self.call.section
        query = s.value(f"load {kind}, ptr {cell}")
        conversion = "sext" if kind == "i32" else "fptosi"
        count = s.larger(s.value(f"{conversion} {kind} {query} to i64"), "1")
        return self.call.scratch(s.value(f"mul i64 {count}, {itemsize}")), ("int", count)


def fail_unless_finite(call: KernelCall, s: Section, matrix: ArrayPointer) -> None:
    """Fail if an element is NaN or infinite."""
    part = part_of(matrix.dtype)
    parts = 2 if matrix.dtype.kind == "c" else 1
    count = s.times(s.times(*[call.number(n) for n in matrix.shape]), str(parts))
    cell = stack_slot(call, part)
    kind = in_register(part)
    s.write(f"store {kind} {call.language.constant(0, part).name}, ptr {cell}")
    with s.loop("0", count) as (t, i):  # 0 * x is not 0 where x is not finite
        x = read(call.language, t, offset(t, matrix.pointer, i, part), part)
        zero = t.value(f"fmul {kind} {x.name}, {call.language.constant(0, part).name}")
        old = t.value(f"load {kind}, ptr {cell}")
        t.write(f"store {kind} {t.value(f'fadd {kind} {old}, {zero}')}, ptr {cell}")
    total = s.value(f"load {kind}, ptr {cell}")
    call.fail_if(s.value(f"fcmp uno {kind} {total}, {total}"), 1, s)


def scale_into_range(call: KernelCall, s: Section, matrix: ArrayPointer) -> Lane:
    """Scale a matrix in double precision by a power of two; returns the factor that undoes it.

    The power is one if the largest element is between 2**-450 and 2**450.  geev scales other
    matrices itself, but in SciPy's build it does not undo the scaling of the eigenvalues.
    """
    language, parts = call.language, 2 if matrix.dtype.kind == "c" else 1
    count = s.times(s.times(*[call.number(n) for n in matrix.shape]), str(parts))
    cell = stack_slot(call, F64)
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
    inverse = s.value(f"bitcast i64 {s.value(f'shl i64 {exponent}, 52')} to double")
    return Lane(language, s, inverse, F64, 1)


def element(call: KernelCall, s: Section, matrix: ArrayPointer, i: Name, j: Name) -> Any:
    """An element as a lane."""
    return read(call.language, s, address(call, s, matrix, [i, j]), matrix.dtype)


def has_elements(node: Any) -> bool:
    """Whether no axis of an operand has length zero, for all sizes."""
    lows = [bounds(n)[0] for a in node.inputs for n in a.spec.shape]
    return not any(low is None or low < 1 for low in lows)


def is_for_lapack(node: Any) -> bool:
    """Whether no operand is empty, and LAPACK has the dtype of the first result."""
    spec = node.spec[0] if isinstance(node.spec, tuple) else node.spec
    return has_elements(node) and is_of_blas(spec.dtype)


def working_dtype(dtype: Dtype) -> Dtype:
    """The dtype in which numpy.linalg computes: double precision, for float32 too."""
    return C128 if dtype.kind == "c" else F64

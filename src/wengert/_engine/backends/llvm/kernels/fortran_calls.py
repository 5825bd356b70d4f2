"""Calls of BLAS and LAPACK routines, whose arguments are passed by reference.

    run                emits the call of a routine
    number, integer    the address of an argument
    check_lengths      the kernel fails if a length does not fit into 32 bits

Numbers are stored in stack slots; constants are globals of the module.  Integers have 32 bits: if a
length needs more, the kernel fails, and the interpreter takes over.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.ir_builder import Name, Section
from ..ir.llvm_types import C64, C128, F32, F64, Dtype, literal, part_of
from ..runtime import library_symbols
from .kernel_call import KernelCall
from .loop_helpers import kind_of

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


def check_lengths(call: KernelCall, *lengths: Name) -> None:
    """Fail if a length needs more than 32 bits."""
    for n in dict.fromkeys(lengths):
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

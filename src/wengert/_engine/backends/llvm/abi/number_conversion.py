"""Python numbers as values of ports, converted as `argument_conversion.fitted` does.

A bool may be given for any number, an int for a float, a float for a complex number, never the
reverse; an int must be in the range of the dtype.  Rounding is NumPy's: to nearest, once.  Integers
beyond 64 bits, and dtypes that processors do not compute with (float16, longdouble), take the slow
path.

    accepted    which Python types may be given for a spec
    converted   the instructions that store the value of one of them in a stack slot
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.spec import Spec

from ..ir.ir_builder import Name
from ..ir.llvm_types import in_memory, in_register, is_supported, part_of
from .cpython_layout import VALUE
from .entry_builder import EntryBuilder

CELL = "[16 x i8]"
_KINDS = {"b": "bool", "i": "int", "u": "int", "f": "float", "c": "complex"}
_LOWER = {
    "bool": ("bool",),
    "int": ("int", "bool"),
    "float": ("float", "int", "bool"),
    "complex": ("complex", "float", "int", "bool"),
}


def accepted(spec: Spec, lenient: bool) -> tuple[str, ...]:
    """The Python types that may be given for a value of this spec."""
    dtype = spec.dtype
    if not is_supported(dtype) or (dtype.itemsize == 2 and dtype.kind == "f"):
        return ()
    kind = _KINDS[dtype.kind]
    if lenient:
        return _LOWER[kind]
    return (kind,) if spec.weak else ()


def converted(
    writer: EntryBuilder, number: str, given: Name, dtype: np.dtype[Any], cell: Name
) -> None:
    """Write the value of a Python number into a cell, in a dtype."""
    part = part_of(dtype)
    if number == "complex":
        for k in range(2):
            value = _rounded(writer, writer.load("double", given, VALUE + 8 * k), part)
            writer.store(in_memory(part), value, cell, part.itemsize * k)
        return
    if number == "float":
        value = _rounded(writer, writer.load("double", given, VALUE), part)
    else:
        whole = _whole(writer, number, given)
        value = _of_whole(writer, whole, part)
    writer.store(in_memory(part), value, cell)
    if dtype.kind == "c":
        writer.store(in_memory(part), "0.0", cell, part.itemsize)


def _rounded(writer: EntryBuilder, value: Name, part: np.dtype[Any]) -> Name:
    return writer.value(f"fptrunc double {value} to float") if part.itemsize == 4 else value


def _whole(writer: EntryBuilder, number: str, given: Name) -> Name:
    """The i64 value of an int or a bool; those beyond 64 bits take the slow path."""
    if number == "bool":
        true = writer.same(given, writer.word("True"))
        return writer.value(f"zext i1 {true} to i64")
    over = writer.function.slot("i32")
    value = writer.call("PyLong_AsLongLongAndOverflow", "i64", f"ptr {given}", f"ptr {over}")
    writer.check(writer.same(writer.load("i32", over), "0", "i32"))
    return value


def _of_whole(writer: EntryBuilder, value: Name, part: np.dtype[Any]) -> Name:
    if part.kind == "f":
        return writer.value(f"sitofp i64 {value} to {in_register(part)}")
    kind = in_memory(part)
    if part.kind == "u" and part.itemsize == 8:
        writer.check(writer.value(f"icmp sge i64 {value}, 0"))
        return value
    if kind == "i64":
        return value
    less = writer.value(f"trunc i64 {value} to {kind}")
    extension = "sext" if part.kind == "i" else "zext"
    back = writer.value(f"{extension} {kind} {less} to i64")
    writer.check(writer.same(back, value, "i64"))
    return less

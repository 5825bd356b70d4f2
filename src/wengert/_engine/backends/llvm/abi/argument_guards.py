"""Argument guards: whether an argument is what the native function was compiled for.

The guards accept a part of what `argument_conversion.fitted` accepts, with the same meaning; other
arguments take the slow path.  An array must be a plain ndarray (subclasses may redefine operations)
with the dtype of the port, aligned, and contiguous unless the port takes strides.  A 0-d value may
be a NumPy scalar, a 0-d array, or, where the port is a Python number's (or the entry point is
lenient), a Python number, which is stored in a stack slot.

    kinds     the types of all arguments
    header    dtype, rank and flags of an array
    read      the data pointer, lengths and strides of an array
    number    a 0-d value
    lengths   the lengths of all arrays: they bind symbolic sizes, then are compared with them
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.symbolic.dim import Dim, names_in

from ..ir.ir_builder import Name
from .address_table import canonical
from .cpython_layout import (
    ALIGNED,
    BYTE_ORDER,
    C_CONTIGUOUS,
    DATA,
    DESCR,
    DIMENSIONS,
    F_CONTIGUOUS,
    FLAGS,
    NDIM,
    NUMBER,
    STRIDES,
    TYPE,
    VALUE,
)
from .entry_builder import EntryBuilder, FunctionBuilder
from .number_conversion import CELL, accepted, converted
from .ports import Port

Filled = list[tuple[int, str, Name]]  # slots of the frame, with the type and value they get


def is_servable(dtype: np.dtype[Any]) -> bool:
    """Whether there are arrays of this dtype whose data is nothing but numbers."""
    return dtype.kind in "biufc" and dtype.isnative


def kinds(writer: EntryBuilder, ports: Sequence[Port], arguments: Sequence[Name]) -> list[Name]:
    """Check that arguments that need be arrays are; the types of all arguments."""
    found = [writer.load("ptr", argument, TYPE) for argument in arguments]
    for port, kind in zip(ports, found, strict=True):
        if port.spec.shape:
            writer.check(writer.same(kind, writer.word("ndarray")))
    writer.settle()
    return found


def header(writer: EntryBuilder, port: Port, array: Name) -> None:
    """Check dtype, rank and flags of an ndarray.

    The dtype is looked at and not compared with the object that most arrays share: arrays that
    were pickled have one of their own.
    """
    dtype = canonical(port.spec.dtype)
    writer.check(writer.same(writer.load("i32", array, NDIM), str(port.spec.ndim), "i32"))
    found = writer.load("ptr", array, DESCR)
    writer.check(writer.same(writer.load("i32", found, NUMBER), str(dtype.num), "i32"))
    order = str(ord(dtype.byteorder))
    writer.check(writer.same(writer.load("i8", found, BYTE_ORDER), order, "i8"))
    order_of_axes = F_CONTIGUOUS if port.fortran else C_CONTIGUOUS
    wanted = ALIGNED if port.strided else ALIGNED | order_of_axes
    flags = writer.value(f"and i32 {writer.load('i32', array, FLAGS)}, {wanted}")
    writer.check(writer.same(flags, str(wanted), "i32"))


def read(writer: EntryBuilder, port: Port, array: Name) -> tuple[Filled, list[Any]]:
    """The values of an array's slots, and its lengths paired with the port's."""
    dimensions = writer.load("ptr", array, DIMENSIONS)
    found = [
        (length, writer.load("i64", dimensions, 8 * k)) for k, length in enumerate(port.spec.shape)
    ]
    filled: Filled = [(port.slot, "ptr", writer.load("ptr", array, DATA))]
    if port.strided:
        strides = writer.load("ptr", array, STRIDES)
        for k in range(len(found)):
            stride = writer.load("i64", strides, 8 * k)
            rest = writer.value(f"srem i64 {stride}, {port.spec.dtype.itemsize}")
            writer.check(writer.same(rest, "0", "i64"))
            filled.append((port.slot + 1 + k, "i64", stride))
    return filled, found


# ---- values without axes ------------------------------------------------------------------------


def number(writer: EntryBuilder, port: Port, given: Name, kind: Name, lenient: bool) -> Name:
    """The address of a value without axes, of whatever type it is.

    Parameters
    ----------
    given, kind : Name
        The argument and its type.
    lenient : bool
        A Python number may stand for a value that was none when the graph was built.
    """
    where = writer.function.slot("ptr")
    done = writer.fresh("done")
    dtype = canonical(port.spec.dtype)
    numbers = accepted(port.spec, lenient)
    if not port.spec.weak:
        with_word = writer.same(kind, writer.word(f"scalar.{dtype.str}"))
        no = _chosen(writer, with_word)
        writer.store("ptr", writer.at(given, VALUE), where)
        writer.go(done)
        writer.label(no)
        no = _chosen(writer, writer.same(kind, writer.word("ndarray")))
        header(writer, Port(port.spec, port.slot), given)
        writer.store("ptr", writer.load("ptr", given, DATA), where)
        writer.go(done)
        writer.label(no)
    cell = writer.function.slot(CELL, 16) if numbers else ""
    for name in numbers:
        no = _chosen(writer, _is_a(writer, name, given, kind))
        converted(writer, name, given, dtype, cell)
        writer.store("ptr", cell, where)
        writer.go(done)
        writer.label(no)
    writer.go("miss")
    writer.label(done)
    return writer.load("ptr", where)


def _chosen(writer: EntryBuilder, condition: Name) -> str:
    """Go on where an i1 holds; the label for where it does not, to be set later."""
    yes, no = writer.fresh("yes"), writer.fresh("no")
    writer.branch(condition, yes, no)
    writer.label(yes)
    return no


def _is_a(writer: EntryBuilder, name: str, given: Name, kind: Name) -> Name:
    if name != "bool":
        return writer.same(kind, writer.word(name))
    true, false = (writer.same(given, writer.word(x)) for x in ("True", "False"))
    return writer.value(f"or i1 {true}, {false}")


# ---- lengths ------------------------------------------------------------------------------------


def lengths(
    writer: FunctionBuilder, found: Iterable[tuple[Any, Name]], sizes: Iterable[str]
) -> bool:
    """Check lengths of all arguments; False if a size is in none that it can be read off.

    A number is compared; a size that is a length by itself is bound where it is first met, and
    compared where it is met again; an expression is compared once its sizes are known.
    """
    waiting: list[tuple[Any, Name]] = []
    known = writer.lengths
    for length, number in found:
        name = _alone(length)
        if not isinstance(length, Dim):
            writer.check(writer.same(number, str(length), "i64"))
        elif name is None:
            waiting.append((length, number))
        elif name in known.bound:
            writer.check(writer.same(number, known.bound[name], "i64"))
        else:
            writer.check(writer.value(f"icmp sge i64 {number}, 1"))
            known.bound[name] = number
    for length, number in waiting:
        if not known.is_known(length):
            known.solve(length, number)
    for length, number in waiting:
        if not known.is_known(length):
            return False
        writer.check(writer.same(number, known.number(length), "i64"))
    return set(sizes) <= known.bound.keys()


def _alone(length: Any) -> str | None:
    """The symbolic size that a length consists of, or None."""
    names = names_in([length])
    if len(names) != 1:
        return None
    (name,) = names
    return name if length._terms == {((name, 1),): 1} else None

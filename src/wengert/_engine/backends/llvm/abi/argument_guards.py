"""Checks of arguments: types, dtypes, shapes and strides must be those of the program.

The checks accept a subset of what `argument_conversion.fitted` accepts, with the same meaning;
other arguments take the slow path.  An array must be a plain ndarray (subclasses may redefine
operations) with the dtype of the port, aligned, and contiguous unless the port takes strides.  A
0-d value may be a NumPy scalar, a 0-d array, or, if the port is weakly typed or
`accept_python_numbers` is set, a Python number, which is stored in a stack slot.

    kinds     the types of all arguments
    header    dtype, rank and flags of an array
    read      data pointer, lengths and strides of an array
    number    a 0-d value
    lengths   the lengths of all arrays: they bind the symbolic sizes, or are compared with them
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
from .ports import CELL, Port, accepted, converted

Filled = list[tuple[int, str, Name]]  # frame slots with the type and value stored in them


def is_servable(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of this dtype hold native-endian numbers only."""
    return dtype.kind in "biufc" and dtype.isnative


def kinds(builder: EntryBuilder, ports: Sequence[Port], arguments: Sequence[Name]) -> list[Name]:
    """Load the types of all arguments; check that array ports get arrays."""
    found = [builder.load("ptr", argument, TYPE) for argument in arguments]
    for port, kind in zip(ports, found, strict=True):
        if port.spec.shape:
            builder.check(builder.same(kind, builder.word("ndarray")))
    builder.branch_on_checks()
    return found


def header(builder: EntryBuilder, port: Port, array: Name) -> None:
    """Check dtype, rank and flags of an ndarray.

    Type number and byte order are compared, not the dtype's address: unpickled arrays have their
    own dtype objects.
    """
    dtype = canonical(port.spec.dtype)
    builder.check(builder.same(builder.load("i32", array, NDIM), str(port.spec.ndim), "i32"))
    found = builder.load("ptr", array, DESCR)
    builder.check(builder.same(builder.load("i32", found, NUMBER), str(dtype.num), "i32"))
    order = str(ord(dtype.byteorder))
    builder.check(builder.same(builder.load("i8", found, BYTE_ORDER), order, "i8"))
    order_of_axes = F_CONTIGUOUS if port.fortran else C_CONTIGUOUS
    wanted = ALIGNED if port.strided else ALIGNED | order_of_axes
    flags = builder.value(f"and i32 {builder.load('i32', array, FLAGS)}, {wanted}")
    builder.check(builder.same(flags, str(wanted), "i32"))


def read(builder: EntryBuilder, port: Port, array: Name) -> tuple[Filled, list[Any]]:
    """The slots of an array, and its lengths, each paired with that of the spec."""
    dimensions = builder.load("ptr", array, DIMENSIONS)
    found = [
        (length, builder.load("i64", dimensions, 8 * k)) for k, length in enumerate(port.spec.shape)
    ]
    filled: Filled = [(port.slot, "ptr", builder.load("ptr", array, DATA))]
    if port.strided:
        strides = builder.load("ptr", array, STRIDES)
        for k in range(len(found)):
            stride = builder.load("i64", strides, 8 * k)
            rest = builder.value(f"srem i64 {stride}, {port.spec.dtype.itemsize}")
            builder.check(builder.same(rest, "0", "i64"))
            filled.append((port.slot + 1 + k, "i64", stride))
    return filled, found


# ---- 0-d values ---------------------------------------------------------------------------------


def number(
    builder: EntryBuilder, port: Port, argument: Name, kind: Name, accept_python_numbers: bool
) -> Name:
    """The address of the data of a 0-d argument.

    Parameters
    ----------
    argument, kind : Name
        The argument and its type.
    accept_python_numbers : bool
        Accept Python numbers even if the port is strongly typed.
    """
    where = builder.function.slot("ptr")
    done = builder.fresh("done")
    dtype = canonical(port.spec.dtype)
    numbers = accepted(port.spec, accept_python_numbers)
    if not port.spec.weak:
        is_scalar = builder.same(kind, builder.word(f"scalar.{dtype.str}"))
        no = _branch_if(builder, is_scalar)
        builder.store("ptr", builder.at(argument, VALUE), where)
        builder.go(done)
        builder.label(no)
        no = _branch_if(builder, builder.same(kind, builder.word("ndarray")))
        header(builder, Port(port.spec, port.slot), argument)
        builder.store("ptr", builder.load("ptr", argument, DATA), where)
        builder.go(done)
        builder.label(no)
    cell = builder.function.slot(CELL, 16) if numbers else ""
    for name in numbers:
        no = _branch_if(builder, _is_a(builder, name, argument, kind))
        converted(builder, name, argument, dtype, cell)
        builder.store("ptr", cell, where)
        builder.go(done)
        builder.label(no)
    builder.go("miss")
    builder.label(done)
    return builder.load("ptr", where)


def _branch_if(builder: EntryBuilder, condition: Name) -> str:
    """Begin the block for a true condition; returns the label of the other, not yet placed."""
    yes, no = builder.fresh("yes"), builder.fresh("no")
    builder.branch(condition, yes, no)
    builder.label(yes)
    return no


def _is_a(builder: EntryBuilder, name: str, argument: Name, kind: Name) -> Name:
    if name != "bool":
        return builder.same(kind, builder.word(name))
    true, false = (builder.same(argument, builder.word(x)) for x in ("True", "False"))
    return builder.value(f"or i1 {true}, {false}")


# ---- lengths ------------------------------------------------------------------------------------


def lengths(
    builder: FunctionBuilder, found: Iterable[tuple[Any, Name]], sizes: Iterable[str]
) -> bool:
    """Check the lengths of all arguments; False if a symbolic size cannot be determined.

    Integers are compared.  A length that is a single size binds the size at its first occurrence
    and is compared at later ones; expressions are compared once their sizes are known.
    """
    waiting: list[tuple[Any, Name]] = []
    known = builder.lengths
    for length, number in found:
        name = _single_size(length)
        if not isinstance(length, Dim):
            builder.check(builder.same(number, str(length), "i64"))
        elif name is None:
            waiting.append((length, number))
        elif name in known.bound:
            builder.check(builder.same(number, known.bound[name], "i64"))
        else:
            builder.check(builder.value(f"icmp sge i64 {number}, 1"))
            known.bound[name] = number
    for length, number in waiting:
        if not known.is_known(length):
            known.solve(length, number)
    for length, number in waiting:
        if not known.is_known(length):
            return False
        builder.check(builder.same(number, known.number(length), "i64"))
    return set(sizes) <= known.bound.keys()


def _single_size(length: Any) -> str | None:
    """The symbolic size that is the whole length, or None."""
    names = names_in([length])
    if len(names) != 1:
        return None
    (name,) = names
    return name if length._terms == {((name, 1),): 1} else None

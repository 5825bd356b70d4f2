"""Ports: inputs and outputs of native functions; the table of addresses that entry points load.

    accepted       the Python types that are accepted for a spec
    converted      the instructions that store a number in a stack slot
    TableLayout    the index of each word, used by code generation and to fill the table
    WORDS          the indices of the words that every table begins with
    canonical      the dtype object that arrays share

A bool is accepted for any number, an int for a float, a float for a complex number, but not the
reverse; an int must be in the range of the dtype.  Rounding is NumPy's: to nearest, once.  Integers
beyond 64 bits, and dtypes without arithmetic on the processor (float16, longdouble), take the slow
path.

The frame is the array of 8-byte slots that is passed to the function; see
docs/design/0009-native.md.  Ports and `CallInterface` are all that the function and its callers
share.

The code of an entry point contains no addresses, so its object file can be cached and used by
another process.  Addresses are in a table of 8-byte words that the function object owns: functions
of CPython and NumPy, types and dtypes, the callables for failed checks, constants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import Requirement

from ..ir.ir_builder import Name
from ..ir.llvm_types import in_memory, in_register, is_supported, part_of
from . import cpython_layout
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


def accepted(spec: Spec, any_number: bool) -> tuple[str, ...]:
    """The Python types that are accepted for a value of this spec."""
    dtype = spec.dtype
    if not is_supported(dtype) or (dtype.itemsize == 2 and dtype.kind == "f"):
        return ()
    kind = _KINDS[dtype.kind]
    if any_number:
        return _LOWER[kind]
    return (kind,) if spec.weak else ()


def converted(
    builder: EntryBuilder, number: str, argument: Name, dtype: np.dtype[Any], cell: Name
) -> None:
    """Store a Python number in a stack slot, converted to a dtype."""
    part = part_of(dtype)
    if number == "complex":
        for k in range(2):
            value = _rounded(builder, builder.load("double", argument, VALUE + 8 * k), part)
            builder.store(in_memory(part), value, cell, part.itemsize * k)
        return
    if number == "float":
        value = _rounded(builder, builder.load("double", argument, VALUE), part)
    else:
        integer = _integer(builder, number, argument)
        value = _from_integer(builder, integer, part)
    builder.store(in_memory(part), value, cell)
    if dtype.kind == "c":
        builder.store(in_memory(part), "0.0", cell, part.itemsize)


def _rounded(builder: EntryBuilder, value: Name, part: np.dtype[Any]) -> Name:
    return builder.value(f"fptrunc double {value} to float") if part.itemsize == 4 else value


def _integer(builder: EntryBuilder, number: str, argument: Name) -> Name:
    """The i64 value of an int or a bool; integers beyond 64 bits take the slow path."""
    if number == "bool":
        true = builder.same(argument, builder.word("True"))
        return builder.value(f"zext i1 {true} to i64")
    overflow = builder.function.slot("i32")
    value = builder.call(
        "PyLong_AsLongLongAndOverflow", "i64", f"ptr {argument}", f"ptr {overflow}"
    )
    builder.check(builder.same(builder.load("i32", overflow), "0", "i32"))
    return value


def _from_integer(builder: EntryBuilder, value: Name, part: np.dtype[Any]) -> Name:
    if part.kind == "f":
        return builder.value(f"sitofp i64 {value} to {in_register(part)}")
    kind = in_memory(part)
    if part.kind == "u" and part.itemsize == 8:
        builder.check(builder.value(f"icmp sge i64 {value}, 0"))
        return value
    if kind == "i64":
        return value
    truncated = builder.value(f"trunc i64 {value} to {kind}")
    extension = "sext" if part.kind == "i" else "zext"
    restored = builder.value(f"{extension} {kind} {truncated} to i64")
    builder.check(builder.same(restored, value, "i64"))
    return truncated


@dataclass(frozen=True)
class Port:
    """A graph input or output that is passed between Python and native code.

    Attributes
    ----------
    spec : Spec
        Its lengths may be symbolic sizes.
    slot : int
        The frame slot that holds the address of its data.
    strided : bool
        The strides, in bytes, are in the slots that follow; otherwise the data is contiguous.
    fortran : bool
        The data is contiguous in Fortran order, not in C order.
    """

    spec: Spec
    slot: int
    strided: bool = False
    fortran: bool = False


class CallInterface(Protocol):
    """The properties of a program that its callers need; `Program` implements it.

    Attributes
    ----------
    inputs, outputs : sequence of Port
        The graph's inputs, then its variables; its outputs, then the updates of variables.
    sizes : sequence of str
        The symbolic sizes.
    size_slots : sequence of int
        The slot of each of them.
    slots : int
        The length of the frame.
    constants : sequence of (int, numpy.ndarray)
        Slots, with the arrays whose addresses are stored in them.
    requirements : sequence of Requirement
        Conditions of the graph on the sizes.
    """

    @property
    def inputs(self) -> Sequence[Port]: ...

    @property
    def outputs(self) -> Sequence[Port]: ...

    @property
    def sizes(self) -> Sequence[str]: ...

    @property
    def size_slots(self) -> Sequence[int]: ...

    @property
    def slots(self) -> int: ...

    @property
    def constants(self) -> Sequence[tuple[int, Any]]: ...

    @property
    def requirements(self) -> Sequence[Requirement]: ...


def sends_messages(program: Any) -> bool:
    """Whether a run exchanges messages with other processes, and waits for them."""
    return any(name.startswith("mpi.function.") for name in getattr(program, "symbols", ()))


# ---- the table of an entry point -----------------------------------------------------------------


OWN = ("miss", "failed", "callback_error", "handler", "gate")  # callables of each entry point
# Functions that all entry points call (abi/python_function.py).
SHARED = ("new", "drop", "make_tuple")
_FIRST = (*OWN, *SHARED, *cpython_layout.PYTHON, *cpython_layout.NUMPY, *cpython_layout.OBJECTS)
WORDS = {name: k for k, name in enumerate(_FIRST)}
WORDS = {name: k for k, name in enumerate(_FIRST)}  # their positions in every table


def canonical(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype object that most arrays of this dtype share."""
    return np.dtype(dtype.str)


class TableLayout:
    """The index of each word of the table of a program.

    Attributes
    ----------
    words : dict from str to int
        The index of each word, by name.
    dtypes : list of numpy.dtype
        The dtypes of inputs and outputs.
    """

    def __init__(self, program: CallInterface) -> None:
        ports = (*program.inputs, *program.outputs)
        self.dtypes = list(dict.fromkeys(canonical(port.spec.dtype) for port in ports))
        names = list(WORDS)
        for dtype in self.dtypes:
            names += [f"{field}.{dtype.str}" for field in ("dtype", "scalar", "allocate")]
        names += [f"constant.{slot}" for slot, _ in program.constants]
        self.words = {name: k for k, name in enumerate(names)}

    def filled(self, own_words: Mapping[str, int], program: CallInterface) -> tuple[Any, list[Any]]:
        """The table as an array, and the objects that must outlive it.

        Parameters
        ----------
        own_words : mapping from str to int
            The words of `OWN` and `SHARED`.
        """
        values = {**cpython_layout.addresses(), **own_words}
        owners: list[Any] = []
        for dtype in self.dtypes:
            scalar = dtype.type
            owners += [dtype, scalar]
            values[f"dtype.{dtype.str}"] = id(dtype)
            values[f"scalar.{dtype.str}"] = id(scalar)
            values[f"allocate.{dtype.str}"] = cpython_layout.allocator(scalar)
        for slot, array in program.constants:
            owners.append(array)
            values[f"constant.{slot}"] = array.ctypes.data
        table = np.array([values[name] for name in self.words], np.uint64)
        table.flags.writeable = False  # Python code can reach it through the function object
        return table, owners

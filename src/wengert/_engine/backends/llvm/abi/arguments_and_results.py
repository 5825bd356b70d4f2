"""Arguments and results of entry points: checks of the former, objects for the latter.

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

Arrays are allocated before the native function runs, which writes into their memory; 0-d results
are written to stack slots and become objects afterwards: NumPy scalars, as in other backends
(argument_conversion.py), but weakly typed integers Python ints.

    Results                  the result objects of one entry point
    is_single, nesting_of    the containers of the results

All objects are in one array on the stack, initially null.  A failure branches to the block
``drop``, which releases those that are not null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.symbolic.dim import Dim, names_in

from ..ir.ir_builder import Name
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
from .ports import CELL, Port, accepted, canonical, converted

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


# ---- results -------------------------------------------------------------------------------------


_WIDE = "[32 x i8]"  # a stack slot for a complex longdouble


class Results:
    """Makes the results of one entry point.

    Parameters
    ----------
    python_results : bool
        Return weakly typed results as Python numbers.
    donated : mapping from int to Name
        The arguments into which results are written, by result.
    """

    def __init__(
        self,
        builder: EntryBuilder,
        ports: Sequence[Port],
        python_results: bool,
        donated: Mapping[int, Name],
    ) -> None:
        self._builder, self._ports, self._python_results = builder, ports, python_results
        self._donated = donated
        self._objects = builder.function.slot(f"[{max(len(ports), 1)} x ptr]", 8)
        self._cells: dict[int, Name] = {}
        self._shapes: list[list[Name]] = []

    # ---- before the run ------------------------------------------------------------------------

    def measure(self) -> None:
        """Compute all lengths, and check that they are not negative."""
        builder = self._builder
        for port in self._ports:
            shape = [builder.lengths.number(length) for length in port.spec.shape]
            for number in shape:
                if number.startswith("%") and number not in builder.lengths.bound.values():
                    builder.check(builder.value(f"icmp sge i64 {number}, 0"))
            self._shapes.append(shape)

    def arrays(self) -> list[tuple[int, Name]]:
        """Allocate the arrays, and stack slots for 0-d results; frame slots with addresses."""
        builder = self._builder
        filled = []
        for k in range(len(self._ports)):
            builder.store("ptr", "null", self._objects, 8 * k)
        for k, array in self._donated.items():
            builder.call("Py_IncRef", "void", f"ptr {array}")
            builder.store("ptr", array, self._objects, 8 * k)
        for k, port in enumerate(self._ports):
            if k in self._donated:
                continue
            if port.spec.shape:
                filled.append((port.slot, builder.load("ptr", self._array(k, port), DATA)))
            else:
                wide = port.spec.dtype.itemsize > 16
                self._cells[k] = builder.function.slot(_WIDE if wide else CELL, 16)
                filled.append((port.slot, self._cells[k]))
        return filled

    def _array(self, k: int, port: Port) -> Name:
        builder = self._builder
        lengths = builder.function.slot(f"[{port.spec.ndim} x i64]", 8)
        for axis, number in enumerate(self._shapes[k]):
            builder.store("i64", number, lengths, 8 * axis)
        made = builder.made(
            "new",
            "drop",
            f"ptr {builder.table}",
            f"ptr {builder.word(f'dtype.{canonical(port.spec.dtype).str}')}",
            f"i32 {port.spec.ndim}",
            f"ptr {lengths}",
            f"i64 {builder.lengths.roughly(bytes_of(port))}",
        )
        builder.store("ptr", made, self._objects, 8 * k)
        return made

    # ---- after the run -------------------------------------------------------------------------

    def finish(self, single: bool, nesting: Any = None) -> Name:
        """Make the 0-d results, then the result of the call: the only one, or a tuple.

        `nesting` has the result indices in nested tuples, if these are returned.
        """
        builder = self._builder
        for k, cell in self._cells.items():
            builder.store("ptr", self._scalar(self._ports[k], cell), self._objects, 8 * k)
        if single:
            return builder.load("ptr", self._objects)
        if nesting is not None:
            return builder.load("ptr", self._objects, 8 * self._nested(nesting))
        return builder.made("make_tuple", "drop", *self._all())

    def _nested(self, nesting: int | tuple[Any, ...]) -> int:
        """The index of the object of a nested tuple, which takes the references to its items."""
        if isinstance(nesting, int):
            return nesting
        builder = self._builder
        inner = [self._nested(x) for x in nesting]
        items = builder.function.slot(f"[{len(inner)} x ptr]", 8)
        for k, which in enumerate(inner):
            builder.store("ptr", builder.load("ptr", self._objects, 8 * which), items, 8 * k)
        items_of = f"ptr {builder.table}", f"ptr {items}", f"i64 {len(inner)}"
        made = builder.made("make_tuple", "drop", *items_of)
        for which in inner:
            builder.store("ptr", "null", self._objects, 8 * which)
        builder.store("ptr", made, self._objects, 8 * inner[0])
        return inner[0]

    def _all(self) -> tuple[str, str, str]:
        table, objects = self._builder.table, self._objects
        return f"ptr {table}", f"ptr {objects}", f"i64 {len(self._ports)}"

    def drop(self, end: str) -> None:
        """Write the block that releases all objects and branches to `end`."""
        self._builder.label("drop")
        self._builder.call("drop", "void", *self._all())
        self._builder.go(end)

    def _scalar(self, port: Port, cell: Name) -> Name:
        builder, dtype, weak = self._builder, canonical(port.spec.dtype), port.spec.weak
        if dtype.kind == "b":
            return self._bool(cell, "" if weak and self._python_results else "np.")
        if weak and (self._python_results or dtype.kind in "iu"):
            return self._number(dtype, cell)
        kind = builder.word(f"scalar.{dtype.str}")
        made = builder.made(f"allocate.{dtype.str}", "drop", f"ptr {kind}", "i64 0")
        bits, align = f"i{8 * dtype.itemsize}", min(dtype.itemsize, 8)
        value = builder.value(f"load {bits}, ptr {cell}, align {align}")
        builder.write(f"store {bits} {value}, ptr {builder.at(made, VALUE)}, align {align}")
        return made

    def _bool(self, cell: Name, prefix: str) -> Name:
        """True or False, of Python or of NumPy."""
        builder = self._builder
        true, false = (builder.word(f"{prefix}{name}") for name in ("True", "False"))
        is_true = builder.value(f"icmp ne i8 {builder.load('i8', cell)}, 0")
        chosen = builder.value(f"select i1 {is_true}, ptr {true}, ptr {false}")
        builder.call("Py_IncRef", "void", f"ptr {chosen}")
        return chosen

    def _number(self, dtype: np.dtype[Any], cell: Name) -> Name:
        """A Python number."""
        builder = self._builder
        if dtype.kind in "iu":
            small = f"i{8 * dtype.itemsize}"
            value = builder.load(small, cell)
            if small != "i64":
                value = builder.value(
                    f"{'sext' if dtype.kind == 'i' else 'zext'} {small} {value} to i64"
                )
            name = "PyLong_FromLongLong" if dtype.kind == "i" else "PyLong_FromUnsignedLongLong"
            return builder.made(name, "drop", f"i64 {value}")
        parts = [builder.load("double", cell, 8 * k) for k in range(dtype.itemsize // 8)]
        name = "PyFloat_FromDouble" if len(parts) == 1 else "PyComplex_FromDoubles"
        return builder.made(name, "drop", *(f"double {part}" for part in parts))


def bytes_of(port: Port) -> Any:
    """The size in bytes of the data of a port, a Length."""
    size: Any = port.spec.dtype.itemsize
    for length in port.spec.shape:
        size = size * length
    return size


# ---- the structure of results -------------------------------------------------------------------


def is_single(graph: BaseGraph) -> bool:
    """Whether a call of the graph returns its only output itself, not in a container."""
    results = graph.structure[1]
    if graph.updates or not all(getattr(results, "live", (True,))):
        return False
    structure = getattr(results, "structure", results)
    return len(graph.outputs) == 1 and structure.is_leaf() is True


def nesting_of(graph: BaseGraph) -> Any:
    """The result indices in the nested tuples that a call returns, or None if it does not."""
    results = graph.structure[1]
    if graph.updates or not all(getattr(results, "live", (True,))):
        return None
    structure = getattr(results, "structure", results)
    numbers = pytree.unflatten(structure, list(range(structure.num_leaves)))
    return numbers if _is_tuple(numbers) and any(map(_is_tuple, numbers)) else None


def _is_tuple(x: int | Sequence[int]) -> bool:
    """Whether it is a nonempty tuple of integers and such tuples."""
    return type(x) is tuple and bool(x) and all(type(y) is int or _is_tuple(y) for y in x)

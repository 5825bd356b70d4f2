"""Result objects, and their release when something fails.

Arrays are allocated before the native function runs, which writes into their memory; 0-d results
are written into stack slots and become objects afterwards: NumPy scalars, as other backends return
them (copy_on_return.py), a weakly typed integer as a Python int.

    Results                  the objects of one entry
    is_single, nesting_of    containers of results

All objects are in one array on the stack, null at first.  A failure branches to the block ``drop``,
which releases those that are not null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.graph import BaseGraph

from ..ir.ir_builder import Name
from .address_table import canonical
from .cpython_layout import DATA, VALUE
from .entry_builder import EntryBuilder
from .number_conversion import CELL
from .ports import Port

_WIDE = "[32 x i8]"  # a cell for a complex longdouble


class Results:
    """Makes the results of one entry.

    Parameters
    ----------
    numbers : bool
        Weak results are Python numbers.
    given : mapping from int to Name
        The arrays, for results that are arguments written to in place.
    """

    def __init__(
        self, writer: EntryBuilder, ports: Sequence[Port], numbers: bool, given: Mapping[int, Name]
    ) -> None:
        self._writer, self._ports, self._numbers = writer, ports, numbers
        self._given = given
        self._objects = writer.function.slot(f"[{max(len(ports), 1)} x ptr]", 8)
        self._cells: dict[int, Name] = {}
        self._shapes: list[list[Name]] = []

    # ---- before the run ------------------------------------------------------------------------

    def measure(self) -> None:
        """Compute all lengths, with checks."""
        writer = self._writer
        for port in self._ports:
            shape = [writer.lengths.number(length) for length in port.spec.shape]
            for number in shape:
                if number.startswith("%") and number not in writer.lengths.bound.values():
                    writer.check(writer.value(f"icmp sge i64 {number}, 0"))
            self._shapes.append(shape)

    def arrays(self) -> list[tuple[int, Name]]:
        """Make the arrays, and cells for the rest; slots of the frame with addresses."""
        writer = self._writer
        filled = []
        for k in range(len(self._ports)):
            writer.store("ptr", "null", self._objects, 8 * k)
        for k, array in self._given.items():
            writer.call("Py_IncRef", "void", f"ptr {array}")
            writer.store("ptr", array, self._objects, 8 * k)
        for k, port in enumerate(self._ports):
            if k in self._given:
                continue
            if port.spec.shape:
                filled.append((port.slot, writer.load("ptr", self._array(k, port), DATA)))
            else:
                wide = port.spec.dtype.itemsize > 16
                self._cells[k] = writer.function.slot(_WIDE if wide else CELL, 16)
                filled.append((port.slot, self._cells[k]))
        return filled

    def _array(self, k: int, port: Port) -> Name:
        writer = self._writer
        lengths = writer.function.slot(f"[{port.spec.ndim} x i64]", 8)
        for axis, number in enumerate(self._shapes[k]):
            writer.store("i64", number, lengths, 8 * axis)
        made = writer.made(
            "new",
            "drop",
            f"ptr {writer.table}",
            f"ptr {writer.word(f'dtype.{canonical(port.spec.dtype).str}')}",
            f"i32 {port.spec.ndim}",
            f"ptr {lengths}",
            f"i64 {writer.lengths.roughly(bytes_of(port))}",
        )
        writer.store("ptr", made, self._objects, 8 * k)
        return made

    # ---- after the run -------------------------------------------------------------------------

    def finish(self, single: bool, nesting: Any = None) -> Name:
        """Make the values without axes; the one result, or the tuple of all.

        `nesting` says it for tuples in tuples: the same tuples with numbers of results in them.
        """
        writer = self._writer
        for k, cell in self._cells.items():
            writer.store("ptr", self._scalar(self._ports[k], cell), self._objects, 8 * k)
        if single:
            return writer.load("ptr", self._objects)
        if nesting is not None:
            return writer.load("ptr", self._objects, 8 * self._nested(nesting))
        return writer.made("several", "drop", *self._all())

    def _nested(self, nesting: int | tuple[Any, ...]) -> int:
        """The object of a nested tuple; ownership of its items moves into it."""
        if isinstance(nesting, int):
            return nesting
        writer = self._writer
        inner = [self._nested(x) for x in nesting]
        items = writer.function.slot(f"[{len(inner)} x ptr]", 8)
        for k, which in enumerate(inner):
            writer.store("ptr", writer.load("ptr", self._objects, 8 * which), items, 8 * k)
        given = f"ptr {writer.table}", f"ptr {items}", f"i64 {len(inner)}"
        made = writer.made("several", "drop", *given)
        for which in inner:
            writer.store("ptr", "null", self._objects, 8 * which)
        writer.store("ptr", made, self._objects, 8 * inner[0])
        return inner[0]

    def _all(self) -> tuple[str, str, str]:
        table, objects = self._writer.table, self._objects
        return f"ptr {table}", f"ptr {objects}", f"i64 {len(self._ports)}"

    def drop(self, end: str) -> None:
        """Write the block that lets all objects go, and goes to `end`."""
        self._writer.label("drop")
        self._writer.call("drop", "void", *self._all())
        self._writer.go(end)

    def _scalar(self, port: Port, cell: Name) -> Name:
        writer, dtype, weak = self._writer, canonical(port.spec.dtype), port.spec.weak
        if dtype.kind == "b":
            return self._truth(cell, "" if weak and self._numbers else "np.")
        if weak and (self._numbers or dtype.kind in "iu"):
            return self._number(dtype, cell)
        kind = writer.word(f"scalar.{dtype.str}")
        made = writer.made(f"allocate.{dtype.str}", "drop", f"ptr {kind}", "i64 0")
        bits, align = f"i{8 * dtype.itemsize}", min(dtype.itemsize, 8)
        value = writer.value(f"load {bits}, ptr {cell}, align {align}")
        writer.write(f"store {bits} {value}, ptr {writer.at(made, VALUE)}, align {align}")
        return made

    def _truth(self, cell: Name, prefix: str) -> Name:
        """One of the two objects that there are."""
        writer = self._writer
        true, false = (writer.word(f"{prefix}{name}") for name in ("True", "False"))
        is_true = writer.value(f"icmp ne i8 {writer.load('i8', cell)}, 0")
        found = writer.value(f"select i1 {is_true}, ptr {true}, ptr {false}")
        writer.call("Py_IncRef", "void", f"ptr {found}")
        return found

    def _number(self, dtype: np.dtype[Any], cell: Name) -> Name:
        """A Python number."""
        writer = self._writer
        if dtype.kind in "iu":
            small = f"i{8 * dtype.itemsize}"
            value = writer.load(small, cell)
            if small != "i64":
                value = writer.value(
                    f"{'sext' if dtype.kind == 'i' else 'zext'} {small} {value} to i64"
                )
            name = "PyLong_FromLongLong" if dtype.kind == "i" else "PyLong_FromUnsignedLongLong"
            return writer.made(name, "drop", f"i64 {value}")
        parts = [writer.load("double", cell, 8 * k) for k in range(dtype.itemsize // 8)]
        name = "PyFloat_FromDouble" if len(parts) == 1 else "PyComplex_FromDoubles"
        return writer.made(name, "drop", *(f"double {part}" for part in parts))


def bytes_of(port: Port) -> Any:
    """How many bytes the data of a port takes, a Length."""
    size: Any = port.spec.dtype.itemsize
    for length in port.spec.shape:
        size = size * length
    return size


# ---- the structure of results -------------------------------------------------------------------


def is_single(graph: BaseGraph) -> bool:
    """Whether a call of the graph returns its only output, and no container of it."""
    results = graph.structure[1]
    if graph.updates or not all(getattr(results, "live", (True,))):
        return False
    structure = getattr(results, "structure", results)
    return len(graph.outputs) == 1 and structure.is_leaf() is True


def nesting_of(graph: BaseGraph) -> Any:
    """The numbers of the results in the tuples they are returned in; None if it is otherwise."""
    results = graph.structure[1]
    if graph.updates or not all(getattr(results, "live", (True,))):
        return None
    structure = getattr(results, "structure", results)
    numbers = pytree.unflatten(structure, list(range(structure.num_leaves)))
    return numbers if _is_tuple(numbers) and any(map(_is_tuple, numbers)) else None


def _is_tuple(x: int | Sequence[int]) -> bool:
    """Whether it is a tuple of numbers and of tuples that are not empty."""
    return type(x) is tuple and bool(x) and all(type(y) is int or _is_tuple(y) for y in x)

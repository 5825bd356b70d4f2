"""Result objects, and their release if a run fails.

Arrays are allocated before the native function runs, which writes into their memory; 0-d results
are written to stack slots and become objects afterwards: NumPy scalars, as in other backends
(argument_conversion.py), but weakly typed integers Python ints.

    Results                  the result objects of one entry point
    is_single, nesting_of    the containers of the results

All objects are in one array on the stack, initially null.  A failure branches to the block
``drop``, which releases those that are not null.
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
from .ports import CELL, Port

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

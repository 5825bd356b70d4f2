"""Results: the objects that a call returns, and what becomes of them when something fails.

Arrays are made before the native function runs, which writes into their memory; values without
axes are written into cells on the stack and made objects of afterwards: NumPy scalars, as the other
backends return them (owned.py), a weak whole number as a Python int.

Whatever fails on the way, the objects made so far are let go: behind the end of the way there is
one block for each of them, ``drop<k>``, which lets the k-th go and goes on to the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..assembly import Name
from ..port import Port
from .numbers import CELL
from .python import DATA, ITEMS, VALUE
from .table import canonical
from .writer import Writer

LARGE = 256 * 1024  # bytes from which memory comes from the handler that recycles it
_OWNED_WIDE = 32  # bytes of a cell: a complex longdouble


class Results:
    """Makes the results of one entry.

    Parameters
    ----------
    writer : Writer
    ports : sequence of Port
    numbers : bool
        Weak results are Python numbers.
    """

    def __init__(self, writer: Writer, ports: Sequence[Port], numbers: bool) -> None:
        self._writer, self._ports, self._numbers = writer, ports, numbers
        self._objects: dict[int, Name] = {}  # of ports that are there
        self._cells: dict[int, Name] = {}
        self._shapes: dict[int, list[Name]] = {}
        self._bytes: dict[int, Name] = {}
        self.dropped: list[Name] = []  # all objects made, in order

    @property
    def failed(self) -> str:
        """The label to leave by, where all that is made so far is let go."""
        return f"drop{len(self.dropped)}"

    # ---- before the run ------------------------------------------------------------------------

    def measure(self) -> list[Name]:
        """Compute all lengths, with checks; how many bytes each result takes."""
        writer = self._writer
        for k, port in enumerate(self._ports):
            shape = [writer.lengths.number(length) for length in port.spec.shape]
            for number in shape:
                if number.startswith("%"):
                    writer.check(writer.value(f"icmp sge i64 {number}, 0"))
            self._shapes[k] = shape
            size = writer.lengths.product([*port.spec.shape, port.spec.dtype.itemsize])
            self._bytes[k] = size
        return list(self._bytes.values())

    def arrays(self, with_handler: bool) -> list[tuple[int, Name]]:
        """Make the arrays, and cells for the rest; slots of the frame with addresses."""
        writer = self._writer
        filled = []
        for k, port in enumerate(self._ports):
            if port.spec.shape:
                made = self._array(k, port, with_handler)
                self.dropped.append(made)
                self._objects[k] = made
                filled.append((port.slot, writer.load("ptr", made, DATA)))
            else:
                wide = port.spec.dtype.itemsize > 16
                cell = writer.function.slot(f"[{_OWNED_WIDE} x i8]" if wide else CELL, 16)
                self._cells[k] = cell
                filled.append((port.slot, cell))
        return filled

    def _array(self, k: int, port: Port, with_handler: bool) -> Name:
        writer = self._writer
        size = self._bytes[k]
        dimensions = self._dimensions(k)
        if not with_handler or (not size.startswith("%") and int(size) < LARGE):
            return self._empty(port, dimensions)
        with_pool, plain, done = map(writer.fresh, ("pool", "plain", "done"))
        where = writer.function.slot("ptr")
        handler = writer.word("handler")
        large = writer.value(f"icmp sge i64 {size}, {LARGE}")
        given = writer.value(f"icmp ne ptr {handler}, null")
        writer.branch(writer.value(f"and i1 {large}, {given}"), with_pool, plain)
        writer.label(with_pool)
        writer.store("ptr", self._from_handler(port, dimensions, handler), where)
        writer.go(done)
        writer.label(plain)
        writer.store("ptr", self._empty(port, dimensions), where)
        writer.go(done)
        writer.label(done)
        return writer.load("ptr", where)

    def _from_handler(self, port: Port, dimensions: Name, handler: Name) -> Name:
        """An array whose memory comes from a handler, and goes back there (NEP 49)."""
        writer = self._writer
        before = writer.made("PyDataMem_SetHandler", self.failed, f"ptr {handler}")
        made = self._new(port, dimensions)
        writer.call("PyErr_Clear", "void")  # out of memory: said again below
        ours = writer.call("PyDataMem_SetHandler", "ptr", f"ptr {before}")
        writer.call("Py_DecRef", "void", f"ptr {before}")
        writer.call("Py_DecRef", "void", f"ptr {ours}")
        there, back = (writer.value(f"icmp ne ptr {x}, null") for x in (made, ours))
        good, bad = writer.fresh("good"), writer.fresh("bad")
        writer.branch(writer.value(f"and i1 {there}, {back}"), good, bad)
        writer.label(bad)
        writer.call("Py_DecRef", "void", f"ptr {made}")
        writer.call("PyErr_NoMemory", "ptr")
        writer.go(self.failed)
        writer.label(good)
        return made

    def _dimensions(self, k: int) -> Name:
        writer = self._writer
        shape = self._shapes[k]
        place = writer.function.slot(f"[{len(shape)} x i64]", 8)
        for axis, number in enumerate(shape):
            writer.store("i64", number, place, 8 * axis)
        return place

    def _empty(self, port: Port, dimensions: Name) -> Name:
        made = self._new(port, dimensions)
        self._writer.check(self._writer.value(f"icmp ne ptr {made}, null"), self.failed)
        return made

    def _new(self, port: Port, dimensions: Name) -> Name:
        """A new array whose memory is not set; null, with an exception, if there is none."""
        writer = self._writer
        dtype = writer.word(f"dtype.{canonical(port.spec.dtype).str}")
        writer.call("Py_IncRef", "void", f"ptr {dtype}")  # the call takes a reference
        return writer.call(
            "PyArray_NewFromDescr",
            "ptr",
            f"ptr {writer.word('ndarray')}",
            f"ptr {dtype}",
            f"i32 {port.spec.ndim}",
            f"ptr {dimensions}",
            *["ptr null"] * 2,
            "i32 0",
            "ptr null",
        )

    # ---- after the run -------------------------------------------------------------------------

    def finish(self, single: bool) -> Name:
        """Make the values without axes; the one result, or the tuple of all."""
        writer = self._writer
        for k, cell in self._cells.items():
            made = self._scalar(self._ports[k], cell)
            self.dropped.append(made)
            self._objects[k] = made
        found = [self._objects[k] for k in range(len(self._ports))]
        if single:
            return found[0]
        several = writer.made("PyTuple_New", self.failed, f"i64 {len(found)}")
        for k, made in enumerate(found):
            writer.store("ptr", made, several, ITEMS + 8 * k)
        return several

    def _scalar(self, port: Port, cell: Name) -> Name:
        writer, dtype, weak = self._writer, canonical(port.spec.dtype), port.spec.weak
        if dtype.kind == "b":
            return self._truth(cell, "" if weak and self._numbers else "np.")
        if weak and (self._numbers or dtype.kind in "iu"):
            return self._number(dtype, cell)
        kind = writer.word(f"scalar.{dtype.str}")
        made = writer.made(f"allocate.{dtype.str}", self.failed, f"ptr {kind}", "i64 0")
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
            return writer.made(name, self.failed, f"i64 {value}")
        parts = [writer.load("double", cell, 8 * k) for k in range(dtype.itemsize // 8)]
        name = "PyFloat_FromDouble" if len(parts) == 1 else "PyComplex_FromDoubles"
        return writer.made(name, self.failed, *(f"double {part}" for part in parts))

    # ---- letting go ----------------------------------------------------------------------------

    def drops(self, end: str) -> None:
        """Write the blocks that let the objects go; the last goes to `end`."""
        writer = self._writer
        for k in range(len(self.dropped), 0, -1):
            writer.label(f"drop{k}")
            writer.call("Py_DecRef", "void", f"ptr {self.dropped[k - 1]}")
            writer.go(f"drop{k - 1}")
        writer.label("drop0")
        writer.go(end)

"""Batches of small matrices in SIMD registers: a vector per element, with a lane per matrix.

    SimdMatrix     stack memory for the vectors of a block's matrices
    each           a loop over indices, or its unrolled body
    until          a loop with an exit condition
    integer_lane   an integer as a value of all lanes
    load, save     copy matrices of a block to a SimdMatrix and back

For matrices of up to `KernelCall.unrolled_rows` rows loops are unrolled: all indices are constants,
and LLVM keeps the elements in registers.  The unrolled code of an elimination, and LLVM's compile
time, grow with the third power of the number of rows, so larger matrices are computed by loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from wengert._engine.core.types import Scalar

from ..ir.ir_builder import Name, Section
from ..ir.llvm_types import F64, I64, Dtype, in_register, of_width
from ..ir.simd_value import Lane
from .batched_matrices import Block

Index = int | Name


class SimdMatrix:
    """Stack memory for the matrices of a block, in row-major order.

    Parameters
    ----------
    block : Block
        Its width is the number of lanes.
    dtype : numpy.dtype
        float64; int64 for counters.

    Attributes
    ----------
    unrolled : bool
        Whether loops over its elements are unrolled.
    """

    def __init__(self, block: Block, rows: int, columns: int = 1, dtype: Dtype = F64) -> None:
        self.language, self.width = block.call.language, max(block.width, 1)
        self.rows, self.columns, self.dtype = rows, columns, dtype
        self.unrolled = rows <= block.call.unrolled_rows
        self._kind = of_width(in_register(dtype), self.width)
        self._align = self.width * dtype.itemsize
        count = rows * columns
        self.pointer = block.call.function.slot(f"[{count} x {self._kind}]", max(self._align, 8))

    def address(self, s: Section, i: Index, j: Index = 0) -> Name:
        """The address of an element."""
        count = s.plus(s.times(str(i), str(self.columns)), str(j))
        return s.value(f"getelementptr {self._kind}, ptr {self.pointer}, i64 {count}")

    def get(self, s: Section, i: Index = 0, j: Index = 0) -> Lane:
        """An element, as a lane of this section."""
        name = s.value(f"load {self._kind}, ptr {self.address(s, i, j)}, align {self._align}")
        return Lane(self.language, s, name, self.dtype, self.width)

    def put(self, s: Section, value: Scalar, i: Index = 0, j: Index = 0) -> None:
        """Store an element."""
        wide = self.language.widened(self.language.cast(value, self.dtype), self.width)
        address = self.address(s, i, j)
        s.write(f"store {self._kind} {wide.name}, ptr {address}, align {self._align}")

    def put_where(self, s: Section, flag: Any, value: Any, i: Index = 0, j: Index = 0) -> None:
        """Store an element in the lanes where a flag is true."""
        old = self.get(s, i, j)
        self.put(s, self.language.select(flag, self.language.cast(value, self.dtype), old), i, j)


def each(
    s: Section, start: Index, stop: Index, unrolled: bool = False, down: bool = False
) -> Iterator[tuple[Section, Any]]:
    """Section and index of each iteration from start to stop - 1, or down from the last one."""
    if unrolled:
        numbers = range(int(start), int(stop))
        for number in reversed(numbers) if down else numbers:
            yield s, str(number)
        return
    with s.loop(str(start), str(stop)) as (t, i):
        if down:
            last = t.plus(t.plus(str(start), str(stop)), "-1")
            i = t.value(f"sub nsw i64 {last}, {i}")
        yield t, i


@contextmanager
def until(s: Section, limit: int) -> Iterator[tuple[Section, Any]]:
    """A loop of at most `limit` iterations, and a function that exits it if a condition holds.

    There may be only one exit; code emitted into the section later comes after it.
    """
    n = s.function.number()

    def leave(t: Section, done: Name) -> None:
        t.write(f"br i1 {done}, label %left{n}, label %on{n}")
        t.label(f"on{n}")

    with s.loop("0", str(limit)) as (t, _):
        yield t, leave
    s.block(f"left{n}")


def integer_lane(block: Block, s: Section, i: Index) -> Lane:
    """An integer as a value of all lanes."""
    language = block.call.language
    if str(i).lstrip("-").isdigit():
        lane: Lane = language.constant(int(i), I64)
        return lane
    return Lane(language, s, str(i), I64, 1)


def load(block: Block, k: int, matrix: SimdMatrix, s: Section) -> None:
    """Read the matrices of array k of a block."""
    for t, i in each(s, 0, matrix.rows, matrix.unrolled):
        for u, j in each(t, 0, matrix.columns, matrix.unrolled):
            matrix.put(u, block.element(k, u, (i, j)[: block.axes(k)]), i, j)


def save(block: Block, k: int, matrix: SimdMatrix, s: Section) -> None:
    """Write the matrices of array k of a block."""
    for t, i in each(s, 0, matrix.rows, matrix.unrolled):
        for u, j in each(t, 0, matrix.columns, matrix.unrolled):
            block.set_element(k, u, matrix.get(u, i, j), (i, j)[: block.axes(k)])

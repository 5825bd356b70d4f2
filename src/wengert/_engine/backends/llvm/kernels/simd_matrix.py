"""Panels: many small matrices side by side in memory, for formulas that are written as loops.

    Panel       memory of numbers or whole numbers, each as wide as a block has matrices
    each        a loop, or one stretch of text after the other where there are few turns
    until       a loop that ends when no lane has anything left to do
    load, save  matrices of a block to a panel and back

What is unrolled (linalg/unrolled_small_matrices.py) grows with the third power of the number of
rows, and so does the time in which LLVM compiles it; a loop does not.  An element of a panel is a
register: the same element of as many matrices as a block has, so a loop over elements serves all of
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from wengert._engine.backends.llvm.ir.ir_builder import Name, Section
from wengert._engine.backends.llvm.ir.llvm_types import F64, I64, Dtype, in_register, of_width
from wengert._engine.backends.llvm.ir.simd_value import Lane

from .batched_matrices import Block
from .kernel_call import Call
from .loop_helpers import plus, times

UNROLLED = 4  # turns of a loop, at most, that are written one after the other
Index = int | Name


class Panel:
    """Memory on the stack, in the order of rows.

    Parameters
    ----------
    block : Block
        Its width is that of every element.
    rows, columns : int
    dtype : numpy.dtype
        float64, or int64 for what a lane counts.
    """

    def __init__(self, block: Block, rows: int, columns: int = 1, dtype: Dtype = F64) -> None:
        self.language, self.width = block.call.language, max(block.width, 1)
        self.rows, self.columns, self.dtype = rows, columns, dtype
        self._kind = of_width(in_register(dtype), self.width)
        self._align = self.width * dtype.itemsize
        count = rows * columns
        self.pointer = block.call.function.slot(f"[{count} x {self._kind}]", max(self._align, 8))

    def place(self, s: Section, i: Index, j: Index = 0) -> Name:
        """The address of an element."""
        count = plus(s, times(s, str(i), str(self.columns)), str(j))
        return s.value(f"getelementptr {self._kind}, ptr {self.pointer}, i64 {count}")

    def get(self, s: Section, i: Index = 0, j: Index = 0) -> Lane:
        """An element, as a lane of this section."""
        name = s.value(f"load {self._kind}, ptr {self.place(s, i, j)}, align {self._align}")
        return Lane(self.language, s, name, self.dtype, self.width)

    def put(self, s: Section, value: Any, i: Index = 0, j: Index = 0) -> None:
        """Store an element."""
        wide = self.language.widened(self.language.cast(value, self.dtype), self.width)
        place = self.place(s, i, j)
        s.write(f"store {self._kind} {wide.name}, ptr {place}, align {self._align}")

    def put_where(self, s: Section, flag: Any, value: Any, i: Index = 0, j: Index = 0) -> None:
        """Store an element in the lanes in which a flag holds."""
        old = self.get(s, i, j)
        self.put(s, self.language.select(flag, self.language.cast(value, self.dtype), old), i, j)


def each(
    s: Section, start: Index, stop: Index, unrolled: bool = False, down: bool = False
) -> Iterator[tuple[Section, Any]]:
    """The numbers from start to before stop, or from the last one down: sections and indices."""
    if unrolled:
        numbers = range(int(start), int(stop))
        for number in reversed(numbers) if down else numbers:
            yield s, str(number)
        return
    with s.loop(str(start), str(stop)) as (t, i):
        if down:
            last = plus(t, plus(t, str(start), str(stop)), "-1")
            i = t.value(f"sub nsw i64 {last}, {i}")
        yield t, i


@contextmanager
def until(s: Section, limit: int) -> Iterator[tuple[Section, Any]]:
    """A loop of at most so many turns, and the function that leaves it if an i1 holds.

    It is left at one place only; what is written to the section afterwards follows that place.
    """
    n = s.function.number()

    def leave(t: Section, done: Name) -> None:
        t.write(f"br i1 {done}, label %left{n}, label %on{n}")
        t.label(f"on{n}")

    with s.loop("0", str(limit)) as (t, _):
        yield t, leave
    s.write(f"br label %left{n}")
    s.label(f"left{n}")


def any_of(call: Call, s: Section, flag: Lane) -> Name:
    """Whether it holds in some lane, an i1."""
    if flag.width <= 1:
        return flag.name
    kind = f"<{flag.width} x i1>"
    callee = call.module.declare(f"llvm.vector.reduce.or.v{flag.width}i1", "i1", [kind])
    return s.value(f"call i1 {callee}({kind} {flag.name})")


def whole(block: Block, s: Section, i: Index) -> Lane:
    """A whole number for all lanes."""
    language = block.call.language
    if str(i).lstrip("-").isdigit():
        made: Lane = language.constant(int(i), I64)
        return made
    return Lane(language, s, str(i), I64, 1)


def load(block: Block, k: int, panel: Panel, s: Section) -> None:
    """The matrices of array k of a block, all their elements."""
    for t, i in each(s, 0, panel.rows, unrolled=panel.rows <= UNROLLED):
        for u, j in each(t, 0, panel.columns, unrolled=panel.rows <= UNROLLED):
            panel.put(u, block.element(k, u, (i, j)[: block.axes(k)]), i, j)


def save(block: Block, k: int, panel: Panel, s: Section, index: Sequence[Index] = ()) -> None:
    """A panel as the matrices of array k of a block."""
    for t, i in each(s, 0, panel.rows, unrolled=panel.rows <= UNROLLED):
        for u, j in each(t, 0, panel.columns, unrolled=panel.rows <= UNROLLED):
            block.set_element(k, u, panel.get(u, i, j), (i, j)[: block.axes(k)])

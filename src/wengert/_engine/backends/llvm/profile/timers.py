"""Timers: code that reads a clock, and cells that accumulate times.

Only programs that are compiled for a profile (profile/instrumented.py) have them.  On x86 the clock
is the time-stamp counter, which takes some 25 cycles to read and runs at a constant rate; elsewhere
it is that of the system.  A program measures the cost of reading it (`COST`), which is subtracted.

    Clock                the cells of one program
    is_available         whether native code can read a clock
    READ, COST, TABLE    functions of the module that read the cells (profile/profile_runner.py)

The cells are one array of the module: bytes allocated now, their maximum, and ticks and a count for
each cell.  They record one run at a time.
"""

from __future__ import annotations

import ctypes
import os
import platform
import time

from ..ir import llvm_types
from ..ir.ir_builder import Function, ModuleBuilder, Name, Section

READ, COST, TABLE = "clock_read", "clock_cost", "clock_table"
LIVE, PEAK, FIRST = 0, 1, 2  # words of the array; cells follow
_COUNTER = "llvm.readcyclecounter"
_HEADER = 64  # bytes before each block, with its size
COUNTED = {"wengert_alloc": "clock_alloc", "wengert_free": "clock_free"}  # in timers.ll


def counted(name: str) -> tuple[str, str]:
    """The counting replacement of an allocator function: its name and text."""
    counting = COUNTED[name]
    return counting, llvm_types.functions(__file__, header=_HEADER, peak=PEAK)[counting]


def is_available() -> bool:
    """Whether there is a clock that native code can read."""
    return _has_counter() or os.name == "posix"


def _has_counter() -> bool:
    return platform.machine().lower() in ("x86_64", "amd64", "i686")


class Clock:
    """The cells of one program.

    Attributes
    ----------
    cells : int
        The number of cells; the first is for measuring the cost of a timer.
    """

    def __init__(self, module: ModuleBuilder) -> None:
        self._module = module
        self.cells = 1

    @property
    def words(self) -> int:
        """The length of the array."""
        return FIRST + 2 * self.cells

    def cell(self) -> int:
        """The number of a new cell."""
        self.cells += 1
        return self.cells - 1

    def read(self, section: Section) -> Name:
        """Read the clock, an i64."""
        if _has_counter():
            return section.value(f"call i64 {self._module.declare(_COUNTER, 'i64', [])}()")
        return section.value(f"call i64 {self._of_system()}()")

    def count(self, section: Section, cell: int) -> None:
        """Increment the count of a cell."""
        _add(section, FIRST + 2 * cell + 1, "1")

    def stop(self, section: Section, cell: int, begun: Name) -> None:
        """Add the time since a reading to a cell, and increment its count."""
        now = self.read(section)
        _add(section, FIRST + 2 * cell, section.value(f"sub i64 {now}, {begun}"))
        self.count(section, cell)

    def finish(self) -> None:
        """Add the array and the functions that read it, once all cells are known."""
        module = self._module
        module.parts["clock"] = (
            f"@clock = internal global [{self.words} x i64] zeroinitializer, align 64"
        )
        function = Function(module, READ, [], "i64", "nounwind", linkage="")
        function.body.write(f"ret i64 {self.read(function.body)}")
        module.add(function)
        function = Function(module, TABLE, [], "ptr", "nounwind", linkage="")
        function.body.write("ret ptr @clock")
        module.add(function)
        function = Function(module, COST, [("i64", "count")], "i64", "nounwind", linkage="")
        begun = self.read(function.body)
        with function.body.loop("0", "%count") as (inner, _):
            self.stop(inner, 0, self.read(inner))
        now = self.read(function.body)
        function.body.write(f"ret i64 {function.body.value(f'sub i64 {now}, {begun}')}")
        module.add(function)

    def _of_system(self) -> str:
        """A function that reads the POSIX clock in nanoseconds."""
        module = self._module
        if "clock_now" not in module:
            system_call = ctypes.CDLL(None).clock_gettime
            address = ctypes.cast(system_call, ctypes.c_void_p).value
            assert address is not None
            module.symbols["clock_gettime"] = address
            call = module.declare("clock_gettime", "i32", ["i32", "ptr"], "nounwind")
            function = Function(module, "clock_now", [], "i64", "nounwind")
            body = function.body
            place = function.slot("[2 x i64]", 8)
            body.write(f"call i32 {call}(i32 {time.CLOCK_MONOTONIC}, ptr {place})")
            seconds = body.value(f"load i64, ptr {place}")
            rest = body.value(
                f"load i64, ptr {body.value(f'getelementptr i64, ptr {place}, i64 1')}"
            )
            whole = body.value(f"mul i64 {seconds}, 1000000000")
            body.write(f"ret i64 {body.value(f'add i64 {whole}, {rest}')}")
            module.add(function)
        return "@clock_now"


def _add(section: Section, word: int, amount: Name) -> None:
    place = section.value(f"getelementptr i64, ptr @clock, i64 {word}")
    old = section.value(f"load i64, ptr {place}")
    section.write(f"store i64 {section.value(f'add i64 {old}, {amount}')}, ptr {place}")

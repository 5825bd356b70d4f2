"""Programs with a timer around each step, for profiles.

They are the programs that calls run, with more instructions between the steps; other programs have
none of these instructions, and no checks for them.

    InstrumentedProgram    the program, with timers around its own steps, or also those of loops
    TimedStep              a step: the timer cell, and the stages that run in it

The stages of a batch run one by one, each for all items (schedule/batch_loops.py).  The body of a
loop whose steps share registers is one step.  Equal bodies are emitted once for each loop, because
their times are separate.

    Clock                the code that reads a clock, and the cells that accumulate times
    is_available         whether native code can read a clock
    READ, COST, TABLE    functions of the module that read the cells (profile/profile_runner.py)

On x86 the clock is the time-stamp counter, which takes some 25 cycles to read and runs at a
constant rate; elsewhere it is that of the system.  A program measures the cost of reading it
(`COST`), which is subtracted.  The cells are one array of the module: bytes allocated now, their
maximum, and ticks and a count for each cell.  They record one run at a time.
"""

from __future__ import annotations

import ctypes
import os
import platform
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import Body

from ..codegen.straightline import BranchBlocks
from ..ir import llvm_types
from ..ir.ir_builder import Function, ModuleBuilder, Name, Section
from ..loops.loop_body import LoopBody
from ..lowering.loop_ir import Expr
from ..program import Program
from ..schedule.fusion import FusedLoops
from ..schedule.integer_ranges import InputFacts, Integers

# ---- timers --------------------------------------------------------------------------------------


READ, COST, TABLE = "clock_read", "clock_cost", "clock_table"
LIVE, PEAK, FIRST = 0, 1, 2  # words of the array; cells follow
_COUNTER = "llvm.readcyclecounter"
_HEADER = 64  # bytes before each block, with its size
COUNTED = {"wengert_alloc": "clock_alloc", "wengert_free": "clock_free"}  # in instrumented.ll


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


# ---- programs ------------------------------------------------------------------------------------


class TimedStep(NamedTuple):
    """A step.

    cell : the cell of its timer; None if it is all of its body.
    stages : its stages; several if they share registers.
    function : the name of the function of a loop nest.
    bodies : of a loop or conditional.
    """

    cell: int | None
    stages: list[FusedLoops | Expr]
    function: str = ""
    bodies: Sequence[InstrumentedBody] = ()


class InstrumentedBody(LoopBody):
    """The body of a loop or a branch, with timers around its steps.

    Attributes
    ----------
    times : int
        The cell that counts how often it runs.
    timed_steps : list of TimedStep
    """

    context: InstrumentedProgram

    def __init__(
        self,
        context: InstrumentedProgram,
        body: Body,
        name: str,
        updates: Sequence[tuple[int, int]],
        facts: InputFacts | None = None,
        is_unrolled: bool = True,
    ) -> None:
        self.timed_steps: list[TimedStep] = []
        self.times = context.clock.cell()
        self.label = body.name
        super().__init__(context, body, name, updates, facts, is_unrolled)

    @property
    def choices(self) -> Mapping[Expr, BranchBlocks]:
        """Conditionals that are compiled inline, with their branches."""
        return self._choices

    def run_stages(self, body: Section) -> None:
        """Run all stages, each with a timer around it."""
        self.context.clock.count(body, self.times)
        super().run_stages(body)

    def run_stage(self, body: Section, stage: FusedLoops | Expr) -> None:
        """Run a stage with a timer around it."""
        begun = self.context.clock.read(body)
        super().run_stage(body, stage)
        self.timed_steps.append(self.context.stopped(self, body, stage, begun))

    def _run_straight(self, body: Section, stages: list[Any], needed: set[Expr]) -> None:
        """Run stages without loops, with a timer around them if the body has others."""
        if len(self._groups) == 1:
            super()._run_straight(body, stages, needed)
            self.timed_steps.append(TimedStep(None, list(stages)))
            return
        begun, cell = self.context.clock.read(body), self.context.clock.cell()
        super()._run_straight(body, stages, needed)
        self.context.clock.stop(body, cell, begun)
        self.timed_steps.append(TimedStep(cell, list(stages)))


class InstrumentedProgram(Program):
    """The program of a graph, with timers around its steps.

    Parameters
    ----------
    graph, threads, layouts, overwrites
        As for `Program`.
    inside : bool
        Whether the steps of loops and branches have timers too.

    Attributes
    ----------
    clock : Clock
    timed_steps : list of TimedStep
    has_bodies : bool
        Whether there are loops or branches whose bodies can have timers.
    """

    has_batch_loops = False

    def __init__(
        self,
        graph: BaseGraph,
        threads: int | None = None,
        layouts: str = "",
        overwrites: bool = False,
        inside: bool = True,
    ) -> None:
        self._inside = inside
        self.timed_steps: list[TimedStep] = []
        self.has_bodies = False
        self._bodies_of: dict[Expr, list[InstrumentedBody]] = {}
        self._met: list[list[InstrumentedBody]] = []
        super().__init__(graph, threads, layouts, overwrites)
        self.clock.finish()

    @property
    def clock(self) -> Clock:
        """The timer cells, made before anything is emitted."""
        found: Clock | None = self.__dict__.get("_clock")
        if found is None:
            found = self.__dict__["_clock"] = Clock(self.module)
        return found

    def run_stage(self, body: Section, stage: FusedLoops | Expr) -> None:
        """Run a stage with a timer around it."""
        begun = self.clock.read(body)
        super().run_stage(body, stage)
        self.timed_steps.append(self.stopped(self, body, stage, begun))

    def stopped(
        self, routine: Any, body: Section, stage: FusedLoops | Expr, begun: str
    ) -> TimedStep:
        """The timed step of a stage, after it was emitted."""
        cell = self.clock.cell()
        self.clock.stop(body, cell, begun)
        function = routine.nests[-1][1] if isinstance(stage, FusedLoops) else ""
        bodies = () if isinstance(stage, FusedLoops) else self._bodies_of.get(stage, ())
        return TimedStep(cell, [stage], function, bodies)

    def nested(self, step: Expr, known: Integers) -> Any:
        """A loop or a conditional, with instrumented bodies."""
        self.has_bodies = True
        self._met.append([])
        made = super().nested(step, known)
        self._bodies_of[step] = self._met.pop()
        return made

    def body(
        self,
        body: Body,
        updates: Sequence[tuple[int, int]] = (),
        facts: InputFacts | None = None,
        is_unrolled: bool = True,
    ) -> LoopBody:
        """The function of a body; not shared if it has timers."""
        if not self._inside:
            return super().body(body, updates, facts, is_unrolled)
        self._count += 1
        name = f"body{self._count}"
        made = InstrumentedBody(self, body, name, updates, facts, is_unrolled)
        self._bodies[body, tuple(updates), facts, is_unrolled] = made
        self._met[-1].append(made)
        return made

    def runtime(self, name: str, result: str, arguments: Sequence[str]) -> str:
        """Declare a function of the runtime; the allocator's are replaced by counting ones."""
        found = super().runtime(name, result, arguments)
        if name not in COUNTED:
            return found
        counting, text = counted(name)
        self.module.parts.setdefault(counting, text)
        return f"@{counting}"

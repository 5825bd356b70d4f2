"""Programs with a timer around each step, for profiles.

They are the programs that calls run, with more instructions between the steps; other programs have
none of these instructions, and no checks for them.

    InstrumentedProgram    the program, with timers around its own steps, or also those of loops
    TimedStep              a step: the timer cell, and the stages that run in it

The stages of a batch run one by one, each for all items (schedule/batch_loops.py).

The body of a loop whose steps share registers is one step.  Equal bodies are emitted once for each
loop, because their times are separate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import Body

from ..codegen.straightline import BranchBlocks
from ..ir.ir_builder import Section
from ..loops.loop_body import LoopBody
from ..lowering.loop_ir import Expr
from ..program import Program
from ..schedule.fusion import FusedLoops
from ..schedule.integer_ranges import InputFacts, Integers
from .timers import COUNTED, Clock, counted


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

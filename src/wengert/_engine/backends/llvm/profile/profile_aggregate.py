"""The timer readings of a program, summed for each of its steps.

    TimerReading        the timers after several runs
    ProfileAggregate    the times of the steps of a program, and of the bodies of its loops

The time of a loop is measured without timers in its body, and divided among the steps of the body
in the proportions that timers in the body measure.  Steps in registers share the remaining time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.spec import shown
from wengert._engine.profiling.record import LineShare, StepRecord

from ..ir.index_analysis import size_of
from ..kernels import is_served
from ..lowering.loop_ir import Expr
from ..schedule.fusion import FusedLoops
from ..schedule.scheduling import Schedule
from ..schedule.workspace import last_uses
from .instrumented import InstrumentedBody, InstrumentedProgram, TimedStep
from .profile_attribution import StepCost, number_of, step_cost_of


class TimerReading(NamedTuple):
    """The timers of a program over several runs, combined by `lower_quartile`.

    around : seconds of a run outside of all cells.
    cells : seconds and count of each cell, including the time of the timers.
    peak : the maximum of allocated bytes.
    inner, outer : the cost of a timer, within its own reading, and for the code around it.
    """

    around: float
    cells: Any
    peak: float
    inner: float
    outer: float
    runs: int


class ProfileAggregate:
    """Computes the times of steps from timer readings.

    Parameters
    ----------
    flat : TimerReading
        Of the program with timers around its own steps.
    deep : TimerReading or None
        Of the program that also has timers in the bodies of loops.
    overwritten : collection of int
        The results that are written into the memory of variables.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        flat: TimerReading,
        deep: TimerReading | None,
        overwritten: Collection[int],
    ) -> None:
        self._sizes, self._flat, self._overwritten = sizes, flat, overwritten
        self._of_plans: dict[Schedule, dict[FusedLoops | Expr, int]] = {}
        self._deep = flat if deep is None else deep

    def of_kernel(
        self, flat: InstrumentedProgram, deep: InstrumentedProgram
    ) -> tuple[StepRecord, ...]:
        """The steps of a program, with the times of the flat reading."""
        found = []
        for own, place in zip(flat.timed_steps, deep.timed_steps, strict=True):
            assert own.cell is not None
            seconds, calls = self._flat.cells[own.cell]
            seconds = max(0.0, seconds - calls * self._flat.inner)
            place = place._replace(function=own.function)
            found.append(self._step(deep.plan, place, seconds, calls))
        return tuple(found)

    def _step(
        self,
        plan: Schedule,
        place: TimedStep,
        seconds: float,
        calls: float,
        body: InstrumentedBody | None = None,
        base: int = 0,
    ) -> StepRecord:
        made = step_cost_of(plan, place.stages, self._sizes, None if body is None else body.choices)
        held = base + self._held(plan, place.stages)
        if len(place.stages) == 1:
            stage = place.stages[0]
            old = self._overwritten if body is None else range(len(plan.outputs))
            results = {plan.outputs[k] for k in old}
            own = [x for x in plan.stored if plan.stages[plan.position_of(x)] is stage]
            made.keep([x for x in own if x not in results])
        kind, title = _kind_and_title(place, self._steps(place) / calls if calls else 0.0)
        inside = self._inside(place, seconds, held)
        return StepRecord(
            kind=kind,
            title=title,
            operations=made.operations,
            calls=float(calls),
            seconds=float(seconds),
            flops=_flops(made, calls, inside),
            read=_total(made.read * calls, "read", inside),
            written=_total(made.written * calls, "written", inside),
            held=max([held, *[step.held for step in inside]]),
            parts=made.parts() or (LineShare("", 0, "", 1.0),),
            kept=tuple(made.kept),
            inside=inside,
            body="" if body is None else body.label,
        )

    def _inside(self, place: TimedStep, seconds: float, base: int) -> tuple[StepRecord, ...]:
        """The steps in the bodies of a loop that took `seconds`.

        Steps without timers (bodies in registers) share the time that the others leave.
        """
        measured = self._spent(place)
        scale = seconds / measured if measured > 0.0 else 0.0
        found = [
            (body, p, self._deep.cells[body.times if p.cell is None else p.cell][1])
            for body in place.bodies
            for p in body.timed_steps
        ]
        spent = [self._spent(p) * scale for _, p, _ in found]
        total = sum(spent)
        if total > seconds:
            spent = [s * seconds / total for s in spent]
        weights = [0.0 if p.cell else calls * self._work(b, p) for b, p, calls in found]
        rest = max(0.0, seconds - sum(spent)) / (sum(weights) or 1.0)
        return tuple(
            self._step(body.plan, p, s + w * rest, calls, body, base)
            for (body, p, calls), s, w in zip(found, spent, weights, strict=True)
            if calls
        )

    def _steps(self, place: TimedStep) -> float:
        """The number of iterations of a loop."""
        if not place.bodies:
            return 0.0
        # The second body of a while loop is the condition, the last of a replay the backward body
        loop: Any = place.stages[0]
        is_replay = loop.node.op.name == "replay"
        return float(self._deep.cells[place.bodies[-1 if is_replay else 0].times][1])

    def _work(self, body: InstrumentedBody, place: TimedStep) -> float:
        return 1.0 + sum(
            step_cost_of(body.plan, place.stages, self._sizes, body.choices).work.values()
        )

    def _spent(self, place: TimedStep) -> float:
        """The seconds of a step in the deep reading, without the time of timers."""
        if place.cell is None:
            return 0.0
        seconds, calls = self._deep.cells[place.cell]
        read = _read_inside(place, self._deep.cells)
        overhead = calls * self._deep.inner + self._deep.outer * read
        return max(0.0, float(seconds - overhead))

    def _held(self, plan: Schedule, stages: Sequence[FusedLoops | Expr]) -> int:
        """The maximum of bytes stored between stages while some of them run."""
        found = self._of_plans.get(plan)
        if found is None:
            last = last_uses(plan)
            results = {*plan.outputs, *plan.inputs}
            change = [0] * (len(plan.stages) + 1)
            for x in plan.stored:
                if x not in results:
                    first = plan.position_of(x)
                    size = number_of(size_of(x.shape) * x.dtype.itemsize, self._sizes)
                    change[first] += size
                    change[last.get(x, first) + 1] -= size
            sums = np.cumsum(change[:-1]).tolist()
            found = self._of_plans[plan] = dict(zip(plan.stages, sums, strict=True))
        return max((found[stage] for stage in stages), default=0)


def _read_inside(place: TimedStep, cells: Any) -> float:
    """How often timers were read in the bodies of a step."""
    inner = [p for body in place.bodies for p in body.timed_steps]
    return sum((cells[p.cell][1] if p.cell else 0.0) + _read_inside(p, cells) for p in inner)


def _kind_and_title(place: TimedStep, steps: float) -> tuple[str, str]:
    """The kind and title of a step."""
    if len(place.stages) > 1 or place.cell is None:
        return "straight", "in registers"
    (stage,) = place.stages
    if isinstance(stage, FusedLoops):
        first = stage.groups[0].space
        over = f"over [{','.join(map(str, first))}]"
        if stage.rows:
            rows = ",".join(map(str, first[: stage.rows]))
            over = f"over the rows of [{rows}], {len(stage.groups)} passes each"
        return ("nest", f"{over} ({place.function})") if place.function else ("straight", over)
    node = stage.node
    if node.op.kind != "control":
        return (
            "call" if is_served(node) else "host callback"
        ), f"{node.op.name} {shown(node.spec)}"
    if "branches" in node.params:
        return "branch", node.op.name
    return "loop", f"{node.op.name} of {steps:,.6g} steps"


def _flops(made: StepCost, calls: float, inside: Sequence[StepRecord]) -> float | None:
    """The operations of all runs; those of the inner steps for a loop."""
    if inside:
        known = [step.flops for step in inside]
        return None if None in known else float(sum(n for n in known if n is not None))
    return None if made.flops is None else made.flops * calls


def _total(own: float, name: str, inside: Sequence[StepRecord]) -> int:
    return sum(getattr(step, name) for step in inside) if inside else round(own)

"""Times of steps: sums of timer readings, attributed to lines of the user's code.

    TimerReading        the timers after several runs
    ProfileAggregate    the times of the steps of a program, and of the bodies of its loops
    StepCost            the cost of a step: operations, work by line, bytes, arrays left in memory
    step_cost_of        the cost of stages that form one step

A loop nest computes several of the user's lines together, element by element, so timers cannot
separate them.  Its time is divided by estimated work: the measured cost of each operation relative
to an addition, and the cost of each element that is read or written, by the level of the memory
hierarchy.

The time of a loop is measured without timers in its body, and divided among the steps of the body
in the proportions that timers in the body measure.  Steps in registers share the remaining time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.op import REGISTRY
from wengert._engine.core.spec import Spec, shown
from wengert._engine.core.symbolic.dim import names_in, valued
from wengert._engine.ops.cost_model import bytes_of, flops_of
from wengert._engine.profiling.record import LineShare, LiveArray, StepRecord

from ..codegen.straightline import BranchBlocks
from ..ir.index_analysis import size_of
from ..kernels import is_served
from ..lowering.loop_ir import Expr, Map, Reduce, Stored, View
from ..lowering.registry import origin_of, specs_of
from ..schedule.fusion import FusedLoops, roots_of, space_of
from ..schedule.scheduling import Schedule, owner_of
from ..schedule.workspace import last_uses
from .instrumented import InstrumentedBody, InstrumentedProgram, TimedStep

# ---- lines of the user's code --------------------------------------------------------------------


Sizes = Mapping[str, int]

# The time to read or write an element, relative to an addition (`Op.cost.work`), for data of up to
# so many bytes, which decide in which cache it is.
_MEMORY = ((1 << 15, 1.0), (1 << 20, 3.0), (1 << 25, 8.0))
_MAIN_MEMORY_COST = 25.0


def number_of(length: Any, sizes: Sizes) -> int:
    """A length as a number; sizes known only at run time count as 1."""
    unknown = dict.fromkeys(names_in((length,)) - set(sizes), 1)
    return int(valued(length, {**sizes, **unknown}))


class StepCost:
    """The cost of a step.

    Attributes
    ----------
    work : dict
        The work of each line of the user's code, with its level and scope.
    flops : float or None
    read, written : int
        Bytes.
    kept : list of LiveArray
    """

    def __init__(self, plan: Schedule, sizes: Sizes) -> None:
        self.plan, self._sizes = plan, sizes
        self.work: dict[tuple[str, int, str], float] = {}
        self.flops: float | None = 0.0
        self.read = self.written = 0
        self.kept: list[LiveArray] = []
        self._each = 1.0
        self._serials: dict[str, int] = {}
        self._stored = set(plan.stored)
        self._results = set(plan.outputs)

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations, each once, in the order of the program."""
        return tuple(sorted(self._serials, key=self._serials.__getitem__))

    def parts(self) -> tuple[LineShare, ...]:
        """The shares of the user's lines, which add up to 1, the largest first."""
        whole = sum(self.work.values())
        if not whole:
            return tuple(LineShare(*key, 1.0 / len(self.work)) for key in self.work)
        found = sorted(self.work.items(), key=lambda expr: -expr[1])
        return tuple(LineShare(*key, work / whole) for key, work in found if work)

    def add(self, stage: FusedLoops | Expr) -> None:
        """Add a stage of the schedule."""
        if isinstance(stage, FusedLoops):
            self._add_fused_loops(self.plan, stage)
        else:
            self._add_step(stage)

    def add_branches(self, branches: BranchBlocks) -> None:
        """Add a conditional that is compiled inline; its branches count as equally frequent."""
        for plan in branches.plans:
            for stage in plan.stages:
                if isinstance(stage, FusedLoops):
                    self._add_fused_loops(plan, stage, 1.0 / len(branches.plans))
                else:
                    self.add_branches(branches.inner[stage])

    def keep(self, exprs: Sequence[Expr]) -> None:
        """Add arrays that are left in memory."""
        for x in exprs:
            node = None if x.node is None else _graph_node(x.node)
            size = self._bytes(x)
            name = str(x.rule) if node is None else node.op.name
            title = f"{name} {shown(Spec(x.shape, x.dtype))}"
            self.kept.append(LiveArray(title, size, _where(node), x in self._results))

    # ---- loop nests ----------------------------------------------------------------------------

    def _add_fused_loops(self, plan: Schedule, fused: FusedLoops, frequency: float = 1.0) -> None:
        own = set(roots_of(fused))
        accessed = [a.expr for root in roots_of(fused) for a in plan.accesses(root)]
        read = sum(self._bytes(x) for x in dict.fromkeys(accessed) if x not in own)
        written = sum(self._bytes(x) for x in own if x in self._stored and x not in fused.local)
        self.read, self.written = self.read + read, self.written + written
        self._each = next((w for most, w in _MEMORY if read + written <= most), _MAIN_MEMORY_COST)
        for group in fused.groups:
            seen: set[Expr] = set()
            for root in group.roots:
                self._add_root(root, own, seen, frequency)

    def _add_root(self, root: Expr, own: set[Expr], seen: set[Expr], frequency: float) -> None:
        count = number_of(size_of(space_of(root)), self._sizes)
        pending = [(root, root)]
        while pending:
            x, user = pending.pop()
            if x in seen:
                continue
            seen.add(x)
            here = count if x is root else min(count, number_of(size_of(x.shape), self._sizes))
            new = [y for y in x.operands if y.is_root and y not in own and y not in seen]
            seen.update(new)
            moved = sum(min(here, number_of(size_of(y.shape), self._sizes)) for y in new)
            if x is root and x in self._stored:
                moved += number_of(size_of(x.shape), self._sizes)
            user = x if x.node is not None and _graph_node(x.node).where else user
            self._add_expr(user, (_work_of(x) * here + self._each * moved) * frequency)
            if isinstance(x.rule, Map | Reduce) and self.flops is not None:
                self.flops += here * frequency
            pending += [(y, user) for y in x.operands if not y.is_root]

    def _add_expr(self, x: Expr, work: float) -> None:
        if x.node is None:
            return
        node = _graph_node(x.node)
        if not isinstance(x.rule, View | Stored) and not node.is_leaf:
            self._add_operation(node)
        if work or not isinstance(x.rule, View):
            self._charge(node, work)

    def _add_operation(self, node: Any) -> None:
        name = node.op.name
        self._serials[name] = min(node.serial, self._serials.get(name, node.serial))

    def _charge(self, node: Any, work: float) -> None:
        key = _where(node), node.level, node.scope
        self.work[key] = self.work.get(key, 0.0) + work

    def _bytes(self, x: Expr) -> int:
        return number_of(size_of(x.shape) * x.dtype.itemsize, self._sizes)

    # ---- kernels, host callbacks, loops --------------------------------------------------------

    def _add_step(self, step: Expr) -> None:
        node = step.node
        line = _graph_node(node)
        self._add_operation(line)
        self._charge(line, 1.0)
        found = flops_of(node, [a.spec for a in node.inputs], node.spec)
        if found is not None and not isinstance(found, float):
            found = float(number_of(found, self._sizes))
        self.flops = None if found is None or self.flops is None else self.flops + found
        owners = dict.fromkeys(owner_of(x) for x in step.operands)
        self.read += sum(self._bytes(x) for x in owners)
        self.written += sum(number_of(bytes_of(s), self._sizes) for s in specs_of(node))


def _work_of(x: Expr) -> float:
    op = REGISTRY.get(x.rule.name) if isinstance(x.rule, Map) else None
    return x.rule.weight if op is None or op.cost is None else op.cost.work


def _graph_node(node: Any) -> Any:
    """The graph node that a node belongs to; for fused writes, the last of them."""
    return origin_of(getattr(node, "last", node))


def _where(node: Any) -> str:
    return "" if node is None else node.where or ""


def step_cost_of(
    plan: Schedule,
    stages: Sequence[FusedLoops | Expr],
    sizes: Sizes,
    choices: Mapping[Expr, BranchBlocks] | None = None,
) -> StepCost:
    """The cost of stages of a schedule that form one step.

    Parameters
    ----------
    sizes : mapping
        The values of the symbolic sizes.
    choices : mapping, optional
        The branches of conditionals that are compiled inline.
    """
    made = StepCost(plan, sizes)
    for stage in stages:
        branches = None if choices is None or isinstance(stage, FusedLoops) else choices.get(stage)
        if branches is None:
            made.add(stage)
        else:
            made.add_branches(branches)
    return made


# ---- sums of readings ----------------------------------------------------------------------------


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

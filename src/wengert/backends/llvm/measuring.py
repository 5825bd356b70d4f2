"""Measuring: a graph run with clocks inside (clocked.py), and what they said told as a `Timing`.

Three programs run: the one that every call runs, for what a call takes; one with a clock around its
steps; and, if there are loops, one with clocks in their bodies too.  Clocks in a body make its loop
slower, so they say only in which proportions its steps share the time that it takes without them.

    timed    all of it
"""

from __future__ import annotations

import ctypes
import functools
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.graph import Graph
from ...core.locks import lock
from ...core.spec import shown
from ...errors import BackendError, at, user_line
from ...ops.costs import bytes_of
from ..timing import Part, Step, Timing, in_turn, undisturbed, whole
from .backend import Compiled, Native, entry_of
from .clock import COST, FIRST, PEAK, READ, TABLE, is_available
from .clocked import Clocked, ClockedBody, Place
from .forms import size_of
from .items import Item
from .kernels import is_served
from .layouts import layout_of
from .plan import Plan
from .routine import ON_STACK
from .runtime.threads import get_threads
from .shares import Made, made_of, number_of
from .walks import Walk
from .workspace import last_uses

_MOST, _WORDS = 1000, 4_000_000  # runs, and words noted of them, where nobody says how many
_LONG_ENOUGH = 0.005  # seconds in which the speed of the clock is found
_BATCHES, _TRIES = 20, 500  # readings by which its cost is
_MISSED = object()
_REAL = np.dtype(np.float64)


class _Reading(NamedTuple):
    """What the clocks of a program said, of several runs as `undisturbed` says.

    around : seconds of a run that are in no cell.
    cells : for each cell seconds, and how often; what the clock itself took is in them.
    peak : the most bytes allocated at a time.
    inner, outer : what a cell costs, in what it measures, and in what is around it.
    """

    around: float
    cells: Any
    peak: float
    inner: float
    outer: float
    runs: int


class _Failed(Exception):
    """The run came to no end in native code."""


class Measured:
    """A program with clocks, in memory; it measures one run at a time."""

    def __init__(self, graph: Graph, threads: int | None, layouts: str, inside: bool) -> None:
        self.program = Clocked(graph, threads, layouts, inside)
        self.compiled = Compiled(self.program)
        code = self.compiled.code
        self._tick = ctypes.CFUNCTYPE(ctypes.c_int64)(code.address(READ))
        self._cost = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address(COST))
        place = ctypes.CFUNCTYPE(ctypes.c_void_p)(code.address(TABLE))()
        words = ctypes.c_int64 * self.program.clock.words
        self.table = np.frombuffer(words.from_address(place), np.int64)  # type: ignore[call-overload]
        self._lock = lock()

    def read(
        self,
        values: Sequence[Any],
        sizes: Mapping[str, int],
        repeats: int | None,
        others: Sequence[Callable[[], object]] = (),
    ) -> tuple[_Reading, list[list[float]]]:
        """Run it in turn with others, and read the clocks; and the seconds that the others took."""
        with self._lock:
            began, ticks = time.perf_counter(), self._tick()
            runs = [_runner(self.compiled, values, sizes), *others]
            most = min(_MOST, _WORDS // self.table.size + 1)
            seconds, counted = [], []
            for one in in_turn(runs, repeats, self._clear, most):
                seconds.append(one)
                counted.append(self.table.astype(_REAL))
            if time.perf_counter() - began < _LONG_ENOUGH:
                time.sleep(_LONG_ENOUGH)
            ticks = self._tick() - ticks
            second = (time.perf_counter() - began) / max(ticks, 1)  # of a tick
            outer, inner = (ticks * second for ticks in self._cost_of_cell())
        found = undisturbed(counted)
        cells = found[FIRST:].reshape(-1, 2) * [second, 1.0]
        own = [counts[FIRST::2].sum() * second for counts in counted]
        around = undisturbed([one[0] - s for one, s in zip(seconds, own, strict=True)])
        reading = _Reading(float(around), cells, found[PEAK], inner, outer, len(seconds))
        return reading, [one[1:] for one in seconds]

    def _clear(self) -> None:
        self.table[:] = 0

    def _cost_of_cell(self) -> tuple[float, float]:
        """Ticks that a cell takes, and that it adds to what it measures; when nobody disturbs."""
        around, within = [], []
        for _ in range(_BATCHES):
            self._clear()
            around.append(self._cost(_TRIES) / _TRIES)
            within.append(self.table[FIRST] / _TRIES)
        self._clear()
        return min(around), float(min(within))


_known: weakref.WeakKeyDictionary[Graph, dict[Any, Measured]] = weakref.WeakKeyDictionary()
_lock = lock()


def _measured(native: Native, graph: Graph, layouts: str, inside: bool) -> Measured:
    with _lock:
        found = _known.setdefault(graph, {})
        key = native.threads, layouts, inside
        if key not in found:
            found[key] = Measured(graph, native.threads, layouts, inside)
        return found[key]


def timed(
    native: Native,
    graph: Graph,
    values: Sequence[Any],
    sizes: Mapping[str, int],
    repeats: int | None,
    call: Callable[[], object] | None,
) -> Timing | None:
    """Where the time of a run goes; see `Backend.timed`.

    Raises
    ------
    BackendError
        There is no clock that native code could read.
    """
    if not is_available():
        raise BackendError(
            "there is no clock here that native code could read. Profile with "
            f"backend='interpret'{at(user_line())}."
        )
    specs = [n.spec for n in (*graph.inputs, *graph.variables)]
    layouts = "".join(map(layout_of, values, specs)).replace("-", "C")
    layouts = layouts if set(layouts) - {"C"} else ""
    try:
        own = native.compiled(graph, layouts)
        flat = _measured(native, graph, layouts, False)
        others = [_runner(own, values, sizes), *([] if call is None else [call])]
        reading, rounds = flat.read(values, sizes, repeats, others)
        within = deep = None
        if flat.program.has_bodies:
            within = _measured(native, graph, layouts, True)
            deep, _ = within.read(values, sizes, repeats)
    except _Failed:
        return None
    told = _Told(sizes, reading, deep)
    steps = told.of_kernel(flat.program, (within or flat).program)
    results = (*graph.outputs, *graph.updates.values())
    outputs = sum(number_of(bytes_of(n.spec), sizes) for n in results)
    stack = number_of(flat.program.workspace, sizes)
    on_stack = type(flat.program.workspace) is int and stack <= ON_STACK
    held = int(reading.peak) + (stack if on_stack else 0)
    around = reading.around - (reading.outer - reading.inner) * len(flat.program.places)
    return Timing(
        backend=native.name,
        seconds=whole(steps, around, rounds),
        plain=float(undisturbed([one[-1] for one in rounds])),
        runs=reading.runs,
        steps=steps,
        workspace=held,
        peak=held + outputs,
        inputs=sum(np.asarray(v).nbytes for v in values),
        outputs=outputs,
        threads=native.threads or get_threads(),
        sizes=dict(sizes),
    )


# ---- running -------------------------------------------------------------------------------------


def _runner(
    compiled: Compiled, values: Sequence[Any], sizes: Mapping[str, int]
) -> Callable[[], object]:
    """What runs a program as a call does: results come from memory that is recycled."""

    def missed(*_: Any) -> Any:
        return _MISSED

    entry = None if any(compiled.program.counts) else entry_of(compiled, missed, missed)

    def slowly() -> object:
        found = compiled.run(values, sizes)
        if found is None:
            raise _Failed
        return found

    if entry is None or entry(*values) is _MISSED:
        slowly()
        return slowly
    return functools.partial(entry, *values)


# ---- telling -------------------------------------------------------------------------------------


class _Told:
    """What readings say of places.

    Parameters
    ----------
    sizes : mapping
    flat : _Reading
        Of the program with clocks around its own steps.
    deep : _Reading or None
        Of the one with clocks in the bodies of loops too.
    """

    def __init__(self, sizes: Mapping[str, int], flat: _Reading, deep: _Reading | None) -> None:
        self._sizes, self._flat = sizes, flat
        self._of_plans: dict[Plan, dict[Walk | Item, int]] = {}
        self._deep = flat if deep is None else deep

    def of_kernel(self, flat: Clocked, deep: Clocked) -> tuple[Step, ...]:
        """The steps of a program, whose times are those of the flat reading."""
        found = []
        for own, place in zip(flat.places, deep.places, strict=True):
            assert own.cell is not None
            seconds, calls = self._flat.cells[own.cell]
            seconds = max(0.0, seconds - calls * self._flat.inner)
            place = place._replace(function=own.function)
            found.append(self._step(deep.plan, place, seconds, calls))
        return tuple(found)

    def _step(
        self,
        plan: Plan,
        place: Place,
        seconds: float,
        calls: float,
        body: ClockedBody | None = None,
        base: int = 0,
    ) -> Step:
        made = made_of(plan, place.stages, self._sizes, None if body is None else body.choices)
        held = base + self._held(plan, place.stages)
        if len(place.stages) == 1:
            stage = place.stages[0]
            results = set() if body is None else set(plan.outputs)
            own = [x for x in plan.stored if plan.stages[plan.position_of(x)] is stage]
            made.keep([x for x in own if x not in results])
        kind, title = _words(place, self._steps(place) / calls if calls else 0.0)
        inside = self._inside(place, seconds, held)
        return Step(
            kind=kind,
            title=title,
            operations=made.operations,
            calls=float(calls),
            seconds=float(seconds),
            flops=_flops(made, calls, inside),
            read=_total(made.read * calls, "read", inside),
            written=_total(made.written * calls, "written", inside),
            held=max([held, *[step.held for step in inside]]),
            parts=made.parts() or (Part("", 0, "", 1.0),),
            kept=tuple(made.kept),
            inside=inside,
            body="" if body is None else body.label,
        )

    def _inside(self, place: Place, seconds: float, base: int) -> tuple[Step, ...]:
        """The steps of the bodies of a loop that took so long.

        What no clock was put around - bodies in registers - has what the others leave.
        """
        known = self._spent(place)
        scale = seconds / known if known > 0.0 else 0.0
        found = [
            (body, p, self._deep.cells[body.times if p.cell is None else p.cell][1])
            for body in place.bodies
            for p in body.places
        ]
        spent = [self._spent(p) * scale for _, p, _ in found]
        most = sum(spent)
        if most > seconds:
            spent = [s * seconds / most for s in spent]
        weights = [0.0 if p.cell else calls * self._work(b, p) for b, p, calls in found]
        rest = max(0.0, seconds - sum(spent)) / (sum(weights) or 1.0)
        return tuple(
            self._step(body.plan, p, s + w * rest, calls, body, base)
            for (body, p, calls), s, w in zip(found, spent, weights, strict=True)
            if calls
        )

    def _steps(self, place: Place) -> float:
        """How often a loop has gone round."""
        if not place.bodies:
            return 0.0
        # Of a while loop the second body is the condition, of a replay the last is the way back.
        loop: Any = place.stages[0]
        is_replay = loop.node.op.name == "replay"
        return float(self._deep.cells[place.bodies[-1 if is_replay else 0].times][1])

    def _work(self, body: ClockedBody, place: Place) -> float:
        return 1.0 + sum(made_of(body.plan, place.stages, self._sizes, body.choices).work.values())

    def _spent(self, place: Place) -> float:
        """The seconds of a place in the deep reading, without those of clocks."""
        if place.cell is None:
            return 0.0
        seconds, calls = self._deep.cells[place.cell]
        clocks = calls * self._deep.inner + self._deep.outer * _read_inside(place, self._deep.cells)
        return max(0.0, float(seconds - clocks))

    def _held(self, plan: Plan, stages: Sequence[Walk | Item]) -> int:
        """The bytes between stages that are needed while some of them run."""
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


def _read_inside(place: Place, cells: Any) -> float:
    """How often clocks were read in the bodies of a place."""
    inner = [p for body in place.bodies for p in body.places]
    return sum((cells[p.cell][1] if p.cell else 0.0) + _read_inside(p, cells) for p in inner)


def _words(place: Place, steps: float) -> tuple[str, str]:
    """What kind of a step it is, and what it is called."""
    if len(place.stages) > 1 or place.cell is None:
        return "straight", "in registers"
    (stage,) = place.stages
    if isinstance(stage, Walk):
        first = stage.sweeps[0].space
        over = f"over [{','.join(map(str, first))}]"
        if stage.rows:
            rows = ",".join(map(str, first[: stage.rows]))
            over = f"over the rows of [{rows}], {len(stage.sweeps)} passes each"
        return ("nest", f"{over} ({place.function})") if place.function else ("straight", over)
    node = stage.node
    if node.op.kind != "control":
        return ("call" if is_served(node) else "island"), f"{node.op.name} {shown(node.spec)}"
    if "branches" in node.params:
        return "choice", node.op.name
    return "loop", f"{node.op.name} of {steps:,.6g} steps"


def _flops(made: Made, calls: float, inside: Sequence[Step]) -> float | None:
    """Of all runs; of a loop those of its steps."""
    if inside:
        known = [step.flops for step in inside]
        return None if None in known else float(sum(n for n in known if n is not None))
    return None if made.flops is None else made.flops * calls


def _total(own: float, name: str, inside: Sequence[Step]) -> int:
    return sum(getattr(step, name) for step in inside) if inside else round(own)

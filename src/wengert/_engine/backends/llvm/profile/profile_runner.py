"""Runs a graph with timers (instrumented.py), and returns a `Timing`.

Three programs run: the one that calls run, for the time of a call; one with timers around its
steps; and, if there are loops, one with timers in their bodies too.  Timers in a body slow its loop
down, so they are only used for the proportions of its steps.

    timed    does all of this; step_times.py sums the readings
"""

from __future__ import annotations

import ctypes
import functools
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.thread_state import lock
from wengert._engine.ops.cost_model import bytes_of
from wengert._engine.profiling.record import Timing, call_seconds, lower_quartile, timed_rounds
from wengert.errors import BackendError, at, user_line

from ..compiled_programs import LoadedProgram, entry_of, has_entry
from ..runtime.settings import get_threads
from ..tuning import thresholds
from .instrumented import COST, FIRST, PEAK, READ, TABLE, InstrumentedProgram, is_available
from .step_times import ProfileAggregate, TimerReading, number_of

_MAX_RUNS, _MAX_WORDS = 1000, 4_000_000  # defaults: runs, and words recorded in all of them
_CLOCK_SECONDS = 0.005  # duration of the calibration of the clock
_BATCHES, _TRIES = 20, 500  # timer readings that measure the cost of a timer
_MISSED = object()
_REAL = np.dtype(np.float64)


class _RunFailed(Exception):
    """The native run failed."""


class TimedRunner:
    """An instrumented program in memory; it measures one run at a time."""

    def __init__(self, program: InstrumentedProgram) -> None:
        self.program = program
        self.compiled = LoadedProgram(self.program)
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
        begin: Callable[[], object],
        others: Sequence[Callable[[], object]] = (),
    ) -> tuple[TimerReading, list[list[float]]]:
        """Run it alternately with others: the timer readings, and the seconds of the others."""
        with self._lock:
            began, ticks = time.perf_counter(), self._tick()
            runs = [_runner(self.compiled, values, sizes), *others]
            max_runs = min(_MAX_RUNS, _MAX_WORDS // self.table.size + 1)
            seconds, counted = [], []

            def clear() -> None:
                begin()
                self._clear()

            for one in timed_rounds(runs, repeats, clear, max_runs):
                seconds.append(one)
                counted.append(self.table.astype(_REAL))
            if time.perf_counter() - began < _CLOCK_SECONDS:
                time.sleep(_CLOCK_SECONDS)
            ticks = self._tick() - ticks
            second = (time.perf_counter() - began) / max(ticks, 1)  # per tick
            outer, inner = (ticks * second for ticks in self._cost_of_cell())
        found = lower_quartile(counted)
        cells = found[FIRST:].reshape(-1, 2) * [second, 1.0]
        own = [counts[FIRST::2].sum() * second for counts in counted]
        around = lower_quartile([one[0] - s for one, s in zip(seconds, own, strict=True)])
        reading = TimerReading(float(around), cells, found[PEAK], inner, outer, len(seconds))
        return reading, [one[1:] for one in seconds]

    def _clear(self) -> None:
        self.table[:] = 0

    def _cost_of_cell(self) -> tuple[float, float]:
        """The ticks of a timer for the code around it, and within its own reading."""
        around, within = [], []
        for _ in range(_BATCHES):
            self._clear()
            around.append(self._cost(_TRIES) / _TRIES)
            within.append(self.table[FIRST] / _TRIES)
        self._clear()
        return min(around), float(min(within))


_known: weakref.WeakKeyDictionary[BaseGraph, dict[Any, TimedRunner]] = weakref.WeakKeyDictionary()
_lock = lock()


def _runner_of(graph: BaseGraph, *options: Any) -> TimedRunner:
    """The instrumented program for given options, made once."""
    with _lock:
        found = _known.setdefault(graph, {})
        if options not in found:
            found[options] = TimedRunner(InstrumentedProgram(graph, *options))
        return found[options]


def check_timers() -> None:
    """Raise if native code cannot read a clock.

    Raises
    ------
    BackendError
        There is no clock that native code can read.
    """
    if not is_available():
        raise BackendError(
            "native code cannot read a clock on this machine. Profile with "
            f"backend='interpret'{at(user_line())}."
        )


def timed(
    own: LoadedProgram,
    graph: BaseGraph,
    values: Sequence[Any],
    sizes: Mapping[str, int],
    repeats: int | None,
    call: Callable[[], object] | None,
    threads: int | None,
    layouts: str,
) -> Timing | None:
    """The time of a run by step; see `Backend.timed`.

    Parameters
    ----------
    own : LoadedProgram
        The program that calls run.
    threads, layouts
        The options with which it was compiled.
    """
    try:
        initial, overwritten = values, own.program.overwritten.values()
        values = [np.array(v) if k in overwritten else v for k, v in enumerate(initial)]

        def begin() -> None:
            for k in overwritten:
                values[k][...] = initial[k]

        options = threads, layouts, bool(own.program.overwritten)
        flat = _runner_of(graph, *options, False)
        others = [_runner(own, values, sizes), *([] if call is None else [call])]
        reading, rounds = flat.read(values, sizes, repeats, begin, others)
        nested = deep = None
        if flat.program.has_bodies:
            nested = _runner_of(graph, *options, True)
            deep, _ = nested.read(values, sizes, repeats, begin)
    except _RunFailed:
        return None
    aggregate = ProfileAggregate(sizes, reading, deep, own.program.overwritten)
    steps = aggregate.of_kernel(flat.program, (nested or flat).program)
    new = [p for k, p in enumerate(own.program.outputs) if k not in own.program.overwritten]
    outputs = sum(number_of(bytes_of(port.spec), sizes) for port in new)
    stack = number_of(flat.program.workspace, sizes)
    on_stack = type(flat.program.workspace) is int and stack <= thresholds.workspace_stack_bytes
    held = int(reading.peak) + (stack if on_stack else 0)
    around = reading.around - (reading.outer - reading.inner) * len(flat.program.timed_steps)
    return Timing(
        backend="llvm",
        seconds=call_seconds(steps, around, rounds),
        plain=float(lower_quartile([one[-1] for one in rounds])),
        runs=reading.runs,
        steps=steps,
        workspace=held,
        peak=held + outputs,
        inputs=sum(np.asarray(v).nbytes for v in values),
        outputs=outputs,
        threads=threads or get_threads(),
        sizes=dict(sizes),
    )


# ---- running -------------------------------------------------------------------------------------


def _runner(
    compiled: LoadedProgram, values: Sequence[Any], sizes: Mapping[str, int]
) -> Callable[[], object]:
    """A function that runs a program as a call does, with results from the allocator."""

    def missed(*_: Any) -> Any:
        return _MISSED

    entry = entry_of(compiled, missed, missed) if has_entry(compiled.program) else None

    def run_slow_path() -> object:
        found = compiled.run(values, sizes)
        if found is None:
            raise _RunFailed
        return found

    if entry is None or entry(*values) is _MISSED:
        run_slow_path()
        return run_slow_path
    return functools.partial(entry, *values)

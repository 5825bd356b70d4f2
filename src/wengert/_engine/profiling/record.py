"""Record: the time and the memory of a run, as plain data that every backend fills.

    LineShare   the share of a step that belongs to one of the user's lines
    LiveArray   an array that a step leaves in memory
    StepRecord  a step: a nest, a call, a host callback, a loop, a branch or a line
    Timing      the steps of a graph in execution order, with totals
    timed_rounds    repeated runs of several functions, with their times
    lower_quartile  an estimate from several runs that is robust against other load
    call_seconds    the time of a call, from its steps and from runs with and without clocks

The data can be pickled.  A backend creates it (`Backend.timed`), and its presentation
(profiling/profile.py) does not depend on the backend.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from wengert._engine.core.node_properties import spot_of

_SECONDS = 0.1  # total time of the runs of one function, if the number of runs is not given
_FEWEST_RUNS, _QUICK_SECONDS = 3, 1e-3
_LEAST_SECONDS = 1e-9  # seconds: below the time of a call and the resolution of clocks


@dataclass(frozen=True)
class LineShare:
    """The share of a step that belongs to one of the user's lines.

    Attributes
    ----------
    where : str
        ``file.py:12, in f``; empty if unknown.
    level : int
        0 for the function itself, k for a k-th derivative.
    scope : str
        The path of the scopes in which it was traced; empty outside of all.
    share : float
        Share of the time of the step; all shares of a step add up to 1.
    """

    where: str
    level: int
    scope: str
    share: float


@dataclass(frozen=True)
class LiveArray:
    """An array that a step leaves in memory: a result, or an operand of later steps.

    Attributes
    ----------
    what : str
        The operation that computes it, and its spec.
    bytes : int
    where : str
        The user's line.
    is_result : bool
        Whether it is a result of the function.
    """

    what: str
    bytes: int
    where: str
    is_result: bool


@dataclass(frozen=True)
class StepRecord:
    """One step of a run.

    Attributes
    ----------
    kind : str
        ``nest`` (a generated loop over arrays), ``straight`` (a few numbers in registers),
        ``call`` (a kernel or a library), ``host callback`` (in Python), ``loop``, ``branch``; in
        the interpreter ``line``.
    title : str
        The iteration space, or the operation.
    operations : tuple of str
        The operations of the step.
    calls : float
        Number of runs in one call of the function.
    seconds : float
        Total time of these runs.
    flops : float or None
        Floating-point operations of these runs, estimated; None if unknown.
    read, written : int
        Bytes read and written by these runs.
    held : int
        Bytes of intermediate values in memory while it runs.
    parts : tuple of LineShare
        The user's lines of the step.
    kept : tuple of LiveArray
    inside : tuple of StepRecord
        For a loop or branch, the steps of its bodies.
    body : str
        For a nested step, the name of its body.
    """

    kind: str
    title: str
    operations: tuple[str, ...]
    calls: float
    seconds: float
    flops: float | None
    read: int
    written: int
    held: int
    parts: tuple[LineShare, ...]
    kept: tuple[LiveArray, ...] = ()
    inside: tuple[StepRecord, ...] = ()
    body: str = ""

    @property
    def is_estimated(self) -> bool:
        """Whether its time was divided among several lines by estimated work."""
        return len({spot_of(part.where) for part in self.parts}) > 1

    @property
    def own(self) -> float:
        """Seconds outside of nested steps."""
        return max(0.0, self.seconds - sum(step.seconds for step in self.inside))

    def walk(self, depth: int = 0) -> Iterator[tuple[int, StepRecord]]:
        """The step and all nested steps, with their depths."""
        yield depth, self
        for step in self.inside:
            yield from step.walk(depth + 1)


@dataclass(frozen=True)
class Timing:
    """The steps of a graph, with totals.

    Attributes
    ----------
    backend : str
    seconds : float
        Time of one call, including the time outside of steps.
    plain : float
        Time of one call without instrumentation.
    runs : int
        Number of timed runs.
    steps : tuple of StepRecord
    workspace : int
        Bytes of memory for intermediate values.
    peak : int
        Peak memory of intermediate values and results in bytes.
    inputs, outputs : int
        Bytes of arguments and results.
    threads : int
        Limit of the number of threads.
    """

    __module__ = "wengert.backends"

    backend: str
    seconds: float
    plain: float
    runs: int
    steps: tuple[StepRecord, ...]
    workspace: int
    peak: int
    inputs: int
    outputs: int
    threads: int = 1
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def around(self) -> float:
        """Seconds of a call outside of steps: arguments, results, the call itself."""
        return max(0.0, self.seconds - sum(step.seconds for step in self.steps))

    def walk(self) -> Iterator[tuple[int, StepRecord]]:
        """All steps with their depths, those of a loop or branch after it."""
        for step in self.steps:
            yield from step.walk()


def timed_rounds(
    runs: Sequence[Callable[[], object]],
    repeats: int | None,
    begin: Callable[[], object] | None = None,
    limit: int = 1000,
) -> Iterator[list[float]]:
    """Run some functions in turn, repeatedly; yield their seconds, without the timer overhead.

    Parameters
    ----------
    runs : sequence of callable
    repeats : int or None
        Number of rounds; by default as many as fit into a tenth of a second for each function, but
        at least 3 and at most `limit`.
    begin : callable, optional
        Called before each round.
    """
    overhead = _timer_overhead()
    for run in runs:
        _warm(run)
    first_start = perf_counter()
    for k in range(limit if repeats is None else repeats):
        if (
            repeats is None
            and k >= _FEWEST_RUNS
            and perf_counter() - first_start > _SECONDS * len(runs)
        ):
            return
        if begin is not None:
            begin()
        seconds = []
        for run in runs:
            start = perf_counter()
            run()
            seconds.append(max(_LEAST_SECONDS, perf_counter() - start - overhead))
        yield seconds


def _warm(run: Callable[[], object]) -> None:
    """Run once to fill the memory pool, and quick functions three more times to compile them."""
    start = perf_counter()
    run()
    for _ in range(3 if perf_counter() - start < _QUICK_SECONDS else 0):
        run()


@functools.cache
def _timer_overhead() -> float:
    """The seconds that reading the clock and calling a function take."""

    def nothing() -> None:
        pass

    seconds = []
    for _ in range(400):
        start = perf_counter()
        nothing()
        seconds.append(perf_counter() - start)
    return float(lower_quartile(seconds))


def lower_quartile(samples: Sequence[Any]) -> Any:
    """The lower quartile over several runs, for each figure separately.

    Other load on the machine can only increase the figures, in some or most of the runs.
    """
    return np.quantile(np.asarray(samples), 0.25, axis=0)


def call_seconds(
    steps: Sequence[StepRecord], around: float, others: Sequence[Sequence[float]]
) -> float:
    """Seconds of a call.

    Parameters
    ----------
    steps : sequence of StepRecord
    around : float
        Seconds of an instrumented run outside of steps; may include clock overhead.
    others : sequence
        For each round, the seconds of a run without clocks and, if it was run too, of the function
        that the user calls.
    """
    inside = sum(step.seconds for step in steps)
    plain = lower_quartile([one[0] for one in others])
    # Differences within a round, because noise in long runs exceeds the overhead of a call.
    call_overhead = lower_quartile([one[-1] - one[0] for one in others])
    program = max(inside, min(plain, inside + max(_LEAST_SECONDS, around)))
    return float(program + max(0.0, call_overhead))

"""Record: the time and the memory of a run, as plain data that every backend fills.

    LineShare   the share of a step that belongs to one of the user's lines
    LiveArray   an array that a step leaves in memory
    StepRecord  a nest, a call, a host callback, a loop, a branch or a line, in the order they run
    Timing      the steps of a graph, with the figures of the whole
    in_turn       runs again and again, and how long each took
    undisturbed   of several runs what it would be if nobody else used the machine
    whole         what a call takes, by its steps and by runs with clocks and without

Plain data, which can be pickled: a backend makes it (`Backend.timed`), and who shows it
(profiling/profile.py) knows of no backend.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from wengert._engine.core.source_location import spot_of

_SECONDS = 0.1  # what looking at one function may take, where nobody says how often it is to run
_FEWEST_RUNS, _QUICK_SECONDS = 3, 1e-3
_LEAST_SECONDS = 1e-9  # seconds: less than any call takes, and than clocks tell


@dataclass(frozen=True)
class LineShare:
    """The share of a step that belongs to one of the user's lines.

    Attributes
    ----------
    where : str
        ``file.py:12, in f``; empty where it is not known.
    level : int
        0 of the function itself, k of a k-th derivative.
    scope : str
        The path of the scopes that it was traced in; empty outside of all.
    share : float
        Of the time of the step; all of a step make 1.
    """

    where: str
    level: int
    scope: str
    share: float


@dataclass(frozen=True)
class LiveArray:
    """An array that a step leaves in memory: a result, or what later steps read.

    Attributes
    ----------
    what : str
        The operation that makes it, and its spec.
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
    """What runs one after the other.

    Attributes
    ----------
    kind : str
        ``nest`` (a loop over arrays of our own), ``straight`` (a few numbers in registers),
        ``call`` (a kernel or a library), ``host callback`` (in Python), ``loop``, ``branch``; of
        the interpreter ``line``.
    title : str
        What it walks over, or the operation.
    operations : tuple of str
        The operations that share it.
    calls : float
        How often it ran in one call of the function.
    seconds : float
        In one call of the function, all its runs together.
    flops : float or None
        Floating-point operations of all its runs, estimated; None if they cannot be known.
    read, written : int
        Bytes, of all its runs.
    held : int
        Bytes of intermediate values in memory while it runs.
    parts : tuple of LineShare
        The user's lines that it is made of.
    kept : tuple of LiveArray
    inside : tuple of StepRecord
        Of a loop or a choice the steps of its bodies.
    body : str
        Of a step inside the name of the body that it is in.
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
        """Whether its time was shared out among several lines by the work that they are."""
        return len({spot_of(part.where) for part in self.parts}) > 1

    @property
    def own(self) -> float:
        """Seconds that no step inside took."""
        return max(0.0, self.seconds - sum(step.seconds for step in self.inside))

    def walk(self, depth: int = 0) -> Iterator[tuple[int, StepRecord]]:
        """Itself and all steps inside, each with how deep it stands."""
        yield depth, self
        for step in self.inside:
            yield from step.walk(depth + 1)


@dataclass(frozen=True)
class Timing:
    """The steps of a graph, with the figures of the whole.

    Attributes
    ----------
    backend : str
    seconds : float
        Of one call: its steps, and what is around them.
    plain : float
        Of one call without clocks inside.
    runs : int
        How many runs were looked at.
    steps : tuple of StepRecord
    workspace : int
        Bytes of the memory for intermediate values.
    peak : int
        The most bytes of intermediate values and results held at a time.
    inputs, outputs : int
        Bytes given and returned.
    threads : int
        How many it may use.
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
        """Seconds of a call that belong to no step: arguments, results, the call itself."""
        return max(0.0, self.seconds - sum(step.seconds for step in self.steps))

    def walk(self) -> Iterator[tuple[int, StepRecord]]:
        """All steps, those of loops and branches behind them, each with how deep it stands."""
        for step in self.steps:
            yield from step.walk()


def in_turn(
    runs: Sequence[Callable[[], object]],
    repeats: int | None,
    begin: Callable[[], object] | None = None,
    most: int = 1000,
) -> Iterator[list[float]]:
    """Run some functions in turn, again and again: seconds of each, without those of looking.

    Parameters
    ----------
    runs : sequence of callable
    repeats : int or None
        How often; by default as often as fits into a tenth of a second for each, at least 3 times,
        and at most `most` times.
    begin : callable, optional
        Called before each round.
    """
    looking = _looking()
    for run in runs:
        _warm(run)
    began = perf_counter()
    for k in range(most if repeats is None else repeats):
        if repeats is None and k >= _FEWEST_RUNS and perf_counter() - began > _SECONDS * len(runs):
            return
        if begin is not None:
            begin()
        found = []
        for run in runs:
            start = perf_counter()
            run()
            found.append(max(_LEAST_SECONDS, perf_counter() - start - looking))
        yield found


def _warm(run: Callable[[], object]) -> None:
    """Run once, so that memory is recycled; what is quick more often: some programs come late."""
    start = perf_counter()
    run()
    for _ in range(3 if perf_counter() - start < _QUICK_SECONDS else 0):
        run()


@functools.cache
def _looking() -> float:
    """Seconds that it takes to look at the clock and to call a function."""

    def nothing() -> None:
        pass

    found = []
    for _ in range(400):
        start = perf_counter()
        nothing()
        found.append(perf_counter() - start)
    return float(undisturbed(found))


def undisturbed(found: Sequence[Any]) -> Any:
    """Of figures of several runs the lower quartile, each by itself.

    Others use the machine too: they make some of the figures of most runs larger, and none smaller.
    """
    return np.quantile(np.asarray(found), 0.25, axis=0)


def whole(steps: Sequence[StepRecord], around: float, others: Sequence[Sequence[float]]) -> float:
    """Seconds of a call.

    Parameters
    ----------
    steps : sequence of StepRecord
    around : float
        Seconds of a run with clocks that belong to no step; clocks may be part of it.
    others : sequence
        For each round the seconds of a run without clocks, and of what the user calls, if that was
        run too.
    """
    inside = sum(step.seconds for step in steps)
    plain = undisturbed([one[0] for one in others])
    # Of the same round, because what others do to long runs is more than what a call takes.
    beside = undisturbed([one[-1] - one[0] for one in others])
    own = max(inside, min(plain, inside + max(_LEAST_SECONDS, around)))
    return float(own + max(0.0, beside))

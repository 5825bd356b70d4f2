"""Profile data: time and memory by step, by the user's lines and by scope.

    ProfileData  the figures
    ProfileRow   a step, numbered by its position in its loop: 3, 3.1, 3.2
    LineProfile  one of the user's lines, with its time in all steps

`Profile` (profile.py) adds printing and saving.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wengert._engine.core.node_properties import place_of, spot_of

from .record import LineShare, StepRecord, Timing

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

AROUND = "(call)"


@dataclass(frozen=True)
class ProfileRow:
    """A step of the program.

    Attributes
    ----------
    number : str
        ``3``, or ``3.1`` for the first step of the loop that is step 3.
    depth : int
        Nesting depth in loops and branches.
    kind, title : str
        ``nest``, ``straight``, ``call``, ``host callback``, ``loop``, ``branch``, ``line``; the
        iteration space, or the operation. The row ``around`` is the time outside of all steps:
        checking arguments, creating results.
    operations : tuple of str
        The operations of the step.
    calls : float
        Number of runs in one call of the function.
    seconds, share : float
        Time in one call; the shares of the rows of depth 0 add up to 1.
    flops : float or None
        Floating-point operations, estimated; None if unknown.
    read, written : int
        Bytes read and written.
    held : int
        Bytes of intermediate values in memory while it runs.
    lines : tuple of (str, float)
        The user's lines, and the share of each in the step.
    is_estimated : bool
        Whether these shares are estimates: several lines share the step.
    body : str
        For a step inside a loop or branch, the name of its body.
    """

    number: str
    depth: int
    kind: str
    title: str
    operations: tuple[str, ...]
    calls: float
    seconds: float
    share: float
    flops: float | None
    read: int
    written: int
    held: int
    lines: tuple[tuple[str, float], ...]
    is_estimated: bool
    body: str = ""

    @property
    def gflops(self) -> float | None:
        """Floating-point operations per second, in units of 1e9."""
        return None if self.flops is None or not self.seconds else self.flops / self.seconds / 1e9

    @property
    def gbytes(self) -> float | None:
        """Bytes read and written per second, in units of 1e9."""
        return (self.read + self.written) / self.seconds / 1e9 if self.seconds else None


@dataclass(frozen=True)
class LineProfile:
    """One of the user's lines.

    Attributes
    ----------
    where : str
        ``file.py:12, in f``; empty if there is no line. If several functions are on one line, the
        first.
    seconds, share : float
        Time in one call of the function; the shares of all lines add up to 1.
    levels : dict from int to float
        Seconds of the value (0) and of derivatives of each order.
    is_estimated : bool
        Whether some of the time was divided among several lines by estimated work.
    read, written : float
        Bytes, divided in the same way.
    kept : int
        Bytes of the results and intermediate arrays of this line that stay in memory.
    steps : tuple of str
        The numbers of its rows.
    """

    where: str
    seconds: float
    share: float
    levels: dict[int, float]
    is_estimated: bool
    read: float
    written: float
    kept: int
    steps: tuple[str, ...]

    @property
    def place(self) -> str:
        """File and line without folders."""
        location = place_of(self.where)
        return self.where or "(no line)" if location is None else location.short

    @property
    def text(self) -> str:
        """The source text; empty if it cannot be read."""
        location = place_of(self.where)
        return "" if location is None else location.text

    @property
    def derivative(self) -> float:
        """Seconds of derivatives of all orders."""
        return sum(seconds for level, seconds in self.levels.items() if level)


class ProfileData:
    """The figures of a profile: by step, by the user's lines, by scope."""

    def __init__(self, name: str, value: Array | dict[Any, Any], timing: Timing) -> None:
        self.name, self.value, self.timing = name, value, timing

    @property
    def seconds(self) -> float:
        """Seconds of one call; the sum of all rows."""
        return self.timing.seconds

    @property
    def plain(self) -> float:
        """Seconds of one call of the program without instrumentation."""
        return self.timing.plain

    @property
    def workspace(self) -> int:
        """The peak memory of intermediate values in bytes."""
        return self.timing.workspace

    @property
    def peak(self) -> int:
        """The peak memory of intermediate values and results in bytes."""
        return self.timing.peak

    @property
    def rows(self) -> tuple[ProfileRow, ...]:
        """The steps in execution order, those of a loop after it; last, the time outside of all."""
        total = self.seconds or 1.0
        rows = [_row(n, depth, s, total) for n, depth, s in _numbered(self.timing.steps)]
        title = "arguments, results, the call itself"
        parts = (LineShare(AROUND, 0, "", 1.0),)
        last = StepRecord("around", title, (), 1.0, self.timing.around, None, 0, 0, 0, parts)
        return (*rows, _row("", 0, last, total))

    def by_line(self) -> tuple[LineProfile, ...]:
        """The user's lines, the slowest first; their times add up to that of a call.

        The line ``(call)`` is the time outside of all steps.
        """
        totals: dict[str, _LineTotal] = {}
        for number, _, step in _numbered(self.timing.steps):
            for kept in step.kept:
                total = totals.setdefault(spot_of(kept.where), _LineTotal(kept.where))
                total.kept += kept.bytes
            for part in step.parts:
                total = totals.setdefault(spot_of(part.where), _LineTotal(part.where))
                total.add(number, step, part)
        call_seconds = self.seconds or 1.0
        lines = [total.line(call_seconds) for total in totals.values()]
        around = self.timing.around
        lines.append(
            LineProfile(AROUND, around, around / call_seconds, {0: around}, False, 0.0, 0.0, 0, ())
        )
        return tuple(sorted(lines, key=lambda line: -line.seconds))

    def by_scope(self) -> dict[str, float]:
        """Seconds by scope, the slowest first.

        The time of a scope (`wengert.scope`, the modules of a model) includes nested scopes; the
        empty name is the time outside of all scopes.
        """
        seconds: dict[str, float] = {}
        for _, _, step in _numbered(self.timing.steps):
            for part in step.parts:
                names = part.scope.split("/") if part.scope else [""]
                for k in range(len(names)):
                    path = "/".join(names[: k + 1])
                    seconds[path] = seconds.get(path, 0.0) + step.own * part.share
        seconds[""] = seconds.get("", 0.0) + self.timing.around
        return dict(sorted(seconds.items(), key=lambda item: -item[1]))


class _LineTotal:
    """Accumulates the times of one line over the steps."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.levels: dict[int, float] = {}
        self.read = self.written = 0.0
        self.kept = 0
        self.is_estimated = False
        self.steps: dict[str, None] = {}

    def add(self, number: str, step: StepRecord, part: Any) -> None:
        """Add the share of this line in a step; for a loop, in the time outside of its steps."""
        seconds = step.own * part.share
        self.levels[part.level] = self.levels.get(part.level, 0.0) + seconds
        self.steps[number] = None
        if not step.inside:
            self.read += step.read * part.share
            self.written += step.written * part.share
            self.is_estimated |= step.is_estimated and seconds > 0.0

    def line(self, call_seconds: float) -> LineProfile:
        """The totals."""
        seconds = sum(self.levels.values())
        return LineProfile(
            where=self.where,
            seconds=seconds,
            share=seconds / call_seconds,
            levels=dict(sorted(self.levels.items())),
            is_estimated=self.is_estimated,
            read=self.read,
            written=self.written,
            kept=self.kept,
            steps=tuple(self.steps),
        )


def _numbered(
    steps: Sequence[StepRecord], prefix: str = "", depth: int = 0
) -> Iterator[tuple[str, int, StepRecord]]:
    for k, step in enumerate(steps, 1):
        number = f"{prefix}{k}"
        yield number, depth, step
        yield from _numbered(step.inside, f"{number}.", depth + 1)


def _row(number: str, depth: int, step: StepRecord, call_seconds: float) -> ProfileRow:
    shares: dict[str, float] = {}
    first: dict[str, str] = {}
    for part in step.parts:
        where = first.setdefault(spot_of(part.where), part.where)
        shares[where] = shares.get(where, 0.0) + part.share
    return ProfileRow(
        number=number,
        depth=depth,
        kind=step.kind,
        title=step.title,
        operations=step.operations,
        calls=step.calls,
        seconds=step.seconds,
        share=step.seconds / call_seconds,
        flops=step.flops,
        read=step.read,
        written=step.written,
        held=step.held,
        lines=tuple(shares.items()),
        is_estimated=step.is_estimated,
        body=step.body,
    )

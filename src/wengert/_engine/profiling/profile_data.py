"""Profile data: time and memory by step, by the user's lines and by scope.

    ProfileData  the figures
    ProfileRow   a step, numbered as it stands in its loop: 3, 3.1, 3.2
    LineProfile  one of the user's lines, with what all steps took for it

`Profile` (profile.py) adds what is printed and saved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wengert._engine.core.source_location import place_of, spot_of

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
        ``3``, and ``3.1`` for the first step of the loop that is the third.
    depth : int
        0, and more inside loops and branches.
    kind, title : str
        ``nest``, ``straight``, ``call``, ``host callback``, ``loop``, ``branch``, ``line``; what it
        iterates over, or the operation. The row ``around`` is what belongs to no step:
        checking arguments, making results.
    operations : tuple of str
        What shares the step.
    calls : float
        How often it runs in one call of the function.
    seconds, share : float
        In one call; the rows of depth 0 make 1 together.
    flops : float or None
        Floating-point operations, estimated; None if unknown.
    read, written : int
        Bytes.
    held : int
        Bytes of intermediate values in memory while it runs.
    lines : tuple of (str, float)
        The user's lines, and the share of the step that belongs to each.
    is_estimated : bool
        Whether these shares are estimates: several lines share the step.
    body : str
        Of a step inside a loop or a choice which body it is in.
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
        """Floating-point operations in a second, in thousands of millions."""
        return None if self.flops is None or not self.seconds else self.flops / self.seconds / 1e9

    @property
    def gbytes(self) -> float | None:
        """Bytes read and written in a second, in thousands of millions."""
        return (self.read + self.written) / self.seconds / 1e9 if self.seconds else None


@dataclass(frozen=True)
class LineProfile:
    """One of the user's lines.

    Attributes
    ----------
    where : str
        ``file.py:12, in f``; empty for what stems from no line. Of several functions on one line
        the first.
    seconds, share : float
        Of one call of the function; all lines make 1 together.
    levels : dict from int to float
        Seconds of the value (0) and of derivatives of each order.
    is_estimated : bool
        Whether some of it was shared out among several lines, by estimated work.
    read, written : float
        Bytes, shared out in the same way.
    kept : int
        Bytes of the results and intermediate arrays that it leaves in memory.
    steps : tuple of str
        The numbers of the rows that it is part of.
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
        place = place_of(self.where)
        return self.where or "(no line)" if place is None else place.short

    @property
    def text(self) -> str:
        """What stands there; empty where it cannot be read."""
        place = place_of(self.where)
        return "" if place is None else place.text

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
        """Of one call; all rows together."""
        return self.timing.seconds

    @property
    def plain(self) -> float:
        """Seconds of one call of the program that has no clocks inside."""
        return self.timing.plain

    @property
    def workspace(self) -> int:
        """The most bytes of intermediate values held at a time."""
        return self.timing.workspace

    @property
    def peak(self) -> int:
        """The most bytes of intermediate values and results held at a time."""
        return self.timing.peak

    @property
    def rows(self) -> tuple[ProfileRow, ...]:
        """The steps in the order in which they run, those of loops behind them; then the rest."""
        whole = self.seconds or 1.0
        found = [_row(n, depth, s, whole) for n, depth, s in _numbered(self.timing.steps)]
        title = "arguments, results, the call itself"
        parts = (LineShare(AROUND, 0, "", 1.0),)
        last = StepRecord("around", title, (), 1.0, self.timing.around, None, 0, 0, 0, parts)
        return (*found, _row("", 0, last, whole))

    def by_line(self) -> tuple[LineProfile, ...]:
        """The user's lines, the slowest first; they share all of the time of a call.

        The line ``(call)`` is what belongs to no step.
        """
        found: dict[str, _Sum] = {}
        for number, _, step in _numbered(self.timing.steps):
            for kept in step.kept:
                found.setdefault(spot_of(kept.where), _Sum(kept.where)).kept += kept.bytes
            for part in step.parts:
                found.setdefault(spot_of(part.where), _Sum(part.where)).add(number, step, part)
        whole = self.seconds or 1.0
        lines = [one.line(whole) for one in found.values()]
        around = self.timing.around
        lines.append(
            LineProfile(AROUND, around, around / whole, {0: around}, False, 0.0, 0.0, 0, ())
        )
        return tuple(sorted(lines, key=lambda line: -line.seconds))

    def by_scope(self) -> dict[str, float]:
        """Seconds in the scopes that lines were traced in, the slowest first.

        A scope (`wengert.scope`, the modules of a model) has all of the scopes in it; the empty
        name stands for all that is in none.
        """
        found: dict[str, float] = {}
        for _, _, step in _numbered(self.timing.steps):
            for part in step.parts:
                words = part.scope.split("/") if part.scope else [""]
                for k in range(len(words)):
                    name = "/".join(words[: k + 1])
                    found[name] = found.get(name, 0.0) + step.own * part.share
        found[""] = found.get("", 0.0) + self.timing.around
        return dict(sorted(found.items(), key=lambda item: -item[1]))


class _Sum:
    """What steps have taken for one line."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.levels: dict[int, float] = {}
        self.read = self.written = 0.0
        self.kept = 0
        self.is_estimated = False
        self.steps: dict[str, None] = {}

    def add(self, number: str, step: StepRecord, part: Any) -> None:
        """Its part of a step; of a loop, of what its steps have not taken."""
        seconds = step.own * part.share
        self.levels[part.level] = self.levels.get(part.level, 0.0) + seconds
        self.steps[number] = None
        if not step.inside:
            self.read += step.read * part.share
            self.written += step.written * part.share
            self.is_estimated |= step.is_estimated and seconds > 0.0

    def line(self, whole: float) -> LineProfile:
        """All of it."""
        seconds = sum(self.levels.values())
        return LineProfile(
            where=self.where,
            seconds=seconds,
            share=seconds / whole,
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


def _row(number: str, depth: int, step: StepRecord, whole: float) -> ProfileRow:
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
        share=step.seconds / whole,
        flops=step.flops,
        read=step.read,
        written=step.written,
        held=step.held,
        lines=tuple(shares.items()),
        is_estimated=step.is_estimated,
        body=step.body,
    )

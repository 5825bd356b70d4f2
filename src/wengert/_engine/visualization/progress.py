"""A progress bar with figures such as the loss, and the remaining time.

On a terminal with rich installed (the extra `demo`) it is a bar; otherwise plain lines are printed,
by default ten in total, so that logs stay readable.  A bar of tqdm, or of another class with
its interface, is used if it is given.

    with Progress(epochs * len(loader), "training") as progress:
        ...
        progress.update(loss=float(loss.item()))
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TextIO

from wengert.errors import ArgumentError, at, user_line


class TqdmBar(Protocol):
    """A bar of tqdm, as far as it is used."""

    def update(self, n: int) -> object:
        """Advance by some steps."""

    def close(self) -> None:
        """Draw the last state."""


class GivenBar:
    """A bar that the user has chosen.

    Parameters
    ----------
    make : callable
        Called as ``make(total=, desc=)``: the class `tqdm.tqdm`, for example.
    total : int
    description : str
    """

    def __init__(self, make: Callable[..., TqdmBar], total: int, description: str) -> None:
        self._make, self._total, self._description = make, total, description
        self._bar: TqdmBar | None = None

    def start(self) -> None:
        """Start drawing."""
        self._bar = self._make(total=self._total, desc=self._description)

    def update(self, advance: int, figures: str) -> None:
        """Advance by some steps, and show figures if the bar can."""
        if self._bar is None:
            self.start()
        assert self._bar is not None
        show = getattr(self._bar, "set_postfix_str", None)
        if show is not None:
            show(figures, refresh=False)
        self._bar.update(advance)

    def stop(self) -> None:
        """Draw the last state and stop."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class RichBar:
    """A line on a terminal: description, steps, figures, elapsed and remaining time.

    rich is imported when one is made, and not before: it is an optional dependency, and takes
    longer to import than NumPy.

    Parameters
    ----------
    total : int
    description : str
    file : text stream
        A terminal.
    """

    def __init__(self, total: int, description: str, file: TextIO) -> None:
        from rich import progress as bars
        from rich.console import Console

        self._bar: Any = bars.Progress(
            bars.TextColumn("{task.description}"),
            bars.BarColumn(),
            bars.MofNCompleteColumn(),
            bars.TextColumn("{task.fields[figures]}"),
            bars.TimeElapsedColumn(),
            bars.TextColumn("left"),
            bars.TimeRemainingColumn(),
            console=Console(file=file),
        )
        self._task = self._bar.add_task(description, total=total, figures="")

    def start(self) -> None:
        """Start drawing."""
        self._bar.start()

    def update(self, advance: int, figures: str) -> None:
        """Advance by some steps."""
        self._bar.update(self._task, advance=advance, figures=figures)

    def stop(self) -> None:
        """Draw the last state and stop."""
        self._bar.stop()


class Progress:
    """Progress of a task of `total` steps.

    Parameters
    ----------
    total : int
    description : str
        Shown before the figures.
    file : text stream, optional
        Default standard error.
    lines : int, default 10
        The number of plain lines in total, if `file` is not a terminal.
    bar : callable, optional
        Makes the bar, as ``bar(total=, desc=)``: `tqdm.tqdm`, `tqdm.rich.tqdm`,
        `tqdm.notebook.tqdm`.

    Attributes
    ----------
    done : int
        Completed steps.
    elapsed : float
        Seconds since the start.

    Examples
    --------
    >>> import sys
    >>> with Progress(2, "halves", file=sys.stdout, lines=1) as progress:
    ...     progress.update(loss=0.5)
    ...     progress.update(loss=0.25)  # doctest: +ELLIPSIS
    halves  2/2  loss 0.25  ... s, 0.0 s left
    """

    def __init__(
        self,
        total: int,
        description: str = "",
        file: TextIO | None = None,
        lines: int = 10,
        bar: Callable[..., TqdmBar] | None = None,
    ) -> None:
        self.total = total
        self.description = description
        self.done = 0
        self._file = file if file is not None else sys.stderr
        self._lines = lines
        self._written = 0
        self._begin = time.perf_counter()
        self._bar: Any = None
        if bar is not None:
            self._bar = GivenBar(bar, total, description)
        elif self._file.isatty():
            with contextlib.suppress(ImportError):  # without rich: plain lines
                self._bar = RichBar(total, description, self._file)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._begin

    @property
    def left(self) -> float:
        """Estimated remaining seconds, from the average speed so far."""
        return self.elapsed / self.done * (self.total - self.done) if self.done else float("nan")

    def update(self, advance: int = 1, **figures: float | str) -> None:
        """Advance by some steps, and show figures such as ``loss=0.3``."""
        self.done += advance
        text = "  ".join(
            f"{name} {value}" if isinstance(value, str) else f"{name} {value:.4g}"
            for name, value in figures.items()
        )
        if self._bar is not None:
            self._bar.update(advance, text)
            return
        due = self._lines * self.done // max(1, self.total)
        if due > self._written:
            self._written = due
            parts = [self.description, f"{self.done}/{self.total}", text]
            timing = f"{self.elapsed:.1f} s, {self.left:.1f} s left"
            print("  ".join([*filter(None, parts), timing]), file=self._file, flush=True)

    def __enter__(self) -> Progress:
        self._begin = time.perf_counter()
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def given_bar(progress: bool | Callable[..., TqdmBar]) -> Callable[..., TqdmBar] | None:
    """What makes the bar, of an argument `progress`; None if it is True or False.

    Raises
    ------
    ArgumentError
        It is something else.
    """
    if isinstance(progress, bool):
        return None
    if not callable(progress):
        raise ArgumentError(
            f"progress={progress!r}: must be True, False, or a class of bars such as "
            f"tqdm.tqdm{at(user_line())}."
        )
    return progress


def track(items: Iterable[Any], description: str = "", **options: Any) -> Iterator[Any]:
    """Iterate over items, showing progress.

    Parameters
    ----------
    items : sized iterable
    description : str
    **options
        Passed to `Progress`.
    """
    total = len(items)  # type: ignore[arg-type]
    with Progress(total, description, **options) as progress:
        for item in items:
            yield item
            progress.update()

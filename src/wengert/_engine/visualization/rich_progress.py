"""The progress bar on a terminal.  The only module that imports rich.

    Bar    a line that is redrawn: description, steps, figures, elapsed and remaining time

It is imported when a `Progress` (progress.py) writes to a terminal, and not before: rich is an
optional dependency, and takes longer to import than NumPy.
"""

from __future__ import annotations

from typing import Any, TextIO

from rich import progress as bars
from rich.console import Console


class Bar:
    """A progress bar.

    Parameters
    ----------
    total : int
    description : str
    file : text stream
        A terminal.
    """

    def __init__(self, total: int, description: str, file: TextIO) -> None:
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

"""Logs: what a training measures, recorded for other programs as it goes on.

    JSONLines     a line of JSON for each step and epoch
    TensorBoard   files of events, in a folder
    log_of        the one that a path asks for

Lines are written at once and whole, so a log can be read while it grows, and what a program that
was killed has written stays readable.  A training that is resumed leaves out what came after its
checkpoint, so that each step is in the log once.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import time
from pathlib import Path
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, at, user_line

from . import tensorboard
from .trainer import Callback, Run


def _every(every: int, what: str) -> int:
    if every < 1:
        raise ArgumentError(f"{what}(every={every}): at least 1{at(user_line())}.")
    return int(every)


class JSONLines(Callback):
    """A line of JSON for each step and each epoch.

    Parameters
    ----------
    path : path
        Lines are appended.
    every : int, default 1
        Write every so many steps.

    Notes
    -----
    A line has ``"event"`` ("begin", "step", "epoch", "end"), ``"time"`` (seconds since 1970),
    ``"epoch"``, ``"step"``, and figures by name; NaN and infinities are null.
    """

    def __init__(self, path: str | os.PathLike[str], every: int = 1) -> None:
        self.path, self.every = Path(path), _every(every, "JSONLines")
        self._file: Any = None

    def on_train_begin(self, run: Run) -> None:
        """Open the file, without what came after the checkpoint."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if run.is_resumed and self.path.exists():
            self._cut(run.step)
        self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115 - closed at the end
        self._write("begin", run, {"resumed": run.is_resumed, "epochs": run.epochs})

    def _cut(self, step: int) -> None:
        """Leave out lines of later steps, and one that is not whole."""
        kept = []
        for line in self.path.read_bytes().splitlines(keepends=True):
            with contextlib.suppress(ValueError, TypeError, AttributeError):
                if json.loads(line).get("step", 0) <= step and line.endswith(b"\n"):
                    kept.append(line)
        beside = self.path.with_name(f".{self.path.name}.part")
        beside.write_bytes(b"".join(kept))
        os.replace(beside, self.path)

    def on_step_end(self, run: Run) -> None:
        """A line."""
        if run.step % self.every == 0:
            self._write("step", run, run.figures)

    def on_epoch_end(self, run: Run) -> None:
        """A line."""
        self._write("epoch", run, run.figures)

    def on_train_end(self, run: Run) -> None:
        """The last line."""
        if self._file is not None:
            self._write("end", run, {"stopped": run.history.stopped})
            self._file.close()
            self._file = None

    def _write(self, event: str, run: Run, figures: dict[str, Any]) -> None:
        head = {"event": event, "time": time.time(), "epoch": run.epoch, "step": run.step}
        line = {**head, **{name: _plain(value) for name, value in figures.items()}}
        self._file.write((json.dumps(line, allow_nan=False) + "\n").encode())


def _plain(value: Any) -> Any:
    if isinstance(value, str | bool | int) or value is None:
        return value
    number = float(value)
    return number if math.isfinite(number) else None


class TensorBoard(Callback):
    """Files of events in a folder, which TensorBoard shows: ``tensorboard --logdir FOLDER``.

    Parameters
    ----------
    folder : path
        Each training writes a file of its own into it.
    every : int, default 1
        Write every so many steps.

    Notes
    -----
    Figures of steps are named ``step/loss``, those of epochs ``epoch/loss``, ``epoch/validation
    loss``, ...; both are drawn over the number of steps. Numbers are float32 in such files.
    """

    def __init__(self, folder: str | os.PathLike[str], every: int = 1) -> None:
        self.folder, self.every = Path(folder), _every(every, "TensorBoard")
        self._file: Any = None

    def on_train_begin(self, run: Run) -> None:
        """Open a file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        now = time.time()
        stem = f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}.{os.getpid()}"
        number = sum(1 for _ in self.folder.glob("events.out.tfevents.*"))
        path = self.folder / f"{stem}.{number}"
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - closed at the end
        self._file.write(tensorboard.record(tensorboard.version(now)))
        if run.is_resumed:
            self._file.write(tensorboard.record(tensorboard.started(now, run.step + 1)))

    def on_step_end(self, run: Run) -> None:
        """An event."""
        if run.step % self.every == 0:
            self._write("step", run)

    def on_epoch_end(self, run: Run) -> None:
        """An event."""
        self._write("epoch", run)

    def on_train_end(self, run: Run) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, group: str, run: Run) -> None:
        with np.errstate(over="ignore"):
            figures = {
                f"{group}/{name}": float(np.float32(value))
                for name, value in run.figures.items()
                if name != "epoch"
            }
        self._file.write(tensorboard.record(tensorboard.scalars(time.time(), run.step, figures)))


def log_of(given: Any) -> list[Callback]:
    """The logs that paths ask for: a name that ends in ``.jsonl`` or ``.json``, or a folder."""
    if given is None:
        return []
    entries = list(given) if isinstance(given, list | tuple) else [given]
    return [
        g
        if isinstance(g, Callback)
        else JSONLines(g)
        if Path(g).suffix in (".jsonl", ".json")
        else TensorBoard(g)
        for g in entries
    ]

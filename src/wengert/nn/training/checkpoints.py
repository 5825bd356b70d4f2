"""Checkpoints: a training on disk, from which it goes on exactly as if it had not stopped.

    Checkpoint         when, and where to: ``last`` and ``best`` in a folder
    read_checkpoint    what is in such a file

A file is written under a temporary name, flushed to disk and renamed (`wengert.keep`), so whenever
a program is killed, the one before is whole.  It has a digest of its content; nothing is unpickled.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wengert._engine.core.lazy_import import LazyModule
from wengert.errors import ArgumentError, FileError, at, user_line

from .callbacks import monitored
from .trainer import Run

_keep = LazyModule("wengert._engine.serialization")

KIND, VERSION = "wengert training", 1
LAST, BEST = "last.wengert", "best.wengert"


class Checkpoint:
    """When a training is saved, and where to.

    Parameters
    ----------
    folder : path
        It has ``last.wengert``, from which a training goes on, and ``best.wengert``, of the epoch
        that was best.
    every_epochs : int or None, default 1
    every_steps : int, optional
    every_seconds : float, optional
        Save after so many epochs, steps or seconds, whichever comes first.
    monitor : str, optional
        The figure that says what is best; by default ``"validation loss"``, or ``"loss"``.
    mode : {"min", "max"}
        Whether smaller or larger is better.

    Raises
    ------
    ArgumentError
        An option outside its range.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        every_epochs: int | None = 1,
        every_steps: int | None = None,
        every_seconds: float | None = None,
        monitor: str | None = None,
        mode: str = "min",
    ) -> None:
        for word, given in (
            ("every_epochs", every_epochs),
            ("every_steps", every_steps),
            ("every_seconds", every_seconds),
        ):
            if given is not None and not given > 0:
                raise ArgumentError(
                    f"Checkpoint({word}={given}): above 0, or None{at(user_line())}."
                )
        if mode not in ("min", "max"):
            raise ArgumentError(f"Checkpoint(mode={mode!r}): 'min' or 'max'{at(user_line())}.")
        self.folder = Path(folder)
        self.every_epochs, self.every_steps = every_epochs, every_steps
        self.every_seconds, self.monitor, self.mode = every_seconds, monitor, mode
        self.best: float | None = None
        self._saved = time.monotonic()

    @property
    def last_path(self) -> Path:
        """The file from which a training goes on."""
        return self.folder / LAST

    @property
    def best_path(self) -> Path:
        """The file of the best epoch."""
        return self.folder / BEST

    def begin(self, resumes: bool) -> None:
        """Make the folder, and refuse to overwrite another training.

        Raises
        ------
        ArgumentError
            There is a training in it already.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if not resumes and self.last_path.exists():
            raise ArgumentError(
                f"fit(checkpoint={str(self.folder)!r}): there is a training in it already. Go on "
                f"with it by resume=True, name another folder, or remove {LAST}{at(user_line())}."
            )
        for name in (LAST, BEST):  # what a program that was killed has left unfinished
            for part in self.folder.glob(f".{name}.*.part"):
                part.unlink(missing_ok=True)

    def after_step(self, run: Run) -> None:
        """Save if it is time to."""
        by_steps = self.every_steps is not None and run.step % self.every_steps == 0
        waited = time.monotonic() - self._saved
        if by_steps or (self.every_seconds is not None and waited >= self.every_seconds):
            self.save(run)

    def after_epoch(self, run: Run) -> None:
        """Save if it is time to, and if it is the best."""
        _, value = monitored(run, self.monitor)
        sign = 1.0 if self.mode == "min" else -1.0
        is_best = value == value and (self.best is None or sign * value < sign * self.best)
        if is_best:
            self.best = value
        if is_best:
            self._write(run, self.best_path)
        if (self.every_epochs and run.epoch % self.every_epochs == 0) or run.is_last:
            self.save(run)

    def save(self, run: Run) -> None:
        """Save where the training stands."""
        self._write(run, self.last_path)
        self._saved = time.monotonic()

    def _write(self, run: Run, path: Path) -> None:
        _keep.save({"kind": KIND, "version": VERSION, **run.state_dict()}, path)
        run.call("on_checkpoint", path)

    def __repr__(self) -> str:
        return f"Checkpoint({str(self.folder)!r}, best={self.best})"


def read_checkpoint(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    """What is in a checkpoint: ``"model"`` is a `state_dict`, ``"history"``, ``"epoch"``, ...

    Parameters
    ----------
    path : path
        A file, or a folder with ``last.wengert``.

    Raises
    ------
    FileError
        It is damaged, or holds something else.
    OSError
        It is not there.
    """
    place = Path(path)
    place = place / LAST if place.is_dir() else place
    state = _keep.load(place)
    if not isinstance(state, dict) or state.get("kind") != KIND:
        raise FileError(
            f"{place} holds a {type(state).__name__} and no training. Name a file that fit has "
            f"written{at(user_line())}."
        )
    if state["version"] > VERSION:
        raise FileError(
            f"{place} is of version {state['version']}, and this wengert knows up to {VERSION}: "
            f"install a newer wengert{at(user_line())}."
        )
    return state

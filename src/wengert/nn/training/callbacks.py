"""Callbacks (their base class, Callback, is in trainer.py), and checkpoints on disk.

    monitored        the figure of an epoch that a callback monitors
    EarlyStopping    stops training when a figure no longer improves
    OnPlateau        calls `wengert.optim.ReduceLROnPlateau` after each epoch
    Checkpoint       when and where to save: ``last`` and ``best`` in a folder
    read_checkpoint  the content of a checkpoint file

Callbacks save their state (`state_dict`, `load_state_dict`), so that a resumed training continues
exactly like an uninterrupted one.

The file of a checkpoint is written under a temporary name, flushed to disk and renamed
(`wengert.keep`), so the previous one stays intact if the program is killed.  It has a digest of its
content; nothing is unpickled.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from wengert._engine.core.lazy_import import LazyModule
from wengert.errors import ArgumentError, FileError, at, user_line
from wengert.optim import ReduceLROnPlateau

from .trainer import Callback, Run
from .training_state import random_states


def monitored(run: Run, name: str | None) -> tuple[str, float]:
    """Name and value of a figure of this epoch; default the validation loss, or else the loss.

    Raises
    ------
    ArgumentError
        The figure does not exist.
    """
    if name is None:
        name = "validation loss" if "validation loss" in run.figures else "loss"
    if name not in run.figures:
        raise ArgumentError(
            f"monitor={name!r} does not exist. The figures of this training are "
            f"{list(run.figures)}{at(user_line())}."
        )
    return name, float(run.figures[name])


class EarlyStopping(Callback):
    """Stop training when a figure has not improved for some epochs.

    Parameters
    ----------
    monitor : str, optional
        A figure of the history; default ``"validation loss"``, or ``"loss"`` without validation.
    patience : int, default 5
        The number of epochs without improvement after which training stops.
    min_delta : float, default 0
        An improvement must be larger than this.
    mode : {"min", "max"}
        Whether smaller or larger is better.
    restore_best : bool, default True
        Whether to restore the values of the best epoch at the end.

    Attributes
    ----------
    best : float
    best_epoch : int

    Examples
    --------
    >>> from wengert import nn
    >>> nn.training.EarlyStopping("validation accuracy", mode="max", patience=10)
    EarlyStopping(monitor='validation accuracy', patience=10, mode='max')
    """

    def __init__(
        self,
        monitor: str | None = None,
        patience: int = 5,
        min_delta: float = 0.0,
        mode: str = "min",
        restore_best: bool = True,
    ) -> None:
        if mode not in ("min", "max") or patience < 1 or min_delta < 0:
            raise ArgumentError(
                f"EarlyStopping(patience={patience}, min_delta={min_delta}, mode={mode!r}): "
                "patience must be at least 1, min_delta at least 0, and mode 'min' or 'max'"
                f"{at(user_line())}."
            )
        self.monitor, self.patience, self.min_delta = monitor, patience, float(min_delta)
        self.mode, self.restore_best = mode, restore_best
        self.best = np.inf if mode == "min" else -np.inf
        self.best_epoch, self.waited = 0, 0
        self._kept: dict[str, Any] | None = None

    def on_epoch_end(self, run: Run) -> None:
        """Check for an improvement."""
        name, value = monitored(run, self.monitor)
        sign = 1.0 if self.mode == "min" else -1.0
        if sign * value < sign * self.best - self.min_delta:
            self.best, self.best_epoch, self.waited = value, run.epoch, 0
            if self.restore_best:
                self._kept = run.model.state_dict()
            return
        self.waited += 1
        if self.waited >= self.patience:
            run.stop(f"{name} has not improved since epoch {self.best_epoch}")

    def on_train_end(self, run: Run) -> None:
        """Restore the best values."""
        if self._kept is not None and run.is_finished:
            run.model.load_state_dict(self._kept)

    def state_dict(self) -> Any:
        """The state: best value and epoch, waiting time, best values of the model."""
        state = {"best": self.best, "best_epoch": self.best_epoch, "waited": self.waited}
        return {**state, "kept": self._kept}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""
        self.best, self.best_epoch = float(state["best"]), int(state["best_epoch"])
        self.waited, self._kept = int(state["waited"]), state["kept"]

    def __repr__(self) -> str:
        return (
            f"EarlyStopping(monitor={self.monitor!r}, patience={self.patience}, mode={self.mode!r})"
        )


class OnPlateau(Callback):
    """Call the `step` of a schedule with a figure after each epoch.

    Parameters
    ----------
    plateau : ReduceLROnPlateau
    monitor : str, optional
        A figure of the history; default ``"validation loss"``, or ``"loss"`` without validation.
    """

    def __init__(self, plateau: ReduceLROnPlateau, monitor: str | None = None) -> None:
        self.plateau, self.monitor = plateau, monitor

    def on_epoch_end(self, run: Run) -> None:
        """Pass the figure to the schedule."""
        self.plateau.step(monitored(run, self.monitor)[1])

    def state_dict(self) -> Any:
        """The state of the schedule."""
        return self.plateau.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state of the schedule."""
        self.plateau.load_state_dict(state)


# ---- checkpoints -------------------------------------------------------------------------------


_keep = LazyModule("wengert._engine.serialization")

KIND, VERSION = "wengert training", 1
LAST, BEST = "last.wengert", "best.wengert"


class Checkpoint:
    """When and where a training run is saved.

    Parameters
    ----------
    folder : path
        For ``last.wengert``, from which training is resumed, and ``best.wengert``, of the best
        epoch.
    every_epochs : int or None, default 1
    every_steps : int, optional
    every_seconds : float, optional
        Save after this number of epochs, steps or seconds, whichever comes first.
    monitor : str, optional
        The figure that decides which epoch is best; default ``"validation loss"``, or ``"loss"``
        without validation.
    mode : {"min", "max"}
        Whether smaller or larger is better.

    Raises
    ------
    ArgumentError
        An option is invalid.
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
        for name, given in (
            ("every_epochs", every_epochs),
            ("every_steps", every_steps),
            ("every_seconds", every_seconds),
        ):
            if given is not None and not given > 0:
                raise ArgumentError(
                    f"Checkpoint: {name} must be positive or None, got {given}{at(user_line())}."
                )
        if mode not in ("min", "max"):
            raise ArgumentError(
                f"Checkpoint: mode must be 'min' or 'max', got {mode!r}{at(user_line())}."
            )
        self.folder = Path(folder)
        self.every_epochs, self.every_steps = every_epochs, every_steps
        self.every_seconds, self.monitor, self.mode = every_seconds, monitor, mode
        self.best: float | None = None
        self._saved = time.monotonic()

    @property
    def last_path(self) -> Path:
        """The file from which training is resumed."""
        return self.folder / LAST

    @property
    def best_path(self) -> Path:
        """The file of the best epoch."""
        return self.folder / BEST

    def begin(self, resumes: bool) -> None:
        """Create the folder; raise an error if it has a training run that is not resumed.

        Raises
        ------
        ArgumentError
            The folder already has a training run.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        if not resumes and self.last_path.exists():
            raise ArgumentError(
                f"fit(checkpoint={str(self.folder)!r}): the folder already has a training run. "
                f"Continue it by resume=True, use another folder, or remove {LAST}"
                f"{at(user_line())}."
            )
        for name in (LAST, BEST):  # incomplete files of a killed program
            for part in self.folder.glob(f".{name}.*.part"):
                part.unlink(missing_ok=True)

    def after_step(self, run: Run) -> None:
        """Save if it is due."""
        by_steps = self.every_steps is not None and run.step % self.every_steps == 0
        waited = time.monotonic() - self._saved
        is_due = by_steps or (self.every_seconds is not None and waited >= self.every_seconds)
        if self.every_seconds is not None and run.processes is not None:
            is_due = run.processes.from_first(is_due)  # clocks differ
        if is_due:
            self.save(run)

    def after_epoch(self, run: Run) -> None:
        """Save if it is due, and if the epoch is the best."""
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
        """Save the current state."""
        self._write(run, self.last_path)
        self._saved = time.monotonic()

    def _write(self, run: Run, path: Path) -> None:
        state = {"kind": KIND, "version": VERSION, **run.state_dict()}
        if run.processes is None:
            _keep.save(state, path)
        else:
            state["processes"] = run.processes.from_all(random_states(run.model, run.more))
            run.processes.in_first(lambda: _keep.save(state, path))
        run.call("on_checkpoint", path)

    def __repr__(self) -> str:
        return f"Checkpoint({str(self.folder)!r}, best={self.best})"


def read_checkpoint(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    """The content of a checkpoint: ``"model"`` (a `state_dict`), ``"history"``, ``"epoch"``, ...

    Parameters
    ----------
    path : path
        A file, or a folder with ``last.wengert``.

    Raises
    ------
    FileError
        The file is damaged, or is not a checkpoint.
    OSError
        The file does not exist or cannot be read.
    """
    place = Path(path)
    place = place / LAST if place.is_dir() else place
    state = _keep.load(place)
    if not isinstance(state, dict) or state.get("kind") != KIND:
        raise FileError(
            f"{place} has a {type(state).__name__} and is not a checkpoint of fit{at(user_line())}."
        )
    if state["version"] > VERSION:
        raise FileError(
            f"{place} has version {state['version']}, but this wengert reads versions up to "
            f"{VERSION}: install a newer wengert{at(user_line())}."
        )
    return state

"""Callbacks (their base class, Callback, is in trainer.py).

    monitored        the figure of an epoch that a callback monitors
    EarlyStopping    stops training when a figure no longer improves
    OnPlateau        calls `wengert.optim.ReduceLROnPlateau` after each epoch

Callbacks save their state (`state_dict`, `load_state_dict`), so that a resumed training continues
exactly like an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, at, user_line
from wengert.optim import ReduceLROnPlateau

from .trainer import Callback, Run


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

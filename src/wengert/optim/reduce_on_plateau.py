"""ReduceLROnPlateau: reduce the learning rate when a metric has stopped improving.

Other schedules are functions of the number of steps (schedules.py).  This one depends on a metric
measured after each epoch, and has state (`state_dict`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, at, user_line

from .optimizer import Optimizer

__all__ = ["ReduceLROnPlateau"]


class ReduceLROnPlateau:
    """Multiply the learning rate by a factor when a metric has stopped improving.

    Parameters
    ----------
    optimizer : Optimizer
        Its learning rates must be numbers, not schedules.
    mode : {"min", "max"}
        Whether the metric is to decrease or to increase.
    factor : float, default 0.1
        Above 0 and below 1.
    patience : int, default 10
        Number of epochs without improvement that are tolerated; the rate is reduced after the next
        one.
    threshold : float, default 1e-4
        The least change that counts as an improvement, relative or absolute.
    threshold_mode : {"rel", "abs"}
        Whether `threshold` is relative to the best metric.
    cooldown : int, default 0
        Number of epochs after a reduction that do not count.
    min_lr : float, default 0
        Lower bound of the learning rate.
    eps : float, default 1e-8
        Reductions by no more than this are skipped.

    Attributes
    ----------
    best : float
        The best metric so far.
    num_bad_epochs : int
        Number of epochs since the last improvement.

    Raises
    ------
    ArgumentError
        An option outside its range, or an optimizer with a schedule.

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert import optim
    >>> optimizer = optim.SGD([wg.tensor([1.0], requires_grad=True)], lr=1.0)
    >>> plateau = optim.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     plateau.step(loss)
    >>> optimizer.lr
    0.5
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0.0,
        eps: float = 1e-8,
    ) -> None:
        for name, given, allowed in (
            ("mode", mode, ("min", "max")),
            ("threshold_mode", threshold_mode, ("rel", "abs")),
        ):
            if given not in allowed:
                raise ArgumentError(
                    f"ReduceLROnPlateau({name}={given!r}): expected one of {allowed}"
                    f"{at(user_line())}."
                )
        for name, value, holds, demand in (
            ("factor", factor, 0 < factor < 1, "above 0 and below 1"),
            ("patience", patience, patience >= 0, "at least 0"),
            ("threshold", threshold, threshold >= 0, "at least 0"),
            ("cooldown", cooldown, cooldown >= 0, "at least 0"),
            ("min_lr", min_lr, min_lr >= 0, "at least 0"),
        ):
            if not holds:
                raise ArgumentError(
                    f"ReduceLROnPlateau({name}={value}): {name} must be {demand}. Change it"
                    f"{at(user_line())}."
                )
        if any(group.schedule is not None for group in optimizer.param_groups):
            raise ArgumentError(
                "ReduceLROnPlateau was given an optimizer whose learning rate follows a schedule, "
                f"which determines the rate. Set lr to a number{at(user_line())}."
            )
        self.optimizer = optimizer
        self.mode, self.factor, self.patience = mode, float(factor), int(patience)
        self.threshold, self.threshold_mode = float(threshold), threshold_mode
        self.cooldown, self.min_lr, self.eps = int(cooldown), float(min_lr), float(eps)
        self.best = np.inf if mode == "min" else -np.inf
        self.num_bad_epochs = 0
        self.cooldown_counter = 0

    def step(self, metric: Any) -> None:
        """Record a metric; NaN is not an improvement."""
        current = float(metric)
        if self._is_better(current):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group in self.optimizer.param_groups:
                rate = max(group["lr"] * self.factor, self.min_lr)
                if group["lr"] - rate > self.eps:
                    group["lr"] = rate
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0

    def _is_better(self, current: float) -> bool:
        if not np.isfinite(self.best):
            return current < self.best if self.mode == "min" else current > self.best
        margin = self.threshold * (abs(self.best) if self.threshold_mode == "rel" else 1.0)
        if self.mode == "min":
            return current < self.best - margin
        return current > self.best + margin

    def state_dict(self) -> dict[str, Any]:
        """The best metric and the counters; the learning rate is part of the optimizer's state."""
        return {
            "best": self.best,
            "num_bad_epochs": self.num_bad_epochs,
            "cooldown_counter": self.cooldown_counter,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load what `state_dict` returned."""
        self.best = float(state["best"])
        self.num_bad_epochs = int(state["num_bad_epochs"])
        self.cooldown_counter = int(state["cooldown_counter"])

    def __repr__(self) -> str:
        return (
            f"ReduceLROnPlateau(mode={self.mode!r}, factor={self.factor}, "
            f"patience={self.patience}, best={self.best:.4g})"
        )

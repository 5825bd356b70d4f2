"""ReduceLROnPlateau: a smaller learning rate when a metric has stopped improving.

Other schedules are functions of the number of steps (schedules.py).  This one looks at what was
measured after each epoch, and has a state: `state_dict`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, at, user_line

from .optimizer import Optimizer

__all__ = ["ReduceLROnPlateau"]


class ReduceLROnPlateau:
    """Multiply the rate by a factor when a figure has not improved for some time.

    Parameters
    ----------
    optimizer : Optimizer
        Its rates are numbers, and not schedules.
    mode : {"min", "max"}
        Whether smaller or larger is better.
    factor : float, default 0.1
        From above 0 to below 1.
    patience : int, default 10
        After how many bad measurements more than that the rate falls.
    threshold : float, default 1e-4
        What counts as better: by this share ("rel") or by this much ("abs").
    threshold_mode : {"rel", "abs"}
    cooldown : int, default 0
        How many measurements after a fall are not counted as bad.
    min_lr : float, default 0
        The rate does not fall below.
    eps : float, default 1e-8
        A fall by less than this is left out.

    Attributes
    ----------
    best : float
    num_bad_epochs : int

    Raises
    ------
    ArgumentError
        An option outside its range, or an optimizer that follows a schedule.

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
        for word, given, allowed in (
            ("mode", mode, ("min", "max")),
            ("threshold_mode", threshold_mode, ("rel", "abs")),
        ):
            if given not in allowed:
                raise ArgumentError(
                    f"ReduceLROnPlateau({word}={given!r}): one of {allowed}{at(user_line())}."
                )
        for word, value, holds, demand in (
            ("factor", factor, 0 < factor < 1, "above 0 and below 1"),
            ("patience", patience, patience >= 0, "at least 0"),
            ("threshold", threshold, threshold >= 0, "at least 0"),
            ("cooldown", cooldown, cooldown >= 0, "at least 0"),
            ("min_lr", min_lr, min_lr >= 0, "at least 0"),
        ):
            if not holds:
                raise ArgumentError(
                    f"ReduceLROnPlateau({word}={value}): it is {demand}. Change it"
                    f"{at(user_line())}."
                )
        if any(group.schedule is not None for group in optimizer.param_groups):
            raise ArgumentError(
                "ReduceLROnPlateau of an optimizer whose rate follows a schedule: one of the two "
                f"can decide. Give the optimizer a number for lr{at(user_line())}."
            )
        self.optimizer = optimizer
        self.mode, self.factor, self.patience = mode, float(factor), int(patience)
        self.threshold, self.threshold_mode = float(threshold), threshold_mode
        self.cooldown, self.min_lr, self.eps = int(cooldown), float(min_lr), float(eps)
        self.best = np.inf if mode == "min" else -np.inf
        self.num_bad_epochs = 0
        self.cooldown_counter = 0

    def step(self, metric: Any) -> None:
        """Take notice of a measurement; NaN is a bad one."""
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
        """What it remembers; the rate itself is the optimizer's."""
        return {
            "best": self.best,
            "num_bad_epochs": self.num_bad_epochs,
            "cooldown_counter": self.cooldown_counter,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Remember what another one did."""
        self.best = float(state["best"])
        self.num_bad_epochs = int(state["num_bad_epochs"])
        self.cooldown_counter = int(state["cooldown_counter"])

    def __repr__(self) -> str:
        return (
            f"ReduceLROnPlateau(mode={self.mode!r}, factor={self.factor}, "
            f"patience={self.patience}, best={self.best:.4g})"
        )

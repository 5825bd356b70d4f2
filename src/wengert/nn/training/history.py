"""History: what a training run has measured.

    History    figures of every step and of every epoch, and how it ended

It is made of plain numbers, so that checkpoints keep it and JSON can hold it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from wengert._engine.core.lazy_import import LazyModule

from ...errors import ArgumentError, at, user_line

_curves = LazyModule("wengert._engine.visualization.training_curves")

# What differs from run to run although nothing else does.
TIMES = ("seconds",)


class History:
    """What `fit` returns.

    Attributes
    ----------
    steps : dict of list
        For every step its ``"loss"`` and ``"lr"``.
    epochs : list of dict
        For every epoch ``"epoch"``, ``"loss"``, metrics, the same of the validation (``"validation
        loss"``), ``"lr"`` and ``"seconds"``.
    stopped : str
        Why it ended: ``"done"``, ``"interrupted"``, or what a callback said.

    Examples
    --------
    >>> from wengert.nn.training import History
    >>> history = History()
    >>> history.add({"epoch": 1, "loss": 0.5})
    >>> history.add({"epoch": 2, "loss": 0.25})
    >>> history["loss"], history.best("loss")
    ([0.5, 0.25], {'epoch': 2, 'loss': 0.25})
    >>> history
    epoch    loss
        1  0.5000
        2  0.2500
    """

    def __init__(self) -> None:
        self.steps: dict[str, list[float]] = {"loss": [], "lr": []}
        self.epochs: list[dict[str, Any]] = []
        self.stopped = ""

    def add(self, figures: dict[str, Any]) -> None:
        """Take down an epoch: this dict, so that callbacks may add figures of their own."""
        self.epochs.append(figures)

    def __len__(self) -> int:
        return len(self.epochs)

    def __getitem__(self, name: str) -> list[Any]:
        """A figure over the epochs; None where an epoch has none."""
        if not any(name in e for e in self.epochs):
            raise ArgumentError(
                f"history[{name!r}]: there is no such figure. It has {self.names()}"
                f"{at(user_line())}."
            )
        return [e.get(name) for e in self.epochs]

    def names(self) -> list[str]:
        """The figures of epochs, in the order in which they came up."""
        return list(dict.fromkeys(name for e in self.epochs for name in e))

    def best(self, name: str, mode: str = "min") -> dict[str, Any]:
        """The epoch with the least (or, ``mode="max"``, the largest) figure of that name."""
        found = [
            e for e, v in zip(self.epochs, self[name], strict=True) if v is not None and v == v
        ]
        if not found:
            raise ArgumentError(f"history.best({name!r}): it is NaN everywhere{at(user_line())}.")
        return (min if mode == "min" else max)(found, key=lambda e: e[name])

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain lists, dicts and numbers: for JSON, or a data frame of its epochs."""
        return {
            "steps": {name: list(values) for name, values in self.steps.items()},
            "epochs": [dict(e) for e in self.epochs],
            "stopped": self.stopped,
        }

    @classmethod
    def from_dict(cls, made: Mapping[str, Any]) -> History:
        """What `to_dict` was asked of."""
        history = cls()
        history.steps = {name: list(values) for name, values in made["steps"].items()}
        history.epochs = [dict(e) for e in made["epochs"]]
        history.stopped = str(made["stopped"])
        return history

    def picture(self, path: str | os.PathLike[str] | None = None, title: str = "") -> Any:
        """The curves as a figure of matplotlib's (the extra `show`), written as PNG if asked.

        Parameters
        ----------
        path : path, optional
        title : str, optional

        Returns
        -------
        matplotlib.figure.Figure
        """
        return _curves.training_curves(self.steps["loss"], self.epochs, path, title)

    def __repr__(self) -> str:
        if not self.epochs:
            return f"History(no epoch, {len(self.steps['loss'])} steps)"
        names = self.names()
        rows = [names, *([_short(e.get(name)) for name in names] for e in self.epochs)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        )


def _short(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:#.4g}"
    return str(value)

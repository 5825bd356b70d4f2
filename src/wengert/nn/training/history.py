"""History: the recorded figures of a training run.

    History    figures of all steps and epochs, and why training ended

It consists of plain numbers, so that it can be saved in checkpoints and as JSON.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from wengert._engine.core import display
from wengert._engine.core.lazy_import import LazyModule

from ...errors import ArgumentError, at, user_line

_curves = LazyModule("wengert._engine.visualization.training_plots")

# Figures that differ even between otherwise identical runs.
TIMES = ("seconds",)


class History:
    """The figures of a training run, returned by `fit`.

    Attributes
    ----------
    steps : dict of list
        ``"loss"`` and ``"lr"`` of each step.
    epochs : list of dict
        For each epoch ``"epoch"``, ``"loss"``, metrics, the same for validation data
        (``"validation loss"``), ``"lr"`` and ``"seconds"``.
    stopped : str
        Why training ended: ``"done"``, ``"interrupted"``, or the reason given by a callback.

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
        """Add an epoch; the dict is not copied, so that callbacks may add figures to it."""
        self.epochs.append(figures)

    def __len__(self) -> int:
        return len(self.epochs)

    def __getitem__(self, name: str) -> list[Any]:
        """A figure of all epochs; None for epochs without it."""
        if not any(name in e for e in self.epochs):
            raise ArgumentError(
                f"history[{name!r}]: the figure does not exist. The names are {self.names()}"
                f"{at(user_line())}."
            )
        return [e.get(name) for e in self.epochs]

    def names(self) -> list[str]:
        """The names of the figures of epochs, in order of first appearance."""
        return list(dict.fromkeys(name for e in self.epochs for name in e))

    def best(self, name: str, mode: str = "min") -> dict[str, Any]:
        """The epoch with the smallest (or, with ``mode="max"``, the largest) figure."""
        found = [
            e for e, v in zip(self.epochs, self[name], strict=True) if v is not None and v == v
        ]
        if not found:
            raise ArgumentError(
                f"history.best({name!r}): the figure is NaN in all epochs{at(user_line())}."
            )
        return (min if mode == "min" else max)(found, key=lambda e: e[name])

    def to_dict(self) -> dict[str, Any]:
        """The history as plain lists, dicts and numbers, for JSON or a data frame of epochs."""
        return {
            "steps": {name: list(values) for name, values in self.steps.items()},
            "epochs": [dict(e) for e in self.epochs],
            "stopped": self.stopped,
        }

    @classmethod
    def from_dict(cls, made: Mapping[str, Any]) -> History:
        """The inverse of `to_dict`."""
        history = cls()
        history.steps = {name: list(values) for name, values in made["steps"].items()}
        history.epochs = [dict(e) for e in made["epochs"]]
        history.stopped = str(made["stopped"])
        return history

    def picture(self, path: str | os.PathLike[str] | None = None, title: str = "") -> Any:
        """Plot the curves with matplotlib (the extra `show`).

        Parameters
        ----------
        path : path, optional
            Where to save the figure as PNG.
        title : str, optional

        Returns
        -------
        matplotlib.figure.Figure
        """
        return _curves.training_curves(self.steps["loss"], self.epochs, path, title)

    def _repr_html_(self) -> str:
        names = self.names()
        rows = [[_short(e.get(name)) for name in names] for e in self.epochs]
        return display.grid(f"History of {len(rows)} epochs", names, rows)

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

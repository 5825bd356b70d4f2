"""Training curves: losses and metrics over epochs, from plain numbers.

Two panels: losses over epochs (pale for every step; means of epochs, and the validation), and the
other metrics, each with its validation in the same color.  Requires matplotlib, so the package does
not import this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

INK, GRID = "#222222", "#e6e9ec"
COLORS = ("#2f6db3", "#b8402a", "#3a8f5c", "#8a5ab0", "#b07d1e", "#4a4a4a")
_NO_CURVES = ("epoch", "seconds", "lr")


def training_curves(
    losses: Sequence[float],
    epochs: Sequence[Mapping[str, Any]],
    path: str | PathLike[str] | None = None,
    title: str = "",
) -> Figure:
    """Loss and metrics over the epochs.

    Parameters
    ----------
    losses : sequence of float
        The loss of every step.
    epochs : sequence of dict
        Metrics of every epoch by name; names that start with ``"validation "`` are drawn dashed,
        in the color of the name without it.
    path : path, optional
        PNG file to write.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure
    """
    names = list(dict.fromkeys(n.removeprefix("validation ") for e in epochs for n in e))
    others = [n for n in names if n != "loss" and n not in _NO_CURVES]
    figure = Figure(figsize=(11.0 if others else 6.0, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    panels: Any = figure.subplots(1, 2 if others else 1, squeeze=False)[0]
    if title:
        figure.suptitle(title, fontsize=13, fontweight="bold", color=INK)
    count = max(1, len(epochs))
    steps = (1 + np.arange(len(losses))) * count / max(1, len(losses))
    positive = bool(losses) and min(losses) > 0
    panels[0].plot(steps, losses, color=COLORS[0], alpha=0.22, linewidth=0.8)
    _curves(panels[0], epochs, ["loss"])
    if positive:
        panels[0].set_yscale("log")
    panels[0].set_ylabel("loss", color=INK)
    if others:
        _curves(panels[1], epochs, others)
    for axes in panels:
        axes.set_xlabel("epoch")
        axes.set_xlim(0, count)
        axes.grid(True, which="major", color=GRID)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False, fontsize=9)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _curves(axes: Any, epochs: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    for name, color in zip(names, COLORS * len(names), strict=False):
        for full, style in ((name, "o-"), (f"validation {name}", "o--")):
            points = [(k + 1, e[full]) for k, e in enumerate(epochs) if e.get(full) is not None]
            if points:
                x, y = zip(*points, strict=True)
                weight = 1.0 if style == "o-" else 1.6
                axes.plot(x, y, style, color=color, markersize=2.5, linewidth=weight, label=full)

"""Plots of a training: curves of losses and metrics, and misclassified images.

    training_curves     losses over epochs (pale for every step; means of epochs, and validation),
                        and the other metrics, each with its validation in the same color
    training_picture    loss and accuracy, and misclassified images

Requires matplotlib, so the package does not import this module.  Figures are returned and, if
`path` is given, written to a file; no window is opened.
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


BLUE, RED = "#2f6db3", "#b8402a"


def training_picture(
    losses: Sequence[float],
    accuracies: Sequence[float],
    images: Any,
    read_as: Sequence[Any],
    truly: Sequence[Any],
    path: str | PathLike[str] | None = None,
    title: str = "",
    most: int = 18,
) -> Figure:
    """Loss and accuracy over the epochs, and misclassified images.

    Parameters
    ----------
    losses : sequence of float
        The loss of every step; drawn over epochs, with its running mean.
    accuracies : sequence of float
        The held-out accuracy after every epoch, from 0 to 1.
    images : array, shape (n, height, width)
        The misclassified images.
    read_as, truly : sequence
        The predicted and the true class of each.
    path : path, optional
        PNG file to write.
    title : str, optional
    most : int, default 18
        Number of misclassified images to show, in rows of six.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = Figure(figsize=(11.5, 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    halves: Any = figure.subfigures(1, 2, width_ratios=(1.15, 1.0), wspace=0.04)
    left, right = halves
    if title:
        figure.suptitle(title, fontsize=13, fontweight="bold", color=INK)
    _draw_curves(left, losses, accuracies)
    _draw_misread(right, np.asarray(images), read_as, truly, most)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _draw_curves(panel: Any, losses: Sequence[float], accuracies: Sequence[float]) -> None:
    epochs = max(1, len(accuracies))
    steps = (1 + np.arange(len(losses))) * epochs / max(1, len(losses))
    axes = panel.subplots()
    axes.semilogy(steps, losses, color=BLUE, alpha=0.22, linewidth=0.8)
    window = max(1, len(losses) // epochs)
    mean = np.convolve(losses, np.ones(window) / window, "valid")
    axes.semilogy(steps[window - 1 :], mean, color=BLUE, linewidth=2.0)
    axes.set_xlabel("epoch")
    axes.set_ylabel("training loss (cross entropy, nats)", color=BLUE)
    axes.tick_params(axis="y", labelcolor=BLUE)
    axes.set_xlim(0, epochs)
    if len(losses):  # the scale does not depend on a single small loss
        axes.set_ylim(np.percentile(losses, 1) / 2, np.max(losses) * 1.3)
    axes.grid(True, which="major", color="#e6e9ec")
    axes.spines["top"].set_visible(False)
    other = axes.twinx()
    other.plot(
        1 + np.arange(len(accuracies)), 100 * np.asarray(accuracies), "o-", color=RED, markersize=3
    )
    other.set_ylabel("held-out accuracy (%)", color=RED)
    other.tick_params(axis="y", labelcolor=RED)
    other.set_ylim(min(90.0, 100 * min(accuracies, default=0.9) - 1), 100.0)
    other.spines["top"].set_visible(False)


def _draw_misread(
    panel: Any, images: Any, read_as: Sequence[Any], truly: Sequence[Any], most: int
) -> None:
    count, total = min(most, len(images)), len(images)
    heading = f"all {total} misread" if count == total else f"{count} of {total} misread"
    heading = heading if total else "nothing misread"
    panel.suptitle(heading, fontsize=11, color=INK)
    columns = 6 if count > 12 else 4 if count > 4 else 2
    rows = max(2, -(-count // columns))
    grid = panel.subplots(rows, columns, squeeze=False)
    for k, axes in enumerate(grid.flat):
        axes.set_axis_off()
        if k < count:
            axes.imshow(images[k], cmap="gray_r", interpolation="nearest")
            axes.set_title(f"{truly[k]} as {read_as[k]}", fontsize=9, color=INK)

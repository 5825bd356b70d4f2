"""Plots of a training: loss and accuracy, and misclassified images.

Requires matplotlib, so the package does not import this module.  Figures are returned and, if
`path` is given, written to a file; no window is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

INK, BLUE, RED = "#222222", "#2f6db3", "#b8402a"


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

"""Metrics: figures of predictions, averaged over samples.

    accuracy        the share of classes, or of yes and no, that is right
    METRICS         those that have a name
    chosen          what a user gave, as functions by name
    Mean            sums over batches, weighted by their sizes

A metric is a function of predictions and targets, plain arrays both, that gives a mean over the
samples of a batch; so the mean over an epoch is exact also where batches differ in size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...errors import ArgumentError, at, user_line

Metric = Callable[[Any, Any], Any]


def accuracy(prediction: Any, target: Any) -> float:
    """The share of predictions that are right.

    Parameters
    ----------
    prediction : array
        Numbers for each class on the last axis, the largest is the prediction; or, in the shape of
        the target, logits of yes (above 0).
    target : array
        Classes as integers, in the shape of the prediction without its last axis; or in its
        shape: 0 and 1, or probabilities of classes.
    """
    prediction, target = np.asarray(prediction), np.asarray(target)
    if prediction.shape == target.shape:
        binary = prediction.ndim < 2 or prediction.shape[-1] == 1
        if binary:
            return float(np.mean((prediction > 0) == (target > 0.5)))
        target = target.argmax(axis=-1)
    elif target.shape != prediction.shape[:-1]:
        raise ArgumentError(
            f"accuracy of predictions of shape {prediction.shape}, targets {target.shape}: classes "
            "are on the last axis of predictions, and targets have all axes but that. Give a "
            f"metric of your own for other layouts{at(user_line())}."
        )
    return float(np.mean(prediction.argmax(axis=-1) == target))


def _mean_absolute(prediction: Any, target: Any) -> float:
    return float(np.mean(np.abs(np.asarray(prediction) - target)))


def _mean_square(prediction: Any, target: Any) -> float:
    return float(np.mean(np.square(np.asarray(prediction) - target)))


METRICS: dict[str, Metric] = {
    "accuracy": accuracy,
    "mae": _mean_absolute,
    "mse": _mean_square,
}


def chosen(metrics: Any) -> dict[str, Metric]:
    """Metrics by name, of names, functions, lists and dicts of them."""
    if metrics is None:
        return {}
    if isinstance(metrics, Mapping):
        given = dict(metrics)
    else:
        entries = [metrics] if isinstance(metrics, str) or callable(metrics) else list(metrics)
        given = {m if isinstance(m, str) else getattr(m, "__name__", repr(m)): m for m in entries}
    made = {}
    for name, metric in given.items():
        if isinstance(metric, str):
            if metric not in METRICS:
                raise ArgumentError(
                    f"fit(metrics={metric!r}): there are {', '.join(METRICS)}. Choose one, or give "
                    f"a function of predictions and targets{at(user_line())}."
                )
            metric = METRICS[metric]
        if not callable(metric):
            raise ArgumentError(
                f"fit: the metric {name!r} is a {type(metric).__name__}. Give a function of "
                f"predictions and targets{at(user_line())}."
            )
        made[str(name)] = metric
    return made


class Mean:
    """Means of figures, weighted by how many samples each is of.

    Attributes
    ----------
    sums : dict
        For each name the weighted sum, and the weight.
    """

    def __init__(self, sums: Mapping[str, Any] | None = None) -> None:
        self.sums = {n: (float(s), int(w)) for n, (s, w) in (sums or {}).items()}

    def add(self, figures: Mapping[str, Any], weight: int) -> None:
        """Add figures of one batch."""
        sums = self.sums
        for name, value in figures.items():
            total, known = sums.get(name, (0.0, 0))
            sums[name] = total + value * weight, known + weight

    def result(self, prefix: str = "") -> dict[str, float]:
        """The means."""
        return {prefix + n: s / w for n, (s, w) in self.sums.items() if w}

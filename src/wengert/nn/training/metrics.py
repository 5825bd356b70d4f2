"""Metrics: figures of predictions, averaged over samples.

    accuracy        the fraction of right predictions
    METRICS         metrics by name
    chosen          metrics given by the user, as functions by name
    Mean            means over batches, weighted by batch sizes

A metric is a function of predictions and targets (arrays) that returns a mean over the samples of
a batch; the mean over an epoch is exact even if batches differ in size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...errors import ArgumentError, at, user_line

Metric = Callable[[Any, Any], Any]


def accuracy(prediction: Any, target: Any) -> float:
    """The fraction of predictions that are right.

    Parameters
    ----------
    prediction : array
        Scores of classes on the last axis, of which the largest is the prediction; or binary
        logits in the shape of the target, where positive means 1.
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
            f"accuracy of predictions of shape {prediction.shape}, targets {target.shape}: "
            "predictions must have classes on the last axis, and targets all other axes. Define "
            f"a custom metric for other layouts{at(user_line())}."
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
    """Metrics as functions by name, from names, functions, lists and dicts of them."""
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
                    f"fit: metrics must be {', '.join(METRICS)}, or functions of predictions and "
                    f"targets, got {metric!r}{at(user_line())}."
                )
            metric = METRICS[metric]
        if not callable(metric):
            raise ArgumentError(
                f"fit: the metric {name!r} must be a function of predictions and targets, got "
                f"{type(metric).__name__}{at(user_line())}."
            )
        made[str(name)] = metric
    return made


class Mean:
    """Means of figures, weighted by numbers of samples.

    Attributes
    ----------
    sums : dict
        For each name the weighted sum and the sum of weights.
    """

    def __init__(self, sums: Mapping[str, Any] | None = None) -> None:
        self.sums = {n: (float(s), int(w)) for n, (s, w) in (sums or {}).items()}

    def add(self, figures: Mapping[str, Any], weight: int) -> None:
        """Add figures of one batch."""
        sums = self.sums
        for name, value in figures.items():
            total, weights = sums.get(name, (0.0, 0))
            # A process without samples adds nothing, also if its value is NaN.
            sums[name] = total + value * weight if weight else total, weights + weight

    def result(self, prefix: str = "") -> dict[str, float]:
        """The means."""
        return {prefix + n: s / w for n, (s, w) in self.sums.items() if w}

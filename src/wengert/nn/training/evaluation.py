"""Evaluation: loss and metrics of a model, averaged over samples, without updates.

    evaluate      loss and metrics as a dict
    measured      the same with existing compiled steps
    figures_of    loss, metrics and figures of one batch; metrics_of: metrics only
    modes         context manager that restores the modes of all modules
    accuracy      the fraction of right predictions
    METRICS       metrics by name
    chosen        metrics given by the user, as functions by name
    Mean          means over batches, weighted by batch sizes

A metric is a function of predictions and targets (arrays) that returns a mean over the samples of
a batch; the mean over an epoch is exact even if batches differ in size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from wengert._engine.core.lazy_import import LazyModule

from ...errors import ArgumentError, at, user_line
from ...optim import Optimizer
from ..module import Module
from .batch_iteration import OWN, BatchSource, size_of, split
from .train_step import Objective, TrainingSteps, number, plain

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


_processes = LazyModule("wengert.nn.training.processes")  # which imports wengert.distributed


@contextmanager
def modes(model: Module) -> Iterator[None]:
    """Context manager that restores the modes (training or evaluation) of all modules."""
    before = [(m, m.training) for m in model.modules()]
    try:
        yield
    finally:
        for module, mode in before:
            module.training = mode


def measured(
    steps: TrainingSteps, source: BatchSource, metrics: Mapping[str, Metric]
) -> dict[str, float]:
    """Loss, metrics and figures over all batches of a source, in evaluation mode."""
    mean = Mean()
    processes, seen = steps.processes, 0
    with modes(steps.objective.model):
        steps.objective.model.eval()
        place = None if processes is None else processes.place
        for index, batch in enumerate(source.batches(place)):
            if processes is None:
                count = size_of(batch)
            else:
                if not index:
                    processes.check_batch(batch, source.what)
                seen += processes.total(batch)
                batch, weights = processes.part(batch)
                count = int(weights[OWN])
            mean.add(figures_of(steps.look(batch), batch, metrics), count)
        source.end()
    return (mean if processes is None else Mean(processes.totals(mean.sums, seen))).result()


def figures_of(outcome: Any, batch: Any, metrics: Mapping[str, Metric]) -> dict[str, float]:
    """Loss, metrics and figures of one batch."""
    loss, _, figures = outcome[:3]
    found = {"loss": number(loss)}
    if figures:
        found |= {name: number(v) for name, v in figures.items()}
    return found | metrics_of(outcome, batch, metrics) if metrics else found


def metrics_of(outcome: Any, batch: Any, metrics: Mapping[str, Metric]) -> dict[str, float]:
    """Metrics of one batch."""
    if not metrics:
        return {}
    seen, target = plain(outcome[1]), plain(split(batch)[1])
    return {name: float(metric(seen, target)) for name, metric in metrics.items()}


def evaluate(
    model: Module,
    data: Any,
    loss: Any = None,
    metrics: Any = None,
    *,
    objective: Any = None,
    batch_size: int = 256,
    compile: bool = True,
    comm: Any = None,
) -> dict[str, float]:
    """Loss and metrics of a model on data, in evaluation mode and without updates.

    Parameters
    ----------
    model : Module
    data, loss, metrics, objective
        As for `fit`; data are not shuffled.
    batch_size : int, default 256
        If data are arrays or a dataset.
    compile : bool, default True
    comm : Communicator or mpi4py communicator, optional
        Processes that compute the figures together, each of them its part of the batches; all of
        them call `evaluate` with the same arguments.

    Returns
    -------
    dict
        ``"loss"`` and the metrics by name: means over samples.

    Raises
    ------
    ArgumentError, StructureError
        As for `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> model = nn.Linear(2, 1, rng=0)
    >>> x = np.ones((3, 2))
    >>> nn.evaluate(model, (x, model(x).numpy()), nn.MSELoss(), "mae")
    {'loss': 0.0, 'mae': 0.0}
    """
    named = chosen(metrics)
    processes = None if comm is None else _processes.together(comm)
    target = Objective(model, loss, objective, bool(named))
    steps = TrainingSteps(target, _Nothing(), compile, None, None, None, processes)
    return measured(steps, BatchSource(data, batch_size, False, 0, "data"), named)


class _Nothing(Optimizer):
    """An optimizer without parameters."""

    def __init__(self) -> None:
        self.param_groups = []

"""Evaluation: loss and metrics of a model, without updates.

evaluate    loss and metrics as a dict
measured    the same with existing compiled steps
modes       context manager that restores the modes of all modules
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ...optim import Optimizer
from ..module import Module
from .batch_iteration import BatchSource, size_of, split
from .metrics import Mean, Metric, chosen
from .train_step import Objective, TrainingSteps, number, plain


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
    with modes(steps.objective.model):
        steps.objective.model.eval()
        for batch in source.batches():
            mean.add(figures_of(steps.look(batch), batch, metrics), size_of(batch))
        source.end()
    return mean.result()


def figures_of(outcome: Any, batch: Any, metrics: Mapping[str, Metric]) -> dict[str, float]:
    """Loss, metrics and figures of one batch."""
    loss, prediction, figures = outcome
    found = {"loss": number(loss)}
    if figures:
        found |= {name: number(v) for name, v in figures.items()}
    if metrics:
        seen, target = plain(prediction), plain(split(batch)[1])
        found |= {name: float(metric(seen, target)) for name, metric in metrics.items()}
    return found


def evaluate(
    model: Module,
    data: Any,
    loss: Any = None,
    metrics: Any = None,
    *,
    objective: Any = None,
    batch_size: int = 256,
    compile: bool = True,
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
    steps = TrainingSteps(
        Objective(model, loss, objective, bool(named)), _Nothing(), compile, None, None, None
    )
    return measured(steps, BatchSource(data, batch_size, False, 0, "data"), named)


class _Nothing(Optimizer):
    """An optimizer without parameters."""

    def __init__(self) -> None:
        self.param_groups = []

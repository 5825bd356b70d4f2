"""Evaluation: loss and metrics of a model on data that it does not learn from.

evaluate    of a model, as a dict
measured    the same by steps that are compiled already
modes       a block after which every module is in the mode it was in
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
    """A block after which every module is in the mode it was in: training or evaluation."""
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
    """Loss and metrics of a model on data, in evaluation mode and without learning.

    Parameters
    ----------
    model : Module
    data, loss, metrics, objective
        As for `fit`; nothing is shuffled.
    batch_size : int, default 256
        Where data are arrays or a dataset.
    compile : bool, default True

    Returns
    -------
    dict
        ``"loss"``, and each metric by its name: means over samples.

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
    """An optimizer of no parameters."""

    def __init__(self) -> None:
        self.param_groups = []

"""Evaluation: loss and metrics of a model, without updates.

evaluate    loss and metrics as a dict
measured    the same with existing compiled steps
figures_of  loss, metrics and figures of one batch; metrics_of: metrics only
modes       context manager that restores the modes of all modules
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from wengert._engine.core.lazy_import import LazyModule

from ...optim import Optimizer
from ..module import Module
from .batch_iteration import OWN, BatchSource, size_of, split
from .metrics import Mean, Metric, chosen
from .train_step import Objective, TrainingSteps, number, plain

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

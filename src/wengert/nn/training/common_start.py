"""The beginning of a training run with several processes.

    begin_together    all processes begin with the values and the data of process 0

A resumed run has them from the checkpoint, which process 0 has read.
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core.handle import value_of
from wengert.distributed import agreement
from wengert.distributed.arguments import message

from .processes import Processes
from .trainer import Run
from .training_state import captured, diverge, put_back


def begin_together(run: Run, processes: Processes) -> None:
    """Let a run begin with the values and the data of process 0.

    Raises
    ------
    CommunicationError
        The processes have not called `fit` with the same arguments.
    DtypeError
        MPI has no messages of the dtype of a parameter.
    """
    remedy = "Call fit with the same arguments in all processes"
    agreement.require_equal(_arguments(run), "the arguments of fit", remedy, processes.comm)
    for p in run.optimizer.parameters():
        message(value_of(p), "fit(comm=...)")
    is_first = processes.rank == 0
    if run.validation is not None:
        place = run.validation.state_dict() if is_first else None
        run.validation.load_state_dict(processes.from_first(place))
    if run.is_resumed:
        return
    values = run.model, run.optimizer, run.steps.ema, run.more
    own = captured(*values) | {"source": run.source.state_dict()} if is_first else None
    state = processes.from_first(own)
    if not is_first:
        put_back(state, *values, False)
        run.source.load_state_dict(state["source"])
    diverge(run.model, run.more, processes.rank)


def _arguments(run: Run) -> dict[str, Any]:
    """What all processes must have given."""
    steps, trained = run.steps, run.optimizer.parameters()
    given: dict[str, Any] = {
        "epochs": run.epochs,
        "accumulate": run.accumulate,
        "metrics": list(run.metrics),
        "callbacks": [type(c).__name__ for c in run.callbacks],
        "checkpoint": run.checkpoint is not None,
        "validation": run.validation is not None,
        "compile": steps.compiles,
        "clip_norm and clip_value": (steps.clip_norm, steps.clip_value),
        "ema": steps.ema is not None,
        "bucket_bytes": None if steps.processes is None else steps.processes.bucket_bytes,
        "the number of batches": len(run.source),
        "the optimizer": (type(run.optimizer).__name__, len(trained)),
    }
    for name, p in run.model.named_parameters():
        given[f"parameter {name}"] = p.shape, str(p.dtype), p.requires_grad
    return given

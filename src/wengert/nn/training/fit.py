"""Fit: train a model, with everything around it that a training needs.

    fit    one call from data to a trained model, its history and its checkpoints

It checks what it is given, and puts the parts together; the loop is in trainer.py.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import ArgumentError, StructureError, at, user_line
from ...optim import EMA, Adam, Optimizer, ReduceLROnPlateau
from ..module import Module
from .batch_iteration import BatchSource
from .callbacks import OnPlateau
from .checkpoints import Checkpoint, read_checkpoint
from .history import History
from .loggers import log_of
from .metrics import Metric, chosen
from .train_step import Objective, TrainingSteps
from .trainer import Callback, Run


def fit(
    model: Module,
    data: Any,
    loss: Callable[[Any, Any], Any] | None = None,
    optimizer: Any = None,
    epochs: int = 1,
    validation: Any = None,
    metrics: Any = None,
    callbacks: Sequence[Any] = (),
    *,
    objective: Callable[[Module, Any], Any] | None = None,
    schedule: Callable[[Any], Any] | None = None,
    accumulate: int = 1,
    clip_norm: float | None = None,
    clip_value: float | None = None,
    ema: Any = None,
    checkpoint: Any = None,
    resume: Any = False,
    log: Any = None,
    progress: bool = True,
    batch_size: int = 32,
    rng: Any = None,
    compile: bool = True,
    check_finite: bool = True,
    state: Mapping[str, Any] | None = None,
) -> History:
    """Train a model.

    Parameters
    ----------
    model : Module
        Trained in place.
    data : DataLoader, arrays, Dataset or iterable of batches
        A batch is inputs and a target, ``(x, y)`` or ``(x1, x2, y)``. Arrays ``(x, y)`` and
        datasets are shuffled and handed out in batches of `batch_size`.
    loss : callable
        Of a prediction and a target, such as ``nn.CrossEntropyLoss()``.
    optimizer : Optimizer or callable, optional
        One of the model's parameters; or a function that makes one of them, such as ``optim.Adam``.
        One that searches along lines (``optim.LBFGS``) sees the same batch several times.
        By default Adam with a rate of 0.001.
    epochs : int, default 1
        How often the data are gone through, those before a resumption included.
    validation : as `data`, optional
        Measured after every epoch, in evaluation mode; with the averages if there is an `ema`.
    metrics : str, callable, list or dict of these, optional
        ``"accuracy"``, ``"mae"``, ``"mse"``, or functions of prediction and target (arrays) that
        give a mean over samples.
    callbacks : sequence of Callback or ReduceLROnPlateau
    objective : callable, optional
        In the place of `loss`: of the model and a batch of any kind, it gives the loss, or the loss
        and a dict of figures.
    schedule : callable, optional
        The rate as a function of the number of steps (`wengert.optim.schedules`).
    accumulate : int, default 1
        How many batches make a step. Their gradients are averaged over samples: the step is the one
        of a batch as large as all of them. (Batch normalization sees them one by one.)
    clip_norm, clip_value : float, optional
        Clip gradients, by their common norm or element by element (first the elements).
    ema : float or EMA, optional
        Keep moving averages of the parameters; a number is the decay.
    checkpoint : path or Checkpoint, optional
        A folder for checkpoints.
    resume : bool or path, default False
        Go on from the last checkpoint in that folder, if there is one; or from a certain file.
    log : path or list of paths, optional
        Names that end in ``.jsonl`` are files of JSON lines, others folders for TensorBoard.
    progress : bool, default True
        Show a progress bar (plain lines where there is no terminal), on standard error.
    batch_size, rng
        Of the loaders that are made of arrays and datasets.
    compile : bool, default True
        Compile the step: value, gradient and update in one native call.
    check_finite : bool, default True
        Stop at a loss that is NaN or infinite, and find out where that comes from.
    state : dict, optional
        More that checkpoints should keep, by name: streams and generators that the loss or
        transforms draw from, and anything with `state_dict` and `load_state_dict`.

    Returns
    -------
    History

    Raises
    ------
    ArgumentError
        A model without parameters to train, data without batches, an optimizer of other
        parameters, labels out of range, a folder with another training, an option out of range.
    StructureError
        Batches without a target; a checkpoint of another model or with other callbacks.
    NotScalarError
        A loss of more than one number.
    NotFiniteError
        A loss is NaN or infinite; the message names the operation that gave the first one, and the
        user's line.
    FileError
        A checkpoint is damaged, or is none.

    Notes
    -----
    *Ctrl-C* ends the training after the step that goes on, saves a checkpoint if there is a folder,
    and returns the history; a second one raises KeyboardInterrupt at once.

    *Resuming* gives bit for bit what a training without a break gives: parameters, buffers, the
    optimizer, averages, random numbers (of streams and generators in modules, of loaders, of
    ``state``, and the global ones of NumPy and Python), the place in the data and what callbacks
    remember are all saved.

    *Cost*: beside the compiled step some twenty microseconds for each; `check_finite` copies
    parameters and optimizer every hundred steps.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn, optim
    >>> x = np.linspace(-1.0, 1.0, 64)[:, None]
    >>> model = nn.Linear(1, 1, rng=0)
    >>> adam = optim.Adam(model.parameters(), lr=0.1)
    >>> data = (x, 3.0 * x + 1.0)
    >>> history = nn.fit(model, data, nn.MSELoss(), adam, epochs=60, rng=0, progress=False)
    >>> model.weight.numpy().round(1), model.bias.numpy().round(1)
    (array([[3.]]), array([1.]))
    >>> history["loss"][-1] < 1e-3
    True
    """
    _check(model, epochs, accumulate)
    made = _optimizer(optimizer, model)
    if schedule is not None:
        made.lr = schedule  # type: ignore[assignment]
    named = _metrics(metrics, objective)
    averages = EMA(made.parameters(), ema) if isinstance(ema, int | float) else ema
    target = Objective(model, loss, objective, bool(named))
    saving = checkpoint
    if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
        saving = Checkpoint(checkpoint)
    held_out = None
    if validation is not None:
        held_out = BatchSource(validation, batch_size, False, 0, "validation data")
    steps = TrainingSteps(target, made, compile, clip_norm, clip_value, averages)
    if steps.searches and accumulate > 1:
        raise ArgumentError(
            f"fit(accumulate={accumulate}) with {type(made).__name__}, which needs the same batch "
            f"several times. Give one large batch{at(user_line())}."
        )
    run = Run(
        steps,
        BatchSource(data, batch_size, True, rng, "data"),
        operator.index(epochs),
        held_out,
        named,
        [*map(_callback, callbacks or ()), *log_of(log)],
        saving,
        operator.index(accumulate),
        progress,
        check_finite,
        dict(state or {}),
    )
    _resume(run, saving, resume)
    return run.train()


def _metrics(metrics: Any, objective: Any) -> dict[str, Metric]:
    named = chosen(metrics)
    if named and objective is not None:
        raise ArgumentError(
            "fit(metrics=..., objective=...): metrics are of predictions and targets, which only a "
            "loss has. Let the objective return its figures: (loss, {name: number})"
            f"{at(user_line())}."
        )
    return named


def _check(model: Any, epochs: Any, accumulate: Any) -> None:
    if not isinstance(model, Module):
        raise StructureError(
            f"fit of a {type(model).__name__}: give a model, a wengert.nn.Module{at(user_line())}."
        )
    for word, given, least in (("epochs", epochs, 0), ("accumulate", accumulate, 1)):
        whole = hasattr(given, "__index__") and not isinstance(given, bool)
        if not whole or given < least:
            raise ArgumentError(
                f"fit({word}={given!r}): an integer of at least {least}{at(user_line())}."
            )


def _optimizer(given: Any, model: Module) -> Optimizer:
    """The optimizer, of parameters of this model."""
    trained = [p for p in model.parameters() if p.requires_grad]
    if not trained:
        what = "they are all frozen" if any(True for _ in model.parameters()) else "there are none"
        raise ArgumentError(
            f"fit: {type(model).__name__} has no parameters to train: {what}. Keep layers and "
            f"Parameters in attributes, or unfreeze some (requires_grad_()){at(user_line())}."
        )
    if given is None:
        return Adam(trained)
    made = given if isinstance(given, Optimizer) else given(trained) if callable(given) else None
    if not isinstance(made, Optimizer):
        raise ArgumentError(
            f"fit(optimizer={given!r}): no optimizer. Give one of wengert.optim, such as "
            f"optim.Adam(model.parameters()){at(user_line())}."
        )
    known = {id(p) for p in trained}
    if not any(id(p) in known for p in made.parameters()):
        raise ArgumentError(
            f"fit: the optimizer changes none of the parameters of this {type(model).__name__}. "
            f"Make it of model.parameters(), after the model{at(user_line())}."
        )
    return made


def _callback(given: Any) -> Callback:
    if isinstance(given, ReduceLROnPlateau):
        return OnPlateau(given)
    if not isinstance(given, Callback):
        raise ArgumentError(
            f"fit: {given!r} is not a callback. Derive a class from nn.training.Callback"
            f"{at(user_line())}."
        )
    return given


def _resume(run: Run, saving: Checkpoint | None, resume: Any) -> None:
    if isinstance(resume, bool):
        if resume and saving is None:
            raise ArgumentError(
                "fit(resume=True) without a folder: say where the checkpoints are, checkpoint=, or "
                f"which file to go on from, resume=path{at(user_line())}."
            )
        path = saving.last_path if resume and saving is not None else None
        path = path if path is not None and path.exists() else None
    else:
        path = Path(resume)
    if saving is not None:
        saving.begin(resumes=resume is not False)
    if path is not None:
        run.load_state_dict(read_checkpoint(path))

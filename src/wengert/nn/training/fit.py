"""fit: trains a model in one call.

    fit    training, validation, checkpoints, logs; returns the history

It checks the arguments and creates the parts; the training loop is in trainer.py.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from wengert._engine.core.lazy_import import LazyModule

from ...errors import ArgumentError, StructureError, at, user_line
from ...optim import EMA, Adam, Optimizer, ReduceLROnPlateau
from ..module import Module
from .batch_iteration import BatchSource
from .callbacks import Checkpoint, OnPlateau, read_checkpoint
from .evaluation import Metric, chosen
from .loggers import log_of
from .train_step import Objective, TrainingSteps
from .trainer import Callback, Run
from .training_state import History

# In wengert-extras, as wengert.distributed, which they import.
_processes = LazyModule("wengert.nn.training.processes")
_common_start = LazyModule("wengert.nn.training.common_start")


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
    progress: bool | Callable[..., Any] = True,
    batch_size: int = 32,
    rng: Any = None,
    compile: bool = True,
    check_finite: bool = True,
    state: Mapping[str, Any] | None = None,
    comm: Any = None,
    bucket_bytes: int = 25 << 20,
) -> History:
    """Train a model.

    Parameters
    ----------
    model : Module
        Trained in place.
    data : DataLoader, arrays, Dataset or iterable of batches
        A batch has inputs and a target, ``(x, y)`` or ``(x1, x2, y)``. Arrays ``(x, y)`` and
        datasets are shuffled and divided into batches of `batch_size`.
    loss : callable
        A function of prediction and target, such as ``nn.CrossEntropyLoss()``.
    optimizer : Optimizer or callable, optional
        An optimizer of the model's parameters, or a function of them that returns one, such as
        ``optim.Adam``. Optimizers with a line search (``optim.LBFGS``) evaluate each batch several
        times. Default Adam with learning rate 0.001.
    epochs : int, default 1
        The total number of epochs, including those before a resumption.
    validation : as `data`, optional
        Evaluated after every epoch, in evaluation mode; with averaged parameters if `ema` is given.
    metrics : str, callable, list or dict of these, optional
        ``"accuracy"``, ``"mae"``, ``"mse"``, or functions of prediction and target (arrays) that
        return a mean over samples.
    callbacks : sequence of Callback or ReduceLROnPlateau
    objective : callable, optional
        Alternative to `loss`: a function of the model and a batch of any kind that returns the
        loss, or the loss and a dict of figures.
    schedule : callable, optional
        The learning rate as a function of the number of steps (`wengert.optim.schedules`).
    accumulate : int, default 1
        The number of batches per step. Gradients are averaged over samples, which gives the step of
        one large batch. (Batch normalization uses the single batches.)
    clip_norm, clip_value : float, optional
        Clip gradients to this global norm, or to this absolute value (values first).
    ema : float or EMA, optional
        Maintain moving averages of the parameters; a float is the decay.
    checkpoint : path or Checkpoint, optional
        A folder for checkpoints.
    resume : bool or path, default False
        Continue from the last checkpoint in that folder, if it exists; or from a given file.
    log : path or list of paths, optional
        Names that end with ``.jsonl`` are JSON Lines files, others folders for TensorBoard.
    progress : bool or callable, default True
        Show a progress bar (plain lines without a terminal) on standard error. A class with the
        interface of tqdm makes the bar: ``progress=tqdm.tqdm``.
    batch_size, rng
        Options of the loaders of arrays and datasets.
    compile : bool, default True
        Compile the step: value, gradient and update in one native call.
    check_finite : bool, default True
        Raise an error if the loss is NaN or infinite, and find the operation that caused it.
    state : dict, optional
        Further state for checkpoints, by name: streams and generators that the loss or transforms
        draw from, or objects with `state_dict` and `load_state_dict`.
    comm : Communicator or mpi4py communicator, optional
        Processes that train the model together (`wengert.distributed.world()` for all), with the
        result of one process: each of them calls `fit` with the same arguments, and computes its
        part of each batch.
    bucket_bytes : int, default 25 MiB
        With `comm`: gradients are summed in messages of at most this size.

    Returns
    -------
    History

    Raises
    ------
    ArgumentError
        The model has no parameters to train, the data have no batches, the optimizer has other
        parameters, labels are out of range, the folder has another training run, or an option is
        invalid.
    StructureError
        Batches have no target, or the checkpoint is of another model or has other callbacks.
    NotScalarError
        The loss is not a scalar.
    NotFiniteError
        The loss is NaN or infinite; the message names the operation that produced the first such
        value, and the user's line.
    FileError
        The checkpoint is damaged or in another format.
    CommunicationError
        The processes of `comm` have other arguments, batches or parameters.

    Notes
    -----
    *Ctrl-C* stops training after the current step, saves a checkpoint if there is a folder, and
    returns the history; a second Ctrl-C raises KeyboardInterrupt at once.

    *Resuming* gives bitwise the results of an uninterrupted run. Checkpoints have parameters,
    buffers, the optimizer, averages, random states (of streams and generators in modules, of
    loaders, of ``state``, and the global ones of NumPy and Python), the position in the data, and
    the state of callbacks.

    *Cost*: about 20 microseconds per step, in addition to the compiled step; `check_finite` copies
    parameters and optimizer every 100 steps.

    *Several processes*. The loss must be a mean over the samples; the loss, metrics and figures
    of the whole batch are means weighted by the sizes of the parts, gradients too, before they are
    clipped. All processes begin with the values of process 0 and keep the same bits, which is
    checked after each epoch. Floating-point buffers (running statistics) are averaged over the
    processes in each step. Streams and generators of modules and of `state` give other numbers in
    each process. Process 0 writes and reads checkpoints and logs, and shows the progress.

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
    made_here = checkpoint is not None and not isinstance(checkpoint, Checkpoint)
    saving = Checkpoint(checkpoint) if made_here else checkpoint
    processes = None if comm is None else _processes.together(comm, bucket_bytes)
    clips = clip_norm, clip_value
    steps = TrainingSteps(target, made, compile, *clips, averages, processes, comm is not None)
    _check_search(steps, accumulate)
    run = Run(
        steps,
        BatchSource(data, batch_size, True, rng, "data"),
        operator.index(epochs),
        _held_out(validation, batch_size),
        named,
        [*map(_callback, callbacks or ()), *log_of(log)],
        saving,
        operator.index(accumulate),
        progress,
        check_finite,
        dict(state or {}),
    )
    _resume(run, saving, resume)
    if processes is not None:
        _common_start.begin_together(run, processes)
    return run.train()


def _held_out(validation: Any, batch_size: int) -> BatchSource | None:
    if validation is None:
        return None
    return BatchSource(validation, batch_size, False, 0, "validation data")


def _metrics(metrics: Any, objective: Any) -> dict[str, Metric]:
    named = chosen(metrics)
    if named and objective is not None:
        raise ArgumentError(
            "fit: metrics need predictions and targets, and are not supported with objective=. "
            "Return figures from the objective: (loss, {name: number})"
            f"{at(user_line())}."
        )
    return named


def _check(model: Any, epochs: Any, accumulate: Any) -> None:
    if not isinstance(model, Module):
        raise StructureError(
            f"fit: the model must be a wengert.nn.Module, got {type(model).__name__}"
            f"{at(user_line())}."
        )
    for name, value, minimum in (("epochs", epochs, 0), ("accumulate", accumulate, 1)):
        is_integer = hasattr(value, "__index__") and not isinstance(value, bool)
        if not is_integer or value < minimum:
            raise ArgumentError(
                f"fit: {name} must be an integer of at least {minimum}, got {value!r}"
                f"{at(user_line())}."
            )


def _check_search(steps: TrainingSteps, accumulate: int) -> None:
    if steps.searches and accumulate > 1:
        raise ArgumentError(
            f"fit(accumulate={accumulate}) is not supported with {type(steps.optimizer).__name__}, "
            "which evaluates each batch several times. Use larger batches"
            f"{at(user_line())}."
        )


def _optimizer(given: Any, model: Module) -> Optimizer:
    """The optimizer of the model's parameters."""
    trained = [p for p in model.parameters() if p.requires_grad]
    if not trained:
        what = "they are all frozen" if any(True for _ in model.parameters()) else "there are none"
        raise ArgumentError(
            f"fit: {type(model).__name__} has no parameters to train: {what}. Store layers and "
            f"Parameters in attributes, or unfreeze some (requires_grad_()){at(user_line())}."
        )
    if given is None:
        return Adam(trained)
    made = given if isinstance(given, Optimizer) else given(trained) if callable(given) else None
    if not isinstance(made, Optimizer):
        raise ArgumentError(
            f"fit: optimizer must be an Optimizer, such as optim.Adam(model.parameters()), got "
            f"{given!r}{at(user_line())}."
        )
    ids = {id(p) for p in trained}
    if not any(id(p) in ids for p in made.parameters()):
        raise ArgumentError(
            f"fit: the optimizer has none of the parameters of this {type(model).__name__}. "
            f"Create it with model.parameters(), after the model{at(user_line())}."
        )
    return made


def _callback(given: Any) -> Callback:
    if isinstance(given, ReduceLROnPlateau):
        return OnPlateau(given)
    if not isinstance(given, Callback):
        raise ArgumentError(
            f"fit: callbacks must be instances of nn.training.Callback, got {given!r}"
            f"{at(user_line())}."
        )
    return given


def _resume(run: Run, saving: Checkpoint | None, resume: Any) -> None:
    if resume is True and saving is None:
        raise ArgumentError(
            "fit(resume=True) needs a folder of checkpoints, checkpoint=; or pass a file, "
            f"resume=path{at(user_line())}."
        )

    def read() -> Any:
        if isinstance(resume, bool):
            path = saving.last_path if resume and saving is not None else None
            path = path if path is not None and path.exists() else None
        else:
            path = Path(resume)
        if saving is not None:
            saving.begin(resumes=resume is not False)
        return None if path is None else read_checkpoint(path)

    state = read() if run.processes is None else run.processes.in_first(read)
    if state is not None:
        run.load_state_dict(state)

"""The training loop; created by `fit`.

    Callback    base class of callbacks: methods that are called at eight points of the training
    Run         the loop over epochs and batches, and its state, which callbacks may read
    Saves       protocol of checkpoints

The order within an epoch: batches (for each: a step, `on_step_end`, possibly a checkpoint),
validation, the entry of the history, `on_epoch_end`, checkpoints.  So the checkpoint of an epoch
includes the state of callbacks after that epoch.

With several processes each of them runs this loop, on its part of the batches.  They agree on all
decisions: losses and figures are those of the whole batches, and `stop` takes effect in all of them
after the same step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from wengert._engine.core.handle import value_of
from wengert._engine.visualization.progress import Progress, given_bar
from wengert.errors import NotFiniteError, StructureError, at, user_line
from wengert.optim import Optimizer

from ..module import Module
from .batch_iteration import BYTES, FLAG, OWN, BatchSource, size_of
from .evaluation import Mean, Metric, figures_of, measured, metrics_of, modes
from .interruptions import Interrupts, StepReplay
from .train_step import TrainingSteps
from .training_state import History, captured, put_back

if TYPE_CHECKING:
    from .processes import Processes

_NOTICE = "interrupted: training stops after this step (press Ctrl-C again to stop at once)"


class Callback:
    """Base class of callbacks; subclasses override some of the methods.

    Methods are called with the `Run`: ``run.model``, ``run.optimizer``, ``run.epoch`` (from 1),
    ``run.step``, ``run.figures`` (the latest), ``run.history``, and ``run.stop("why")``, which
    stops training after this step.

    With several processes the methods are called in each of them, with the same figures; what they
    print is shown for process 0 only (``run.rank``).

    Attributes
    ----------
    only_first : bool
        Whether methods are called in process 0 only, for callbacks that write files.
    """

    only_first = False

    def on_train_begin(self, run: Run) -> None:
        """Before training; when resuming, after the state was restored."""

    def on_epoch_begin(self, run: Run) -> None:
        """Before the first step of an epoch."""

    def on_step_end(self, run: Run) -> None:
        """After a step: ``run.figures`` has its loss."""

    def on_validation_begin(self, run: Run) -> None:
        """Before validation."""

    def on_validation_end(self, run: Run) -> None:
        """After validation."""

    def on_epoch_end(self, run: Run) -> None:
        """After an epoch and its validation: ``run.figures`` is its entry of the history."""

    def on_checkpoint(self, run: Run, path: Any) -> None:
        """After a checkpoint was written."""

    def on_train_end(self, run: Run) -> None:
        """After training, also after an error."""

    def state_dict(self) -> Any:
        """The state: numbers, strings, arrays and containers of them; None without state."""
        return None

    def load_state_dict(self, state: Any) -> None:
        """Restore a state."""


class Saves(Protocol):
    """Protocol of objects that save a training run, such as `Checkpoint`."""

    best: float | None

    def after_step(self, run: Run) -> None:
        """Save if it is due."""

    def after_epoch(self, run: Run) -> None:
        """Save if it is due, and if the epoch is the best."""

    def save(self, run: Run) -> None:
        """Save the current state."""


class Run:
    """A training run.

    Attributes
    ----------
    model, optimizer
    epoch : int
        The current epoch, from 1; after `on_epoch_end`, the last completed one.
    epochs : int
        The total number of epochs.
    step : int
        Completed steps.
    figures : dict
        Figures of the last step; at the end of an epoch, of the epoch.
    history : History
    is_finished : bool
        Whether all epochs are completed or a callback stopped training; False after Ctrl-C.
    rank : int
        The number of this process; 0 without ``comm=``.
    """

    def __init__(
        self,
        steps: TrainingSteps,
        source: BatchSource,
        epochs: int,
        validation: BatchSource | None,
        metrics: Mapping[str, Metric],
        callbacks: Sequence[Callback],
        checkpoint: Saves | None,
        accumulate: int,
        progress: bool | Callable[..., Any],
        check_finite: bool,
        more: Mapping[str, Any],
    ) -> None:
        self.model: Module = steps.objective.model
        self.optimizer: Optimizer = steps.optimizer
        self.processes: Processes | None = steps.processes
        self.rank = 0 if self.processes is None else self.processes.rank
        self.steps, self.source, self.epochs = steps, source, epochs
        self.validation, self.metrics, self.callbacks = validation, metrics, list(callbacks)
        self._called = [c for c in self.callbacks if not (c.only_first and self.rank)]
        self.checkpoint, self.accumulate, self.more = checkpoint, accumulate, more
        self.history = History()
        self.epoch = self.step = 0
        self.figures: dict[str, Any] = {}
        self.stopped = ""
        self.is_finished = self.is_resumed = False
        self._over = 0  # completed epochs
        self._mean, self._group = Mean(), Mean()
        self._parts = self._weight = 0  # of the step that is being accumulated
        self._replay = None
        if check_finite:
            self._replay = StepReplay(self._captured, self._put_back, self.processes is None)
        self._shows, self._samples = bool(progress) and self.rank == 0, 0
        self._make_bar = given_bar(progress)
        self._wish, self._flagged = "", False  # why this process wants to stop; whether one does
        self._interrupts = Interrupts(_NOTICE)

    # ---- for callbacks ---------------------------------------------------------------------------

    @property
    def is_last(self) -> bool:
        """Whether this is the last epoch."""
        return self.epoch >= self.epochs or bool(self.stopped)

    def stop(self, why: str) -> None:
        """Stop training after this step; the reason is stored in `History.stopped`."""
        if self.processes is None:
            self.stopped = self.stopped or str(why)
        else:  # until the processes agree
            self._wish = self._wish or str(why)

    def call(self, point: str, *more: Any) -> None:
        """Call a method of all callbacks."""
        for callback in self._called:
            act = getattr(callback, point)
            if self.rank:
                with redirect_stdout(StringIO()):
                    act(self, *more)
            else:
                act(self, *more)

    # ---- training --------------------------------------------------------------------------------

    def train(self) -> History:
        """Run the remaining epochs."""
        length = len(self.source)
        self._counts = int(length > 0)  # progress counts batches, or epochs if length is unknown
        left = (self.epochs - self._over) * (length or 1) - self.source.done * self._counts
        self._progress = Progress(max(1, left), "training", bar=self._make_bar)
        with self._interrupts, self._progress if self._shows else nullcontext():
            try:
                with modes(self.model):
                    if not self.model.training:
                        self.model.train()
                    self.call("on_train_begin")
                    self._agree()
                    while self._over < self.epochs and not self.stopped:
                        self._epoch()
                self.is_finished = self.stopped != "interrupted"
                self.history.stopped = self.stopped or "done"
            except SystemExit as error:
                if self.processes is not None:
                    self.processes.left(error)
                raise
            finally:
                self.steps.forget()
                self.call("on_train_end")
        return self.history

    def _epoch(self) -> None:
        began = time.perf_counter()
        self.epoch = self._over + 1
        if not self.source.done:
            self._mean = Mean()
            self.call("on_epoch_begin")
        place = None if self.processes is None else self.processes.place
        for number, batch in enumerate(self.source.batches(place)):
            if self.processes is not None and not number:
                self.processes.check_batch(batch, "data")
            self._batch(batch)
            if self.stopped:
                self._settle()
                if self.checkpoint is not None:
                    self.checkpoint.save(self)
                return
        if self._parts:
            self._release()
        self._finish(began)

    def _finish(self, began: float) -> None:
        """Complete an epoch after its last batch."""
        self._settle()
        figures: dict[str, Any] = {"epoch": self.epoch, **self._mean.result()}
        if self.validation is not None:
            self.call("on_validation_begin")
            ema = self.steps.ema
            with ema.applied() if ema is not None else nullcontext():
                found = measured(self.steps, self.validation, self.metrics)
            figures |= {f"validation {name}": value for name, value in found.items()}
            self.figures = figures
            self.call("on_validation_end")
        seconds = time.perf_counter() - began
        if self.processes is not None:
            seconds = self.processes.from_first(seconds)
        figures |= {"lr": self._rate(), "seconds": seconds}
        self.figures = figures
        self.history.add(figures)
        self.source.end()
        self._over, self._mean = self.epoch, Mean()
        if self._shows and not self._counts:
            shown = {n: v for n, v in figures.items() if n not in ("epoch", "seconds")}
            self._progress.update(1, **shown)
        self.call("on_epoch_end")
        self._end_if_interrupted()
        self._agree()
        if self.checkpoint is not None:
            self.checkpoint.after_epoch(self)
        if self._replay is not None:
            self._replay.forget()

    def _batch(self, batch: Any) -> None:
        weight = size_of(batch) if self.processes is None else self.processes.total(batch)
        whole = self.accumulate == 1
        more: tuple[Any, ...] = () if whole else (np.float64(weight),)
        if self.processes is not None:
            asks = bool(self._wish) or self._interrupts.asked
            batch, weights = self.processes.part(batch, asks)
            more = (weights,)
        if self._replay is not None:
            act = self.steps.whole if whole else self.steps.part
            self._replay.before(whole or not self._parts, act, batch, *more)
        outcome = (self.steps.step if whole else self.steps.gather)(batch, *more)
        if self.processes is None:
            found = figures_of(outcome, batch, self.metrics)
        else:
            found = self._of_all(outcome, batch, int(weights[OWN]), weight)
        if self._replay is not None and not np.isfinite(found["loss"]):
            raise self._not_finite(found["loss"])
        self._mean.add(found, weight)
        if whole:
            self._stepped(found)
        else:
            self._group.add(found, weight)
            self._parts += 1
            self._weight += weight
            if self._parts == self.accumulate:
                self._release()
        if self._shows:
            self._samples += weight
            speed = f"{self._samples / max(self._progress.elapsed, 1e-9):.3g} samples/s"
            self._progress.update(self._counts, **self._mean.result(), lr=self._rate(), at=speed)

    def _of_all(self, outcome: Any, batch: Any, own: int, weight: int) -> dict[str, float]:
        """The figures of a batch of several processes."""
        assert self.processes is not None
        sums = np.asarray(value_of(outcome[3]))
        self.processes.check_sizes(sums[OWN], weight)
        self._flagged = self._flagged or bool(sums[FLAG])
        if self._replay is not None:
            self._replay.grow(int(sums[BYTES]))
        measures = metrics_of(outcome, batch, self.metrics)
        return figures_of(outcome, batch, {}) | self.processes.means(measures, own, weight)

    def _release(self) -> None:
        """Take a step with the accumulated gradients."""
        if self._replay is not None:
            self._replay.before(False, self.steps.release, self._weight, True)
        self.steps.release(self._weight)
        found = self._group.result()
        self._group, self._parts, self._weight = Mean(), 0, 0
        self._stepped(found)

    def _stepped(self, found: dict[str, float]) -> None:
        """Complete a step: record its figures, and call callbacks."""
        self.step += 1
        rate = self._rate()
        found["lr"] = rate
        self.figures = found
        self.history.steps["loss"].append(found["loss"])
        self.history.steps["lr"].append(rate)
        self.call("on_step_end")
        if self.processes is None:
            self._end_if_interrupted()
        elif self._flagged or self._may_stop:
            self._end_if_interrupted()
            self._agree()
        if self.checkpoint is not None and not self.stopped:
            self.checkpoint.after_step(self)

    def _end_if_interrupted(self) -> None:
        if self._interrupts.asked:
            self.stop("interrupted")

    @property
    def _may_stop(self) -> bool:
        """Whether a callback of all processes may stop training after a step."""
        plain = Callback.on_step_end
        return any(type(c).on_step_end is not plain for c in self.callbacks if not c.only_first)

    def _agree(self) -> None:
        """With several processes: stop in all of them if one wants to."""
        if self.processes is not None and not self.stopped:
            self.stopped = self.processes.first_of(self._wish)
            self._flagged = False

    def _settle(self) -> None:
        """With several processes: check that they have the same values."""
        if self.processes is not None:
            self.processes.settle(self.model, self.optimizer, self.steps.ema)

    def _rate(self) -> float:
        return float(self.optimizer.lr)

    def _not_finite(self, loss: float) -> NotFiniteError:
        """The error for a loss that is not finite."""
        assert self._replay is not None
        where = f"step {self.step + 1} (epoch {self.epoch})"
        if self.processes is None:
            found = self._replay.find(bool(np.isinf(loss)))
        else:
            found = self._replay.find(bool(np.isinf(loss)), self.processes.repeated)
            found = self.processes.located(found)
        if not found:
            found = (
                "It was finite when the steps were repeated uncompiled: check for cancellation in "
                "float32, or use float64."
            )
        return NotFiniteError(
            f"fit: the loss of {where} is {loss}. {found} The model has the values from before "
            "that step. A smaller learning rate, clip_norm=, or data without NaN and infinities "
            f"may help{at(user_line())}."
        )

    # ---- saving ----------------------------------------------------------------------------------

    def _captured(self) -> dict[str, Any]:
        return captured(self.model, self.optimizer, self.steps.ema, self.more)

    def _put_back(self, state: Mapping[str, Any]) -> None:
        self.steps.forget()
        put_back(state, self.model, self.optimizer, self.steps.ema, self.more)

    def state_dict(self) -> dict[str, Any]:
        """The complete state, for an exact continuation."""
        history = self.history.to_dict()
        history["steps"] = {name: np.array(v, float) for name, v in history["steps"].items()}
        return {
            **self._captured(),
            "epoch": self._over,
            "step": self.step,
            "source": self.source.state_dict(),
            "sums": self._mean.sums,
            "history": history,
            "callbacks": [[type(c).__name__, c.state_dict()] for c in self.callbacks],
            "best": None if self.checkpoint is None else self.checkpoint.best,
            "stopped": "" if self.stopped == "interrupted" else self.stopped,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of another run.

        Raises
        ------
        StructureError, ShapeError
            The model, data or callbacks differ.
        """
        names = [name for name, _ in state["callbacks"]]
        current = [type(c).__name__ for c in self.callbacks]
        if names != current:
            raise StructureError(
                f"fit(resume=...): the checkpoint has the callbacks {names}, this training "
                f"{current}. Resume with the same callbacks{at(user_line())}."
            )
        self._put_back(state)
        if self.processes is not None:
            self.processes.take_random(state, self.model, self.more)
        self.source.load_state_dict(state["source"])
        self._over = self.epoch = int(state["epoch"])
        self.step = int(state["step"])
        self._mean = Mean(state["sums"])
        history = state["history"]
        steps = {name: values.tolist() for name, values in history["steps"].items()}
        self.history = History.from_dict({**history, "steps": steps})
        for callback, (_, saved) in zip(self.callbacks, state["callbacks"], strict=True):
            if saved is not None:
                callback.load_state_dict(saved)
        if self.checkpoint is not None:
            self.checkpoint.best = state["best"]
        self.stopped = str(state["stopped"])
        self.is_resumed = True

"""Training steps, compiled or not.

Objective      the loss of a batch, with the prediction and figures
TrainingSteps  value, gradient, clipping, update and averages in one compiled call; with gradient
               accumulation, one call for each batch and one for the update; with several processes,
               each call also sums what they have computed (processes.py)
detached       the outcome of a step without history; plain, number: as plain values
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle, shape_of, value_of
from wengert._engine.core.recording import no_grad
from wengert._engine.core.user_functions import signature_of
from wengert._engine.core.validation import spelled
from wengert._engine.jit import jit
from wengert._engine.tensor.grad_attributes import backward_of_part
from wengert.errors import ArgumentError, NotScalarError, StructureError, TraceError, at, user_line
from wengert.optim import EMA, Optimizer, clip_grad_norm_, clip_grad_value_

from ..module import Module
from .batch_iteration import OWN, SHARE, split

if TYPE_CHECKING:
    from .processes import Processes

Batch = Any
# Loss, prediction or (), figures; with several processes also the sums of the weights.
Outcome = tuple[Any, ...]


class Objective:
    """The loss of a batch.

    Parameters
    ----------
    model : Module
    loss : callable or None
        A function of prediction and target.
    objective : callable or None
        A function of the model and a batch, instead of a loss.
    keeps_prediction : bool
        Whether to return predictions.
    """

    def __init__(self, model: Module, loss: Any, objective: Any, keeps_prediction: bool) -> None:
        if (loss is None) == (objective is None):
            raise ArgumentError(
                "fit: give either a loss of predictions and targets, or an objective of the model "
                f"and a batch{at(user_line())}."
            )
        chosen = objective if loss is None else loss
        if not callable(chosen):
            raise ArgumentError(
                "fit: the loss must be a function of predictions and targets, such as "
                f"nn.CrossEntropyLoss(), got {spelled(chosen)}{at(user_line())}."
            )
        self.model, self.loss, self.objective = model, loss, objective
        self.keeps_prediction = keeps_prediction

    def __call__(self, batch: Batch) -> Outcome:
        """Loss, prediction and figures of a batch."""
        prediction: Any = ()
        figures: Mapping[str, Any] = {}
        if self.objective is not None:
            loss = self.objective(self.model, batch)
            if isinstance(loss, tuple) and len(loss) == 2:
                loss, figures = loss
        else:
            inputs, target = split(batch)
            prediction = self.model(*inputs)
            loss = self.loss(prediction, target)
        if not isinstance(loss, Handle):
            raise StructureError(
                "fit: the loss does not depend on the parameters of the model. Compute it from the "
                f"result of the model{at(user_line())}."
            )
        if shape_of(loss) != ():
            raise NotScalarError(
                f"fit: the loss of a batch must be a scalar, got shape {shape_of(loss)}. Take its "
                f'mean: reduction="mean"{at(user_line())}.'
            )
        return loss, prediction if self.keeps_prediction else (), dict(figures)


class TrainingSteps:
    """The steps of a training run.

    Parameters
    ----------
    objective : Objective
    optimizer : Optimizer
    compiles : bool
    clip_norm, clip_value : float or None
    ema : EMA or None
    processes : Processes or None
        Then a step is given the part of this process of a batch, and its weights
        (`Processes.part`).
    has_comm : bool
        Whether losses are parts of one loss, also of one process.
    """

    def __init__(
        self,
        objective: Objective,
        optimizer: Optimizer,
        compiles: bool,
        clip_norm: float | None,
        clip_value: float | None,
        ema: EMA | None,
        processes: Processes | None = None,
        has_comm: bool = False,
    ) -> None:
        self.objective, self.optimizer, self.ema = objective, optimizer, ema
        self.processes = processes
        self._backward = backward_of_part if has_comm else _backward
        self.clip_norm, self.clip_value = clip_norm, clip_value
        self.compiles = compiles
        self.searches = "closure" in signature_of(optimizer.step).parameters
        if self.searches and (clip_norm is not None or clip_value is not None):
            raise ArgumentError(
                f"fit: clip_norm and clip_value are not supported with {type(optimizer).__name__}, "
                f"whose line search needs unclipped gradients{at(user_line())}."
            )
        owners = {id(p): p for p in optimizer.parameters()}
        owners |= {id(p): p for p in objective.model.parameters()}
        self._owners = list(owners.values())
        self._updates: dict[Any, Callable[..., Any]] = {}
        self._buffers = [b for _, b in objective.model.named_buffers()]
        self._step = self._decorated(self.whole)
        self._value = self._decorated(self.valued)
        self._gather = self._decorated(self.part)
        self._look = self._decorated(self._evaluated)

    def _decorated(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return jit(function) if self.compiles else function

    # ---- one batch, one step ---------------------------------------------------------------------

    def whole(self, batch: Batch, *weights: Any) -> Outcome:
        """Value, gradient and update, uncompiled."""
        if self.searches:
            return self._searched(lambda: self.valued(batch, *weights))
        self._forget()
        outcome = self.valued(batch, *weights)
        self._apply()
        return outcome

    def valued(self, batch: Batch, *weights: Any) -> Outcome:
        """Value and gradient of one batch, uncompiled."""
        if self.processes is None:
            loss, prediction, figures = self.objective(batch)
            self._backward(loss)
            return detached((loss, prediction, figures))
        self._forget()
        outcome = self._of_part(batch, weights[0], SHARE)
        self.processes.add_gradients(self._owners)
        return outcome

    def _of_part(self, batch: Batch, weights: Any, factor: int) -> Outcome:
        """Value, and gradient times a weight, of the part of this process of a batch."""
        assert self.processes is not None
        before = [(b, b.node) for b in self._buffers]
        messages = self.processes.messages()
        loss, prediction, figures = self.objective(batch)
        loss = messages.before_backward(loss)
        self._backward(loss * weights[factor].astype(loss.dtype))
        messages.after_backward(self._owners)
        self.processes.meet()
        self.processes.average([b for b, node in before if b.node is not node], weights)
        loss, figures, sums = self.processes.figures(loss, figures, weights)
        return *detached((loss, prediction, figures)), sums

    def _apply(self) -> None:
        trained = self.optimizer.parameters()
        if self.clip_value is not None:
            clip_grad_value_(trained, self.clip_value)
        if self.clip_norm is not None:
            clip_grad_norm_(trained, self.clip_norm)
        self.optimizer.step()
        self._forget()  # so that gradients are not outputs of a compiled step
        if self.ema is not None:
            self.ema.update()

    def _forget(self) -> None:
        """Set all gradients to None."""
        for p in self._owners:
            p.grad = None

    def _searched(self, value: Callable[[], Outcome]) -> Outcome:
        """A step of an optimizer that evaluates loss and gradient at several points."""
        seen: list[Outcome] = []

        def closure() -> Any:
            self._forget()
            seen.append(value())
            return seen[-1][0]

        self.optimizer.step(closure)  # type: ignore[call-arg]
        self._forget()
        if self.ema is not None:
            self.ema.update()
        return seen[0]

    def step(self, batch: Batch, *weights: Any) -> Outcome:
        """One step on one batch."""
        if self.searches:
            return self._searched(lambda: self._run(self._value, batch, *weights))
        return self._run(self._step, batch, *weights)

    # ---- several batches, one step ---------------------------------------------------------------

    def part(self, batch: Batch, weight: Any) -> Outcome:
        """Value and gradient, uncompiled."""
        if self.processes is not None:
            return self._of_part(batch, weight, OWN)
        loss, prediction, figures = self.objective(batch)
        self._backward(loss * weight.astype(loss.dtype))
        return detached((loss, prediction, figures))

    def gather(self, batch: Batch, weight: Any) -> Outcome:
        """Add the gradient of a batch, times its weight, to the accumulated gradients.

        `weight` is a float64, or the weights of the part of this process.
        """
        return self._run(self._gather, batch, weight)

    def forget(self) -> None:
        """Discard the accumulated gradients."""
        self._forget()

    def release(self, weight: int, plainly: bool = False) -> None:
        """Take a step with the accumulated gradients, divided by the total weight.

        With `plainly` it is not compiled.
        """
        having = [p for p in self._owners if p.grad is not None]
        key = tuple(map(id, having))

        def update(gradients: list[Any], share: Any) -> None:
            self._forget()  # so that parameters without a gradient have none in the graph
            for p, g in zip(having, gradients, strict=True):
                p.grad = g * share.astype(g.real.dtype)
            if self.processes is not None:
                self.processes.add_gradients(having)
            self._apply()

        if not plainly and key not in self._updates:
            self._updates[key] = self._decorated(update)
        gradients = [np.array(value_of(p.grad)) for p in having]
        self._forget()
        (update if plainly else self._updates[key])(gradients, np.float64(1.0 / weight))

    # ---- evaluation ------------------------------------------------------------------------------

    @no_grad()
    def _evaluated(self, batch: Batch) -> Outcome:
        return detached(self.objective(batch))

    def look(self, batch: Batch) -> Outcome:
        """Loss, prediction and figures of a batch, without an update."""
        return self._run(self._look, batch)

    def _run(self, function: Callable[..., Any], batch: Batch, *more: Any) -> Outcome:
        """Call a compiled function; errors are those of the uncompiled function."""
        try:
            return function(batch, *more)
        except IndexError as error:  # the message of native code names the index only
            with no_grad():
                self.objective(batch)
            raise error
        except TraceError as error:
            error.add_note("fit compiles its steps; pass compile=False to run them eagerly.")
            raise


def _backward(loss: Any) -> None:
    loss.backward()


def detached(outcome: Outcome) -> Outcome:
    """An outcome detached from its history."""
    loss, prediction, figures = outcome[:3]
    return _cut(loss), _cut(prediction), {name: _cut(v) for name, v in figures.items()}


def _cut(x: Any) -> Any:
    if isinstance(x, tuple | list):
        return type(x)(map(_cut, x))
    if isinstance(x, Mapping):
        return {key: _cut(inner) for key, inner in x.items()}
    return x.detach() if isinstance(x, Handle) else x  # type: ignore[attr-defined]


def plain(x: Any) -> Any:
    """Tensors, also in containers, as arrays."""
    if isinstance(x, tuple | list):
        return tuple(map(plain, x))
    if isinstance(x, Mapping):
        return {key: plain(inner) for key, inner in x.items()}
    return np.asarray(value_of(x))


def number(x: Any) -> float:
    """A scalar as a Python float."""
    return float(np.asarray(value_of(x)))

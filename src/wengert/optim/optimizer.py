"""Optimizer: the base class of optimizers, and ReduceLROnPlateau.

A subclass defines `update(p, g, state, options)`, which computes the change of one parameter from
its value, its gradient, its state and the options of its group, all plain arrays: steps are not
recorded for differentiation.  This class does the rest.

Parameters without a gradient are skipped; their state does not change.

Schedules are functions of the number of steps (schedules.py).  ReduceLROnPlateau depends on a
metric measured after each epoch, and has state (`state_dict`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, value_of
from wengert._engine.core.recording import current_trace, no_grad
from wengert._engine.core.validation import spelled
from wengert.errors import ArgumentError, ShapeError, StructureError, at, user_line

from .state import Group, has_variables, restore, step_variables, to_arrays, value_before

__all__ = ["ReduceLROnPlateau"]

State = dict[str, Any]
Options = dict[str, Any]


class Optimizer:
    """Base class of optimizers; subclasses define `update`.

    Parameters
    ----------
    params : iterable of Tensor, or of dict
        Tensors that require a gradient, such as ``model.parameters()``, or parameter groups: dicts
        ``{"params": ..., "lr": ...}`` with options for some of the parameters.
    **defaults
        Options of groups that do not set them. The learning rate, ``lr``, may be a function of the
        number of steps taken (`wengert.optim.schedules`).

    Attributes
    ----------
    param_groups : list of dict
        The parameters with their options, which may change during training
        (``group["lr"] *= 0.5``).
    lr : float
        The current learning rate of the first group; assigning sets it for all groups.

    Raises
    ------
    ArgumentError
        No parameters, a duplicate, something that is not a tensor, an unknown option, or an
        option outside its range.
    """

    def __init__(self, params: Iterable[Any], **defaults: Any) -> None:
        self.param_groups: list[Group] = []
        self._defaults = defaults
        self._state: dict[int, State] = {}
        entries: list[Any] = [params] if isinstance(params, Handle) else list(params)
        if not entries:
            raise ArgumentError(
                f"{type(self).__name__} was given no parameters. Pass model.parameters(); an "
                f"iterator can be consumed only once{at(user_line())}."
            )
        if not isinstance(entries[0], Mapping):
            entries = [{"params": entries}]
        for entry in entries:
            self.add_param_group(entry)

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Add a parameter group: ``{"params": ..., "lr": ...}``."""
        given = group["params"]
        options = {**self._defaults, **group}
        options["params"] = [given] if isinstance(given, Handle) else list(given)
        unknown = sorted(options.keys() - self._defaults.keys() - {"params"})
        if unknown:
            raise ArgumentError(
                f"{type(self).__name__} has no option {', '.join(unknown)}. Its options are "
                f"{sorted(self._defaults)}{at(user_line())}."
            )
        known = {id(p) for p in self.parameters()}
        for p in options["params"]:
            if not isinstance(p, Handle):
                raise ArgumentError(
                    f"{type(self).__name__} was given a {type(p).__name__} as a parameter. Only "
                    f"tensors can be updated in place: make it a Parameter{at(user_line())}."
                )
            if id(p) in known:
                raise ArgumentError(
                    f"{type(self).__name__} was given the same parameter twice and would update it "
                    f"twice per step. Pass each parameter once{at(user_line())}."
                )
            known.add(id(p))
        self.check(options)
        self.param_groups.append(Group(options))

    def parameters(self) -> list[Any]:
        """All parameters, in order."""
        return [p for group in self.param_groups for p in group["params"]]

    def check(self, options: Options) -> None:
        """Raise for options outside their range; subclasses extend it."""
        if not callable(options.get("lr")):
            require(options, "lr", lambda x: x >= 0, "at least 0", self)
        require(options, "weight_decay", lambda x: x >= 0, "at least 0", self)

    @property
    def lr(self) -> float:
        """The learning rate of the first group; assigning sets it for all groups."""
        return self.param_groups[0]["lr"]

    @lr.setter
    def lr(self, rate: float) -> None:
        for group in self.param_groups:
            group["lr"] = rate
            self.check(group)

    # ---- stepping ------------------------------------------------------------------------------

    def begin(self, p: Any, options: Options) -> State:
        """The initial state of a parameter: arrays and integers.

        An optimizer with state has to define it if its steps are to be compiled (`wengert.jit`).

        Parameters
        ----------
        p : array
            Value of the parameter.
        options : dict
            Options of its group.
        """
        return {}

    def update(self, p: Any, g: Any, state: State, options: Options) -> Any:
        """The array to add to a parameter.

        Parameters
        ----------
        p, g : array
            Value and gradient. Neither may be modified in place.
        state : dict
            State of this parameter, to be updated in place; `begin` returns the initial one.
        options : dict
            Options of its group.
        """
        raise StructureError(
            f"{type(self).__name__} does not define update(p, g, state, options). Define it to "
            f"return the change of one parameter{at(user_line())}."
        )

    @no_grad()
    def step(self) -> None:
        """Update every parameter that has a gradient."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self._state.get(id(p))
                if not state:
                    state = self._state[id(p)] = self.begin(value_before(p), group)
                if current_trace() is not None or has_variables(state):
                    step_variables(self, p, state, group)
                else:
                    p += self.update(value_of(p), value_of(p.grad), state, group)
            group.advance()

    def zero_grad(self) -> None:
        """Set the gradients of all parameters to None."""
        for p in self.parameters():
            p.grad = None

    # ---- saving and loading --------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Options of the groups and state of the parameters, in order."""
        groups = [  # not the schedule itself, which may be any function, but its step count
            {k: v for k, v in g.current().items() if k != "params" and not callable(v)}
            for g in self.param_groups
        ]
        states = [to_arrays(self._state.get(id(p), {})) for p in self.parameters()]
        return {"groups": groups, "states": states}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load what `state_dict` returned.

        Raises
        ------
        StructureError
            It is not the state of an optimizer of this class with as many groups and parameters.
            Nothing is changed.
        ShapeError
            The shapes of parameters differ. Nothing is changed.
        """
        if not isinstance(state, Mapping) or not {"groups", "states"} <= state.keys():
            raise StructureError(
                f"{type(self).__name__}.load_state_dict was given {spelled(state)}, which is not "
                f"the state of an optimizer. Pass what state_dict() returned{at(user_line())}."
            )
        groups, states = state["groups"], state["states"]
        parameters = self.parameters()
        if len(groups) != len(self.param_groups) or len(states) != len(parameters):
            raise StructureError(
                f"{type(self).__name__}.load_state_dict: the state has {len(groups)} groups with "
                f"{len(states)} parameters, this optimizer has {len(self.param_groups)} with "
                f"{len(parameters)}. Load the state of the same model{at(user_line())}."
            )
        found = iter(states)
        for group, options in zip(self.param_groups, groups, strict=True):
            self._check_options(options)
            for p in group["params"]:
                self._check_param_state(self.begin(value_of(p), group), next(found))
        for group, options in zip(self.param_groups, groups, strict=True):
            group.update(options)
        self._state = {
            id(p): restore(self._state.get(id(p), {}), s)
            for p, s in zip(parameters, states, strict=True)
        }

    def _check_options(self, options: Options) -> None:
        unknown = sorted(options.keys() - self._defaults.keys() - {"taken"})
        if unknown:
            raise StructureError(
                f"{type(self).__name__}.load_state_dict: the state has options {unknown}, this "
                f"optimizer has {sorted(self._defaults)}. Load the state of a {type(self).__name__}"
                f"{at(user_line())}."
            )

    def _check_param_state(self, initial: State, state: State) -> None:
        """Raise unless the state of a parameter has the names and shapes of the initial state."""
        if not initial or not state:
            return
        what = f"{type(self).__name__}.load_state_dict"
        if initial.keys() != state.keys():
            raise StructureError(
                f"{what}: the state of a parameter has entries {sorted(state)}, expected "
                f"{sorted(initial)}. Load the state of an optimizer of the same class and options"
                f"{at(user_line())}."
            )
        for name, item in initial.items():
            if np.shape(item) != np.shape(state[name]):
                raise ShapeError(
                    f"{what}: {name} has shape {np.shape(state[name])} in the state, for a "
                    f"parameter of shape {np.shape(item)}. Load the state of the same model"
                    f"{at(user_line())}."
                )

    def __getstate__(self) -> dict[str, Any]:
        # _state is keyed by id, which pickling does not preserve: store it by position.
        return {
            "param_groups": self.param_groups,
            "_defaults": self._defaults,
            "_state": [to_arrays(self._state.get(id(p), {})) for p in self.parameters()],
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._state = {id(p): s for p, s in zip(self.parameters(), state["_state"], strict=True)}

    def __repr__(self) -> str:
        groups = [
            ", ".join(f"{k}={v}" for k, v in g.current().items() if k != "params")
            + f", {len(g['params'])} parameters"
            for g in self.param_groups
        ]
        return f"{type(self).__name__}({'; '.join(groups)})"


def require(options: Options, name: str, holds: Any, demand: str, owner: Any) -> None:
    """Raise unless an option satisfies a condition."""
    value = options.get(name)
    if name in options and not _holds(holds, value):
        raise ArgumentError(
            f"{type(owner).__name__}({name}={value}): {name} must be {demand}. Change it"
            f"{at(user_line())}."
        )


def _holds(holds: Any, value: Any) -> bool:
    """Whether a value satisfies a condition; False if the condition raises for its type."""
    try:
        return bool(holds(value))
    except (TypeError, ValueError):
        return False


class ReduceLROnPlateau:
    """Multiply the learning rate by a factor when a metric has stopped improving.

    Parameters
    ----------
    optimizer : Optimizer
        Its learning rates must be numbers, not schedules.
    mode : {"min", "max"}
        Whether the metric is to decrease or to increase.
    factor : float, default 0.1
        Above 0 and below 1.
    patience : int, default 10
        Number of epochs without improvement that are tolerated; the rate is reduced after the next
        one.
    threshold : float, default 1e-4
        The least change that counts as an improvement, relative or absolute.
    threshold_mode : {"rel", "abs"}
        Whether `threshold` is relative to the best metric.
    cooldown : int, default 0
        Number of epochs after a reduction that do not count.
    min_lr : float, default 0
        Lower bound of the learning rate.
    eps : float, default 1e-8
        Reductions by no more than this are skipped.

    Attributes
    ----------
    best : float
        The best metric so far.
    num_bad_epochs : int
        Number of epochs since the last improvement.

    Raises
    ------
    ArgumentError
        An option outside its range, or an optimizer with a schedule.

    Examples
    --------
    >>> import wengert as wg
    >>> from wengert import optim
    >>> optimizer = optim.SGD([wg.tensor([1.0], requires_grad=True)], lr=1.0)
    >>> plateau = optim.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     plateau.step(loss)
    >>> optimizer.lr
    0.5
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0.0,
        eps: float = 1e-8,
    ) -> None:
        for name, given, allowed in (
            ("mode", mode, ("min", "max")),
            ("threshold_mode", threshold_mode, ("rel", "abs")),
        ):
            if given not in allowed:
                raise ArgumentError(
                    f"ReduceLROnPlateau({name}={given!r}): expected one of {allowed}"
                    f"{at(user_line())}."
                )
        for name, value, holds, demand in (
            ("factor", factor, 0 < factor < 1, "above 0 and below 1"),
            ("patience", patience, patience >= 0, "at least 0"),
            ("threshold", threshold, threshold >= 0, "at least 0"),
            ("cooldown", cooldown, cooldown >= 0, "at least 0"),
            ("min_lr", min_lr, min_lr >= 0, "at least 0"),
        ):
            if not holds:
                raise ArgumentError(
                    f"ReduceLROnPlateau({name}={value}): {name} must be {demand}. Change it"
                    f"{at(user_line())}."
                )
        if any(group.schedule is not None for group in optimizer.param_groups):
            raise ArgumentError(
                "ReduceLROnPlateau was given an optimizer whose learning rate follows a schedule, "
                f"which determines the rate. Set lr to a number{at(user_line())}."
            )
        self.optimizer = optimizer
        self.mode, self.factor, self.patience = mode, float(factor), int(patience)
        self.threshold, self.threshold_mode = float(threshold), threshold_mode
        self.cooldown, self.min_lr, self.eps = int(cooldown), float(min_lr), float(eps)
        self.best = np.inf if mode == "min" else -np.inf
        self.num_bad_epochs = 0
        self.cooldown_counter = 0

    def step(self, metric: Any) -> None:
        """Record a metric; NaN is not an improvement."""
        current = float(metric)
        if self._is_better(current):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group in self.optimizer.param_groups:
                rate = max(group["lr"] * self.factor, self.min_lr)
                if group["lr"] - rate > self.eps:
                    group["lr"] = rate
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0

    def _is_better(self, current: float) -> bool:
        if not np.isfinite(self.best):
            return current < self.best if self.mode == "min" else current > self.best
        margin = self.threshold * (abs(self.best) if self.threshold_mode == "rel" else 1.0)
        if self.mode == "min":
            return current < self.best - margin
        return current > self.best + margin

    def state_dict(self) -> dict[str, Any]:
        """The best metric and the counters; the learning rate is part of the optimizer's state."""
        return {
            "best": self.best,
            "num_bad_epochs": self.num_bad_epochs,
            "cooldown_counter": self.cooldown_counter,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load what `state_dict` returned."""
        self.best = float(state["best"])
        self.num_bad_epochs = int(state["num_bad_epochs"])
        self.cooldown_counter = int(state["cooldown_counter"])

    def __repr__(self) -> str:
        return (
            f"ReduceLROnPlateau(mode={self.mode!r}, factor={self.factor}, "
            f"patience={self.patience}, best={self.best:.4g})"
        )

"""Optimizer: the base class of optimizers.

An optimizer states one formula, `update(p, g, state, options)`: the change of one parameter, from
its value, its gradient, what it remembers about it, and the options of its group.  All in plain
arrays: a step is not recorded.  Everything else is here, once.

Parameters without a gradient are skipped, and what is remembered of them does not age.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, value_of
from wengert._engine.core.recording import current_trace, no_grad
from wengert._engine.core.validation import spelled

from ..errors import ArgumentError, ShapeError, StructureError, at, user_line
from .state import Group, held_step, is_held, plain, restore, value_before

State = dict[str, Any]
Options = dict[str, Any]


class Optimizer:
    """Base of all optimizers; subclasses define `update`.

    Parameters
    ----------
    params : iterable of Tensor, or of dict
        What to change: tensors that require a gradient, such as ``model.parameters()``. To give
        parts of a model options of their own, pass dicts ``{"params": ..., "lr": ...}``.
    **defaults
        Options of groups that do not state them. The rate, ``lr``, may be a function of the number
        of steps taken (`wengert.optim.schedules`).

    Attributes
    ----------
    param_groups : list of dict
        The parameters with their options, to be changed while training (``group["lr"] *= 0.5``).
    lr : float
        The rate of all groups, at this step if it follows a schedule; assigning sets it for all.

    Raises
    ------
    ArgumentError
        No parameters, the same twice, something that is not a tensor, an unknown option, or an
        option outside its range.
    """

    def __init__(self, params: Iterable[Any], **defaults: Any) -> None:
        self.param_groups: list[Group] = []
        self._defaults = defaults
        self._state: dict[int, State] = {}
        entries: list[Any] = [params] if isinstance(params, Handle) else list(params)
        if not entries:
            raise ArgumentError(
                f"{type(self).__name__} was given no parameters. Pass model.parameters(), and "
                f"note that an iterator can be used up only once{at(user_line())}."
            )
        if not isinstance(entries[0], Mapping):
            entries = [{"params": entries}]
        for entry in entries:
            self.add_param_group(entry)

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Add parameters with options of their own: ``{"params": ..., "lr": ...}``."""
        given = group["params"]
        options = {**self._defaults, **group}
        options["params"] = [given] if isinstance(given, Handle) else list(given)
        unknown = sorted(options.keys() - self._defaults.keys() - {"params"})
        if unknown:
            raise ArgumentError(
                f"{type(self).__name__} has no options {unknown}. Its options are "
                f"{sorted(self._defaults)}{at(user_line())}."
            )
        known = {id(p) for p in self.parameters()}
        for p in options["params"]:
            if not isinstance(p, Handle):
                raise ArgumentError(
                    f"{type(self).__name__} was given a {type(p).__name__} as a parameter. Only "
                    f"tensors can be changed in place: make it a Parameter{at(user_line())}."
                )
            if id(p) in known:
                raise ArgumentError(
                    f"{type(self).__name__} was given the same parameter twice, and would step "
                    f"twice. Name each once{at(user_line())}."
                )
            known.add(id(p))
        self.check(options)
        self.param_groups.append(Group(options))

    def parameters(self) -> list[Any]:
        """All parameters, in order."""
        return [p for group in self.param_groups for p in group["params"]]

    def check(self, options: Options) -> None:
        """Refuse options outside their range; subclasses extend it."""
        if not callable(options.get("lr")):
            require(options, "lr", lambda x: x >= 0, "a rate of at least 0", self)
        require(options, "weight_decay", lambda x: x >= 0, "at least 0", self)

    @property
    def lr(self) -> float:
        """The rate of the first group; assigning sets it for all groups."""
        return self.param_groups[0]["lr"]

    @lr.setter
    def lr(self, rate: float) -> None:
        for group in self.param_groups:
            group["lr"] = rate
            self.check(group)

    # ---- stepping ------------------------------------------------------------------------------

    def begin(self, p: Any, options: Options) -> State:
        """What is remembered of a parameter before the first step: arrays and integers.

        An optimizer that states it can take its steps in a compiled function (`wengert.jit`).

        Parameters
        ----------
        p : array
        options : dict
            Of its group.
        """
        return {}

    def update(self, p: Any, g: Any, state: State, options: Options) -> Any:
        """The change of a parameter: an array that is added to it.

        Parameters
        ----------
        p, g : array
            Value and gradient. Neither may be changed in place.
        state : dict
            What is remembered of this parameter; at first what `begin` says.
        options : dict
            Of its group.
        """
        raise StructureError(
            f"{type(self).__name__} defines no update(p, g, state, options). Define the change of "
            f"one parameter{at(user_line())}."
        )

    @no_grad()
    def step(self) -> None:
        """Change every parameter that has a gradient."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self._state.get(id(p))
                if not state:
                    state = self._state[id(p)] = self.begin(value_before(p), group)
                if current_trace() is not None or is_held(state):
                    held_step(self, p, state, group)
                else:
                    p += self.update(value_of(p), value_of(p.grad), state, group)
            group.advance()

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters."""
        for p in self.parameters():
            p.grad = None

    # ---- saving and loading --------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """What is needed to go on later: options, and what is remembered, by position."""
        groups = [  # a schedule is part of the program; how far it has come is not
            {k: v for k, v in g.plain().items() if k != "params" and not callable(v)}
            for g in self.param_groups
        ]
        states = [plain(self._state.get(id(p), {})) for p in self.parameters()]
        return {"groups": groups, "states": states}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where another optimizer of the same parameters stood.

        Raises
        ------
        StructureError
            It is not a state of an optimizer of this class with as many groups and parameters.
            Nothing was changed.
        ShapeError
            It is of parameters of other shapes. Nothing was changed.
        """
        if not isinstance(state, Mapping) or not {"groups", "states"} <= state.keys():
            raise StructureError(
                f"{type(self).__name__}.load_state_dict was given {spelled(state)}, which is not a "
                f"state of an optimizer. Give what state_dict() has returned{at(user_line())}."
            )
        groups, states = state["groups"], state["states"]
        parameters = self.parameters()
        if len(groups) != len(self.param_groups) or len(states) != len(parameters):
            raise StructureError(
                f"{type(self).__name__}.load_state_dict: the state is of {len(groups)} groups with "
                f"{len(states)} parameters, this has {len(self.param_groups)} with "
                f"{len(parameters)}. Load the state of the same model{at(user_line())}."
            )
        found = iter(states)
        for group, options in zip(self.param_groups, groups, strict=True):
            self._check_options(options)
            for p in group["params"]:
                self._check_state(self.begin(value_of(p), group), next(found))
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
                f"optimizer has {sorted(self._defaults)}. Load the state of one of the same kind"
                f"{at(user_line())}."
            )

    def _check_state(self, begun: State, state: State) -> None:
        """What is remembered of a parameter has the names and shapes that it begins with."""
        if not begun or not state:
            return
        what = f"{type(self).__name__}.load_state_dict"
        if begun.keys() != state.keys():
            raise StructureError(
                f"{what}: the state remembers {sorted(state)} of a parameter, this optimizer "
                f"{sorted(begun)}. Load the state of one of the same kind{at(user_line())}."
            )
        for name, item in begun.items():
            if np.shape(item) != np.shape(state[name]):
                raise ShapeError(
                    f"{what}: {name} has shape {np.shape(state[name])} in the state, for a "
                    f"parameter of shape {np.shape(item)}. Load the state of the same model"
                    f"{at(user_line())}."
                )

    def __getstate__(self) -> dict[str, Any]:
        # Memory addresses mean nothing after pickling: what is remembered goes by position.
        return {
            "param_groups": self.param_groups,
            "_defaults": self._defaults,
            "_state": [plain(self._state.get(id(p), {})) for p in self.parameters()],
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._state = {id(p): s for p, s in zip(self.parameters(), state["_state"], strict=True)}

    def __repr__(self) -> str:
        groups = [
            ", ".join(f"{k}={v}" for k, v in g.plain().items() if k != "params")
            + f", {len(g['params'])} parameters"
            for g in self.param_groups
        ]
        return f"{type(self).__name__}({'; '.join(groups)})"


def require(options: Options, name: str, holds: Any, demand: str, owner: Any) -> None:
    """Refuse an option that does not hold what is demanded of it."""
    value = options.get(name)
    if name in options and not _holds(holds, value):
        raise ArgumentError(
            f"{type(owner).__name__}({name}={value}): {name} has to be {demand}. Change it"
            f"{at(user_line())}."
        )


def _holds(holds: Any, value: Any) -> bool:
    """Whether it holds of a value; of one of another type it does not."""
    try:
        return bool(holds(value))
    except (TypeError, ValueError):
        return False

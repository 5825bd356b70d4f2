"""The state of an optimizer as variables, which compiled functions read and write.

In eager mode the state consists of to_arrays arrays.  When a step is traced for the first time
(`wengert.jit`), they become variables and remain so: the compiled step reads and updates them.  The
learning rate becomes a variable too or, if it follows a schedule, the number of steps taken.  Other
options are constants of the program; changing one compiles it again.

    Group              options of a parameter group
    write              assign a value to a variable
    step_variables     a step of one parameter whose state is variables, traced or not
    to_arrays          the state as to_arrays arrays
    restore            load a state
    as_like            a number in the dtype of an array
    flush_subnormals   subnormal numbers replaced by zero
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, is_traced, rebind, value_of, wrap
from wengert._engine.core.node import constant
from wengert._engine.core.recording import Changes, current_trace, no_grad
from wengert._engine.graphs.built_by_hand import variable
from wengert.errors import ArgumentError, at, user_line

State = dict[str, Any]


class Group(dict[str, Any]):
    """Options of a parameter group: ``group["params"]``, ``group["lr"]``, ...

    Attributes
    ----------
    rate : Tensor or None
        The learning rate as a variable, from the first compiled step on.
    taken : int or Tensor
        Number of steps taken, if the rate follows a schedule; a variable for compiled steps.
    """

    rate: Any = None
    taken: Any = 0

    @property
    def schedule(self) -> Any:
        """The learning rate as a function of the number of steps, or None if it is a number."""
        given = super().__getitem__("lr")
        return given if callable(given) else None

    def __getitem__(self, name: str) -> Any:
        if name != "lr":
            return super().__getitem__(name)
        if self.schedule is not None:
            rate = self.schedule(value_of(self.taken))
        elif self.rate is not None:
            rate = value_of(self.rate)
        else:
            return super().__getitem__("lr")
        return rate if isinstance(rate, Handle) else float(rate)

    def __setitem__(self, name: str, value: Any) -> None:
        if name == "taken":
            self._set_taken(value)
            return
        if name != "lr" or callable(value):
            super().__setitem__(name, value)
            Changes.note()
            return
        if self.schedule is not None:
            super().__setitem__("lr", 0.0)
            self.rate = None
            Changes.note()
        if not is_traced(value):
            super().__setitem__(name, value_of(value))
        if current_trace() is not None:
            self.make_variable()
        if self.rate is not None:
            with no_grad():
                write(self.rate, value)

    def update(self, *others: Any, **more: Any) -> None:
        """Set several options."""
        for name, value in dict(*others, **more).items():
            self[name] = value

    def make_variable(self) -> None:
        """Make the rate, or the number of steps of its schedule, a variable from now on."""
        if self.schedule is not None:
            if not isinstance(self.taken, Handle):
                self.taken = variable(np.array(self.taken), "taken", differentiable=False)
        elif self.rate is None:
            rate = np.array(super().__getitem__("lr"), float)
            self.rate = variable(rate, "lr", differentiable=False)

    def advance(self) -> None:
        """Count a step, if the rate follows a schedule."""
        if self.schedule is not None:
            if current_trace() is not None:
                self.make_variable()
            self._set_taken(value_of(self.taken) + 1)

    def _set_taken(self, steps: Any) -> None:
        if isinstance(self.taken, Handle):
            with no_grad():
                write(self.taken, steps)
        else:
            self.taken = int(steps)

    def current(self) -> dict[str, Any]:
        """The current options, without variables."""
        now = {name: self[name] for name in self}
        if self.schedule is not None:
            now |= {"lr": self.schedule, "taken": int(value_of(self.taken))}
        return now

    def __reduce__(self) -> Any:
        now = self.current()
        return Group, (now,), {"taken": now.pop("taken", 0)}


def has_variables(state: State) -> bool:
    """Whether the state consists of variables."""
    return any(isinstance(v, Handle) for v in state.values())


def value_before(p: Any) -> Any:
    """The value of a parameter before the current trace assigned to it."""
    opened = current_trace()
    node = p.node if opened is None else opened.written.get(p, p.node)
    return node.value


def step_variables(optimizer: Any, p: Any, state: State, group: Group) -> None:
    """Update a parameter and its state, which is made of variables."""
    opened = current_trace()
    options: Any = group
    for name, item in state.items():
        if not isinstance(item, Handle):
            state[name] = variable(np.array(item), name, differentiable=False)
    if opened is not None:
        group.make_variable()
        guarded = functools.partial(_constants_of_step, state, group)
        opened.guards.append((guarded, guarded()))
        rate = as_like(group["lr"], np.zeros(0, p.dtype).real)
        options = {**group, "lr": rate}
        view = {name: value_of(item) for name, item in state.items()}
    else:
        view = to_arrays(state)
    initial = set(view)
    change = optimizer.update(value_of(p), value_of(p.grad), view, options)
    if set(view) != initial:
        added = ", ".join(sorted(set(view) - initial))
        raise ArgumentError(
            f"{type(optimizer).__name__}.update adds {added} to the state, which a compiled step "
            "cannot do: the state must exist before it runs. Define begin(p, options) to return "
            f"the initial state{at(user_line())}."
        )
    for name, item in view.items():
        write(state[name], item)
    p += change


def write(held: Any, item: Any) -> None:
    """Assign a value to a variable; while a graph is built, the assignment is recorded."""
    item = item if isinstance(item, Handle) else wrap(constant(np.array(item)))
    item = item if item.dtype == held.dtype else item.astype(held.dtype)
    rebind(held, item.node)


def _constants_of_step(state: State, group: Group) -> Any:
    """What is constant in a compiled step: options other than lr, and which variables it uses."""
    options = {k: v for k, v in group.items() if k not in ("params", "lr")}
    held = id(group.rate), id(group.taken), group.schedule
    return {name: id(item) for name, item in state.items()}, options, held


def to_arrays(state: State) -> State:
    """The state as arrays and integers, copied."""
    return {name: _to_array(item) for name, item in state.items()}


def _to_array(item: Any) -> Any:
    value = value_of(item)
    if isinstance(item, Handle) and np.ndim(value) == 0 and value.dtype.kind in "iu":
        return int(value)
    return np.array(value) if isinstance(value, np.ndarray) else value


def restore(state: State, values: Mapping[str, Any]) -> State:
    """The state with new values: assigned to its variables if there are any, else new arrays."""
    if has_variables(state) and {k: np.shape(v) for k, v in values.items()} == {
        k: v.shape for k, v in state.items()
    }:
        with no_grad():
            for name, item in values.items():
                write(state[name], np.array(item))
        return state
    Changes.note()
    return to_arrays(dict(values))


def as_like(number: Any, x: Any) -> Any:
    """A number computed from the state, in the dtype of an array.

    In a compiled step it is a 0-d array, whose dtype would promote others; in eager mode it is a
    Python number, whose dtype is weak.
    """
    return number.astype(x.dtype) if hasattr(number, "astype") else number


def flush_subnormals(item: Any) -> Any:
    """A moving average with subnormal numbers replaced by zero.

    Where gradients stay zero, averages decay to subnormal numbers (below 1e-38 in float32), with
    which processors compute up to a hundred times slower: the steps of a network with inactive
    units took 1.6 times as long after 800 steps.  Steps are not affected at this magnitude.
    """
    dtype = getattr(item, "dtype", None)
    if dtype is None or dtype.kind != "f" or dtype.itemsize < 4 or not item.shape:
        return item
    small = np.abs(item) < np.finfo(dtype).tiny
    if not isinstance(small, Handle) and not small.any():
        return item
    return np.where(small, np.zeros((), dtype), item)

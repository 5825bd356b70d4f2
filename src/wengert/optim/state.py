"""The state of an optimizer as variables, which compiled functions read and write.

Eagerly an optimizer remembers plain arrays.  The first time that a step is traced (`wengert.jit`)
they become variables for good: the graph reads them at each run, and writes them after it.  So does
the rate, which changes as training goes on, or the count of steps that it follows; other options
are a part of the program, and a change of one has it built again.

    Group       the options of some parameters
    write       a value for a variable
    held_step   a step of one parameter on variables, traced or not
    plain       what is remembered, as plain arrays
    restore     values for what is remembered
    as_like     a number in the dtype of an array
    settled     what has decayed to nearly nothing, as nothing
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, is_traced, rebind, value_of, wrap
from wengert._engine.core.node import constant
from wengert._engine.core.recording import Changes, current_trace, no_grad
from wengert._engine.graphs.inputs import variable
from wengert.errors import ArgumentError, at, user_line

State = dict[str, Any]


class Group(dict[str, Any]):
    """Options of some parameters: ``group["params"]``, ``group["lr"]``, ...

    Attributes
    ----------
    rate : Tensor or None
        The rate as a variable, once a compiled step has asked for it.
    taken : int or Tensor
        How many steps were taken, if the rate follows a schedule; a variable for compiled steps.
    """

    rate: Any = None
    taken: Any = 0

    @property
    def schedule(self) -> Any:
        """The function of the number of steps that gives the rate, or None."""
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
            self._took(value)
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
            self.hold()
        if self.rate is not None:
            with no_grad():
                write(self.rate, value)

    def update(self, *others: Any, **more: Any) -> None:
        """Several options at once."""
        for name, value in dict(*others, **more).items():
            self[name] = value

    def hold(self) -> None:
        """Let the rate, or the number of steps that it follows, be a variable from now on."""
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
                self.hold()
            self._took(value_of(self.taken) + 1)

    def _took(self, steps: Any) -> None:
        if isinstance(self.taken, Handle):
            with no_grad():
                write(self.taken, steps)
        else:
            self.taken = int(steps)

    def plain(self) -> dict[str, Any]:
        """The options as they are now."""
        now = {name: self[name] for name in self}
        if self.schedule is not None:
            now |= {"lr": self.schedule, "taken": int(value_of(self.taken))}
        return now

    def __reduce__(self) -> Any:
        now = self.plain()
        return Group, (now,), {"taken": now.pop("taken", 0)}


def is_held(state: State) -> bool:
    """Whether what is remembered are variables."""
    return any(isinstance(v, Handle) for v in state.values())


def value_before(p: Any) -> Any:
    """The value of a parameter before a trace has written to it."""
    opened = current_trace()
    node = p.node if opened is None else opened.written.get(p, p.node)
    return node.value


def held_step(optimizer: Any, p: Any, state: State, group: Group) -> None:
    """Change one parameter, and what is remembered of it, as variables."""
    opened = current_trace()
    options: Any = group
    for name, item in state.items():
        if not isinstance(item, Handle):
            state[name] = variable(np.array(item), name, differentiable=False)
    if opened is not None:
        group.hold()
        ask = functools.partial(_told, state, group)
        opened.guards.append((ask, ask()))
        rate = as_like(group["lr"], np.zeros(0, p.dtype).real)
        options = {**group, "lr": rate}
        view = {name: value_of(item) for name, item in state.items()}
    else:
        view = plain(state)
    known = set(view)
    change = optimizer.update(value_of(p), value_of(p.grad), view, options)
    if set(view) != known:
        more = ", ".join(sorted(set(view) - known))
        raise ArgumentError(
            f"{type(optimizer).__name__} remembers {more}, but does not say what from, so a "
            "compiled function cannot take its steps. Define begin(p, options), what it remembers "
            f"before the first step{at(user_line())}."
        )
    for name, item in view.items():
        write(state[name], item)
    p += change


def write(held: Any, item: Any) -> None:
    """Give a variable another value, a line while a graph is built."""
    item = item if isinstance(item, Handle) else wrap(constant(np.array(item)))
    item = item if item.dtype == held.dtype else item.astype(held.dtype)
    rebind(held, item.node)


def _told(state: State, group: Group) -> Any:
    """What a compiled step is built for beside the values of variables."""
    options = {k: v for k, v in group.items() if k not in ("params", "lr")}
    held = id(group.rate), id(group.taken), group.schedule
    return {name: id(item) for name, item in state.items()}, options, held


def plain(state: State) -> State:
    """What is remembered as arrays and integers, the caller's own."""
    return {name: _plain(item) for name, item in state.items()}


def _plain(item: Any) -> Any:
    value = value_of(item)
    if isinstance(item, Handle) and np.ndim(value) == 0 and value.dtype.kind in "iu":
        return int(value)
    return np.array(value) if isinstance(value, np.ndarray) else value


def restore(state: State, values: Mapping[str, Any]) -> State:
    """Values for what is remembered: written to variables, if there are some to write to."""
    if is_held(state) and {k: np.shape(v) for k, v in values.items()} == {
        k: v.shape for k, v in state.items()
    }:
        with no_grad():
            for name, item in values.items():
                write(state[name], np.array(item))
        return state
    Changes.note()
    return plain(dict(values))


def as_like(number: Any, x: Any) -> Any:
    """A number computed from what is remembered, in the dtype of an array.

    In a compiled step it is an array without axes, which would widen others; eagerly it is a
    number of Python, which does not.
    """
    return number.astype(x.dtype) if hasattr(number, "astype") else number


def settled(item: Any) -> Any:
    """What is remembered, with zeros for numbers below the least normal one.

    Where a gradient is zero, means decay for ever; below 1e-38 (in float32) processors compute a
    hundred times slower, and a step of a network with units that are out of use took 1.6 times as
    long from the eight hundredth on.  To parameters such numbers are zero anyway.
    """
    dtype = getattr(item, "dtype", None)
    if dtype is None or dtype.kind != "f" or dtype.itemsize < 4 or not item.shape:
        return item
    small = np.abs(item) < np.finfo(dtype).tiny
    if not isinstance(small, Handle) and not small.any():
        return item
    return np.where(small, np.zeros((), dtype), item)

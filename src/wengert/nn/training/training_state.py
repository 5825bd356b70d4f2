"""The recorded figures and the complete state of a training run.

    History        figures of all steps and epochs, and why training ended
    captured       parameters, buffers, optimizer, averages, random states
    put_back       restores a state
    values_of      parameters, buffers, optimizer and averages only; put_values restores them
    random_states  random states only; put_random_states restores them
    diverge        other random numbers in each process of a training run
    streams_of     the random streams and generators of a model
    buffers_of     the buffers that are not in the `state_dict`

A History consists of plain numbers, so that it can be saved in checkpoints and as JSON.

Random states are those of streams and generators in modules, of those passed to `fit`, and of the
global generators of NumPy and Python.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from wengert._engine.core import display
from wengert._engine.core.handle import value_of
from wengert._engine.core.lazy_import import LazyModule
from wengert.data.samplers import digest
from wengert.errors import ArgumentError, StructureError, at, user_line
from wengert.optim import EMA, Optimizer
from wengert.random import Generator, Stream
from wengert.random.keys import fold_in

from ..module import Module

_curves = LazyModule("wengert._engine.visualization.training_plots")

# Figures that differ even between otherwise identical runs.
TIMES = ("seconds",)


class History:
    """The figures of a training run, returned by `fit`.

    Attributes
    ----------
    steps : dict of list
        ``"loss"`` and ``"lr"`` of each step.
    epochs : list of dict
        For each epoch ``"epoch"``, ``"loss"``, metrics, the same for validation data
        (``"validation loss"``), ``"lr"`` and ``"seconds"``.
    stopped : str
        Why training ended: ``"done"``, ``"interrupted"``, or the reason given by a callback.

    Examples
    --------
    >>> from wengert.nn.training import History
    >>> history = History()
    >>> history.add({"epoch": 1, "loss": 0.5})
    >>> history.add({"epoch": 2, "loss": 0.25})
    >>> history["loss"], history.best("loss")
    ([0.5, 0.25], {'epoch': 2, 'loss': 0.25})
    >>> history
    epoch    loss
        1  0.5000
        2  0.2500
    """

    def __init__(self) -> None:
        self.steps: dict[str, list[float]] = {"loss": [], "lr": []}
        self.epochs: list[dict[str, Any]] = []
        self.stopped = ""

    def add(self, figures: dict[str, Any]) -> None:
        """Add an epoch; the dict is not copied, so that callbacks may add figures to it."""
        self.epochs.append(figures)

    def __len__(self) -> int:
        return len(self.epochs)

    def __getitem__(self, name: str) -> list[Any]:
        """A figure of all epochs; None for epochs without it."""
        if not any(name in e for e in self.epochs):
            raise ArgumentError(
                f"history[{name!r}]: the figure does not exist. The names are {self.names()}"
                f"{at(user_line())}."
            )
        return [e.get(name) for e in self.epochs]

    def names(self) -> list[str]:
        """The names of the figures of epochs, in order of first appearance."""
        return list(dict.fromkeys(name for e in self.epochs for name in e))

    def best(self, name: str, mode: str = "min") -> dict[str, Any]:
        """The epoch with the smallest (or, with ``mode="max"``, the largest) figure."""
        found = [
            e for e, v in zip(self.epochs, self[name], strict=True) if v is not None and v == v
        ]
        if not found:
            raise ArgumentError(
                f"history.best({name!r}): the figure is NaN in all epochs{at(user_line())}."
            )
        return (min if mode == "min" else max)(found, key=lambda e: e[name])

    def to_dict(self) -> dict[str, Any]:
        """The history as plain lists, dicts and numbers, for JSON or a data frame of epochs."""
        return {
            "steps": {name: list(values) for name, values in self.steps.items()},
            "epochs": [dict(e) for e in self.epochs],
            "stopped": self.stopped,
        }

    @classmethod
    def from_dict(cls, made: Mapping[str, Any]) -> History:
        """The inverse of `to_dict`."""
        history = cls()
        history.steps = {name: list(values) for name, values in made["steps"].items()}
        history.epochs = [dict(e) for e in made["epochs"]]
        history.stopped = str(made["stopped"])
        return history

    def picture(self, path: str | os.PathLike[str] | None = None, title: str = "") -> Any:
        """Plot the curves with matplotlib (the extra `show`).

        Parameters
        ----------
        path : path, optional
            Where to save the figure as PNG.
        title : str, optional

        Returns
        -------
        matplotlib.figure.Figure
        """
        return _curves.training_curves(self.steps["loss"], self.epochs, path, title)

    def _repr_html_(self) -> str:
        names = self.names()
        rows = [[_short(e.get(name)) for name in names] for e in self.epochs]
        return display.grid(f"History of {len(rows)} epochs", names, rows)

    def __repr__(self) -> str:
        if not self.epochs:
            return f"History(no epoch, {len(self.steps['loss'])} steps)"
        names = self.names()
        rows = [names, *([_short(e.get(name)) for name in names] for e in self.epochs)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        )


def _short(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:#.4g}"
    return str(value)


_PROCESSES = 0x70726F63657373  # folded into keys that are derived for other processes


def streams_of(model: Module) -> list[Any]:
    """The streams and generators of a model's modules, each once, in a fixed order."""
    found: dict[int, Any] = {}
    for module in model.modules():
        for item in _inside(vars(module)):
            item = item.stream if isinstance(item, Generator) else item
            found.setdefault(id(item), item)
    return list(found.values())


def _inside(root: Any) -> Iterator[Any]:
    stack, seen = [root], set()
    while stack:
        item = stack.pop()
        if isinstance(item, Stream | Generator | np.random.Generator):
            yield item
        elif isinstance(item, dict | list | tuple) and id(item) not in seen:
            seen.add(id(item))
            inner = item.values() if isinstance(item, dict) else item
            stack.extend(reversed(list(inner)))


def state_of(item: Any) -> Any:
    """The state of a stream, a generator, or any object with `state_dict`."""
    if isinstance(item, np.random.Generator):
        return item.bit_generator.state
    return item.state_dict()


def put_state(item: Any, state: Any) -> None:
    """Restore what `captured` returned."""
    if isinstance(item, np.random.Generator):
        item.bit_generator.state = state
    else:
        item.load_state_dict(state)


def buffers_of(model: Module) -> dict[str, Any]:
    """Buffers that are not in the `state_dict`, by name."""
    named = getattr(model, "named_buffers", None)
    saved = model.state_dict().keys()
    return {n: b for n, b in named() if n not in saved} if named is not None else {}


def values_of(model: Module, optimizer: Optimizer, ema: EMA | None) -> dict[str, Any]:
    """Parameters, buffers, optimizer and averages, copied."""
    return {
        "model": model.state_dict(),
        "buffers": {n: np.array(value_of(b)) for n, b in buffers_of(model).items()},
        "optimizer": optimizer.state_dict(),
        "ema": None if ema is None else ema.state_dict(),
    }


def random_states(model: Module, more: Mapping[str, Any]) -> dict[str, Any]:
    """The states of streams and generators, and of what was passed to `fit`."""
    kind, words, *rest = np.random.get_state(legacy=True)
    version, internal, gauss = random.getstate()
    return {
        "streams": [state_of(s) for s in streams_of(model)],
        "more": {name: state_of(item) for name, item in more.items()},
        "numpy": (kind, np.array(words), *rest),
        "python": (version, np.array(internal, np.uint64), gauss),
    }


def captured(
    model: Module, optimizer: Optimizer, ema: EMA | None, more: Mapping[str, Any]
) -> dict[str, Any]:
    """The state, copied."""
    return {**values_of(model, optimizer, ema), **random_states(model, more)}


def put_back(
    state: Mapping[str, Any],
    model: Module,
    optimizer: Optimizer,
    ema: EMA | None,
    more: Mapping[str, Any],
    everywhere: bool = True,
) -> None:
    """Restore a state; the global generators only with `everywhere`.

    Raises
    ------
    StructureError, ShapeError
        The state is of another model, or of other options.
    """
    streams = streams_of(model)
    _require(
        ("streams of random numbers", len(streams), len(state["streams"])),
        ("buffers", sorted(buffers_of(model)), sorted(state["buffers"])),
        ("moving averages", ema is not None, state["ema"] is not None),
        ("named states", sorted(more), sorted(state["more"])),
    )
    put_values(state, model, optimizer, ema)
    put_random_states(state, model, more, everywhere)


def _require(*pairs: tuple[str, Any, Any]) -> None:
    for what, current, saved in pairs:
        if current != saved:
            raise StructureError(
                f"fit(resume=...): the checkpoint has {what} {saved}, this training {current}. "
                f"Resume with the same model and options{at(user_line())}."
            )


def put_values(
    state: Mapping[str, Any], model: Module, optimizer: Optimizer, ema: EMA | None
) -> None:
    """Restore parameters, buffers, optimizer and averages."""
    buffers = buffers_of(model)
    model.load_state_dict(state["model"])
    for name, value in state["buffers"].items():
        buffers[name].data = value
    optimizer.load_state_dict(state["optimizer"])
    if ema is not None:
        ema.load_state_dict(state["ema"])


def put_random_states(
    state: Mapping[str, Any], model: Module, more: Mapping[str, Any], everywhere: bool = True
) -> None:
    """Restore what `random_states` returned; the global generators only with `everywhere`."""
    for item, saved in zip(streams_of(model), state["streams"], strict=True):
        put_state(item, saved)
    for name, item in more.items():
        put_state(item, state["more"][name])
    if not everywhere:
        return
    np.random.set_state(tuple(state["numpy"]))
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(int(w) for w in internal), gauss))


def diverge(model: Module, more: Mapping[str, Any], rank: int) -> None:
    """Derive the random numbers of process `rank` from those of process 0, which keeps its own.

    Streams get another key, generators another seed; both depend on the present state and the rank
    only.
    """
    items = {id(item): item for item in streams_of(model)}
    for given in more.values():
        item = given.stream if isinstance(given, Generator) else given
        items.setdefault(id(item), item)
    for item in items.values() if rank else ():
        if isinstance(item, np.random.Generator):
            kind = type(item.bit_generator)
            seeds = np.random.SeedSequence([digest(item.bit_generator.state), rank])
            item.bit_generator.state = kind(seeds).state  # type: ignore[call-arg]
        elif isinstance(item, Stream):
            state = item.state_dict()
            # Folded twice: the keys of draws are folded once, with the number of the draw.
            key = fold_in(fold_in(state["state"][:2], _PROCESSES), rank)
            item.load_state_dict({**state, "state": np.array([*key, state["state"][2]])})

"""The state of a training run as plain values, saved and restored.

    captured     parameters, buffers, optimizer, averages, random states
    put_back     restores a state
    streams_of   the random streams and generators of a model

Random states are those of streams and generators in modules, of those passed to `fit`, and of the
global generators of NumPy and Python.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from wengert._engine.core.handle import value_of
from wengert.errors import StructureError, at, user_line
from wengert.optim import EMA, Optimizer
from wengert.random import Generator, Stream

from ..module import Module


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


def _buffers(model: Module) -> dict[str, Any]:
    """Buffers that are not in the `state_dict`."""
    named = getattr(model, "named_buffers", None)
    saved = model.state_dict().keys()
    return {n: b for n, b in named() if n not in saved} if named is not None else {}


def captured(
    model: Module, optimizer: Optimizer, ema: EMA | None, more: Mapping[str, Any]
) -> dict[str, Any]:
    """The state, copied."""
    kind, words, *rest = np.random.get_state(legacy=True)
    version, internal, gauss = random.getstate()
    return {
        "model": model.state_dict(),
        "buffers": {n: np.array(value_of(b)) for n, b in _buffers(model).items()},
        "optimizer": optimizer.state_dict(),
        "ema": None if ema is None else ema.state_dict(),
        "streams": [state_of(s) for s in streams_of(model)],
        "more": {name: state_of(item) for name, item in more.items()},
        "numpy": (kind, np.array(words), *rest),
        "python": (version, np.array(internal, np.uint64), gauss),
    }


def put_back(
    state: Mapping[str, Any],
    model: Module,
    optimizer: Optimizer,
    ema: EMA | None,
    more: Mapping[str, Any],
) -> None:
    """Restore a state.

    Raises
    ------
    StructureError, ShapeError
        The state is of another model, or of other options.
    """
    streams = streams_of(model)
    buffers = _buffers(model)
    for what, current, saved in (
        ("streams of random numbers", len(streams), len(state["streams"])),
        ("buffers", sorted(buffers), sorted(state["buffers"])),
        ("moving averages", ema is not None, state["ema"] is not None),
        ("named states", sorted(more), sorted(state["more"])),
    ):
        if current != saved:
            raise StructureError(
                f"fit(resume=...): the checkpoint has {what} {saved}, this training {current}. "
                f"Resume with the same model and options{at(user_line())}."
            )
    model.load_state_dict(state["model"])
    for name, value in state["buffers"].items():
        buffers[name].data = value
    optimizer.load_state_dict(state["optimizer"])
    if ema is not None:
        ema.load_state_dict(state["ema"])
    for item, saved in zip(streams, state["streams"], strict=True):
        put_state(item, saved)
    for name, item in more.items():
        put_state(item, state["more"][name])
    np.random.set_state(tuple(state["numpy"]))
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(int(w) for w in internal), gauss))

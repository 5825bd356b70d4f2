"""Gather and scatter operators.

All become NumPy indexing.  Positions from -n to -1 count from the end, as in NumPy; values added to
the same position are summed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle
from wengert._engine.core.op import lookup
from wengert._engine.ops.indexing.template import split_index
from wengert.numpy import arange

from .registry import NodeView, as_value, imports

_JOIN = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _at(x: Any, index: tuple[Any, ...]) -> Any:
    """x[index], also for a known array at unknown positions."""
    template, operands = split_index(index)
    if isinstance(x, Handle) or not any(isinstance(a, Handle) for a in operands):
        return x[index]
    return lookup("getitem")(as_value(x), *operands, index=template)


@imports("Gather", lengths=True)
def _gather(n: NodeView, x: Any, positions: Any) -> Any:
    axis = n.get("axis", 0) % len(x.shape)
    index = (slice(None),) * axis + (positions,)
    if isinstance(positions, np.ndarray) and positions.ndim == 0:
        index = (slice(None),) * axis + (int(positions),)
        out = x[index]
        if isinstance(x, np.ndarray) and x.dtype == object and not isinstance(out, np.ndarray):
            whole = np.empty((), object)
            whole[()] = out
            return whole
        return out
    return _at(x, index)


@imports("GatherElements")
def _gather_elements(n: NodeView, x: Any, positions: Any) -> Any:
    return _at(x, _indices_along(positions, n.get("axis", 0) % len(x.shape)))


def _indices_along(positions: Any, axis: int) -> tuple[Any, ...]:
    """The index of elements at the same positions in all axes except one."""
    shape = positions.shape
    index: list[Any] = []
    for k, m in enumerate(shape):
        if k == axis:
            index.append(positions)
        else:
            line = [1] * len(shape)
            line[k] = m
            index.append(np.reshape(arange(m), line))
    return tuple(index)


@imports("GatherND")
def _gather_nd(n: NodeView, x: Any, positions: Any) -> Any:
    return _at(x, _points(positions, n.get("batch_dims", 0)))


def _points(positions: Any, batch: int = 0) -> tuple[Any, ...]:
    """The index of points whose coordinates are along the last axis."""
    shape = positions.shape
    index: list[Any] = []
    for k in range(batch):
        line = [1] * (len(shape) - 1)
        line[k] = shape[k]
        index.append(np.reshape(arange(shape[k]), line))
    return (*index, *[positions[..., k] for k in range(shape[-1])])


@imports("ScatterElements")
def _scatter_elements(n: NodeView, x: Any, positions: Any, updates: Any) -> Any:
    return _scattered(n, x, _indices_along(positions, n.get("axis", 0) % len(x.shape)), updates)


@imports("ScatterND")
def _scatter_nd(n: NodeView, x: Any, positions: Any, updates: Any) -> Any:
    return _scattered(n, x, _points(positions), updates)


def _scattered(n: NodeView, x: Any, index: tuple[Any, ...], updates: Any) -> Any:
    how = n.get("reduction", "none")
    template, operands = split_index(index)
    if not any(isinstance(a, Handle) for a in (x, updates, *operands)):
        x = np.array(x)
        if how == "none":
            x[index] = updates
        else:
            _JOIN[how].at(x, index, updates)
        return x
    if how == "none":
        return lookup("setitem")(x, updates, *operands, index=template)
    if how == "add":  # values at the same position are summed
        return x + lookup("scatter")(updates, *operands, index=template, shape=tuple(x.shape))
    raise n.unsupported(f"with reduction={how!r} is not supported")

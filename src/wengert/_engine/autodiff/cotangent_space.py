"""Cotangent spaces: a cotangent with the shape and dtype of its primal.

Broadcasting and type promotion are undone here for all operations: sum over broadcast axes, take
the real part if the primal is real, cast to its dtype.  A float32 argument gets a float32 gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.dispatch import TupleCotangent
from wengert._engine.core.handle import Handle
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import repeated_axes
from wengert.errors import RuleError, at

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


def project(bar: Any, node: Node) -> Any:
    """The cotangent `bar`, handle or plain, with the shape and dtype of the value of `node`."""
    if type(bar) is TupleCotangent:
        return bar
    spec = node.spec
    if not hasattr(bar, "dtype"):
        bar = np.asarray(bar, dtype=spec.dtype)
    if isinstance(spec, tuple):
        raise RuleError(
            f"the cotangent of {node!r} must have one entry for each output{at(node.where)}"
        )
    if bar.shape != spec.shape:
        bar = _unbroadcast(bar, spec)
    return cast(bar, spec.dtype)


def _unbroadcast(bar: Any, spec: Spec) -> Any:
    if isinstance(bar, Handle):
        if len(bar.shape) < len(spec.shape):  # type: ignore[attr-defined]
            return lookup("broadcast_to")(bar, shape=spec.shape)
        return lookup("sum_to")(bar, shape=spec.shape)
    return expand(bar, spec.shape) if bar.ndim < spec.ndim else sum_to(bar, spec.shape)


def expand(x: Any, shape: tuple[int, ...]) -> Any:
    """A plain value broadcast to `shape`, as a new array."""
    return np.broadcast_to(x, shape).copy()


def sum_to(x: Array, shape: tuple[int, ...]) -> Any:
    """The transpose of broadcasting from `shape`, for plain values."""
    axes = repeated_axes(x.shape, shape)
    if axes:
        x = np.add.reduce(x, axis=axes, keepdims=True)
        x = x.reshape(x.shape[x.ndim - len(shape) :])
    return x if x.shape == shape else expand(x, shape)


def cast(bar: Any, dtype: Any) -> Any:
    """A cotangent in another dtype; its real part if that dtype is real."""
    if bar.dtype == dtype:
        return bar
    if bar.dtype.kind == "c" and dtype.kind != "c":
        bar = bar.real
    return bar if bar.dtype == dtype else bar.astype(dtype)

"""Operations that create arrays from parameters: full, eye, arange.

NumPy creates arrays of known sizes.  These operations create nodes of a graph instead, for symbolic
sizes and to avoid storing large constant arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.dispatch import Operation
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, register
from wengert._engine.core.op_facts import Aliasing
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import require_at_least
from wengert._engine.core.symbolic.dim import Dim, is_symbolic
from wengert._engine.core.tracing import record

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Size


class Creation(Operation):
    """An operation without operands; created by the decorator `creation`."""

    kind = "creation"
    discrete = True

    def __init__(self, run: Callable[..., Any]) -> None:
        super().__init__(run.__name__, run.__doc__)
        self.run = run
        self.oracle = "numpy"

    def vjp(self, node: Node, t: Array, out: Array, inputs: Any, ctx: RuleContext) -> Any:
        """No cotangents, because there are no operands."""
        return []

    def record(self, **params: Any) -> Any:
        """A node of a graph, as a handle."""
        return record(self, (), params)


def creation(run: Callable[..., Any]) -> Creation:
    """Register a function as an operation without operands (a decorator)."""
    return register(Creation(run))


# ---- arrays for rules: NumPy arrays if sizes are known -----------------------------------------


def positions(length: Size) -> Any:
    """0, 1, ..., length - 1."""
    if isinstance(length, Dim):
        return arange.record(start=0, stop=length, step=1, dtype=np.dtype(np.intp))
    return np.arange(length)


def identity(length: Size, dtype: type[Any] | np.dtype[Any] = float) -> Any:
    """The identity matrix."""
    if isinstance(length, Dim):
        return eye.record(rows=length, columns=length, dtype=np.dtype(dtype))
    return np.eye(length, dtype=dtype)


def triangle_mask(rows: Any, columns: Any, offset: int = 0) -> Any:
    """True on and below a diagonal, as numpy.tri."""
    if is_symbolic((rows, columns)):
        return positions(rows)[:, None] + offset >= positions(columns)
    return np.tri(rows, columns, offset, dtype=bool)


@creation
def full(*, shape: tuple[int, ...], value: float | complex, dtype: np.dtype[Any]) -> Any:
    """An array filled with `value`."""
    # Strides of zero: no memory is allocated.
    return (
        np.broadcast_to(np.asarray(value, dtype), shape) if shape else np.dtype(dtype).type(value)
    )


full.aliasing = Aliasing(uniform=True)


@full.spec
def _(*, shape: tuple[Size, ...], value: float | complex, dtype: np.dtype[Any]) -> Any:
    return Spec(tuple(shape), np.dtype(dtype))


@full.examples
def _(rng: np.random.Generator) -> Any:
    yield (), {"shape": (2, 3), "value": 1.5, "dtype": np.dtype(float)}
    yield (), {"shape": (), "value": 2, "dtype": np.dtype(np.int64)}


@creation
def eye(*, rows: Any, columns: Any, offset: Any = 0, dtype: Any) -> Any:
    """A matrix with ones on a diagonal and zeros elsewhere."""
    return np.eye(rows, columns, offset, dtype)


@eye.spec
def _(*, rows: Size, columns: Size, offset: Size = 0, dtype: np.dtype[Any]) -> Any:
    return Spec((rows, columns), np.dtype(dtype))


@eye.examples
def _(rng: np.random.Generator) -> Any:
    yield (), {"rows": 2, "columns": 3, "offset": 1, "dtype": np.dtype(float)}


@creation
def arange(*, start: Any, stop: Any, step: Any, dtype: Any) -> Any:
    """Integers from start up to, not including, stop, in increments of step."""
    return np.arange(start, stop, step, dtype=dtype)


@arange.spec
def _(*, start: int, stop: Size, step: int, dtype: np.dtype[Any]) -> Any:
    if not is_symbolic((start, stop, step)):
        return Spec((len(range(start, stop, step)),), np.dtype(dtype))
    span = stop - start if step > 0 else start - stop
    require_at_least(span, 0, "np.arange from start to stop")
    return Spec(((span + abs(step) - 1) // abs(step),), np.dtype(dtype))


@arange.examples
def _(rng: np.random.Generator) -> Any:
    yield (), {"start": 1, "stop": 8, "step": 3, "dtype": np.dtype(np.int64)}

"""Softmax and its logarithm, as single operations for accuracy and speed.

The largest element is subtracted before the exponential.  The rules use the result, so the gradient
of a cross entropy of logits is softmax - onehot, and a backend that implements the operation
(lowering/reductions.py) reads each element once.

`axis` is an int or a tuple.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.op_facts import facts
from wengert._engine.kinds.batching import along
from wengert._engine.kinds.opaque import opaque
from wengert._engine.ops.shape_rules import of_elements

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

# ---- log_softmax -------------------------------------------------------------------------------


def _log_softmax_vjp(t: Array, out: Array, x: Array, *, axis: int) -> Any:
    return (t - np.exp(out) * np.sum(t, axis=axis, keepdims=True),)


def _log_softmax_jvp(dots: list[Array], out: Array, x: Array, *, axis: int) -> Any:
    return dots[0] - np.sum(np.exp(out) * dots[0], axis=axis, keepdims=True)


def _log_softmax_oracle(x: Array, *, axis: int) -> Any:
    return x - np.logaddexp.reduce(x, axis=axis, keepdims=True)


@facts(native=True)
@opaque(vjp=_log_softmax_vjp, jvp=_log_softmax_jvp, oracle=_log_softmax_oracle, trusted=True)
def log_softmax(x: Array, *, axis: int) -> Any:
    """The logarithm of the softmax along an axis, without overflow or log(0)."""
    x = np.asarray(x)
    if x.dtype.kind != "f":
        x = x.astype(float)
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    shifted = x - np.where(np.isfinite(top), top, np.zeros_like(top))
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


@log_softmax.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(3, 4)),), {"axis": -1}
    yield (rng.normal(size=(2, 3, 2)) * 30,), {"axis": 1}
    yield (rng.normal(size=5),), {"axis": 0}


# ---- softmax -----------------------------------------------------------------------------------


def _softmax_vjp(t: Array, out: Array, x: Array, *, axis: int | tuple[int, ...]) -> Any:
    return (out * (t - np.sum(t * out, axis=axis, keepdims=True)),)


def _softmax_jvp(dots: list[Array], out: Array, x: Array, *, axis: int | tuple[int, ...]) -> Any:
    return _softmax_vjp(dots[0], out, x, axis=axis)[0]  # its Jacobian is symmetric


def _softmax_oracle(x: Array, *, axis: int | tuple[int, ...]) -> Any:
    return np.exp(x - np.logaddexp.reduce(x, axis=axis, keepdims=True))


@facts(native=True)
@opaque(vjp=_softmax_vjp, jvp=_softmax_jvp, oracle=_softmax_oracle, trusted=True)
def softmax(x: Array, *, axis: int | tuple[int, ...]) -> Any:
    """e**x divided by its sum along an axis, without overflow."""
    x = np.asarray(x)
    if x.dtype.kind != "f":
        x = x.astype(float)
    e = np.exp(x - np.max(x, axis=axis, keepdims=True, initial=-np.inf))
    return e / np.sum(e, axis=axis, keepdims=True)


@softmax.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(3, 4)),), {"axis": (0, 1)}
    yield (rng.normal(size=(2, 3, 2)) * 3,), {"axis": 1}
    yield (rng.normal(size=5),), {"axis": 0}


of_elements(log_softmax, softmax)
for _op in (log_softmax, softmax):
    along(_op)

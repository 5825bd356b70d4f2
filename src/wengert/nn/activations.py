"""Activations: relu, sigmoid, softplus, softmax and their like, as plain functions.

    from ops         relu (0 at its kink), leaky_relu, sigmoid, log_sigmoid, softplus
    here             softmax and log_softmax, each one operation: one stable pass, and rules that
                     use the result, so that a cross entropy from logits gets softmax - onehot
    compositions     silu

All take arrays and tensors; arrays in, arrays out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kinds.batching import along
from ..kinds.opaque import opaque
from ..kinds.specs import of_elements
from ..ops import choice
from ..ops.choice import relu
from ..ops.exponential import log_sigmoid, sigmoid, softplus

__all__ = [
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "tanh",
]


def _log_softmax_vjp(t: Any, out: Any, x: Any, *, axis: int) -> Any:
    return (t - np.exp(out) * np.sum(t, axis=axis, keepdims=True),)


def _log_softmax_jvp(dots: Any, out: Any, x: Any, *, axis: int) -> Any:
    return dots[0] - np.sum(np.exp(out) * dots[0], axis=axis, keepdims=True)


def _log_softmax_plainly(x: Any, *, axis: int) -> Any:
    return x - np.logaddexp.reduce(x, axis=axis, keepdims=True)


@opaque(
    name="log_softmax",
    vjp=_log_softmax_vjp,
    jvp=_log_softmax_jvp,
    oracle=_log_softmax_plainly,
    trusted=True,
)
def _log_softmax(x, *, axis):
    """The logarithms of the softmax along an axis, without overflow or log(0)."""
    x = np.asarray(x)
    if x.dtype.kind != "f":
        x = x.astype(float)
    shifted = x - np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


@_log_softmax.examples
def _(rng):
    yield (rng.normal(size=(3, 4)),), {"axis": -1}
    yield (rng.normal(size=(2, 3, 2)) * 30,), {"axis": 1}
    yield (rng.normal(size=5),), {"axis": 0}


def _softmax_vjp(t: Any, out: Any, x: Any, *, axis: int) -> Any:
    return (out * (t - np.sum(t * out, axis=axis, keepdims=True)),)


def _softmax_jvp(dots: Any, out: Any, x: Any, *, axis: int) -> Any:
    return _softmax_vjp(dots[0], out, x, axis=axis)[0]  # its Jacobian is symmetric


def _softmax_plainly(x: Any, *, axis: int) -> Any:
    return np.exp(_log_softmax_plainly(x, axis=axis))


@opaque(name="softmax", vjp=_softmax_vjp, jvp=_softmax_jvp, oracle=_softmax_plainly, trusted=True)
def _softmax(x, *, axis):
    """e**x divided by its sum along an axis, without overflow."""
    x = np.asarray(x)
    if x.dtype.kind != "f":
        x = x.astype(float)
    e = np.exp(x - np.max(x, axis=axis, keepdims=True, initial=-np.inf))
    return e / np.sum(e, axis=axis, keepdims=True)


of_elements(_log_softmax, _softmax)
for _op in (_log_softmax, _softmax):
    along(_op)


@_softmax.examples
def _(rng):
    yield (rng.normal(size=(3, 4)),), {"axis": -1}
    yield (rng.normal(size=(2, 3, 2)) * 3,), {"axis": 1}
    yield (rng.normal(size=5),), {"axis": 0}


def softmax(x: Any, axis: int = -1) -> Any:
    """Positive numbers that sum to one along an axis: e**x / sum(e**x).

    Parameters
    ----------
    x : array or Tensor
        Any real numbers; -inf gives exactly 0.
    axis : int, default -1

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn.functional import softmax
    >>> softmax(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
    return _softmax(x, axis=axis)


def log_softmax(x: Any, axis: int = -1) -> Any:
    """The logarithm of `softmax`, exact also where the softmax itself underflows.

    Parameters
    ----------
    x : array or Tensor
    axis : int, default -1

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn.functional import log_softmax
    >>> log_softmax(np.array([0.0, 2000.0]))
    array([-2000.,     0.])
    """
    return _log_softmax(x, axis=axis)


def leaky_relu(x: Any, negative_slope: float = 0.01) -> Any:
    """x where x > 0, else `negative_slope` times x; derivative `negative_slope` at 0.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn.functional import leaky_relu
    >>> leaky_relu(np.array([-1.0, 2.0]))
    array([-0.01,  2.  ])
    """
    return choice.leaky_relu(x, negative_slope)


def tanh(x: Any) -> Any:
    """The hyperbolic tangent: NumPy's."""
    return np.tanh(x)


def silu(x: Any) -> Any:
    """x sigmoid(x), also called swish."""
    return x * sigmoid(x)

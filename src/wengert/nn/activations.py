"""Activations: relu, sigmoid, softplus, softmax and their like, as plain functions.

    from ops         relu (0 at its kink), leaky_relu, sigmoid, log_sigmoid, softplus, softmax and
                     log_softmax
    compositions     silu

All take arrays and tensors; arrays in, arrays out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops import choice
from ..ops import softmax as shares
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
    return shares.softmax(x, axis=axis)


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
    return shares.log_softmax(x, axis=axis)


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

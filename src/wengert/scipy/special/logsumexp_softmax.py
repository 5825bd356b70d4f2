"""logsumexp, softmax and log_softmax along axes.

    logsumexp      log of a weighted sum of exponentials; its derivative is the softmax
    softmax        exponentials divided by their sum
    log_softmax    their logarithms

For tensors these are wengert's functions (numpy/norms.py), which neither overflow nor divide 0 by
0: if all elements are -inf, where the sum is 0, derivatives are 0.
"""

from __future__ import annotations

from typing import Any

import scipy.special

from wengert._engine.tensor.numpy_dispatch import counterpart
from wengert.numpy import norms

__all__ = "logsumexp softmax log_softmax".split()


@counterpart(scipy.special.logsumexp)
def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """log(sum(b exp(a))) along axes, without overflow.

    Parameters
    ----------
    a : array or Tensor
    axis : int, tuple of int or None
    b : array or Tensor, optional
        Weights of any sign.
    keepdims : bool
    return_sign : bool
        Whether to return the logarithm of the absolute value of the sum, and its sign.

    Examples
    --------
    >>> wg.grad(wg.scipy.special.logsumexp)(np.array([1e4, 1e4, -np.inf]))
    array([0.5, 0.5, 0. ])
    """
    return norms.logsumexp(a, axis=axis, b=b, keepdims=keepdims, return_sign=return_sign)


@counterpart(scipy.special.softmax)
def softmax(x: Any, axis: Any = None) -> Any:
    """exp(x) / sum(exp(x)) along axes."""
    return norms.softmax(x, axis=axis)


@counterpart(scipy.special.log_softmax)
def log_softmax(x: Any, axis: Any = None) -> Any:
    """The logarithm of the softmax along axes."""
    return norms.log_softmax(x, axis=axis)

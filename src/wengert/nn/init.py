"""Where parameters start: initial values for weights and biases.

Each function takes a shape, PyTorch's (outputs, inputs) for weights, and returns a plain array.
`rng` is a seed or a ``numpy.random.Generator``; hand one generator to all layers of a model and
the whole model follows from one seed.
"""

from __future__ import annotations

from math import prod, sqrt
from typing import Any

import numpy as np

Shape = tuple[int, ...]
Array = np.ndarray[Any, Any]


def fans(shape: Shape) -> tuple[int, int]:
    """How many inputs each output sees, and how many outputs each input reaches.

    Axes beyond the second are a receptive field, as in a convolution.
    """
    if len(shape) < 2:
        n = shape[0] if shape else 1
        return n, n
    field = prod(shape[2:])
    return shape[1] * field, shape[0] * field


def uniform(shape: Shape, bound: float, rng: Any = None, dtype: Any = float) -> Array:
    """Uniform between -bound and bound."""
    return np.random.default_rng(rng).uniform(-bound, bound, shape).astype(dtype)


def normal(shape: Shape, scale: float, rng: Any = None, dtype: Any = float) -> Array:
    """Gaussian with mean 0 and standard deviation `scale`."""
    return (scale * np.random.default_rng(rng).standard_normal(shape)).astype(dtype)


def kaiming_uniform(
    shape: Shape, rng: Any = None, dtype: Any = float, gain: float = sqrt(2.0)
) -> Array:
    """Uniform with variance gain**2 / inputs, which keeps the size of values through relu layers.

    Parameters
    ----------
    shape : tuple of int
    rng : int or numpy.random.Generator, optional
    dtype : dtype, default float64
    gain : float, default sqrt(2)
        sqrt(2) for relu, 1 for a linear layer.

    References
    ----------
    .. [1] K. He et al., "Delving deep into rectifiers", ICCV 2015, arXiv:1502.01852.
    """
    return uniform(shape, gain * sqrt(3.0 / max(1, fans(shape)[0])), rng, dtype)


def xavier_uniform(shape: Shape, rng: Any = None, dtype: Any = float, gain: float = 1.0) -> Array:
    """Uniform with variance 2 gain**2 / (inputs + outputs), for tanh and sigmoid layers.

    References
    ----------
    .. [1] X. Glorot and Y. Bengio, "Understanding the difficulty of training deep feedforward
       neural networks", AISTATS 2010.
    """
    return uniform(shape, gain * sqrt(6.0 / max(1, sum(fans(shape)))), rng, dtype)

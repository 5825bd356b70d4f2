"""Dropout: elements set to zero at random in training.

    dropout                  single elements
    dropout1d, 2d, 3d        whole channels
    alpha_dropout            single elements, set to the limit of selu at -inf

In a graph, random numbers come from a `wengert.random.Stream`, whose position the graph advances,
so that each run drops different elements.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from wengert._engine.core.handle import shape_of, value_of
from wengert._engine.core.symbolic.dim import spelled
from wengert.errors import ArgumentError, ShapeError, TraceError, at, user_line
from wengert.random import Stream

from ..module_tracing import is_traced_call
from .activations import SELU_ALPHA, SELU_SCALE
from .window_options import AXES, by_dimension

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d"]


def dropout(x: Any, p: float = 0.5, training: bool = True, rng: Any = None) -> Any:
    """Zero elements with probability p, and scale the others by 1 / (1 - p).

    The scaling ("inverted dropout") preserves the expectation; evaluation is the identity.

    Parameters
    ----------
    x : array or Tensor
    p : float, default 0.5
        From 0 to 1; 1 gives zeros.
    training : bool, default True
        False returns `x` unchanged.
    rng : int, numpy.random.Generator or wengert.random.Stream, optional
        Must be a `Stream` while tracing, so that each run drops different elements.

    Raises
    ------
    ArgumentError
        p is not a probability.
    TraceError
        Traced without a `Stream`: every run would drop the same elements.

    References
    ----------
    .. [1] N. Srivastava et al., "Dropout", J. Machine Learning Research 15, 1929-1958, 2014.
    """
    return _dropped(x, p, training, rng, shape_of(x), "dropout")


def _dropped(x: Any, p: float, training: bool, rng: Any, shape: Any, what: str) -> Any:
    probability(p, what)
    if not training or p == 0.0:
        return x
    keep = _keep_mask(x, p, rng, shape, what)
    return np.where(keep, x * (1.0 / (1.0 - p) if p < 1.0 else 0.0), 0.0)


def probability(p: float, what: str) -> None:
    """Raise an error if `p` is not a probability."""
    if not isinstance(p, int | float | np.number) or not 0.0 <= p <= 1.0:
        raise ArgumentError(
            f"{what} with p={p!r}: the probability of dropping an element must be from 0 to 1"
            f"{at(user_line())}."
        )


def _keep_mask(x: Any, p: float, rng: Any, shape: Any, what: str) -> Any:
    """A mask of the given shape, True for elements that are not dropped."""
    if isinstance(rng, Stream):
        return value_of(rng.uniform(shape)) >= p
    if is_traced_call((x,)):
        raise TraceError(
            f"{what} in training is traced without a stream of random numbers: every run would "
            "drop the same elements. Pass rng=wengert.random.Stream(seed), or switch to "
            f"evaluation, model.eval(){at(user_line())}."
        )
    return np.random.default_rng(rng).random(shape) >= p


# ---- whole channels ----------------------------------------------------------------------------


def dropout_nd(
    axes: int, op_name: str, x: Any, p: float = 0.5, training: bool = True, rng: Any = None
) -> Any:
    """`dropout` of whole channels of (batch, channels, <space>) or (channels, <space>).

    Neighboring elements are correlated, so dropping single elements would have little effect.

    References
    ----------
    .. [1] J. Tompson et al., "Efficient object localization using convolutional networks",
       CVPR 2015, arXiv:1411.4280.
    """
    shape = shape_of(x)
    if len(shape) not in (axes + 1, axes + 2):
        raise ShapeError(
            f"{op_name}: expected shape (batch, channels, {AXES[axes]}), or one sample without the "
            f"batch axis, got {spelled(shape)}{at(user_line())}."
        )
    channels = (*shape[: len(shape) - axes], *(1,) * axes)
    return _dropped(x, p, training, rng, channels, op_name)


dropout1d, dropout2d, dropout3d = by_dimension(dropout_nd)


# ---- dropout for selu --------------------------------------------------------------------------


def alpha_dropout(x: Any, p: float = 0.5, training: bool = True, rng: Any = None) -> Any:
    """Set elements to the limit of selu at -inf, and preserve mean 0 and variance 1.

    Parameters and errors are those of `dropout`.

    References
    ----------
    .. [1] G. Klambauer et al., "Self-normalizing neural networks", arXiv:1706.02515, section 2.
    """
    probability(p, "alpha_dropout")
    if not training or p == 0.0:
        return x
    if p == 1.0:
        return x * 0.0
    keep = _keep_mask(x, p, rng, shape_of(x), "alpha_dropout")
    low = -SELU_ALPHA * SELU_SCALE
    scale = 1.0 / sqrt((1.0 - p) * (1.0 + p * low * low))
    return np.where(keep, x * scale, low * scale) - p * low * scale

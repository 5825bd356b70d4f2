"""Activation functions: relu, sigmoid, softplus, softmax ...

    operations       relu, leaky_relu, elu, sigmoid, log_sigmoid, softplus, softmax, log_softmax;
                     silu, gelu, mish and softsign, accurate in their tails
    compositions     the others, written with `where`, so that values and derivatives at infinities
                     and NaN are correct

All take arrays or tensors, and return arrays for arrays.  Names and defaults are PyTorch's, with
`axis` instead of ``dim``.  Derivatives at kinks are PyTorch's as well: those of the flat or the
left side (0 for relu at 0).
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, is_traced, shape_of, value_of
from wengert._engine.core.symbolic.dim import spelled
from wengert._engine.ops.elementwise import exponential, selection
from wengert._engine.ops.elementwise.exponential import log_sigmoid, mish, sigmoid, silu, softsign
from wengert._engine.ops.elementwise.exponential import softplus as softplus_of_one
from wengert._engine.ops.elementwise.selection import relu
from wengert._engine.ops.neural import softmax as softmax_ops
from wengert.errors import ArgumentError, ShapeError, TraceError, at, user_line
from wengert.random import Stream

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "logsigmoid",
    "maxout",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "rrelu",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "swish",
    "tanh",
    "tanhshrink",
    "threshold",
]

swish = silu
logsigmoid = log_sigmoid


# ---- softmax -----------------------------------------------------------------------------------


def softmax(x: Any, axis: int = -1) -> Any:
    """exp(x) / sum(exp(x)) along an axis.

    Parameters
    ----------
    x : array or Tensor
        Real numbers; -inf gives exactly 0.
    axis : int, default -1

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn.functional import softmax
    >>> softmax(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
    return softmax_ops.softmax(x, axis=axis)


def log_softmax(x: Any, axis: int = -1) -> Any:
    """The logarithm of `softmax`, accurate even where the softmax underflows.

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
    return softmax_ops.log_softmax(x, axis=axis)


def softmin(x: Any, axis: int = -1) -> Any:
    """The softmax of -x."""
    return softmax_ops.softmax(-_array(x), axis=axis)


# ---- rectifiers --------------------------------------------------------------------------------


def leaky_relu(x: Any, negative_slope: float = 0.01) -> Any:
    """x where x > 0, else ``negative_slope * x``; the derivative at 0 is `negative_slope`.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn.functional import leaky_relu
    >>> leaky_relu(np.array([-1.0, 2.0]))
    array([-0.01,  2.  ])
    """
    return selection.leaky_relu(x, negative_slope)


def prelu(x: Any, weight: Any) -> Any:
    """`leaky_relu` with learned slopes.

    Parameters
    ----------
    x : array or Tensor
    weight : array or Tensor, shape () or (1,) or (channels,)
        One slope, or one per channel; channels are axis 1 of `x` (axis 0 of a vector).

    Raises
    ------
    ShapeError
        The numbers of slopes and channels differ.
    """
    shape, slopes = shape_of(x), shape_of(weight)
    if slopes not in ((), (1,)):
        channel = min(1, len(shape) - 1)
        if len(slopes) != 1 or not shape or slopes[0] != shape[channel]:
            raise ShapeError(
                f"prelu: slopes of shape {spelled(slopes)} for x of shape {spelled(shape)}. Give "
                f"one slope, or one per channel (axis 1){at(user_line())}."
            )
        weight = np.reshape(weight, (slopes[0],) + (1,) * (len(shape) - channel - 1))
    elif slopes and not shape:
        weight = np.reshape(weight, ())
    return selection.leaky_relu(x, weight)


def rrelu(
    x: Any, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, rng: Any = None
) -> Any:
    """`leaky_relu` with random slopes in training, and their mean in evaluation.

    Parameters
    ----------
    x : array or Tensor
    lower, upper : float
        Bounds of the uniformly distributed slopes, one for each element.
    training : bool, default False
    rng : int, numpy.random.Generator or wengert.random.Stream, optional
        Must be a `Stream` while tracing.

    Raises
    ------
    ArgumentError
        `lower` is greater than `upper`.
    TraceError
        Traced without a `Stream`: every run would draw the same slopes.
    """
    if not lower <= upper:
        raise ArgumentError(
            f"rrelu: lower={lower} must not be greater than upper={upper}{at(user_line())}."
        )
    if not training:
        return selection.leaky_relu(x, (lower + upper) / 2)
    if isinstance(rng, Stream):
        drawn = value_of(rng.uniform(shape_of(x)))
    elif is_traced(x):
        raise TraceError(
            "rrelu in training is traced without a stream of random numbers: every run would draw "
            f"the same slopes. Pass rng=wengert.random.Stream(seed){at(user_line())}."
        )
    else:
        drawn = np.random.default_rng(rng).random(shape_of(x))
    slopes = (lower + (upper - lower) * drawn).astype(dtype_of(x))
    return selection.leaky_relu(x, slopes)


def elu(x: Any, alpha: float = 1.0) -> Any:
    """x where x > 0, else alpha (exp(x) - 1); the derivative at 0 is `alpha`.

    References
    ----------
    .. [1] D.-A. Clevert, T. Unterthiner and S. Hochreiter, arXiv:1511.07289.
    """
    return selection.elu(x, alpha)


# From G. Klambauer et al., "Self-normalizing neural networks", arXiv:1706.02515: mean 0 and
# variance 1 are a fixed point.
SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805


def selu(x: Any) -> Any:
    """A scaled `elu` that preserves mean 0 and variance 1 through layers.

    References
    ----------
    .. [1] G. Klambauer et al., "Self-normalizing neural networks", arXiv:1706.02515.
    """
    return SELU_SCALE * selection.elu(x, SELU_ALPHA)


def celu(x: Any, alpha: float = 1.0) -> Any:
    """x where x > 0, else alpha (exp(x / alpha) - 1); the derivative is 1 on both sides of 0.

    Parameters
    ----------
    x : array or Tensor
    alpha : float, default 1.0
        Must not be 0.

    References
    ----------
    .. [1] J. T. Barron, "Continuously differentiable exponential linear units", arXiv:1704.07483.
    """
    if alpha == 0:
        raise ArgumentError(f"celu: alpha must not be 0: x is divided by it{at(user_line())}.")
    x = _array(x)
    below = np.where(value_of(x) > 0, 0.0, x)
    return np.where(value_of(x) > 0, x, alpha * np.expm1(below * (1.0 / alpha)))


def _array(x: Any) -> Any:
    """Lists and tuples as arrays; anything else unchanged."""
    return np.asarray(x) if isinstance(x, list | tuple) else x


def _pieces(x: Any, low: float, high: float, below: Any, inside: Any, above: Any) -> Any:
    """`below` where x <= low, `above` where x >= high, else inside(x); NaN propagates."""
    x = _array(x)
    v = value_of(x)
    outside = (v <= low) | (v >= high)
    middle = inside(np.where(outside, 0.0, x))
    return np.where(v <= low, below, np.where(v >= high, above, middle))


def hardtanh(x: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """x clipped to [min_val, max_val]; the derivative is 0 at the bounds and beyond.

    Raises
    ------
    ArgumentError
        `min_val` is not less than `max_val`.
    """
    if not min_val < max_val:
        raise ArgumentError(
            f"hardtanh: min_val={min_val} must be less than max_val={max_val}{at(user_line())}."
        )
    return _pieces(x, min_val, max_val, min_val, lambda z: z, max_val)


def relu6(x: Any) -> Any:
    """x clipped to [0, 6]; the derivative is 0 at both bounds."""
    return hardtanh(x, 0.0, 6.0)


def hardsigmoid(x: Any) -> Any:
    """``relu6(x + 3) / 6``, a piecewise linear approximation of the sigmoid."""
    return _pieces(x, -3.0, 3.0, 0.0, lambda z: z * (1 / 6) + 0.5, 1.0)


def hardswish(x: Any) -> Any:
    """``x * relu6(x + 3) / 6``, a piecewise quadratic approximation of silu; 0 at -inf.

    Derivatives at -3 and 3 are those of the linear pieces.

    References
    ----------
    .. [1] A. Howard et al., "Searching for MobileNetV3", arXiv:1905.02244.
    """
    return _pieces(x, -3.0, 3.0, 0.0, lambda z: z * (z * (1 / 6) + 0.5), x)


def threshold(x: Any, threshold: float, value: float) -> Any:
    """x where x > threshold, else `value`."""
    x = _array(x)
    return np.where(value_of(x) <= threshold, value, x)


def _not_negative(number: float, what: str) -> None:
    if not number >= 0:
        raise ArgumentError(f"{what}: lambd must not be negative, got {number}{at(user_line())}.")


def softshrink(x: Any, lambd: float = 0.5) -> Any:
    """x - lambd where x > lambd, x + lambd where x < -lambd, else 0."""
    _not_negative(lambd, "softshrink")
    x = _array(x)
    v = value_of(x)
    return np.where(np.abs(v) <= lambd, 0.0, np.where(v > 0, x - lambd, x + lambd))


def hardshrink(x: Any, lambd: float = 0.5) -> Any:
    """x where |x| > lambd, else 0."""
    _not_negative(lambd, "hardshrink")
    return np.where(np.abs(value_of(x)) <= lambd, 0.0, x)


def maxout(x: Any, pieces: int, axis: int = -1) -> Any:
    """The maximum of each group of `pieces` neighbors along an axis.

    Raises
    ------
    ShapeError
        The length of the axis is not a multiple of `pieces`.

    References
    ----------
    .. [1] I. Goodfellow et al., "Maxout networks", ICML 2013, arXiv:1302.4389.
    """
    shape = shape_of(x)
    axis = axis % max(1, len(shape))
    if not shape or pieces < 1 or shape[axis] % pieces:
        raise ShapeError(
            f"maxout: axis {axis} of shape {spelled(shape)} cannot be divided into groups of "
            f"{pieces}{at(user_line())}."
        )
    groups = (*shape[:axis], shape[axis] // pieces, pieces, *shape[axis + 1 :])
    return np.max(np.reshape(x, groups), axis=axis + 1)


# ---- smooth ------------------------------------------------------------------------------------


def tanh(x: Any) -> Any:
    """The hyperbolic tangent; `numpy.tanh`."""
    return np.tanh(x)


def tanhshrink(x: Any) -> Any:
    """x - tanh(x)."""
    return x - np.tanh(x)


def softplus(x: Any, beta: float = 1.0) -> Any:
    """log(1 + exp(beta x)) / beta, a smooth relu; without overflow, and accurate in its tail.

    Parameters
    ----------
    x : array or Tensor
    beta : float, default 1.0
        Larger values are closer to relu.
    """
    if beta == 1:
        return softplus_of_one(x)
    if not beta > 0:
        raise ArgumentError(f"softplus: beta must be positive, got {beta}{at(user_line())}.")
    return softplus_of_one(x * beta) * (1.0 / beta)


def gelu(x: Any, approximate: str = "none") -> Any:
    """x Phi(x), where Phi is the distribution function of the standard Gaussian.

    Parameters
    ----------
    x : array or Tensor
    approximate : {"none", "tanh"}
        "tanh" computes x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3))) / 2, which differs by less
        than 0.0005.

    Raises
    ------
    ArgumentError
        `approximate` is neither "none" nor "tanh".

    References
    ----------
    .. [1] D. Hendrycks and K. Gimpel, "Gaussian error linear units", arXiv:1606.08415.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn.functional import gelu
    >>> gelu(np.array([-np.inf, -1.0, 0.0, 1.0])).round(6)
    array([-0.      , -0.158655,  0.      ,  0.841345])
    """
    if approximate == "none":
        return exponential.gelu(x)
    if approximate != "tanh":
        raise ArgumentError(
            f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}{at(user_line())}."
        )
    # (1 + tanh(u)) / 2 = sigmoid(2 u) does not cancel where tanh is close to -1; beyond 50 it is
    # 0 or 1 in floating point.
    x = _array(x)
    near = np.clip(x, -50.0, 50.0)
    twice = near * (2.0 * sqrt(2.0 / pi)) * (1.0 + 0.044715 * near * near)
    return np.where(value_of(x) > 50.0, x, near * sigmoid(twice))


def glu(x: Any, axis: int = -1) -> Any:
    """The first half along an axis, times the sigmoid of the second half.

    Raises
    ------
    ShapeError
        The length of the axis is odd.

    References
    ----------
    .. [1] Y. Dauphin et al., "Language modeling with gated convolutional networks",
       arXiv:1612.08083.
    """
    shape = shape_of(x)
    axis = axis % max(1, len(shape))
    if not shape or shape[axis] % 2:
        raise ShapeError(
            f"glu: axis {axis} of shape {spelled(shape)} must have an even length{at(user_line())}."
        )
    half = shape[axis] // 2
    before = (slice(None),) * axis
    return x[(*before, slice(None, half))] * sigmoid(x[(*before, slice(half, None))])

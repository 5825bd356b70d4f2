"""Random variates as explicit functions of uniform ones, differentiable in the parameters.

    uniform                                    between two bounds
    normal, lognormal, halfnormal              inverse of the distribution function
    exponential, gumbel, weibull_min, pareto,  functions of an exponential variate
    rayleigh
    laplace, logistic, cauchy                  symmetric, equally accurate in both tails
    triangular, truncated_normal               bounded

Each variate is a function of one word of 64 bits (32 for float32) at its position, so that the
loops over elements can be divided among threads.  For distributions with tails, the word becomes a
sign and a tail probability (`tails`) with full floating-point resolution near 0: normal variates
reach 9 standard deviations (6 for float32) and are never infinite.

For the transformations see L. Devroye, Non-Uniform Random Variate Generation (1986), chapter 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # scipy.special is loaded when it is first used

from wengert._engine.ops.random import bits as ops
from wengert._engine.ops.random import tail_functions

from .keys import as_floating, as_key, as_shape, parameter, parameters

__all__ = [
    "uniform",
    "normal",
    "lognormal",
    "halfnormal",
    "exponential",
    "gumbel",
    "weibull_min",
    "pareto",
    "rayleigh",
    "laplace",
    "logistic",
    "cauchy",
    "triangular",
    "truncated_normal",
]


def uniform(
    key: Any, shape: Any = (), dtype: Any = "float64", minval: Any = 0.0, maxval: Any = 1.0
) -> Any:
    """Samples from the uniform distribution on [minval, maxval).

    Parameters
    ----------
    key : array_like or Tensor
        uint64[2].
    shape : int or tuple of int
    dtype : float64 or float32
    minval, maxval : float, array_like or Tensor
        Bounds, which broadcast to the shape; differentiable.

    Returns
    -------
    ndarray or Tensor
        A tensor if the key or a bound is one.

    Examples
    --------
    >>> import wengert as wg
    >>> root = wg.random.key(0)
    >>> float(wg.grad(lambda high: wg.random.uniform(root, maxval=high))(2.0)) == float(
    ...     wg.random.uniform(root))
    True
    """
    kind, lengths = as_floating(dtype), as_shape(shape)
    unit = ops.uniform(as_key(key), number=0, shape=lengths, dtype=kind)
    if type(minval) in (int, float) and type(maxval) in (int, float) and (minval, maxval) == (0, 1):
        return unit
    low, high = (parameter(x, kind, lengths) for x in (minval, maxval))
    return low + (high - low) * unit


def tails(key: Any, shape: tuple[Any, ...], dtype: np.dtype[Any]) -> Any:
    """Tail probabilities below 1/2, with a random sign that selects the tail."""
    return ops.tail(as_key(key), number=0, shape=shape, dtype=dtype)


def normal(key: Any, shape: Any = (), dtype: Any = "float64") -> Any:
    """Samples from the standard normal distribution.

    Parameters
    ----------
    key : array_like or Tensor
        uint64[2].
    shape : int or tuple of int
    dtype : float64 or float32

    Returns
    -------
    ndarray or Tensor

    Notes
    -----
    ``mean + std * normal(key, shape)`` is differentiable with respect to `mean` and `std`.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x = wg.random.normal(wg.random.key(0), (10000,))
    >>> float(np.mean(x)).__abs__() < 0.05, abs(float(np.std(x)) - 1) < 0.05
    (True, True)
    """
    return tail_functions.normal_of_tail(tails(key, as_shape(shape), as_floating(dtype)))


def lognormal(key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = "float64") -> Any:
    """Samples from the log-normal distribution: exp of normal ones of deviation `sigma`."""
    kind, lengths, (sigma,) = parameters(shape, dtype, sigma)
    return np.exp(sigma * normal(key, lengths, kind))


def halfnormal(key: Any, shape: Any = (), dtype: Any = "float64") -> Any:
    """Samples from the half-normal distribution: absolute values of normal ones."""
    return np.abs(normal(key, shape, dtype))


# ---- functions of an exponential variate -------------------------------------------------------


def exponential(key: Any, shape: Any = (), dtype: Any = "float64") -> Any:
    """Samples from the exponential distribution of rate 1, which are never 0."""
    return tail_functions.exponential_of_tail(tails(key, as_shape(shape), as_floating(dtype)))


def gumbel(key: Any, shape: Any = (), dtype: Any = "float64") -> Any:
    """Samples from the Gumbel distribution."""
    return tail_functions.gumbel_of_tail(tails(key, as_shape(shape), as_floating(dtype)))


def weibull_min(
    key: Any, scale: Any = 1.0, concentration: Any = 1.0, shape: Any = None, dtype: Any = "float64"
) -> Any:
    """Samples from the Weibull distribution: scale E^(1/concentration), E exponential."""
    kind, lengths, (scale, power) = parameters(shape, dtype, scale, concentration)
    return scale * exponential(key, lengths, kind) ** (1.0 / power)


def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = "float64") -> Any:
    """Samples from the Pareto distribution on [1, inf): exp(E / b), E exponential."""
    kind, lengths, (b,) = parameters(shape, dtype, b)
    return np.exp(exponential(key, lengths, kind) / b)


def rayleigh(key: Any, scale: Any = 1.0, shape: Any = None, dtype: Any = "float64") -> Any:
    """Samples from the Rayleigh distribution: scale sqrt(2 E), E exponential."""
    kind, lengths, (scale,) = parameters(shape, dtype, scale)
    return scale * np.sqrt(2.0 * exponential(key, lengths, kind))


# ---- symmetric ---------------------------------------------------------------------------------


def laplace(key: Any, shape: Any = (), dtype: Any = "float64") -> Any:
    """Samples from the Laplace distribution: exponential ones with a random sign."""
    return tail_functions.laplace_of_tail(tails(key, as_shape(shape), as_floating(dtype)))


def logistic(key: Any, shape: Any = (), dtype: Any = "float64") -> Any:
    """Samples from the logistic distribution: log(u / (1 - u)), u uniform."""
    return tail_functions.logistic_of_tail(tails(key, as_shape(shape), as_floating(dtype)))


def cauchy(key: Any, shape: Any = (), dtype: Any = "float64") -> Any:
    """Samples from the Cauchy distribution."""
    return tail_functions.cauchy_of_tail(tails(key, as_shape(shape), as_floating(dtype)))


# ---- bounded -----------------------------------------------------------------------------------


def triangular(
    key: Any, left: Any, mode: Any, right: Any, shape: Any = None, dtype: Any = "float64"
) -> Any:
    """Samples from the triangular distribution on [left, right] with the given mode."""
    kind, lengths, (left, mode, right) = parameters(shape, dtype, left, mode, right)
    unit = uniform(key, lengths, kind)
    whole, first, last = right - left, mode - left, right - mode
    rising = unit * whole < first
    up = left + np.sqrt(np.where(rising, unit, 0.0) * whole * first)
    down = right - np.sqrt(np.where(rising, 0.0, 1.0 - unit) * whole * last)
    return np.where(rising, up, down)


def truncated_normal(
    key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = "float64"
) -> Any:
    """Samples from the standard normal distribution between two bounds, differentiable in both.

    Parameters
    ----------
    key : array_like or Tensor
    lower, upper : float, array_like or Tensor
        Bounds, which may be infinite.
    shape : int or tuple of int, optional
        By default that of the bounds.
    dtype : float64 or float32

    Returns
    -------
    ndarray or Tensor

    Notes
    -----
    The quantile of a uniform number, computed from logarithms of the smaller tail probability, so
    that it is accurate for bounds where the distribution function rounds to 0 or 1.
    """
    kind, lengths, (lower, upper) = parameters(shape, dtype, lower, upper)
    unit = uniform(key, lengths, kind)
    unit = np.maximum(unit, kind.type(2.0**-54 if kind.itemsize == 8 else 2.0**-25))
    mirrored = lower > 0.0  # the upper tail is computed as the lower one
    low, high = np.where(mirrored, -upper, lower), np.where(mirrored, -lower, upper)
    log_cdf = scipy.special.log_ndtr
    log_p = np.logaddexp(np.log1p(-unit) + log_cdf(low), np.log(unit) + log_cdf(high))
    x = scipy.special.ndtri_exp(log_p)
    return np.clip(np.where(mirrored, -x, x), lower, upper)

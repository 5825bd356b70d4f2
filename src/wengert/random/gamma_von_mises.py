"""The gamma distribution and those derived from it; the von Mises distribution.

    gamma, loggamma                     implicit derivatives with respect to the parameter
    beta, dirichlet                     shares of gamma numbers, taken from their logarithms
    chisquare, chi, inverse_gamma, f    of one or two gamma numbers
    t                                   a normal number and a gamma number
    generalized_normal                  a gamma number, to a power, with a sign
    von_mises                           implicit derivatives with respect to the concentration

A gamma number is the quantile of the one uniform number that belongs to its place, so a draw is a
smooth function of its parameter, and its derivative is that of the function: the number moves so
that the distribution function of it stays what it was (Figurnov, Mohamed, Mnih, Implicit
reparameterization gradients, NeurIPS 2018; wengert.scipy.special.gamma_reparameterization).  A
sampler that rejects (Marsaglia, Tsang 2000) is five times faster, but jumps where a trial is
accepted and was not, so its derivative would not be that of what it computes.  All other maps here
are explicit; every parameter has derivatives of all orders.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from wengert._engine.core.handle import shape_of
from wengert._engine.core.op import lookup
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import ShapeError, at, user_line

from .inverse_transform import normal, tails
from .keys import as_shape, bits, split
from .parameter_shapes import parameters

__all__ = [
    "gamma",
    "loggamma",
    "beta",
    "dirichlet",
    "chisquare",
    "chi",
    "inverse_gamma",
    "f",
    "t",
    "generalized_normal",
    "von_mises",
]


def loggamma(key: Any, a: Any, shape: Any = None, dtype: Any = "float64") -> Any:
    """Logarithms of numbers of the gamma distribution; finite however small `a` is.

    Parameters
    ----------
    key : array_like or Tensor
        uint64[2].
    a : float, array_like or Tensor
        The parameter; NaN unless positive. Differentiable.
    shape : int or tuple of int, optional
        By default that of `a`.
    dtype : float64 or float32

    Returns
    -------
    ndarray or Tensor
    """
    kind, lengths, (a,) = parameters(shape, dtype, a)
    return lookup("special.log_gamma_of_tail")(tails(key, lengths, kind), a)


def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = "float64") -> Any:
    """Numbers of the gamma distribution with parameter `a` and scale 1.

    Parameters
    ----------
    key : array_like or Tensor
        uint64[2].
    a : float, array_like or Tensor
        NaN unless positive. Differentiable (implicit reparameterization).
    shape : int or tuple of int, optional
        By default that of `a`.
    dtype : float64 or float32

    Returns
    -------
    ndarray or Tensor

    Notes
    -----
    Of `a` below 0.01 many numbers are too small for floating-point numbers, and 0: `loggamma` has
    them all. An element costs a microsecond, its derivative five.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> key = wg.random.key(1)
    >>> slope = wg.grad(lambda a: np.mean(wg.random.gamma(key, a, (20000,))))
    >>> abs(float(slope(3.0)) - 1.0) < 0.02                   # the mean is a
    True
    """
    return np.exp(loggamma(key, a, shape, dtype))


def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = "float64") -> Any:
    """Numbers of the beta distribution; derivatives with respect to `a` and `b` pass.

    Notes
    -----
    The share of a gamma number of parameter `a` in its sum with one of parameter `b`.
    """
    kind, lengths, (a, b) = parameters(shape, dtype, a, b)
    first, second = split(key)
    return _share(loggamma(first, a, lengths, kind) - loggamma(second, b, lengths, kind))


def _share(difference: Any) -> Any:
    """1 / (1 + exp(-x)), with all digits where it is small."""
    less = np.exp(-np.abs(difference))
    return np.where(difference < 0.0, less, 1.0) / (1.0 + less)


def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = "float64") -> Any:
    """Vectors of the Dirichlet distribution; derivatives with respect to `alpha` pass.

    Parameters
    ----------
    key : array_like or Tensor
    alpha : array_like or Tensor
        (..., k), above 0.
    shape : int or tuple of int, optional
        Of the result without its last axis, which has the length k; by default that of `alpha`.
    dtype : float64 or float32

    Returns
    -------
    ndarray or Tensor
        Each vector adds up to 1.
    """
    alpha = as_array(alpha)
    if not shape_of(alpha):
        raise ShapeError(f"alpha is a number, and has to be a vector{at(user_line())}.")
    *batch, count = shape_of(alpha)
    lengths = tuple(batch) if shape is None else as_shape(shape)
    logs = loggamma(key, alpha, (*lengths, count), dtype)
    parts = np.exp(logs - np.max(logs, axis=-1, keepdims=True))
    return parts / np.sum(parts, axis=-1, keepdims=True)


def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = "float64") -> Any:
    """Numbers of the chi-squared distribution: twice gamma numbers of parameter df / 2."""
    kind, lengths, (df,) = parameters(shape, dtype, df)
    return 2.0 * gamma(key, 0.5 * df, lengths, kind)


def chi(key: Any, df: Any, shape: Any = None, dtype: Any = "float64") -> Any:
    """Square roots of chi-squared numbers."""
    kind, lengths, (df,) = parameters(shape, dtype, df)
    return sqrt(2.0) * np.exp(0.5 * loggamma(key, 0.5 * df, lengths, kind))


def inverse_gamma(key: Any, a: Any, shape: Any = None, dtype: Any = "float64") -> Any:
    """One divided by numbers of the gamma distribution."""
    return np.exp(-loggamma(key, a, shape, dtype))


def f(key: Any, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = "float64") -> Any:
    """Numbers of the F distribution: the ratio of two means of squares."""
    kind, lengths, (dfnum, dfden) = parameters(shape, dtype, dfnum, dfden)
    first, second = split(key)
    above, below = (
        loggamma(k, 0.5 * d, lengths, kind) - np.log(d)
        for k, d in ((first, dfnum), (second, dfden))
    )
    return np.exp(above - below)


def t(key: Any, df: Any, shape: Any = None, dtype: Any = "float64") -> Any:
    """Numbers of Student's t distribution; derivatives with respect to `df` pass."""
    kind, lengths, (df,) = parameters(shape, dtype, df)
    first, second = split(key)
    half = 0.5 * df
    wide = np.exp(0.5 * (np.log(half) - loggamma(second, half, lengths, kind)))
    return normal(first, lengths, kind) * wide


def generalized_normal(key: Any, p: Any, shape: Any = None, dtype: Any = "float64") -> Any:
    """Numbers whose density is proportional to exp(-|x|^p)."""
    kind, lengths, (p,) = parameters(shape, dtype, p)
    first, second = split(key)
    size = np.exp(loggamma(first, 1.0 / p, lengths, kind) / p)
    return np.where(bits(second, lengths) < np.uint64(1 << 63), size, -size)


def von_mises(key: Any, kappa: Any, shape: Any = None, dtype: Any = "float64") -> Any:
    """Angles around 0, from -pi to pi, of concentration `kappa`, differentiable in it."""
    kind, lengths, (kappa,) = parameters(shape, dtype, kappa)
    return lookup("special.von_mises_of_tail")(tails(key, lengths, kind), kappa)

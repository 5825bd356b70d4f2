"""Gamma, von Mises and multivariate distributions, and those derived from them.

    gamma, loggamma                   implicit derivatives with respect to the shape parameter
    beta, dirichlet                   ratios of gamma variates, computed from their logarithms
    chisquare, chi, inverse_gamma, f  from one or two gamma variates
    t                                 from a normal and a gamma variate
    generalized_normal                a power of a gamma variate, with a random sign
    von_mises                         implicit derivatives with respect to the concentration
    multivariate_normal               from a factorization of the covariance; differentiable
    orthogonal                        uniformly distributed rotations and reflections
    ball                              uniformly distributed points of a ball

A gamma variate is the quantile of one uniform number, hence a smooth function of its parameter.
Its derivative keeps the value of the distribution function constant (M. Figurnov, S. Mohamed,
A. Mnih, Implicit reparameterization gradients, NeurIPS 2018;
wengert.scipy.special.reparameterization).  Rejection sampling (G. Marsaglia, W. W. Tsang,
2000) is five times faster, but discontinuous in the parameter where a proposal becomes accepted or
rejected, so it is not differentiable.  All other transformations here are explicit; all parameters
have derivatives of all orders.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from wengert._engine.core.handle import shape_of
from wengert._engine.core.op import lookup
from wengert._engine.tensor.numpy_dispatch import as_array, broadcast_shapes
from wengert.errors import ArgumentError, ShapeError, at, user_line

from .inverse_transform import exponential, normal, tails
from .keys import as_floating, as_shape, bits, parameters, split

__all__ = [
    "ball", "beta", "chi", "chisquare", "dirichlet", "f", "gamma", "generalized_normal",
    "inverse_gamma", "loggamma", "multivariate_normal", "orthogonal", "t", "von_mises",
]  # fmt: skip


def loggamma(key: Any, a: Any, shape: Any = None, dtype: Any = "float64") -> Any:
    """Logarithms of samples from the gamma distribution, which are finite for all `a`.

    Parameters
    ----------
    key : array_like or Tensor
        uint64[2].
    a : float, array_like or Tensor
        Shape parameter; the result is NaN unless it is positive. Differentiable.
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
    """Samples from the gamma distribution with shape parameter `a` and scale 1.

    Parameters
    ----------
    key : array_like or Tensor
        uint64[2].
    a : float, array_like or Tensor
        The result is NaN unless it is positive. Differentiable (implicit reparameterization).
    shape : int or tuple of int, optional
        By default that of `a`.
    dtype : float64 or float32

    Returns
    -------
    ndarray or Tensor

    Notes
    -----
    For `a` below 0.01 many samples underflow to 0; `loggamma` does not. An element costs a
    microsecond, its derivative five.

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
    """Samples from the beta distribution, differentiable with respect to `a` and `b`.

    Notes
    -----
    Computed as x / (x + y), with gamma variates x of parameter `a` and y of parameter `b`.
    """
    kind, lengths, (a, b) = parameters(shape, dtype, a, b)
    first, second = split(key)
    return _sigmoid(loggamma(first, a, lengths, kind) - loggamma(second, b, lengths, kind))


def _sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), accurate where it is small."""
    small = np.exp(-np.abs(x))
    return np.where(x < 0.0, small, 1.0) / (1.0 + small)


def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = "float64") -> Any:
    """Samples from the Dirichlet distribution, differentiable with respect to `alpha`.

    Parameters
    ----------
    key : array_like or Tensor
    alpha : array_like or Tensor
        (..., k), positive.
    shape : int or tuple of int, optional
        Shape of the result without its last axis, of length k; by default that of `alpha` without
        its last axis.
    dtype : float64 or float32

    Returns
    -------
    ndarray or Tensor
        Vectors with sum 1.
    """
    alpha = as_array(alpha)
    if not shape_of(alpha):
        raise ShapeError(f"alpha is a number, but must be a vector{at(user_line())}.")
    *batch, count = shape_of(alpha)
    lengths = tuple(batch) if shape is None else as_shape(shape)
    logs = loggamma(key, alpha, (*lengths, count), dtype)
    parts = np.exp(logs - np.max(logs, axis=-1, keepdims=True))
    return parts / np.sum(parts, axis=-1, keepdims=True)


def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = "float64") -> Any:
    """Samples from the chi-squared distribution: twice gamma variates of parameter df / 2."""
    kind, lengths, (df,) = parameters(shape, dtype, df)
    return 2.0 * gamma(key, 0.5 * df, lengths, kind)


def chi(key: Any, df: Any, shape: Any = None, dtype: Any = "float64") -> Any:
    """Samples from the chi distribution: square roots of chi-squared variates."""
    kind, lengths, (df,) = parameters(shape, dtype, df)
    return sqrt(2.0) * np.exp(0.5 * loggamma(key, 0.5 * df, lengths, kind))


def inverse_gamma(key: Any, a: Any, shape: Any = None, dtype: Any = "float64") -> Any:
    """Samples from the inverse gamma distribution: reciprocals of gamma variates."""
    return np.exp(-loggamma(key, a, shape, dtype))


def f(key: Any, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = "float64") -> Any:
    """Samples from the F distribution: ratios of two chi-squared variates over their `df`."""
    kind, lengths, (dfnum, dfden) = parameters(shape, dtype, dfnum, dfden)
    first, second = split(key)
    numerator, denominator = (
        loggamma(k, 0.5 * d, lengths, kind) - np.log(d)
        for k, d in ((first, dfnum), (second, dfden))
    )
    return np.exp(numerator - denominator)


def t(key: Any, df: Any, shape: Any = None, dtype: Any = "float64") -> Any:
    """Samples from Student's t distribution, differentiable with respect to `df`."""
    kind, lengths, (df,) = parameters(shape, dtype, df)
    first, second = split(key)
    half = 0.5 * df
    scale = np.exp(0.5 * (np.log(half) - loggamma(second, half, lengths, kind)))
    return normal(first, lengths, kind) * scale


def generalized_normal(key: Any, p: Any, shape: Any = None, dtype: Any = "float64") -> Any:
    """Samples from the density proportional to exp(-|x|^p)."""
    kind, lengths, (p,) = parameters(shape, dtype, p)
    first, second = split(key)
    size = np.exp(loggamma(first, 1.0 / p, lengths, kind) / p)
    return np.where(bits(second, lengths) < np.uint64(1 << 63), size, -size)


def von_mises(key: Any, kappa: Any, shape: Any = None, dtype: Any = "float64") -> Any:
    """Samples from the von Mises distribution: angles from -pi to pi around 0.

    They are differentiable with respect to the concentration `kappa`.
    """
    kind, lengths, (kappa,) = parameters(shape, dtype, kappa)
    return lookup("special.von_mises_of_tail")(tails(key, lengths, kind), kappa)


# ---- multivariate ------------------------------------------------------------------------------


def multivariate_normal(
    key: Any,
    mean: Any,
    cov: Any,
    shape: Any = None,
    dtype: Any = "float64",
    method: str = "cholesky",
) -> Any:
    """Samples from the multivariate normal distribution, differentiable in mean and covariance.

    Parameters
    ----------
    key : array_like or Tensor
    mean : array_like or Tensor
        (..., n).
    cov : array_like or Tensor
        (..., n, n), symmetric, positive definite.
    shape : int or tuple of int, optional
        Shape of the result without its last axis, of length n; by default the batch shape of mean
        and covariance.
    dtype : float64 or float32
    method : {"cholesky", "eigh"}
        The factorization of the covariance. With "eigh" the covariance may be singular, where it
        is not differentiable.

    Returns
    -------
    ndarray or Tensor
    """
    kind = as_floating(dtype)
    mean, cov = as_array(mean).astype(kind), as_array(cov).astype(kind)
    count = shape_of(mean)[-1]
    batch = broadcast_shapes(shape_of(mean)[:-1], shape_of(cov)[:-2])
    lengths = batch if shape is None else as_shape(shape)
    if method == "cholesky":
        factor = np.linalg.cholesky(cov)
    elif method == "eigh":
        values, axes = np.linalg.eigh(cov)
        factor = axes * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    else:
        raise ArgumentError(
            f"multivariate_normal(method={method!r}): expected 'cholesky' or 'eigh'"
            f"{at(user_line())}."
        )
    unit = normal(key, (*lengths, count), kind)
    return mean + np.matmul(factor, unit[..., None])[..., 0]


def orthogonal(key: Any, n: int, shape: Any = (), dtype: Any = "float64") -> Any:
    """Orthogonal matrices from the Haar distribution, (*shape, n, n).

    Notes
    -----
    The factor Q of normal matrices, with signs such that the diagonal of R is positive: F.
    Mezzadri, Notices of the AMS 54 (2007) 592-604.
    """
    q, r = np.linalg.qr(normal(key, (*as_shape(shape), n, n), dtype))
    signs = np.where(np.diagonal(r, axis1=-2, axis2=-1) < 0.0, -1.0, 1.0)
    return q * signs[..., None, :].astype(as_floating(dtype))


def ball(key: Any, d: int, p: float = 2.0, shape: Any = (), dtype: Any = "float64") -> Any:
    """Uniformly distributed points of the unit ball of the p-norm, (*shape, d).

    Notes
    -----
    F. Barthe, O. Guedon, S. Mendelson, A. Naor, Annals of Probability 33 (2005) 480-513.
    """
    first, second = split(key)
    lengths = as_shape(shape)
    point = generalized_normal(first, p, (*lengths, d), dtype)
    rest = exponential(second, lengths, dtype)
    norm = (np.sum(np.abs(point) ** p, axis=-1) + rest) ** (1.0 / p)
    return point / norm[..., None]

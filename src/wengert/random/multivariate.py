"""Multivariate distributions and random rotations.

multivariate_normal     from a factorization of the covariance; differentiable
orthogonal              uniformly distributed rotations and reflections
ball                    uniformly distributed points of a ball
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import shape_of
from wengert._engine.tensor.numpy_dispatch import as_array, broadcast_shapes
from wengert.errors import ArgumentError, at, user_line

from .gamma_von_mises import generalized_normal
from .inverse_transform import exponential, normal
from .keys import as_shape, split
from .parameter_shapes import as_floating

__all__ = ["multivariate_normal", "orthogonal", "ball"]


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

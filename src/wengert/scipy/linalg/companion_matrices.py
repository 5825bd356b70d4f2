"""Matrices built from one or two vectors: Fiedler, Fiedler companion and Leslie matrices.

    fiedler, fiedler_companion, leslie    SciPy's names

They are built by scattering elements, so their gradients gather elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from wengert.errors import ShapeError, at, user_line

from ..dispatch import counterpart, floating, known_length

__all__ = ["fiedler", "fiedler_companion", "leslie"]


@counterpart(scipy.linalg.fiedler)
def fiedler(a: Any) -> Any:
    """The matrix of absolute differences, as ``scipy.linalg.fiedler``.

    Parameters
    ----------
    a : array_like of shape (..., n)

    Returns
    -------
    Tensor of shape (..., n, n)
        The derivative of an absolute difference is 0 where it is 0.
    """
    a = np.atleast_1d(floating(a))
    return np.abs(a[..., :, None] - a[..., None, :])


def _scatter(rows: Any, columns: Any, values: Any, n: int) -> Any:
    """A matrix with elements at given positions."""
    selectors = np.zeros((len(rows), n, n))
    selectors[np.arange(len(rows)), rows, columns] = 1.0
    return np.einsum("...k,kij->...ij", values, selectors.astype(values.dtype))


@counterpart(scipy.linalg.fiedler_companion)
def fiedler_companion(a: Any) -> Any:
    """A pentadiagonal companion matrix, as ``scipy.linalg.fiedler_companion``.

    Parameters
    ----------
    a : array_like of shape (..., n)
        The coefficients of a polynomial, highest power first; the first is nonzero.

    Returns
    -------
    Tensor of shape (..., n - 1, n - 1)
    """
    a = np.atleast_1d(floating(a))
    count = known_length(a.shape[-1], "fiedler_companion")
    if count < 2:
        return a[..., 1:]
    n = count - 1
    a = a / a[..., :1]
    if n == 1:
        return -a[..., 1:, None]
    ones = np.zeros((n, n))
    ones[range(3, n, 2), range(1, n - 2, 2)] = 1.0
    ones[range(0, n - 2, 2), range(2, n, 2)] = 1.0
    ones[1, 0] = 1.0
    rows = [*range(2, n, 2), *range(0, n - 1, 2), 0]
    columns = [*range(1, n - 1, 2), *range(1, n, 2), 0]
    indices = [*range(3, count, 2), *range(2, count, 2), 1]
    return _scatter(rows, columns, -a[..., indices], n) + ones.astype(a.dtype)


@counterpart(scipy.linalg.leslie)
def leslie(f: Any, s: Any) -> Any:
    """The Leslie matrix of an age-structured population, as ``scipy.linalg.leslie``.

    Parameters
    ----------
    f : array_like of shape (..., n)
        The fecundity of each age class.
    s : array_like of shape (..., n - 1)
        The survival rate of each age class.

    Returns
    -------
    Tensor of shape (..., n, n)
    """
    f, s = np.atleast_1d(floating(f)), np.atleast_1d(floating(s))
    n = known_length(f.shape[-1], "leslie")
    if s.shape[-1] != n - 1 or n < 2:
        raise ShapeError(
            f"leslie with f of length {n} and s of length {s.shape[-1]}: s must have one element "
            f"less than f, and at least one{at(user_line())}."
        )
    below = s[..., :, None] * np.eye(n - 1, n, dtype=s.dtype)
    batch = np.broadcast_shapes(f.shape[:-1], s.shape[:-1])
    top = np.broadcast_to(f[..., None, :], (*batch, 1, n))
    return np.concatenate([top, np.broadcast_to(below, (*batch, n - 1, n))], axis=-2)

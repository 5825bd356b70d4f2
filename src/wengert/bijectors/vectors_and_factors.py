"""Bijectors of vectors, and of lower triangular matrices: Cholesky factors.

    Ordered              increasing elements
    Simplex              positive elements with the sum 1, by stick breaking
    UnitVector           elements whose squares have the sum 1
    CorrelationCholesky  rows of length 1, a positive diagonal
    CovarianceCholesky   a positive diagonal

Matrices are filled by rows.  `factor @ factor.T` is the correlation or covariance matrix.

Formulas: Stan Reference Manual, "Constraint Transforms": ordered vector, unit simplex (by stick
breaking), unit vector, Cholesky factors of covariance and correlation matrices.  M. Betancourt,
"Cruising the simplex" (2010), for stick breaking; G. Marsaglia, "Choosing a point from the surface
of a sphere" (1972), for unit vectors; D. Lewandowski, D. Kurowicka, H. Joe, "Generating random
correlation matrices based on vines and extended onion method" (2009), for partial correlations.
"""

from __future__ import annotations

import operator
from math import log
from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of
from wengert.errors import ArgumentError, at, user_line
from wengert.scipy.special import log_expit

from .bijector import Bijector, Shape, as_shape, require, tolerance


def _vectors(shape: Any, what: str) -> Shape:
    lengths = as_shape(shape, what)
    if not lengths or lengths[-1] < 1:
        raise ArgumentError(
            f"{what}: the shape is {shape!r}, but the last axis must have at least one element"
            f"{at(user_line())}."
        )
    return lengths


class _Vectors(Bijector):
    """Values whose last axis is transformed."""

    def __repr__(self) -> str:
        shape = self.shape[0] if len(self.shape) == 1 else self.shape
        return f"{type(self).__name__}({shape})"


class Ordered(_Vectors):
    """Increasing vectors: x[0] = u[0], x[k] = x[k - 1] + exp(u[k]).

    Parameters
    ----------
    shape : int or tuple of int
        The length, or the shape of an array whose last axis is ordered.

    Notes
    -----
    The log-Jacobian is the sum of u[1:].

    Examples
    --------
    >>> from wengert import bijectors
    >>> bijectors.Ordered(3).forward([1.0, 0.0, 0.0])
    array([1., 2., 3.])
    """

    def __init__(self, shape: Any) -> None:
        self.shape = self.unconstrained_shape = _vectors(shape, "Ordered")
        self._made()

    def _forward(self, u: Any) -> tuple[Any, Any]:
        steps = np.concatenate([u[..., :1], np.exp(u[..., 1:])], axis=-1)
        return np.cumsum(steps, axis=-1), np.sum(u[..., 1:])

    def _inverse(self, x: Any) -> Any:
        return np.concatenate([x[..., :1], np.log(x[..., 1:] - x[..., :-1])], axis=-1)

    def _check(self, x: Any) -> None:
        super()._check(x)
        require(
            lambda v: np.all(np.diff(v, axis=-1) > 0.0),
            x,
            f"{self!r}: constrained values must increase",
        )


class Simplex(_Vectors):
    """Vectors of K positive elements with the sum 1, from K - 1 numbers, by stick breaking.

    Parameters
    ----------
    shape : int or tuple of int
        The length K, or the shape of an array whose last axis is a simplex.

    Notes
    -----
    z[k] = expit(u[k] - log(K - 1 - k)) is the part of what is left that element k takes, k from 0.
    The log-Jacobian, of x[:-1], is the sum of log z[k] + log(1 - z[k]) + log(1 - x[0] - ...
    - x[k - 1]). All are computed by logarithms, so that small elements are exact. Zeros are the
    simplex of equal elements.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import bijectors
    >>> bijectors.Simplex(4).forward(np.zeros(3))
    array([0.25, 0.25, 0.25, 0.25])
    """

    def __init__(self, shape: Any) -> None:
        self.shape = _vectors(shape, "Simplex")
        self.unconstrained_shape = (*self.shape[:-1], self.shape[-1] - 1)
        self._made()

    def _offsets(self, u: Any) -> Any:
        """log(K - 1 - k), for which zeros give equal elements."""
        return np.log(np.arange(self.shape[-1] - 1, 0, -1)).astype(dtype_of(u))

    def _forward(self, u: Any) -> tuple[Any, Any]:
        shifted = u - self._offsets(u)
        part, rest = log_expit(shifted), log_expit(-shifted)
        left = np.cumsum(rest, axis=-1)  # logarithms of what is left behind each element
        zero = np.zeros((*self.shape[:-1], 1), dtype_of(u))
        before = np.concatenate([zero, left], axis=-1)
        logs = before + np.concatenate([part, zero], axis=-1)
        return np.exp(logs), np.sum(part + rest + before[..., :-1])

    def _inverse(self, x: Any) -> Any:
        behind = np.flip(np.cumsum(np.flip(x[..., 1:], -1), axis=-1), -1)
        return np.log(x[..., :-1]) - np.log(behind) + self._offsets(x)

    def _check(self, x: Any) -> None:
        super()._check(x)
        require(lambda v: v > 0.0, x, f"{self!r}: elements must be positive")
        require(
            lambda v: np.all(np.abs(np.sum(v, axis=-1) - 1.0) <= tolerance(x)),
            x,
            f"{self!r}: the sum of the elements must be 1",
        )


class UnitVector(_Vectors):
    """Vectors of length 1: x = u / |u|.

    Parameters
    ----------
    shape : int or tuple of int
        The number of elements, or the shape of an array whose last axis is a unit vector.

    Notes
    -----
    There is one more number than the sphere has dimensions, so this is not a bijection: all
    multiples of u have the same x, and `inverse` gives x itself. `log_det_jacobian` is
    -sum(u**2) / 2, the log-density of the length, by which the direction of u has the density that
    is given for x. At u = 0 the value is not a number.

    Examples
    --------
    >>> from wengert import bijectors
    >>> bijectors.UnitVector(2).forward([3.0, 4.0])
    array([0.6, 0.8])
    """

    def __init__(self, shape: Any) -> None:
        self.shape = self.unconstrained_shape = _vectors(shape, "UnitVector")
        self._made()

    @np.errstate(invalid="ignore")
    def _forward(self, u: Any) -> tuple[Any, Any]:
        squares = np.sum(u * u, axis=-1, keepdims=True)
        return u / np.sqrt(squares), -0.5 * np.sum(squares)

    def _inverse(self, x: Any) -> Any:
        return x

    def _check(self, x: Any) -> None:
        super()._check(x)
        require(
            lambda v: np.all(np.abs(np.sum(v * v, axis=-1) - 1.0) <= tolerance(x)),
            x,
            f"{self!r}: the length must be 1",
        )


# ---- lower triangular matrices -----------------------------------------------------------------


class _Factor(Bijector):
    """Lower triangular matrices of n rows."""

    def __init__(self, n: int) -> None:
        try:
            rows = operator.index(n)
        except TypeError:
            rows = 0
        if rows < 1:
            raise ArgumentError(
                f"{type(self).__name__}: n={n!r}, but the number of rows must be a positive "
                f"integer{at(user_line())}."
            )
        self.n = rows
        self.shape = (rows, rows)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n})"

    def _filled(self, u: Any, below: int) -> Any:
        """The matrix with the elements of a vector in its lower triangle, by rows."""
        at_end = len(self._rows(below)[0])
        places = np.full(self.shape, at_end)
        places[self._rows(below)] = np.arange(at_end)
        return np.concatenate([u, np.zeros(1, dtype_of(u))])[places]

    def _rows(self, below: int) -> tuple[Any, Any]:
        return np.tril_indices(self.n, below)

    def _check(self, x: Any) -> None:
        super()._check(x)
        require(
            lambda v: np.all(np.triu(v, 1) == 0.0),
            x,
            f"{self!r}: elements above the diagonal must be 0",
        )
        require(
            lambda v: np.all(np.diagonal(v) > 0.0),
            x,
            f"{self!r}: elements of the diagonal must be positive",
        )


class CorrelationCholesky(_Factor):
    """Cholesky factors of correlation matrices, from n (n - 1) / 2 numbers.

    Parameters
    ----------
    n : int
        The number of rows.

    Notes
    -----
    z = tanh(u) are partial correlations. Element (i, j), j < i, is z[i, j] times the square root
    of 1 minus the squares of the elements to its left, and the diagonal gives each row the length
    1. The log-Jacobian, of the elements below the diagonal, is the sum over them of
    log(1 - z[i, j]**2) and half the logarithm of that difference.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import bijectors
    >>> factor = bijectors.CorrelationCholesky(3).forward([0.5, -1.0, 0.2])
    >>> np.diag(factor @ factor.T).round(12)
    array([1., 1., 1.])
    """

    def __init__(self, n: int) -> None:
        super().__init__(n)
        self.unconstrained_shape = (self.n * (self.n - 1) // 2,)
        self._made()

    def _forward(self, u: Any) -> tuple[Any, Any]:
        filled = self._filled(u, -1)
        logs = log_expit(2.0 * filled) + log_expit(-2.0 * filled) + log(4.0)  # log(1 - tanh(u)^2)
        left = np.cumsum(logs, axis=1) - logs  # of 1 minus the squares to the left
        below = np.tri(self.n, k=-1, dtype=dtype_of(u))
        eye = np.eye(self.n, dtype=dtype_of(u))
        factor = (np.tanh(filled) + eye) * np.exp(0.5 * left)
        return factor * (below + eye), np.sum(below * (logs + 0.5 * left))

    def _inverse(self, x: Any) -> Any:
        squares = np.flip(np.cumsum(np.flip(x * x, 1), axis=1), 1)
        i, j = self._rows(-1)
        return np.arcsinh(x[i, j] / np.sqrt(squares[i, j + 1]))

    def _check(self, x: Any) -> None:
        super()._check(x)
        require(
            lambda v: np.all(np.abs(np.sum(v * v, axis=1) - 1.0) <= tolerance(x)),
            x,
            f"{self!r}: rows must have the length 1",
        )


class CovarianceCholesky(_Factor):
    """Cholesky factors of covariance matrices, from n (n + 1) / 2 numbers.

    Parameters
    ----------
    n : int
        The number of rows.

    Notes
    -----
    Elements below the diagonal are numbers of u, those of the diagonal exp of them. The
    log-Jacobian, of the lower triangle, is the sum of the numbers of the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import bijectors
    >>> bijectors.CovarianceCholesky(2).forward([0.0, 5.0, 0.0])
    array([[1., 0.],
           [5., 1.]])
    """

    def __init__(self, n: int) -> None:
        super().__init__(n)
        self.unconstrained_shape = (self.n * (self.n + 1) // 2,)
        self._made()

    def _forward(self, u: Any) -> tuple[Any, Any]:
        filled = self._filled(u, 0)
        diagonal = np.diagonal(filled)
        below = np.tri(self.n, k=-1, dtype=dtype_of(u))
        return filled * below + np.diag(np.exp(diagonal)), np.sum(diagonal)

    def _inverse(self, x: Any) -> Any:
        below = np.tri(self.n, k=-1, dtype=dtype_of(x))
        return (x * below + np.diag(np.log(np.diagonal(x))))[self._rows(0)]

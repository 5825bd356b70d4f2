"""Bijectors of lower triangular matrices: Cholesky factors of correlations and covariances.

    CorrelationCholesky   rows of length 1, a positive diagonal
    CovarianceCholesky    a positive diagonal

Matrices are filled by rows.  `factor @ factor.T` is the correlation or covariance matrix.

Formulas: Stan Reference Manual, "Constraint Transforms": Cholesky factors of covariance matrices,
Cholesky factors of correlation matrices.  D. Lewandowski, D. Kurowicka, H. Joe, "Generating random
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

from .bijector import Bijector, require, tolerance


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

"""What the factors of a sparse matrix have in common, whichever library computes them.

MatrixFactors   solutions, the determinant, elements of the inverse, the condition number
Probe           the solution for a random vector
counts          how many matrices this process has factorized
"""

from __future__ import annotations

import abc
import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from wengert._engine.implicit.linear_methods import probe_vector

from .matrix_patterns import MatrixPattern
from .operands import Plain


@dataclass
class Counts:
    """How many matrices were factorized."""

    factorized: int = 0


counts = Counts()


class Probe(NamedTuple):
    """A random vector in the units of the rows of a matrix, and its solution.

    units : the sums of the absolute values in each row.
    right, solution : the vector and its solution.
    """

    units: Plain
    right: Plain
    solution: Plain


class MatrixFactors(abc.ABC):
    """The factors of a matrix.

    Attributes
    ----------
    pattern : MatrixPattern
    data : ndarray
        The values of its entries.
    dtype : dtype
        Of the factors.
    """

    pattern: MatrixPattern
    data: Plain
    dtype: np.dtype[Any]

    @property
    @abc.abstractmethod
    def bytes(self) -> int:
        """The memory that it needs, about."""

    @property
    @abc.abstractmethod
    def nnz(self) -> int:
        """The number of elements of the factors."""

    @abc.abstractmethod
    def log_determinant(self) -> tuple[Any, Any]:
        """The sign of the determinant, and the logarithm of its absolute value.

        Raises
        ------
        LinAlgError
            The matrix was said to be positive definite, and is not.
        """

    @abc.abstractmethod
    def transposed_inverse(self, rows: Plain | None = None, columns: Plain | None = None) -> Plain:
        """The elements of the inverse at [j, i] for entries [i, j] of the matrix; by default all.

        Raises
        ------
        LinAlgError
            As `log_determinant`.
        """

    @property
    @abc.abstractmethod
    def condition(self) -> float:
        """An estimate of the condition number of the matrix, whose rows and columns may be scaled.

        The condition number of ``diag(1.0, 1e-20)`` is that of a choice of units.
        """

    @abc.abstractmethod
    def _solved(self, right: Plain, trans: int) -> Plain:
        """The solution for a matrix of the type of the factors, in Fortran's order."""

    def solve(self, b: Plain, trans: int = 0) -> Plain:
        """x with op(a) @ x = b, for a matrix b; op: identity, transpose, adjoint (0, 1, 2)."""
        dtype = np.result_type(self.dtype, b.dtype)
        if not b.size:
            return np.zeros(b.shape, dtype)
        if dtype.kind == "c" and self.dtype.kind != "c":
            parts = self.solve(b.real.copy(), trans), self.solve(b.imag.copy(), trans)
            return (parts[0] + 1j * parts[1]).astype(dtype)
        right = np.asfortranarray(b, self.dtype)
        return self._solved(right, trans).astype(dtype, copy=False)

    @functools.cached_property
    def probe(self) -> Probe:
        """A random vector and its solution."""
        rows, n = self.pattern.rows, self.pattern.size
        units = np.bincount(rows, np.abs(self.data), n).astype(self.dtype.char.lower())
        right = (units * probe_vector(n)).astype(self.dtype)
        return Probe(units, right, self.solve(right[:, None])[:, 0])

    @property
    def limit(self) -> float:
        """The condition number from which on solutions have no correct digits."""
        return 0.01 / float(np.finfo(self.dtype).eps)

    def check_condition(self) -> None:
        """Raise if a solution may have no correct digits.

        Raises
        ------
        LinAlgError
            The estimate of the condition number is above 1 / (100 eps).
        """
        if not self.condition <= self.limit:
            raise LinAlgError(
                f"the matrix is nearly singular: its condition number is about "
                f"{self.condition:.1e}, so that a derivative would have no correct digits"
            )

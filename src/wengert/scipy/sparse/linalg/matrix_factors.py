"""Factors of sparse matrices: what they have in common, and LU factors by SuperLU.

    MatrixFactors   solutions, the determinant, elements of the inverse, the condition number
    Probe           the solution for a random vector
    counts          how many matrices this process has factorized
    SuperLUFactors  of one matrix

A matrix is given by the arrays of the CSR format.  SuperLU factorizes matrices in CSC format, so it
is given the transpose, whose CSC arrays these are, and solves with the transpose of that.
"""

from __future__ import annotations

import abc
import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from wengert._engine.implicit.linear_methods import probe_vector

from .matrix_patterns import MatrixPattern
from .operands import Plain
from .selected_inverse_kernel import TriangularLines
from .takahashi_recurrence import inverse_at


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


_COLUMNS = 256  # right-hand sides of one call
_CHECKED_SOLUTIONS = 4  # of factors without row exchanges: their accuracy is that of the factors
_SYMMETRIC = {"SymmetricMode": True}
_LEAST_SIZE = float(np.finfo(float).tiny)


class SuperLUFactors(MatrixFactors):
    """The factors of SuperLU.

    Parameters
    ----------
    pattern : MatrixPattern
    data : ndarray
        The values of its entries.
    assume : str
        'gen', 'pos' for a Hermitian positive definite matrix, or 'triangular'.
    is_definite : bool
        False: it is known not to be positive definite.

    Raises
    ------
    LinAlgError
        The matrix is singular.
    """

    def __init__(
        self, pattern: MatrixPattern, data: Plain, assume: str, is_definite: bool = True
    ) -> None:
        import scipy.sparse

        self.pattern, self.data = pattern, data
        exact = data if data.dtype.char in "fdFD" else data.astype(float)
        # The transpose of the matrix.
        parts, shape = (exact, pattern.indices, pattern.indptr), (pattern.size, pattern.size)
        self.matrix = scipy.sparse.csc_array(parts, shape=shape, copy=True)
        self.matrix.sum_duplicates()
        self._transposed = self.matrix.T.tocsc()
        self.assume, self.dtype = assume, self.matrix.dtype
        self.lu, self._is_pivoted = self._factorized() if is_definite else (self._pivoted(), True)
        self._checked = 0

    @property
    def bytes(self) -> int:
        """The memory that it needs, about; SciPy's conversion of the factors doubles it."""
        of_factors = 2 * int(self.lu.nnz) * (self.matrix.dtype.itemsize + 4)
        return of_factors + 5 * int(self.matrix.data.nbytes)

    @property
    def nnz(self) -> int:
        """The number of elements of the factors."""
        return int(self.lu.nnz)

    def _factorized(self) -> tuple[Any, bool]:
        """The factors, and whether rows were chosen by the size of pivots.

        Without this choice a matrix with a symmetric pattern has half as many entries in its
        factors. It is not needed if the matrix is positive definite or diagonally dominant.
        """
        if self.assume == "triangular":
            lu = self._superlu(permc_spec="NATURAL", diag_pivot_thresh=0.0)
            return (self._pivoted(), True) if lu is None else (lu, False)
        if self.assume == "pos" or self._needs_no_pivoting():
            lu = self._superlu(
                permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=_SYMMETRIC
            )
            if lu is not None and np.array_equal(lu.perm_r, lu.perm_c):
                return lu, False
        return self._pivoted(), True

    def _pivoted(self) -> Any:
        lu = self._superlu()
        if lu is None:
            raise LinAlgError("the matrix is exactly singular")
        return lu

    def _superlu(self, **options: Any) -> Any:
        """SuperLU's factors, or None for a matrix that it finds to be singular."""
        from scipy.sparse.linalg import splu

        counts.factorized += 1
        try:
            return splu(self.matrix, **options)
        except RuntimeError as error:
            if "singular" not in str(error):
                raise
            return None

    @functools.cached_property
    def is_symmetric(self) -> bool:
        """Whether the matrix is its own transpose, to the last bit."""
        a, other = self.matrix, self._transposed
        parts = (a.indptr, other.indptr), (a.indices, other.indices), (a.data, other.data)
        return all([np.array_equal(x, y) for x, y in parts])

    def _needs_no_pivoting(self) -> bool:
        """Whether the pattern is symmetric, and the matrix probably positive definite or dominant.

        The first solutions are checked, so that a wrong answer costs time only.
        """
        a, other = self.matrix, self._transposed
        if not np.array_equal(a.indptr, other.indptr):
            return False
        if not np.array_equal(a.indices, other.indices):
            return False
        diagonal = a.diagonal()
        if np.array_equal(a.data, np.conj(other.data)):
            return bool(np.all(diagonal.real > 0))
        twice, sizes = 2 * np.abs(diagonal), abs(a)
        return bool(np.all(twice > 0)) and any(
            [np.all(twice >= sizes.sum(axis=axis) * (1 - 1e-12)) for axis in (0, 1)]
        )

    def _solved(self, right: Plain, trans: int) -> Plain:
        """The solution, whose residual is checked at first if no rows were exchanged."""
        is_conjugate = trans == 2 and self.matrix.dtype.kind == "c"
        if is_conjugate:
            right = np.conj(right)
        x = self.lu.solve(right, trans="N" if trans else "T")
        if not self._is_pivoted and self._checked < _CHECKED_SOLUTIONS:
            if self._solves(x, right, trans):
                self._checked += 1
            else:
                self.lu, self._is_pivoted = self._pivoted(), True
                x = self.lu.solve(right, trans="N" if trans else "T")
        return np.conj(x) if is_conjugate else x  # type: ignore[no-any-return]

    def _solves(self, x: Plain, b: Plain, trans: int) -> bool:
        """Whether the residual of a solution is that of a stable method."""
        error = np.max(np.abs((self.matrix if trans else self._transposed) @ x - b))
        scale = self._norm * np.max(np.abs(x)) + np.max(np.abs(b))
        return bool(error <= 1e3 * np.finfo(self.matrix.dtype).eps * scale)

    @functools.cached_property
    def _norm(self) -> float:
        """The largest sum of absolute values of a row or column."""
        sizes = abs(self.matrix)
        return max([float(sizes.sum(axis=axis).max()) for axis in (0, 1)])

    def for_determinants(self) -> Any:
        """SuperLU's factors, with elements that are accurate themselves.

        Raises
        ------
        LinAlgError
            The matrix was said to be positive definite, and is not.
        """
        lu, is_pivoted = self.lu, self._is_pivoted
        pivots = lu.U.diagonal()
        if self.assume == "pos" and (is_pivoted or not np.all(pivots.real > 0)):
            raise LinAlgError("the matrix is not positive definite: a pivot is not positive")
        if not is_pivoted and self._grows(lu.U):
            self.lu, self._is_pivoted = lu, _ = self._pivoted(), True
        return lu

    def _grows(self, upper: Any) -> bool:
        """Whether elements of U are so large that the factors are not accurate."""
        largest = np.max(np.abs(upper.data), initial=0.0)
        return bool(largest > 1e3 * np.max(np.abs(self.matrix.data), initial=0.0))

    def log_determinant(self) -> tuple[Any, Any]:
        """The sign of the determinant, and the logarithm of its absolute value."""
        lu = self.for_determinants()
        pivots = lu.U.diagonal()
        with np.errstate(divide="ignore"):
            sizes = np.abs(pivots)
            value = np.sum(np.log(sizes))
            sign = np.prod(pivots / sizes) if sizes.all() else pivots.dtype.type(0)
        return sign * _parity(lu.perm_r) * _parity(lu.perm_c), value

    @functools.cached_property
    def condition(self) -> float:
        """An estimate of the condition number in the norm of row sums (a lower bound).

        If that is large, of the matrix with scaled rows and columns: the condition number of
        ``diag(1.0, 1e-20)`` is that of a choice of units.
        """
        n = self.pattern.size
        if not n:
            return 0.0
        ones = np.ones((n, 1))
        plain = self._estimate(ones, ones)
        if plain <= self.limit:
            return plain
        return min(plain, *[self._estimate(*self._scales(axis)) for axis in (0, 1)])

    def _scales(self, first: int) -> tuple[Plain, Plain]:
        """Factors of rows and of columns, those of the rows found first if `first` is 0."""
        scales, sizes = [np.ones(0)] * 2, abs(self.matrix).astype(float)  # of the transpose
        for axis in (first, 1 - first):
            scale = 1.0 / np.maximum(sizes.max(axis=axis).toarray().ravel(), _LEAST_SIZE)
            scales[axis] = scale[:, None]
            sizes = sizes.multiply(scale[None, :] if axis == 0 else scale[:, None]).tocsc()
        return scales[0], scales[1]

    def _estimate(self, rows: Plain, columns: Plain) -> float:
        """The estimate for scaled rows and columns, by products with the inverse.

        The method of N. J. Higham, "FORTRAN codes for estimating the one-norm of a real or complex
        matrix", 1988, from a random vector: the vector of ones may have no part that grows.
        """
        n = len(rows)
        x, found = probe_vector(n)[:, None], 0.0
        x = x / np.sum(np.abs(x))
        for _ in range(3):
            y = self.solve(x / columns, 1) / rows
            total = float(np.sum(np.abs(y)))
            if not math.isfinite(total):
                return math.inf
            if total <= found:
                break
            found = total
            signs = np.where(y == 0, 1.0, y / np.where(y == 0, 1.0, np.abs(y)))
            z = np.abs(self.solve(np.conj(signs) / rows, 0) / columns)
            x = np.zeros((n, 1))
            x[int(np.argmax(z))] = 1.0
        scaled = abs(self.matrix).multiply(rows.ravel()).multiply(columns)
        return float(scaled.sum(axis=0).max()) * found

    def transposed_inverse(self, rows: Plain | None = None, columns: Plain | None = None) -> Plain:
        """The elements of the inverse at [j, i] for entries [i, j] of the matrix; by default all.

        By the recurrence, or by solutions for all columns where it cannot be used.
        """
        if rows is None or columns is None:
            rows, columns = self.pattern.rows, np.asarray(self.pattern.indices)
        lu = self.for_determinants()  # another thread may replace those of the factor
        upper, lower = lu.U, lu.L
        pivots = upper.diagonal()
        by_columns = TriangularLines.of(lower)
        is_symmetric = self.is_symmetric and np.array_equal(lu.perm_r, lu.perm_c)
        by_rows = None if is_symmetric else TriangularLines.of(upper.tocsr())
        # Factors are those of b = a.T with b[i, j] at [perm_r[i], perm_c[j]]: an element of the
        # transposed inverse of a at [i, j] is one of the inverse of the product at these places.
        q, p = lu.perm_c[rows].astype(np.int64), lu.perm_r[columns].astype(np.int64)
        found = inverse_at(by_columns, by_rows, pivots, q, p)
        return self._by_columns(rows, columns) if found is None else found

    def _by_columns(self, rows: Plain, columns: Plain) -> Plain:
        """The elements by solutions for unit vectors, some at a time."""
        n, found = self.pattern.size, np.empty(len(rows))
        for start in range(0, n, _COLUMNS):
            stop = min(start + _COLUMNS, n)
            unit = np.zeros((n, stop - start))
            unit[np.arange(start, stop), np.arange(stop - start)] = 1.0
            x = self.solve(unit)  # columns of the inverse
            chosen = (rows >= start) & (rows < stop)
            found[chosen] = x[columns[chosen], rows[chosen] - start]
        return found


def _parity(order: Plain) -> int:
    """The sign of a permutation: by its number of cycles."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = len(order)
    if n == 0:
        return 1
    ones = np.ones(n, np.int8)
    edges = csr_array((ones, np.asarray(order), np.arange(n + 1)), shape=(n, n))
    cycles, _ = connected_components(edges, directed=False)
    return 1 if (n - cycles) % 2 == 0 else -1

"""The factors of a matrix, kept for the derivatives; Cholesky factors by LAPACK and CHOLMOD.

    CholeskyFactors  what both have in common
    BandFactors      of a matrix with few diagonals, in the order of its pattern
    CholmodFactors   of another one
    cholesky_of      the factors of a matrix; None if it is not positive definite
    factor_of        the factors of a matrix, from the last ones if they are of the same values
    factorized       the factors of a matrix, which are not kept

A real symmetric matrix with a positive diagonal has Cholesky factors if it is positive definite;
the others have those of SuperLU (matrix_factors.py).

Value and derivatives need the same factors, and know them by the values of the matrix: the last
ones are kept, up to a number and a size (`_MAX_FACTORS`, `_MAX_BYTES`).
"""

from __future__ import annotations

import functools
import zlib
from collections import OrderedDict
from typing import Any, Literal

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg.lapack import get_lapack_funcs

from wengert._engine.core.thread_state import lock
from wengert._engine.implicit.linear_methods import probe_vector

from .matrix_factors import MatrixFactors, SuperLUFactors, counts
from .matrix_patterns import Band, MatrixPattern, pattern_of
from .operands import Plain
from .selected_inverse_kernel import TriangularLines
from .takahashi_recurrence import inverse_at, inverse_in_band

__all__ = ["counts", "factor_of", "factorized"]

_BYTES_FOR_EACH = 20  # of factors, for each byte of the entries
# Differences of elements that should be equal, in units of eps.
_ROUNDING = 32.0
_ROUNDING_IF_KNOWN = 1e3


class CholeskyFactors(MatrixFactors):
    """The factors of a real positive definite matrix.

    Parameters
    ----------
    pattern : MatrixPattern
        A symmetric one, with the whole diagonal.
    data : ndarray
        The values of its entries.
    diagonal : ndarray
        The diagonal of the matrix.
    """

    def __init__(self, pattern: MatrixPattern, data: Plain, diagonal: Plain) -> None:
        self.pattern, self.data, self.dtype = pattern, data, diagonal.dtype
        self._diagonal = diagonal

    @functools.cached_property
    def condition(self) -> float:
        """Of the matrix with a unit diagonal, by one solution.

        That has the least condition number of all scaled matrices, up to a factor of the number of
        entries in a row (A. van der Sluis, 1969).
        """
        if not self.pattern.size:
            return 0.0
        scale = np.sqrt(self._diagonal)
        probe = (scale * probe_vector(self.pattern.size)).astype(self.dtype)
        return float(np.max(np.abs(scale * self._solved(probe[:, None], 0)[:, 0])))


class BandFactors(CholeskyFactors):
    """The factors of a band: LAPACK's pttrf for three diagonals, pbtrf for more.

    Attributes
    ----------
    is_definite : bool
        Whether the matrix is positive definite; if not, there are no factors.
    """

    def __init__(
        self, pattern: MatrixPattern, data: Plain, diagonal: Plain, off: Plain, band: Band
    ) -> None:
        super().__init__(pattern, data, diagonal)
        self._band = band
        counts.factorized += 1
        self._factors: tuple[Plain, ...]
        if band.below == 1:
            first = diagonal if band.order is None else diagonal[band.order]
            second = off if band.is_full else self._stored(off)[:-1, 1]
            (factorize,) = get_lapack_funcs(("pttrf",), dtype=self.dtype)
            *factors, info = factorize(first, second)
            self._factors = tuple(factors)
        else:
            stored = self._stored(off)
            stored[:, 0] = diagonal if band.order is None else diagonal[band.order]
            (factorize,) = get_lapack_funcs(("pbtrf",), dtype=self.dtype)
            factor, info = factorize(stored.T, lower=1, overwrite_ab=1)
            self._factors = (factor,)
        self.is_definite = info == 0

    def _stored(self, off: Plain) -> Plain:
        """The elements below the diagonal as a band."""
        stored = np.zeros((self.pattern.size, self._band.below + 1), self.dtype)
        stored.reshape(-1)[self._band.positions] = off
        return stored

    @functools.cached_property
    def bytes(self) -> int:
        """The memory that it needs, about."""
        return sum([int(x.nbytes) for x in (*self._factors, self._diagonal, self.data)])

    @property
    def nnz(self) -> int:
        """The number of elements of the factors."""
        return int(sum([x.size for x in self._factors]))

    @functools.cached_property
    def _solve(self) -> Any:
        name = "pttrs" if self._band.below == 1 else "pbtrs"
        return get_lapack_funcs((name,), dtype=self.dtype)[0]

    def _solved(self, right: Plain, trans: int) -> Plain:
        """The solution; the matrix is its own transpose."""
        order = self._band.order
        if order is not None:
            right = np.asfortranarray(right[order])
        if self._band.below == 1:
            x, _ = self._solve(*self._factors, right)
        else:
            x, _ = self._solve(*self._factors, right, lower=1)
        return x if self._band.places is None else x[self._band.places]

    def log_determinant(self) -> tuple[Any, Any]:
        """The sign of the determinant, and the logarithm of its absolute value."""
        if self._band.below == 1:
            value = np.sum(np.log(self._factors[0]))
        else:
            value = 2.0 * np.sum(np.log(self._factors[0][0]))
        return self.dtype.type(1.0), value.astype(self.dtype)

    def transposed_inverse(self, rows: Plain | None = None, columns: Plain | None = None) -> Plain:
        """The elements of the inverse at the given entries of the matrix; by default all."""
        if rows is None or columns is None:
            positions = self.pattern.band_positions
        else:
            positions = self._band.at(rows, columns)
        return self._inverse.reshape(-1)[positions]

    @functools.cached_property
    def _inverse(self) -> Plain:
        """The inverse in the band."""
        if self._band.below == 1:
            pivots = self._factors[0].astype(float)
            lower = np.zeros((len(pivots), 2))
            lower[:-1, 1] = self._factors[1]
        else:
            factor = self._factors[0].T.astype(float)
            pivots, lower = factor[:, 0] ** 2, factor / factor[:, :1]
        return inverse_in_band(lower, pivots)


class CholmodFactors(CholeskyFactors):
    """The factors of CHOLMOD.

    Attributes
    ----------
    is_definite : bool
        As `BandFactors`.
    """

    def __init__(self, pattern: MatrixPattern, data: Plain, diagonal: Plain, values: Plain) -> None:
        super().__init__(pattern, data, diagonal)
        self._values = values
        self._factor = self._made()
        self.is_definite = self._factor is not None

    def _made(self) -> Any:
        assert self.pattern.cholmod is not None
        analysis, entries = self.pattern.cholmod
        counts.factorized += 1
        return analysis.factor(self._values[entries])

    @functools.cached_property
    def nnz(self) -> int:
        """The number of elements of the factors."""
        return int(self._lower[0].nnz)

    @property
    def bytes(self) -> int:
        """The memory that it needs, about: that of the factors is not known."""
        return _BYTES_FOR_EACH * int(self.data.nbytes)

    def _solved(self, right: Plain, trans: int) -> Plain:
        """The solution; the matrix is its own transpose."""
        return self._factor.solve(right.astype(float)).astype(self.dtype)  # type: ignore[no-any-return]

    def log_determinant(self) -> tuple[Any, Any]:
        """The sign of the determinant, and the logarithm of its absolute value."""
        value = 2.0 * np.sum(np.log(self._factor.diagonal()))
        return self.dtype.type(1.0), value.astype(self.dtype)

    @property
    def _lower(self) -> tuple[Any, Plain]:
        """L in CSC format, and its order; CHOLMOD gives it away, so it is computed once more."""
        return self._made().taken()  # type: ignore[no-any-return]

    def transposed_inverse(self, rows: Plain | None = None, columns: Plain | None = None) -> Plain:
        """The elements of the inverse at the given entries of the matrix; by default all."""
        if rows is None or columns is None:
            rows, columns = self.pattern.rows, np.asarray(self.pattern.indices)
        lower, order = self._lower
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        diagonal = lower.data[lower.indptr[:-1]]
        by_columns = TriangularLines.of(
            lower, lower.data / np.repeat(diagonal, np.diff(lower.indptr))
        )
        found = inverse_at(by_columns, None, diagonal**2, places[rows], places[columns])
        assert found is not None
        return found


def cholesky_of(
    pattern: MatrixPattern, data: Plain, is_known: bool
) -> CholeskyFactors | Literal[False] | None:
    """The Cholesky factors of a matrix, if it may have some.

    Parameters
    ----------
    pattern : MatrixPattern
    data : ndarray
        The values of its entries, finite.
    is_known : bool
        Whether the matrix is said to be positive definite, so that elements which should be equal
        may differ by more than the rounding of some operations.

    Returns
    -------
    CholeskyFactors, False or None
        False: the matrix is symmetric, and not positive definite. None: it is not symmetric, not
        real, or no method for it is there.
    """
    if data.dtype.kind == "c" or (pattern.band is None and pattern.cholmod is None):
        return None
    values = pattern.values(data if data.dtype.char in "fd" else data.astype(float))
    diagonal, off, other = [values[places] for places in pattern.halves]
    is_positive = bool(np.all(diagonal > 0))
    if not np.array_equal(off, other):
        rounding = _ROUNDING_IF_KNOWN if is_known else _ROUNDING
        if not (is_positive and _are_nearly_equal(pattern, off, other, diagonal, rounding)):
            return None
    if not is_positive:
        return False
    factors: CholeskyFactors
    if pattern.band is not None:
        factors = BandFactors(pattern, data, diagonal, off, pattern.band)
    else:
        factors = CholmodFactors(pattern, data, diagonal, values)
    return factors if factors.is_definite else False


def _are_nearly_equal(
    pattern: MatrixPattern, off: Plain, other: Plain, diagonal: Plain, rounding: float
) -> bool:
    """Whether elements that should be equal differ by rounding, relative to the diagonal."""
    rows, columns = pattern.entries
    lower, roots = pattern.pairs[0], np.sqrt(diagonal)
    limit = rounding * np.finfo(off.dtype).eps * roots[rows[lower]] * roots[columns[lower]]
    return bool(np.all(np.abs(off - other) <= limit))


_MAX_FACTORS = 64
_MAX_BYTES = 1 << 30  # of all factors that are kept; the last one is kept in any case

_lock = lock()
_kept: OrderedDict[Any, MatrixFactors] = OrderedDict()


def factorized(pattern: MatrixPattern, data: Plain, assume: str = "gen") -> MatrixFactors:
    """The factors of a matrix.

    Parameters
    ----------
    pattern : MatrixPattern
    data : ndarray
        The values of its entries; not copied.
    assume : str
        'gen', 'pos' for a Hermitian positive definite matrix, or 'triangular'.

    Raises
    ------
    LinAlgError
        The matrix is singular or not finite.
    """
    if not np.isfinite(data).all():
        raise LinAlgError("the matrix contains NaN or infinity")
    found = None if assume == "triangular" else cholesky_of(pattern, data, assume == "pos")
    if found:
        return found
    return SuperLUFactors(pattern, data, assume, is_definite=found is None)


def factor_of(data: Plain, indices: Plain, indptr: Plain, assume: str = "gen") -> MatrixFactors:
    """The factors of a matrix in CSR format; the last ones are kept."""
    given: list[Any] = [
        np.ascontiguousarray(x, x.dtype.newbyteorder("=")) for x in (data, indices, indptr)
    ]
    pattern, values = pattern_of(given[1], given[2]), given[0]
    key = assume, pattern, values.dtype.str, zlib.crc32(values.view(np.uint8))
    with _lock:
        found = _kept.get(key)
        if found is not None:
            _kept.move_to_end(key)
    if found is not None and _have_same_bits(values, found.data):
        return found
    factor = factorized(pattern, values.copy(), assume)
    with _lock:
        _kept[key] = factor
        _kept.move_to_end(key)
        while len(_kept) > 1 and (
            len(_kept) > _MAX_FACTORS or sum([x.bytes for x in _kept.values()]) > _MAX_BYTES
        ):
            _kept.popitem(last=False)
    return factor


def _have_same_bits(x: Plain, y: Plain) -> bool:
    return np.array_equal(x.view(np.uint8), y.view(np.uint8))

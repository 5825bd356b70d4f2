"""Patterns of sparse matrices, with what is planned for each of them once.

    MatrixPattern    of a square matrix in CSR format: repeated entries, symmetry, bandwidth
    Band             where the entries of a symmetric matrix are in a band, in which order of rows
    pattern_of       the pattern with these index arrays; the last ones are kept

Rows are reordered by the method of Cuthill and McKee, reversed (E. Cuthill and J. McKee, "Reducing
the bandwidth of sparse symmetric matrices", 1969), unless the given order has a bandwidth of one.
"""

from __future__ import annotations

import functools
import zlib
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.thread_state import lock

from .cholmod import CholmodAnalysis, is_installed
from .operands import Plain, check_structure

_MAX_PATTERNS = 32
_MAX_ENTRIES = 1 << 23  # of all patterns that are kept; the last one is kept in any case
_NARROW = 16  # diagonals below the main one up to which a matrix is stored as a band in any case
_MAX_BELOW = 64  # diagonals: wider bands take longer than factors with fewer elements
_MAX_FILL = 24.0  # elements of a band for each entry in the lower triangle


class Band(NamedTuple):
    """A symmetric matrix as a band, whose element at [j, k] is that in row j + k and column j.

    below : the number of diagonals below the main one, at least 1.
    order : the row of the matrix at each position; None if rows keep their order.
    places : the position of each row, as `order`.
    positions : where the pairs of the pattern are in the band, counted in C order.
    is_full : whether the pairs are all elements below the diagonal of three, in order.
    """

    below: int
    order: Plain | None
    places: Plain | None
    positions: Plain
    is_full: bool

    def at(self, rows: Plain, columns: Plain) -> Plain:
        """The positions of elements in the band; that of [i, j] is that of [j, i]."""
        if self.places is not None:
            rows, columns = self.places[rows], self.places[columns]
        first = np.minimum(rows, columns)
        return first * (self.below + 1) + np.abs(rows - columns)


class MatrixPattern:
    """The pattern of a square matrix in CSR format; entries may be repeated, and in any order.

    Attributes
    ----------
    indices, indptr : ndarray
        Read-only copies.
    size : int
        The number of rows.
    """

    def __init__(self, indices: Plain, indptr: Plain) -> None:
        check_structure(indices, indptr)
        self.indices, self.indptr = indices.copy(), indptr.copy()
        for x in (self.indices, self.indptr):
            x.flags.writeable = False
        self.size = len(indptr) - 1

    def has_arrays(self, indices: Plain, indptr: Plain) -> bool:
        """Whether the index arrays are equal to these."""
        return np.array_equal(self.indptr, indptr) and np.array_equal(self.indices, indices)

    @functools.cached_property
    def rows(self) -> Plain:
        """The row of each given entry."""
        return np.repeat(np.arange(self.size), np.diff(self.indptr))

    @functools.cached_property
    def _merged(self) -> tuple[Plain, Plain] | None:
        """The order of the given entries, and the first of each distinct one; None if all are."""
        numbers = self.rows * self.size + self.indices
        if np.all(numbers[1:] > numbers[:-1]):
            return None
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        is_first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
        return order, np.flatnonzero(is_first)

    @functools.cached_property
    def entries(self) -> tuple[Plain, Plain]:
        """Rows and columns of the distinct entries, in order."""
        if self._merged is None:
            return self.rows, self.indices.astype(np.int64)
        order, starts = self._merged
        return self.rows[order[starts]], self.indices[order[starts]].astype(np.int64)

    def values(self, data: Plain) -> Plain:
        """The values of the distinct entries; those of repeated ones are added."""
        if self._merged is None:
            return data
        order, starts = self._merged
        return np.add.reduceat(data[order], starts)

    @functools.cached_property
    def transposed(self) -> Plain | None:
        """The entry at [j, i] for each distinct one at [i, j]; None without symmetry."""
        rows, columns = self.entries
        order = np.argsort(columns, kind="stable")
        is_symmetric = np.array_equal(rows[order], columns)
        return order if is_symmetric and np.array_equal(columns[order], rows) else None

    @functools.cached_property
    def diagonal(self) -> Plain:
        """The distinct entries in the diagonal."""
        rows, columns = self.entries
        return np.flatnonzero(rows == columns)

    @functools.cached_property
    def pairs(self) -> tuple[Plain, Plain]:
        """The distinct entries below the diagonal, and those at their transposed places."""
        assert self.transposed is not None
        rows, columns = self.entries
        lower = np.flatnonzero(rows > columns)
        return lower, self.transposed[lower]

    @functools.cached_property
    def halves(self) -> tuple[Plain | slice, Plain | slice, Plain | slice]:
        """Where the diagonal and the `pairs` are; slices for three diagonals, which are faster."""
        lower, upper = self.pairs
        return _as_slice(self.diagonal), _as_slice(lower), _as_slice(upper)

    @functools.cached_property
    def may_be_definite(self) -> bool:
        """Whether the pattern is symmetric, and has the whole diagonal."""
        return self.transposed is not None and len(self.diagonal) == self.size

    @functools.cached_property
    def cholmod(self) -> tuple[CholmodAnalysis, Plain] | None:
        """The analysis of CHOLMOD, if it is there, and the entries that it takes, in order."""
        if not self.may_be_definite or self.size < 2 or not is_installed():
            return None
        rows, columns = self.entries
        upper = np.flatnonzero(rows <= columns)  # those of the lower triangle of the transpose
        return CholmodAnalysis(columns[upper], rows[upper], self.size), upper

    @functools.cached_property
    def band(self) -> Band | None:
        """The matrix as a band; None if it is wide, or the pattern is not symmetric."""
        if not self.may_be_definite or self.size < 2:
            return None
        rows, columns = self.entries
        below, places, order = max(1, int(np.max(rows - columns))), None, None
        if below > 1:
            order = self._order()
            places = np.empty(self.size, np.int64)
            places[order] = np.arange(self.size)
            reduced = max(1, int(np.max(places[rows] - places[columns])))
            if reduced < below:
                below = reduced
            else:
                places = order = None
        lower, _ = self.pairs
        is_narrow = self.size * (below + 1) <= _MAX_FILL * (self.size + len(lower))
        if below > _MAX_BELOW or not (is_narrow or below <= _NARROW):
            return None
        band = Band(below, order, places, lower, False)
        positions = band.at(rows[lower], columns[lower])
        every = 2 * np.arange(self.size - 1) + 1
        is_full = below == 1 and order is None and np.array_equal(positions, every)
        return band._replace(positions=positions, is_full=is_full)

    def _order(self) -> Plain:
        """An order of the rows with a small bandwidth."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import reverse_cuthill_mckee

        rows, columns = self.entries
        starts = np.searchsorted(rows, np.arange(self.size + 1))
        parts = np.ones(len(rows), np.int8), columns.astype(np.int32), starts.astype(np.int32)
        pattern = csr_array(parts, shape=(self.size, self.size))
        return np.asarray(reverse_cuthill_mckee(pattern, symmetric_mode=True), np.int64)

    @functools.cached_property
    def band_positions(self) -> Plain:
        """Where each given entry is in the band."""
        assert self.band is not None
        return self.band.at(self.rows, np.asarray(self.indices, np.int64))


def _as_slice(places: Plain) -> Plain | slice:
    """Ascending positions at equal distances as a slice; others as they are."""
    if len(places) < 2:
        return places
    first, step = int(places[0]), int(places[1] - places[0])
    if step > 0 and np.array_equal(places, first + step * np.arange(len(places))):
        return slice(first, int(places[-1]) + 1, step)
    return places


_lock = lock()
_kept: OrderedDict[Any, MatrixPattern] = OrderedDict()


def pattern_of(indices: Plain, indptr: Plain) -> MatrixPattern:
    """The pattern with these index arrays; the last ones are kept.

    Raises
    ------
    ShapeError
        The arrays are not those of a square matrix.
    """
    given: list[Any] = [indices, indptr]
    key = tuple([(x.dtype.str, x.shape, zlib.crc32(x.view(np.uint8))) for x in given])
    with _lock:
        found = _kept.get(key)
        if found is not None:
            _kept.move_to_end(key)
    if found is not None and found.has_arrays(indices, indptr):
        return found
    made = MatrixPattern(indices, indptr)
    with _lock:
        _kept[key] = made
        _kept.move_to_end(key)
        while len(_kept) > 1 and (
            len(_kept) > _MAX_PATTERNS
            or sum([len(x.indices) for x in _kept.values()]) > _MAX_ENTRIES
        ):
            _kept.popitem(last=False)
    return made

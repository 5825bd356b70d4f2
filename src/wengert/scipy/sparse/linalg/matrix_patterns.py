"""Patterns of sparse matrices, with what is planned for them once, and of their factors.

    MatrixPattern   of a square matrix in CSR format: repeated entries, symmetry, bandwidth
    Band            where the entries of a symmetric matrix are in a band, in which order of rows
    pattern_of      the pattern with these index arrays; the last ones are kept
    FACTOR_PATTERN  the pattern of the Cholesky factor of a matrix with a symmetric pattern
    FILLED_LINES    the values of a factor in a larger pattern
    SYMBOLIC        the number of arrays that each takes, after the number of lines
    emit_symbolic   emits both

Rows are reordered by the method of Cuthill and McKee, reversed (E. Cuthill and J. McKee, "Reducing
the bandwidth of sparse symmetric matrices", 1969), unless the given order has a bandwidth of one.

The pattern of a factor is found row by row: the entries of row i are in the columns on the ways in
the elimination tree from each column k of row i of the matrix up to i (T. A. Davis, "Direct methods
for sparse linear systems", 2006, section 4.4).  The tree is found on the way.
"""

from __future__ import annotations

import functools
import zlib
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.backends.llvm.ir.ir_builder import Function, ModuleBuilder, Name, Section
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


FACTOR_PATTERN, FILLED_LINES = "factor_pattern", "filled_lines"
_TREE = ("starts", "indices", "parents", "marks", "counts", "found", "writes")
_FILLED = (
    *("starts", "stops", "indices", "values"),
    *("given_starts", "given_stops", "given_indices", "given_values", "places"),
)
SYMBOLIC = {FACTOR_PATTERN: len(_TREE), FILLED_LINES: len(_FILLED)}


def _at(s: Section, array: str, index: Name, kind: str) -> Name:
    return s.value(f"getelementptr {kind}, ptr %{array}, i64 {index}")


def _number(s: Section, array: str, index: Name) -> Name:
    return s.value(f"load i64, ptr {_at(s, array, index, 'i64')}")


def _index(s: Section, array: str, position: Name) -> Name:
    value = s.value(f"load i32, ptr {_at(s, array, position, 'i32')}")
    return s.value(f"sext i32 {value} to i64")


def _set(s: Section, array: str, index: Name, value: Name) -> None:
    s.write(f"store i64 {value}, ptr {_at(s, array, index, 'i64')}")


def emit_symbolic(module: ModuleBuilder) -> None:
    """Emit the functions of this file."""
    _emit_pattern(module)
    _emit_filled(module)


def _emit_pattern(module: ModuleBuilder) -> None:
    """Count the entries of each column, or write their rows if `writes[0]` is not 0."""
    arguments = [("i64", "n"), *[("ptr", x) for x in _TREE]]
    function = Function(module, FACTOR_PATTERN, arguments, "i64", "#1", linkage="")
    body = function.body
    writes = body.value(f"icmp ne i64 {_number(body, 'writes', '0')}, 0")
    column = function.slot("i64")
    with body.loop("0", "%n") as (s, i):
        _set(s, "marks", i, i)
        after = _number(s, "starts", s.plus(i, "1"))
        with s.loop(_number(s, "starts", i), after) as (t, p):
            t.write(f"store i64 {_index(t, 'indices', p)}, ptr {column}")
            _climb(t, i, column, writes)
    body.write("ret i64 0")
    module.add(function)


def _climb(s: Section, row: Name, column: Name, writes: Name) -> None:
    """Go up the tree to the first column that is marked for this row."""
    number = s.function.number()
    s.block(f"climb{number}")
    k = s.value(f"load i64, ptr {column}")
    new = s.value(f"icmp ne i64 {_number(s, 'marks', k)}, {row}")
    s.write(f"br i1 {new}, label %step{number}, label %top{number}")
    s.label(f"step{number}")
    root = s.value(f"icmp slt i64 {_number(s, 'parents', k)}, 0")
    with s.when(root) as t:
        _set(t, "parents", k, row)
    count = _number(s, "counts", k)
    with s.when(writes) as t:
        narrow = t.value(f"trunc i64 {row} to i32")
        t.write(f"store i32 {narrow}, ptr {_at(t, 'found', count, 'i32')}")
    _set(s, "counts", k, s.plus(count, "1"))
    _set(s, "marks", k, row)
    s.write(f"store i64 {_number(s, 'parents', k)}, ptr {column}")
    s.write(f"br label %climb{number}")
    s.label(f"top{number}")


def _emit_filled(module: ModuleBuilder) -> None:
    """Store given values at their entries in the larger pattern; 1 if there is no such entry."""
    arguments = [("i64", "n"), *[("ptr", x) for x in _FILLED]]
    function = Function(module, FILLED_LINES, arguments, "i64", "#1", linkage="")
    body, failed = function.body, function.slot("i64")
    body.write(f"store i64 0, ptr {failed}")
    with body.loop("0", "%n") as (s, j):
        start, stop = _number(s, "starts", j), _number(s, "stops", j)
        with s.loop(start, stop) as (t, p):
            _set(t, "places", _index(t, "indices", p), p)
        last = _number(s, "given_stops", j)
        with s.loop(_number(s, "given_starts", j), last) as (t, p):
            place = _number(t, "places", _index(t, "given_indices", p))
            known = t.value(f"icmp sge i64 {place}, {start}")
            with t.when(known) as u:
                value = u.value(f"load double, ptr {_at(u, 'given_values', p, 'double')}")
                u.write(f"store double {value}, ptr {_at(u, 'values', place, 'double')}")
            with t.unless(known) as u:
                u.write(f"store i64 1, ptr {failed}")
    result = body.value(f"load i64, ptr {failed}")
    body.write(f"ret i64 {result}")
    module.add(function)

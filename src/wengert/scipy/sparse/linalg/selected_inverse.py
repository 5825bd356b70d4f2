"""Elements of the inverse of a sparse matrix on its pattern: the gradient of its log-determinant.

    transposed_inverse   the elements of the transposed inverse on the pattern of the matrix

They are computed from the LU factors by the recurrence of Takahashi (selected_inverse_kernel.py),
at about the cost of the factorization; by solutions for all columns where the recurrence cannot be
used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array
from scipy.sparse.linalg import splu

from .factors import SparseFactors, factor_of
from .selected_inverse_kernel import (
    TriangularLines,
    closed_lines,
    filled_lines,
    positions,
    solve_on_pattern,
)
from .structure import Plain

_COLUMNS = 256  # right-hand sides of one call


def transposed_inverse(data: Plain, indices: Plain, indptr: Plain, assume: str) -> Plain:
    """The elements of the transposed inverse at the entries of a matrix in CSR format.

    Raises
    ------
    LinAlgError
        The matrix is singular, nearly singular, or not positive definite as it was said to be.
    """
    if data.dtype.kind == "c":
        return _of_complex(data, indices, indptr)
    factor = factor_of(data, indices, indptr, assume)
    factor.check_condition()
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    # inv(a)[j, i] where a[i, j] is an entry
    found = _by_recurrence(factor, rows, np.asarray(indices))
    if found is None:
        found = _by_columns(factor, rows, np.asarray(indices))
    return found.astype(data.dtype if data.dtype.kind == "f" else float, copy=False)


def _of_complex(data: Plain, indices: Plain, indptr: Plain) -> Plain:
    """The same for a complex matrix, by the real matrix [[re, -im], [im, re]] of its elements."""
    n = len(indptr) - 1
    i, j = np.repeat(np.arange(n), np.diff(indptr)), np.asarray(indices, np.int64)
    wide = data.astype(complex)
    values = np.concatenate([wide.real, -wide.imag, wide.imag, wide.real])
    rows = np.concatenate([2 * i, 2 * i, 2 * i + 1, 2 * i + 1])
    columns = np.concatenate([2 * j, 2 * j + 1, 2 * j, 2 * j + 1])
    a = coo_array((values, (rows, columns)), shape=(2 * n, 2 * n)).tocsr()
    factor = factor_of(a.data, a.indices, a.indptr, "gen")
    factor.check_condition()
    entries = np.concatenate([2 * i, 2 * i]), np.concatenate([2 * j, 2 * j + 1])
    found = _by_recurrence(factor, *entries)
    if found is None:
        found = _by_columns(factor, *entries)
    return (found[: len(i)] + 1j * found[len(i) :]).astype(data.dtype)


def _by_recurrence(factor: SparseFactors, rows: Plain, columns: Plain) -> Plain | None:
    """The elements by the recurrence; None if it cannot be used."""
    lu = factor.for_determinants()  # another thread may replace those of the factor
    upper, lower = lu.U, lu.L
    pivots = upper.diagonal()
    if not pivots.all():
        return None
    by_columns = TriangularLines.of(lower)
    if factor.is_symmetric and np.array_equal(lu.perm_r, lu.perm_c):  # U is L.T times the pivots
        scales = np.repeat(pivots, np.diff(lower.indptr))
        by_rows = TriangularLines.of(lower, lower.data * scales)
    else:
        by_rows = TriangularLines.of(upper.tocsr())
    # Factors are those of b = a.T with b[i, j] at [perm_r[i], perm_c[j]]: an element of the
    # transposed inverse of a at [i, j] is one of the inverse of the product at these places.
    q, p = lu.perm_c[rows].astype(np.int64), lu.perm_r[columns].astype(np.int64)
    for closing in (None, _closed, _closed_by_elimination):
        given = by_columns, by_rows
        lines = given if closing is None else closing(*given, p, q)
        places = None if lines is None else _places(*lines, p, q)
        if lines is None or places is None:
            continue
        solved = solve_on_pattern(*lines, pivots)
        if solved is not None:
            below, above, diagonal = solved
            found = diagonal[np.minimum(p, q)]
            found[q > p], found[q < p] = below[places[0]], above[places[1]]
            return found  # type: ignore[no-any-return]
    return None


def _places(
    by_columns: TriangularLines, by_rows: TriangularLines, p: Plain, q: Plain
) -> tuple[Plain, Plain] | None:
    """The positions of elements [q, p] below and above the diagonal; None if one is not there."""
    low, up = q > p, q < p
    places = positions(by_rows, p[low], q[low]), positions(by_columns, q[up], p[up])
    return None if any([np.any(x < 0) for x in places]) else places


def _closed(
    by_columns: TriangularLines, by_rows: TriangularLines, p: Plain, q: Plain
) -> tuple[TriangularLines, TriangularLines] | None:
    """The factors with zeros where elimination could have made other elements.

    SciPy omits elements that are zero by chance, or because entries of the matrix are. The pattern
    without such chance is that of a Cholesky factor, if no rows were exchanged; None if it is not.
    """
    n = len(by_columns.starts)
    off = p != q
    low, high = np.minimum(p, q)[off], np.maximum(p, q)[off]
    pattern = closed_lines(_pattern(csr_array, high, low, n))
    columns = filled_lines(pattern, by_columns)
    rows = filled_lines(pattern, by_rows)
    return None if columns is None or rows is None else (columns, rows)


def _closed_by_elimination(
    by_columns: TriangularLines, by_rows: TriangularLines, p: Plain, q: Plain
) -> tuple[TriangularLines, TriangularLines] | None:
    """The same with exchanged rows: the pattern is that of the factors of an M-matrix.

    In its elimination nothing cancels.
    """
    n = len(by_columns.starts)
    lower_columns, lower_rows = _coordinates(by_columns)
    upper_rows, upper_columns = _coordinates(by_rows)
    i = np.concatenate([p, lower_rows, upper_rows])
    j = np.concatenate([q, lower_columns, upper_columns])
    ones = _pattern(csc_array, i[i != j], j[i != j], n)
    diagonal = np.maximum(ones.sum(axis=0), ones.sum(axis=1)) + 1.0
    own = np.arange(n + 1)
    m_matrix = csc_array((diagonal, own[:-1], own), shape=(n, n)) - ones
    lu = splu(m_matrix, permc_spec="NATURAL", diag_pivot_thresh=0.0)
    if not np.array_equal(lu.perm_r, lu.perm_c):
        return None
    order = np.argsort(lu.perm_c)
    low, up = lu.L.tocoo(), lu.U.tocoo()
    i, j = order[low.row], order[low.col]
    low = _pattern(csc_array, *_joined(i, j, i >= j, lower_rows, lower_columns), n)
    i, j = order[up.row], order[up.col]
    up = _pattern(csr_array, *_joined(i, j, i <= j, upper_rows, upper_columns), n)
    columns = filled_lines(TriangularLines.of(low), by_columns)
    rows = filled_lines(TriangularLines.of(up), by_rows)
    return None if columns is None or rows is None else (columns, rows)


def _joined(i: Plain, j: Plain, keep: Plain, rows: Plain, columns: Plain) -> tuple[Plain, Plain]:
    return np.concatenate([i[keep], rows]), np.concatenate([j[keep], columns])


def _pattern(kind: Any, rows: Plain, columns: Plain, n: int) -> Any:
    """A matrix of ones with entries at these places, which may be repeated; indices are sorted."""
    x = kind(coo_array((np.ones(len(rows)), (rows, columns)), shape=(n, n)))
    x.sum_duplicates()
    x.data[:] = 1.0
    return x


def _coordinates(x: TriangularLines) -> tuple[Plain, Plain]:
    """The line and the index of each entry."""
    counts = x.stops - x.starts
    lines = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(lines)) - np.repeat(np.cumsum(counts) - counts, counts)
    places = np.repeat(x.starts, counts) + within
    return lines, x.indices[places].astype(np.int64)


def _by_columns(factor: SparseFactors, rows: Plain, columns: Plain) -> Plain:
    """The elements by solutions for unit vectors, some at a time."""
    n = factor.matrix.shape[0]
    found = np.empty(len(rows))
    for start in range(0, n, _COLUMNS):
        stop = min(start + _COLUMNS, n)
        unit = np.zeros((n, stop - start))
        unit[np.arange(start, stop), np.arange(stop - start)] = 1.0
        x = factor.solve(unit)  # columns of the inverse
        chosen = (rows >= start) & (rows < stop)
        found[chosen] = x[columns[chosen], rows[chosen] - start]
    return found

"""Elements of an inverse from triangular factors, by the recurrence of Takahashi.

    inverse_at   elements of inv(L U) on the transposed pattern of L + U, at given places

The recurrence (selected_inverse_kernel.py) needs the closed pattern of the factors. Libraries omit
elements that are zero; the closed pattern is found by elimination without values then.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array
from scipy.sparse.linalg import splu

from .selected_inverse_kernel import (
    TriangularLines,
    closed_lines,
    filled_lines,
    positions,
    solve_on_pattern,
)
from .structure import Plain


def inverse_at(
    by_columns: TriangularLines, by_rows: TriangularLines | None, pivots: Plain, q: Plain, p: Plain
) -> Plain | None:
    """Elements of the inverse of the product of two triangular factors.

    Parameters
    ----------
    by_columns, by_rows : TriangularLines
        The columns of L, and the rows of U; None if these are the columns of L times the pivots.
    pivots : ndarray
        The diagonal of U.
    q, p : ndarray
        Rows and columns of the elements; those of the transposed matrix are where it has entries.

    Returns
    -------
    ndarray or None
        None if the recurrence cannot be used.
    """
    if not pivots.all():
        return None
    for closing in (None, _closed, _closed_by_elimination):
        given = by_columns, by_columns if by_rows is None else by_rows
        lines = given if closing is None else closing(*given, p, q)
        places = None if lines is None else _places(*lines, p, q)
        if lines is None or places is None:
            continue
        solved = solve_on_pattern(lines[0], None if by_rows is None else lines[1], pivots)
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

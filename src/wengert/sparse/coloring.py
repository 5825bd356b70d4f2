"""Coloring: groups of columns of a sparse matrix that are computed together.

Two columns without a common row can be computed as a sum, because each row has an entry in only one
of them.  So columns of one color take one pass.  The greedy coloring assigns each column the first
color that none of its rows has; with a bit for each color and row it is linear in the entries.

With a few full rows every column would need its own color.  Such rows are *set apart*: each is
computed by a pass in the other mode (for a symmetric matrix, as a column, by symmetry).

    Coloring                  the passes
    color_columns             the coloring of a pattern, in the best of some orders
    bidirectional_coloring    the same, with some rows set apart
    least                     a lower bound of the number of passes
    is_proper                 whether no two columns of a color have a common row
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .dependency_sets import Sets, relation

Numbers = np.ndarray[Any, np.dtype[np.int64]]
CANDIDATES = 6  # numbers of rows to set apart that are tried


class Coloring(NamedTuple):
    """The passes that compute all entries.

    colors : for each column the number of its pass; -1 for one without entries.
    number : of passes of columns.
    rows : those that are set apart, one pass each.
    """

    colors: Numbers
    number: int
    rows: Numbers

    @property
    def passes(self) -> int:
        """The total number of passes."""
        return self.number + len(self.rows)


def color_columns(pattern: Sets) -> Coloring:
    """Colors for the columns of a pattern: the fewest of several orders."""
    rows = np.zeros(0, np.int64)
    columns = pattern.tocsc()
    counts = np.diff(pattern.indptr)
    bound = int(counts.max(initial=0))  # a row needs a color for each entry
    filled = np.diff(columns.indptr) > 0
    if bound == filled.sum():  # a full row: each column has a different color
        return Coloring(np.where(filled, np.cumsum(filled) - 1, -1), bound, rows)
    best, most = None, 0
    for order in _orders(columns, counts):
        colors = _greedy(columns, order, pattern.shape[0])
        number = int(colors.max(initial=-1)) + 1
        if best is None or number < most:
            best, most = colors, number
        if most == bound:
            break
    assert best is not None
    return Coloring(best, most, rows)


def _orders(columns: Any, counts: Numbers) -> Any:
    """The columns in their order, then those with most conflicts first."""
    size = columns.shape[1]
    yield np.arange(size)
    of_entries = counts[columns.indices] - 1
    meeting = np.bincount(
        np.repeat(np.arange(size), np.diff(columns.indptr)), of_entries, minlength=size
    )
    yield np.argsort(-meeting, kind="stable")


def _greedy(columns: Any, order: Numbers, rows: int) -> Numbers:
    seen = [0] * rows  # the colors that a row has, as bits
    starts, entries = columns.indptr.tolist(), columns.indices.tolist()
    colors = [-1] * columns.shape[1]
    for j in order.tolist():
        inside = entries[starts[j] : starts[j + 1]]
        if not inside:
            continue
        taken = 0
        for i in inside:
            taken |= seen[i]
        free = ~taken & (taken + 1)
        for i in inside:
            seen[i] |= free
        colors[j] = free.bit_length() - 1
    return np.array(colors, np.int64)


def bidirectional_coloring(pattern: Sets, symmetric: bool = False) -> Coloring:
    """The coloring with fewest passes, with full rows set apart if that saves passes.

    Parameters
    ----------
    symmetric : bool
        Then the columns with the same numbers as the rows set apart need no color.
    """
    counts = np.diff(pattern.indptr)
    fullest = np.argsort(-counts, kind="stable")
    # With k rows set apart the fullest of the others is a lower bound of the colors.
    bounds = np.arange(len(counts)) + counts[fullest]
    best: Coloring | None = None
    fewest = np.argsort(bounds, kind="stable")[:CANDIDATES].tolist()
    for k in [k for k in fewest if bounds[k] < bounds[0]]:
        if best is not None and bounds[k] >= best.passes:
            break
        rows = np.sort(fullest[:k])
        found = color_columns(without(pattern, rows, symmetric))
        if best is None or found.number + k < best.passes:
            best = Coloring(found.colors, found.number, rows)
    if best is None or bounds[0] < best.passes:  # without rows set apart, which is slowest
        whole = color_columns(pattern)
        best = whole if best is None or whole.passes <= best.passes else best
    return best


def least(pattern: Sets) -> int:
    """A lower bound of the number of passes, with any rows set apart."""
    fullest = -np.sort(-np.diff(pattern.indptr))
    return int((np.arange(len(fullest) + 1) + np.append(fullest, 0)).min())


def without(pattern: Sets, rows: Numbers, columns: bool = False) -> Sets:
    """The pattern without some rows and, if symmetric, without the columns of the same numbers."""
    entries = pattern.tocoo()
    gone = np.zeros(max(pattern.shape), np.bool_)
    gone[rows] = True
    kept = ~gone[entries.row]
    if columns:
        kept &= ~gone[entries.col]
    return relation(entries.row[kept], entries.col[kept], pattern.shape)


def is_proper(pattern: Sets, coloring: Coloring, symmetric: bool = False) -> bool:
    """Whether no row, except those set apart, has two entries in columns of one color."""
    entries = without(pattern, coloring.rows, symmetric).tocoo()
    of = coloring.colors[entries.col]
    pairs = entries.row.astype(np.int64) * max(coloring.number, 1) + of
    return bool(np.all(of >= 0)) and len(np.unique(pairs)) == len(pairs)

"""Coloring: groups of columns of a sparse matrix that are computed together.

Two columns that have no row in common can be summed without losing anything: each row says which
of the two an entry is of.  So columns of one color are one pass.  The greedy coloring gives each
column the first color that no row of it has seen; a bit for each color and row makes that linear
in the entries.

A few full rows would give every column a color of its own.  They are *set apart*: taken one by
one, in the other mode (for a symmetric matrix, as columns, which say the same).

    Coloring                  which passes there are
    color_columns             the coloring of a pattern, in the better of some orders
    bidirectional_coloring    the same, with the rows that are better taken by themselves
    least                     a number of passes that no coloring is below
    is_proper                 whether no two columns of a color meet
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .dependency_sets import Sets, relation

Numbers = np.ndarray[Any, np.dtype[np.int64]]
CANDIDATES = 6  # numbers of rows to set apart that are tried


class Coloring(NamedTuple):
    """Which passes there are.

    colors : for each column the number of its pass; -1 for one without entries.
    number : how many passes of columns there are.
    rows : those that are set apart, a pass each.
    """

    colors: Numbers
    number: int
    rows: Numbers

    @property
    def passes(self) -> int:
        """How many there are together."""
        return self.number + len(self.rows)


def color_columns(pattern: Sets) -> Coloring:
    """Colors for the columns of a pattern: the order with fewest, of some."""
    rows = np.zeros(0, np.int64)
    columns = pattern.tocsc()
    counts = np.diff(pattern.indptr)
    bound = int(counts.max(initial=0))  # a row needs a color for each entry
    filled = np.diff(columns.indptr) > 0
    if bound == filled.sum():  # a full row: each column has its own
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
    """Columns as they stand, then those that meet most others first."""
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
    """The coloring with fewest passes, full rows being set apart where that pays.

    Parameters
    ----------
    symmetric : bool
        The columns of the same numbers as the rows set apart need no color then.
    """
    counts = np.diff(pattern.indptr)
    fullest = np.argsort(-counts, kind="stable")
    # After setting k rows apart the fullest of the rest is a lower bound of the colors.
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
    if best is None or bounds[0] < best.passes:  # nothing apart, which may take longest
        whole = color_columns(pattern)
        best = whole if best is None or whole.passes <= best.passes else best
    return best


def least(pattern: Sets) -> int:
    """No coloring has fewer passes, whatever is set apart."""
    fullest = -np.sort(-np.diff(pattern.indptr))
    return int((np.arange(len(fullest) + 1) + np.append(fullest, 0)).min())


def without(pattern: Sets, rows: Numbers, columns: bool = False) -> Sets:
    """The pattern with some rows empty, and columns of the same numbers too if asked for."""
    entries = pattern.tocoo()
    gone = np.zeros(max(pattern.shape), np.bool_)
    gone[rows] = True
    kept = ~gone[entries.row]
    if columns:
        kept &= ~gone[entries.col]
    return relation(entries.row[kept], entries.col[kept], pattern.shape)


def is_proper(pattern: Sets, coloring: Coloring, symmetric: bool = False) -> bool:
    """Whether no row that is not set apart has two entries in columns of one color."""
    entries = without(pattern, coloring.rows, symmetric).tocoo()
    of = coloring.colors[entries.col]
    pairs = entries.row.astype(np.int64) * max(coloring.number, 1) + of
    return bool(np.all(of >= 0)) and len(np.unique(pairs)) == len(pairs)

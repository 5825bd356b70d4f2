"""Coloring: groups of columns that are computed together; patterns of linear functions.

    Coloring                the passes
    color_columns           the coloring of a pattern, in the best of some orders
    bidirectional_coloring  the same, with some rows set apart
    least                   a lower bound of the number of passes
    is_proper               whether no two columns of a color have a common row
    pattern_of              the pattern of the matrix of a body, for implicit differentiation

Two columns without a common row can be computed as a sum, because each row has an entry in only one
of them.  So columns of one color take one pass.  The greedy coloring assigns each column the first
color that none of its rows has; with a bit for each color and row it is linear in the entries.

With a few full rows every column would need its own color.  Such rows are *set apart*: each is
computed by a pass in the other mode (for a symmetric matrix, as a column, by symmetry).
"""

from __future__ import annotations

from importlib import import_module
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.graph_classes import Body
from wengert._engine.core.op import REGISTRY
from wengert.errors import ShapeError

from .propagation import propagate
from .rule_context import Sets, nothing, places, relation, size_of, stacked

__all__ = ["color_columns", "operation", "pattern_of"]

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


_MODULES = {
    "linalg.banded_solve": "wengert.scipy.linalg.banded",
    "sparse.solve": "wengert.scipy.sparse.linalg.solve_operation",
    "sparse.near_solve": "wengert.scipy.sparse.linalg.near_solve_operation",
    "scipy_solver": "wengert.scipy.optimize.solver_operation",
}


def operation(name: str) -> Any:
    """The operation of that name; `lookup` would import all of wengert.scipy to find it."""
    if name not in REGISTRY:
        import_module(_MODULES[name])
    return REGISTRY[name]


def pattern_of(body: Body, captured: int) -> Sets | None:
    """The entries of the matrix of a linear function; None if it is not sparse.

    Parameters
    ----------
    body : Body
        Its inputs after the first `captured` are the vector, its outputs the product.
    captured : int
    """
    vector = body.inputs[captured:]
    sizes = [size_of(n.spec) for n in vector]
    columns = sum(sizes)
    starts = accumulate(sizes, initial=0)
    given = [places(size, columns, start) for size, start in zip(sizes, starts, strict=False)]
    try:
        found = propagate(body, [*[None] * captured, *given], columns)
    except ShapeError:  # too many entries
        return None
    pairs = zip(found, body.outputs, strict=True)
    sets = stacked(
        [nothing(size_of(n.spec), columns) if s is None else s for s, n in pairs], columns
    )
    sets.sum_duplicates()
    return sets

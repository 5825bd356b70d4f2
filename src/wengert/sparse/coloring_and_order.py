"""Which entries are computed together (coloring), in which order, and sums of their parts.

    Coloring                the passes
    color_columns           the coloring of a pattern, in the best of some orders
    bidirectional_coloring  the same, with some rows set apart
    least                   a lower bound of the number of passes
    is_proper               whether no two columns of a color have a common row
    pattern_of              the pattern of the matrix of a body, for implicit differentiation
    Given, EntryOrder       the function and the options of the user
    Positions               rows and columns of the entries, in order, and which of them are in the
                            pattern
    summed_at               for each wanted key the sum of the numbers with that key

Two columns without a common row can be computed as a sum, because each row has an entry in only one
of them.  So columns of one color take one pass.  The greedy coloring assigns each column the first
color that none of its rows has; with a bit for each color and row it is linear in the entries.

With a few full rows every column would need its own color.  Such rows are *set apart*: each is
computed by a pass in the other mode (for a symmetric matrix, as a column, by symmetry).

Solvers store matrices in their own way: SuperLU in compressed columns, Ipopt as lists of rows and
columns of the lower triangle.  The vector of entries is computed in that order, so that it can be
passed on without a permutation.

Each number is added to its entry, one array after the other.  The positions are known when the plan
is made, and one thread adds, so the bits of a result repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array

from wengert._engine.autodiff.arguments import Argnums, DifferentiatedCall
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.op import REGISTRY, lookup
from wengert._engine.ops.indexing.template import IndexSlot
from wengert.errors import ArgumentError, ShapeError, at, user_line

from .propagation import propagate
from .rule_context import Numbers, Sets, nothing, places, relation, size_of, stacked

__all__ = ["color_columns", "operation", "pattern_of"]

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


# ---- order of entries --------------------------------------------------------------------------


ORDERS = ("csr", "csc", "coo")
TRIANGLES = (None, "lower", "upper")


class Positions(NamedTuple):
    """The entries of a plan, in order.

    rows, cols : of all entries.
    inside : the indices of those that are in the pattern, or None if all are; the others are zero.
    """

    rows: Numbers
    cols: Numbers
    inside: Numbers | None

    def in_pattern(self) -> tuple[Numbers, Numbers]:
        """Rows and columns of the entries that are in the pattern."""
        if self.inside is None:
            return self.rows, self.cols
        return self.rows[self.inside], self.cols[self.inside]


class EntryOrder:
    """The options ``order``, ``rows``, ``cols`` and ``triangle``.

    Parameters
    ----------
    order : {"csr", "csc", "coo"}
    rows, cols : array_like of int, optional
        The positions in order, for "coo" only.
    triangle : {"lower", "upper"}, optional
    what : str
        The name of the derivative, for errors.
    """

    def __init__(self, order: str, rows: Any, cols: Any, triangle: str | None, what: str) -> None:
        if not isinstance(order, str) or order not in ORDERS:
            raise ArgumentError(f"{what}: order={order!r} is not one of {ORDERS}{at(user_line())}.")
        if not isinstance(triangle, str | None) or triangle not in TRIANGLES:
            raise ArgumentError(
                f"{what}: triangle={triangle!r} is not one of {TRIANGLES}{at(user_line())}."
            )
        if (order == "coo") != (rows is not None) or (order == "coo") != (cols is not None):
            raise ArgumentError(
                f'{what}: order={order!r}: rows and cols are needed for order="coo", and are '
                f"allowed for no other order{at(user_line())}."
            )
        self.order, self.triangle, self.what = order, triangle, what
        self.rows = None if rows is None else _integers(rows, "rows", what)
        self.cols = None if cols is None else _integers(cols, "cols", what)
        if self.rows is not None and self.cols is not None and len(self.rows) != len(self.cols):
            raise ArgumentError(
                f"{what}: rows has {len(self.rows)} elements and cols {len(self.cols)}. Give one "
                f"of each for every entry{at(user_line())}."
            )

    def positions(self, pattern: Sets) -> Positions:
        """The entries, for a pattern in compressed rows with sorted columns.

        Raises
        ------
        ArgumentError
            Given positions are outside the matrix or its triangle, repeated, or lack an entry.
        ShapeError
            A triangle of a matrix that is not square.
        """
        if self.triangle is not None and pattern.shape[0] != pattern.shape[1]:
            raise ShapeError(
                f"{self.what}: triangle={self.triangle!r}: the matrix is not square, its shape is "
                f"{pattern.shape}{at(user_line())}."
            )
        stored = pattern.tocoo()
        rows, cols = stored.row.astype(np.int64), stored.col.astype(np.int64)
        if self.triangle is not None:
            kept = np.flatnonzero(self._in_triangle(rows, cols))
            rows, cols = rows[kept], cols[kept]
        if self.rows is not None and self.cols is not None:
            return self._given(self.rows, self.cols, rows, cols, pattern.shape)
        if self.order == "csc":
            by_column = np.lexsort((rows, cols))
            rows, cols = rows[by_column], cols[by_column]
        return Positions(rows, cols, None)

    def _in_triangle(self, rows: Numbers, cols: Numbers) -> Any:
        return rows >= cols if self.triangle == "lower" else rows <= cols

    def _given(
        self, rows: Numbers, cols: Numbers, found_rows: Numbers, found_cols: Numbers, shape: Any
    ) -> Positions:
        """The positions of the user, for those of the pattern."""
        inside = (rows >= 0) & (rows < shape[0]) & (cols >= 0) & (cols < shape[1])
        if self.triangle is not None:
            inside &= self._in_triangle(rows, cols)
        if not inside.all():
            k = int(np.argmin(inside))
            where = (
                "outside" if self.triangle is None else f"not in the {self.triangle} triangle of"
            )
            raise ArgumentError(
                f"{self.what}: rows[{k}], cols[{k}] = {rows[k]}, {cols[k]} is {where} a matrix of "
                f"shape {tuple(shape)}{at(user_line())}."
            )
        keys = rows * shape[1] + cols
        distinct, first = np.unique(keys, return_index=True)
        if len(distinct) < len(keys):
            k = int(np.setdiff1d(np.arange(len(keys)), first)[0])
            raise ArgumentError(
                f"{self.what}: rows[{k}], cols[{k}] = {rows[k]}, {cols[k]} is given twice. Give "
                f"each entry once{at(user_line())}."
            )
        known = found_rows * shape[1] + found_cols
        missing = np.flatnonzero(~np.isin(known, distinct))
        if missing.size:
            i, j = int(found_rows[missing[0]]), int(found_cols[missing[0]])
            raise ArgumentError(
                f"{self.what}: {missing.size} entries of the pattern, such as ({i}, {j}), are not "
                "in rows and cols, so the matrix would lack them. Add them: the pattern is that "
                f'of a plan with order="csr"{at(user_line())}.'
            )
        stored = np.isin(keys, known)
        return Positions(rows, cols, None if stored.all() else np.flatnonzero(stored))

    def empty(self, positions: Positions, shape: tuple[int, int], kind: Any) -> Any:
        """A matrix of these entries, with zeros, in the format in which they are in order."""
        rows, cols = positions.rows.astype(kind), positions.cols.astype(kind)
        values = np.zeros(len(rows))
        if self.order == "coo":
            return coo_array((values, (rows, cols)), shape=shape)
        outer, inner = (rows, cols) if self.order == "csr" else (cols, rows)
        ends = np.zeros(shape[self.order == "csc"] + 1, kind)
        np.cumsum(np.bincount(outer, minlength=len(ends) - 1), out=ends[1:])
        make = csr_array if self.order == "csr" else csc_array
        whole = make((values, inner, ends), shape=shape, copy=False)
        assert whole.has_canonical_format  # computed once and cached
        return whole


class Given(NamedTuple):
    """A function to be differentiated, its arguments, and options."""

    fun: Callable[..., Any]
    argnums: Argnums
    argnames: str | Sequence[str] | None
    mode: str
    symmetric: bool
    what: str
    order: EntryOrder | None = None  # None: all entries, row by row

    def call(self, args: Any, kwargs: Any) -> DifferentiatedCall:
        """A call with variables in place of the differentiated arguments."""
        return DifferentiatedCall(self.fun, args, kwargs, self.argnums, self.argnames, self.what)


def _integers(given: Any, name: str, what: str) -> Numbers:
    """Row or column numbers as an array of their own."""
    numbers = np.asarray(given)
    if numbers.ndim != 1 or (numbers.dtype.kind not in "iu" and numbers.size):
        raise ArgumentError(
            f"{what}: {name} must be a vector of integers, not {numbers.dtype} of shape "
            f"{numbers.shape}{at(user_line())}."
        )
    return numbers.astype(np.int64)


def summed_at(parts: Sequence[tuple[Numbers, Any]], wanted: Numbers) -> Any:
    """For each wanted key the sum of the numbers with that key; zero if there are none.

    Parameters
    ----------
    parts : sequence of (keys, vector)
        Numbers, with the key of each; -1 for none. Keys that are not wanted are ignored.
    wanted : ndarray of int
        May repeat keys.

    Returns
    -------
    tensor, or None if no number is wanted
    """
    keys, first, back = np.unique(wanted, return_index=True, return_inverse=True)
    # Each key is summed at its own position, if it is wanted once.
    alone = len(keys) == len(wanted)
    place = first if alone else np.arange(len(keys))
    total: Any = None
    for of_part, value in parts:
        at = np.minimum(np.searchsorted(keys, of_part), len(keys) - 1)
        kept = np.flatnonzero(keys[at] == of_part)
        if not kept.size:
            continue
        chosen, targets = value if kept.size == len(at) else value[kept], place[at[kept]]
        if total is None:
            total = lookup("scatter")(chosen, targets, index=IndexSlot(0), shape=(len(keys),))
        else:
            total = lookup("scatter_add")(total, chosen, targets, index=IndexSlot(0))
    return total if alone or total is None else total[back]

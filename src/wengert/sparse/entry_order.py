"""The entries that are asked for, their order, and sums of numbers of the same entry.

    EntryOrder  the options of the user, checked
    Positions   rows and columns of the entries, in order, and which of them are in the pattern
    summed_at   for each wanted key the sum of the numbers with that key

Solvers store matrices in their own way: SuperLU in compressed columns, Ipopt as lists of rows and
columns of the lower triangle.  The vector of entries is computed in that order, so that it can be
passed on without a permutation.

Each number is added to its entry, one array after the other.  The positions are known when the plan
is made, and one thread adds, so the bits of a result repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array

from wengert._engine.core.op import lookup
from wengert._engine.ops.indexing.template import IndexSlot
from wengert.errors import ArgumentError, ShapeError, at, user_line

from .rule_context import Numbers, Sets

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

"""Elements of an inverse from triangular factors: Takahashi's recurrence, and in a band.

    inverse_at         elements of inv(L U) on the transposed pattern of L + U, at given places
    inverse_in_band    elements in a band

The recurrence (selected_inverse_kernel.py) needs the closed pattern of the factors. Libraries omit
elements that are zero; the closed pattern is found by elimination without values then.

In a band, for a = L D L^T with a unit lower triangle L and pivots d, the recurrence is, from the
last column to the first, for Z = inv(a) and r = 1 ... w,

    Z[j + r, j] = -sum over c of Z[j + r, j + c] L[j + c, j]
    Z[j, j] = 1 / d[j] - sum over r of L[j + r, j] Z[j + r, j]

All elements are in the band, so that nothing is gathered: row j + r of the stored band is read once
for the products of both triangles.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array
from scipy.sparse.linalg import splu

from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.backends.llvm.ir.ir_builder import Function, ModuleBuilder, Name, Section
from wengert._engine.backends.llvm.runtime import runtime_library

from .operands import Plain
from .selected_inverse_kernel import (
    TriangularLines,
    closed_lines,
    filled_lines,
    positions,
    solve_on_pattern,
)


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


_NAME = "inverse_in_band"
_ARRAYS = ("lower", "pivots", "inverse", "sums")


def inverse_in_band(lower: Plain, pivots: Plain) -> Plain:
    """The elements of the inverse in the band.

    Parameters
    ----------
    lower : array
        L as a band: the element at [j, k] is that in row j + k and column j, zero outside of the
        matrix.
    pivots : array

    Returns
    -------
    array
        Of the shape of `lower`.
    """
    n, width = lower.shape
    lower, pivots = np.ascontiguousarray(lower, float), np.ascontiguousarray(pivots, float)
    inverse, sums = np.zeros((n + width, width)), np.zeros(width)
    addresses = [x.ctypes.data for x in (lower, pivots, inverse, sums)]
    _function()(n, width, *addresses)
    return inverse[:n]


@functools.cache
def _function() -> Any:
    module = ModuleBuilder()
    _emit(module)
    count, address = ctypes.c_int64, ctypes.c_void_p
    kinds = {_NAME: [count] * 2 + [address] * len(_ARRAYS)}
    text = module.text(execution_engine.heading())
    return ctypes.CFUNCTYPE(count, *kinds[_NAME])(runtime_library.loaded(text, {}, kinds)[_NAME])


def _at(s: Section, array: str, index: Name) -> Name:
    return s.value(f"getelementptr double, ptr %{array}, i64 {index}")


def _double(s: Section, array: str, index: Name) -> Name:
    return s.value(f"load double, ptr {_at(s, array, index)}")


def _product_added(s: Section, total: Name, a: Name, b: Name) -> Name:
    term = s.value(f"fmul reassoc contract double {a}, {b}")
    return s.value(f"fadd reassoc contract double {total}, {term}")


def _emit(module: ModuleBuilder) -> None:
    """The function; it returns 0."""
    arguments = [("i64", "n"), ("i64", "width"), *[("ptr", x) for x in _ARRAYS]]
    function = Function(module, _NAME, arguments, "i64", "#1", linkage="")
    body = function.body
    total = function.slot("double")
    with body.loop("0", "%n") as (s, k):
        j = s.minus(s.minus("%n", "1"), k)
        start = s.times(j, "%width")
        with s.loop("0", "%width") as (t, r):
            t.write(f"store double 0.0, ptr {_at(t, 'sums', r)}")
        with s.loop("1", "%width") as (t, r):
            _row(t, j, start, r, total)
        inverse_pivot = s.value(f"fdiv double 1.0, {_double(s, 'pivots', j)}")
        s.write(f"store double {inverse_pivot}, ptr {total}")
        with s.loop("1", "%width") as (t, r):
            element = t.value(f"fneg double {_double(t, 'sums', r)}")
            place = t.plus(start, r)
            t.write(f"store double {element}, ptr {_at(t, 'inverse', place)}")
            so_far = t.value(f"load double, ptr {total}")
            scaled = t.value(f"fneg double {_double(t, 'lower', place)}")
            t.write(f"store double {_product_added(t, so_far, scaled, element)}, ptr {total}")
        diagonal = s.value(f"load double, ptr {total}")
        s.write(f"store double {diagonal}, ptr {_at(s, 'inverse', start)}")
    body.write("ret i64 0")
    module.add(function)


def _row(t: Section, j: Name, start: Name, r: Name, total: Name) -> None:
    """The products with the elements in row j + r of the band, and in its column."""
    row = t.times(t.plus(j, r), "%width")
    factor = _double(t, "lower", t.plus(start, r))
    first = t.value(f"fmul double {_double(t, 'inverse', row)}, {factor}")
    t.write(f"store double {first}, ptr {total}")
    with t.loop("1", t.minus("%width", r)) as (u, m):
        other = u.plus(r, m)
        element = _double(u, "inverse", u.plus(row, m))
        so_far = u.value(f"load double, ptr {total}")
        weight = _double(u, "lower", u.plus(start, other))
        u.write(f"store double {_product_added(u, so_far, weight, element)}, ptr {total}")
        before = _double(u, "sums", other)
        after = _product_added(u, before, factor, element)
        u.write(f"store double {after}, ptr {_at(u, 'sums', other)}")
    before = _double(t, "sums", r)
    found = t.value(f"load double, ptr {total}")
    after = t.value(f"fadd double {before}, {found}")
    t.write(f"store double {after}, ptr {_at(t, 'sums', r)}")

"""Cholesky, QR and LU factorizations, by LAPACK.

cholesky                 potrf in place: LAPACK reads the transpose, so its upper triangle is our
                         lower one, and no matrix is transposed
qr, completing_columns   geqrf and orgqr
lu_factors               getrf; row exchanges are applied one after the other
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core.symbolic.dim import Length

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import I32, Dtype
from ...ir.simd_value import Lane
from .. import fortran_calls
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import copy, offset, place, write
from . import small_matrices
from .lapack import (
    Workspace,
    batches,
    by_columns,
    distance,
    fail_if_refused,
    fails_unless_finite,
    has_elements,
    is_for_lapack,
    length,
    memory,
    one,
    working,
)


@kernel("cholesky", strided=True)
def cholesky(call: KernelCall) -> None:
    """The triangular factor of positive definite matrices."""
    if small_matrices.is_small(call):
        small_matrices.cholesky(call)
        return
    (a,), (x,) = call.operands, call.results
    n, dtype = x.shape[-1], working(x.dtype)
    upper = bool(call.params.get("upper", False))
    fortran_calls.check_lengths(call, call.number(n))
    call.works(n * n * n)
    info = fortran_calls.whole_cell(call)
    own = "" if dtype == x.dtype else memory(call, n * n, dtype)
    with batches(call, x, 2) as (s, at):
        target = result = one(call, s, x, at, 2)
        if own:
            target = ArrayPointer(own, (n, n), (n, 1), dtype)
        copy(call, s, target, one(call, s, a, at, 2))
        near = distance(call, s, n)
        which = "L" if upper else "U"
        fortran_calls.run(
            call, s, "potrf", dtype, which, length(call, n), target.pointer, near, info
        )
        fail_if_refused(call, s, info)
        zero_beside(call, s, target, lower=not upper)
        if own:
            copy(call, s, result, target)


def zero_beside(call: KernelCall, s: Section, matrix: ArrayPointer, lower: bool) -> None:
    """Put zeros on the other side of the diagonal."""
    rows, columns = (call.number(n) for n in matrix.shape)
    zero = call.language.constant(0, matrix.dtype)
    with s.loop("0", rows) as (t, i):
        start, stop = (t.plus(i, "1"), columns) if lower else ("0", t.smaller(i, columns))
        with t.loop(start, stop) as (u, j):
            write(u, place(call, u, matrix, [i, j]), zero)


class _Reflections:
    """QR factorizations, one after the other.

    Parameters
    ----------
    rows, columns : Length
        Of the matrices.
    rank : Length
        The smaller of both.
    wide : Length
        The number of columns of Q that are needed.
    """

    def __init__(
        self,
        call: KernelCall,
        rows: Length,
        columns: Length,
        rank: Length,
        wide: Length,
        dtype: Dtype,
    ) -> None:
        self.call, self.dtype = call, dtype
        self.rows, self.columns, self.rank, self.wide = rows, columns, rank, wide
        fortran_calls.check_lengths(call, *[call.number(n) for n in (rows, columns)])
        call.works(rows * columns * wide * 4)
        size = rows * (wide + columns)  # either may be the larger one
        self.memory = memory(call, size, dtype)
        self.matrix = by_columns(self.memory, rows, columns, dtype)
        self.tau, self.info = memory(call, rank, dtype), fortran_calls.whole_cell(call)
        space, s = Workspace(call, dtype), call.section
        self.first = space.asked("geqrf", *self._factor(s, space.cell, -1))
        self.second = space.asked("orgqr", *self._build(s, space.cell, -1))

    def _factor(self, s: Section, work: Name, count: int | tuple[str, ...]) -> list[Any]:
        call, near = self.call, distance(self.call, s, self.rows)
        m, n = length(call, self.rows), length(call, self.columns)
        return [m, n, self.memory, near, self.tau, work, count, self.info]

    def _build(self, s: Section, work: Name, count: int | tuple[str, ...]) -> list[Any]:
        call, near = self.call, distance(self.call, s, self.rows)
        sizes = [length(call, n) for n in (self.rows, self.wide, self.rank)]
        return [*sizes, self.memory, near, self.tau, work, count, self.info]

    def factor(self, s: Section, a: ArrayPointer) -> None:
        """Factorize a matrix."""
        copy(self.call, s, self.matrix, a)
        fortran_calls.run(self.call, s, "geqrf", self.dtype, *self._factor(s, *self.first))
        fail_if_refused(self.call, s, self.info)

    def build(self, s: Section) -> ArrayPointer:
        """Q of the last factorization, which is overwritten."""
        fortran_calls.run(self.call, s, "orgqr", self.dtype, *self._build(s, *self.second))
        fail_if_refused(self.call, s, self.info)
        return by_columns(self.memory, self.rows, self.wide, self.dtype)


@kernel("qr", strided=True, serves=has_elements)
def qr(call: KernelCall) -> None:
    """Q with orthonormal columns and upper triangular R."""
    (a,), (q, r) = call.operands, call.results
    rows, rank, columns = q.shape[-2], q.shape[-1], r.shape[-1]
    found = _Reflections(call, rows, columns, rank, rank, working(q.dtype))
    top = found.matrix._replace(shape=(rank, columns))
    with batches(call, q, 2) as (s, at):
        found.factor(s, one(call, s, a, at, 2))
        target = one(call, s, r, at, 2)
        copy(call, s, target, top)
        zero_beside(call, s, target, lower=False)
        copy(call, s, one(call, s, q, at, 2), found.build(s))


@kernel("completing_columns", strided=True, serves=has_elements)
def completing_columns(call: KernelCall) -> None:
    """The columns that complete those of tall matrices to a basis."""
    (a,), (x,) = call.operands, call.results
    if x.shape[-1] == 0:
        return
    rows, columns = a.shape[-2:]
    found = _Reflections(call, rows, columns, columns, rows, working(x.dtype))
    with batches(call, x, 2) as (s, at):
        found.factor(s, one(call, s, a, at, 2))
        q = found.build(s)
        behind = s.times(call.number(columns), call.number(rows))
        pointer = offset(s, q.pointer, behind, q.dtype)
        rest = ArrayPointer(pointer, x.shape[-2:], q.strides, q.dtype)
        copy(call, s, one(call, s, x, at, 2), rest)


@kernel("linalg.lu_factors", strided=True, serves=is_for_lapack)
def lu_factors(call: KernelCall) -> None:
    """L, U and the order of rows p with a[p] = L @ U; NaN and infinity make the step fail."""
    (a,), (low, up, order) = call.operands, call.results
    rows, columns, rank, dtype = a.shape[-2], a.shape[-1], low.shape[-1], low.dtype
    fortran_calls.check_lengths(call, *[call.number(n) for n in (rows, columns)])
    call.works(rows * columns * rank)
    matrix = by_columns(memory(call, rows * columns, dtype), rows, columns, dtype)
    pivots, info = memory(call, rank, I32), fortran_calls.whole_cell(call)
    language = call.language
    with batches(call, low, 2) as (s, at):
        copy(call, s, matrix, one(call, s, a, at, 2))
        fails_unless_finite(call, s, matrix)
        sizes = (length(call, rows), length(call, columns))
        near = distance(call, s, rows)
        fortran_calls.run(call, s, "getrf", dtype, *sizes, matrix.pointer, near, pivots, info)
        left, right, places = (one(call, s, x, at, n) for x, n in ((low, 2), (up, 2), (order, 1)))
        copy(call, s, left, matrix._replace(shape=(rows, rank)))
        zero_beside(call, s, left, lower=True)
        copy(call, s, right, matrix._replace(shape=(rank, columns)))
        zero_beside(call, s, right, lower=False)
        with s.loop("0", call.number(rows)) as (t, i):
            write(t, place(call, t, places, [i]), Lane(language, t, i, places.dtype, 1))
        with s.loop("0", call.number(rank)) as (t, i):
            write(t, place(call, t, left, [i, i]), language.constant(1, dtype))
            kept = t.value(f"load i32, ptr {offset(t, pivots, i, I32)}")
            other = t.plus(t.value(f"sext i32 {kept} to i64"), "-1")
            both = [place(call, t, places, [k]) for k in (i, other)]
            x, y = (t.value(f"load i64, ptr {p}") for p in both)
            t.write(f"store i64 {y}, ptr {both[0]}")
            t.write(f"store i64 {x}, ptr {both[1]}")

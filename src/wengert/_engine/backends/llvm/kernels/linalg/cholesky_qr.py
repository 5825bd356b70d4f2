"""Cholesky, QR and LU factorizations, by LAPACK.

cholesky                 potrf in place; LAPACK sees the transpose, whose upper triangle is the
                         lower one of the row-major matrix, so nothing is transposed
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
from ..loop_helpers import address, copy, offset, write
from . import small_matrices
from .lapack import (
    Workspace,
    batch_item,
    batches,
    column_major,
    fail_on_error,
    fail_unless_finite,
    has_elements,
    is_for_lapack,
    leading_dimension,
    length,
    memory,
    working_dtype,
)


@kernel("cholesky", strided=True, in_lanes=True)
def cholesky(call: KernelCall) -> None:
    """The triangular factor of positive definite matrices."""
    if small_matrices.is_small(call):
        small_matrices.cholesky(call)
        return
    (a,), (x,) = call.operands, call.results
    n, dtype = x.shape[-1], working_dtype(x.dtype)
    upper = bool(call.params.get("upper", False))
    fortran_calls.check_lengths(call, call.number(n))
    call.record_flops(n * n * n)
    info = fortran_calls.integer_slot(call)
    factor_memory = "" if dtype == x.dtype else memory(call, n * n, dtype)
    with batches(call, x, 2) as (s, index):
        factor = result = batch_item(call, s, x, index, 2)
        if factor_memory:
            factor = ArrayPointer(factor_memory, (n, n), (n, 1), dtype)
        copy(call, s, factor, batch_item(call, s, a, index, 2))
        lda = leading_dimension(call, s, n)
        uplo = "L" if upper else "U"
        fortran_calls.run(call, s, "potrf", dtype, uplo, length(call, n), factor.pointer, lda, info)
        fail_on_error(call, s, info)
        clear_triangle(call, s, factor, lower=not upper)
        if factor_memory:
            copy(call, s, result, factor)


def clear_triangle(call: KernelCall, s: Section, matrix: ArrayPointer, lower: bool) -> None:
    """Clear the triangle above the diagonal, or the one below if not `lower`."""
    rows, columns = (call.number(n) for n in matrix.shape)
    zero = call.language.constant(0, matrix.dtype)
    with s.loop("0", rows) as (t, i):
        start, stop = (t.plus(i, "1"), columns) if lower else ("0", t.smaller(i, columns))
        with t.loop(start, stop) as (u, j):
            write(u, address(call, u, matrix, [i, j]), zero)


class _QR:
    """QR factorizations, one after the other.

    Parameters
    ----------
    rows, columns : Length
        The shape of the matrices.
    rank : Length
        The smaller of both lengths.
    q_columns : Length
        The number of columns of Q that are needed.
    """

    def __init__(
        self,
        call: KernelCall,
        rows: Length,
        columns: Length,
        rank: Length,
        q_columns: Length,
        dtype: Dtype,
    ) -> None:
        self.call, self.dtype = call, dtype
        self.rows, self.columns, self.rank, self.q_columns = rows, columns, rank, q_columns
        fortran_calls.check_lengths(call, *[call.number(n) for n in (rows, columns)])
        call.record_flops(rows * columns * q_columns * 4)
        size = rows * (q_columns + columns)  # either may be the larger one
        self.memory = memory(call, size, dtype)
        self.matrix = column_major(self.memory, rows, columns, dtype)
        self.tau, self.info = memory(call, rank, dtype), fortran_calls.integer_slot(call)
        workspace, s = Workspace(call, dtype), call.section
        self.factor_workspace = workspace.query("geqrf", *self._factor(s, workspace.cell, -1))
        self.build_workspace = workspace.query("orgqr", *self._build(s, workspace.cell, -1))

    def _factor(self, s: Section, work: Name, count: int | tuple[str, ...]) -> list[Any]:
        call, lda = self.call, leading_dimension(self.call, s, self.rows)
        m, n = length(call, self.rows), length(call, self.columns)
        return [m, n, self.memory, lda, self.tau, work, count, self.info]

    def _build(self, s: Section, work: Name, count: int | tuple[str, ...]) -> list[Any]:
        call, lda = self.call, leading_dimension(self.call, s, self.rows)
        sizes = [length(call, n) for n in (self.rows, self.q_columns, self.rank)]
        return [*sizes, self.memory, lda, self.tau, work, count, self.info]

    def factor(self, s: Section, a: ArrayPointer) -> None:
        """Factorize a matrix."""
        copy(self.call, s, self.matrix, a)
        fortran_calls.run(
            self.call, s, "geqrf", self.dtype, *self._factor(s, *self.factor_workspace)
        )
        fail_on_error(self.call, s, self.info)

    def build(self, s: Section) -> ArrayPointer:
        """Q of the last factorization, which is overwritten."""
        fortran_calls.run(self.call, s, "orgqr", self.dtype, *self._build(s, *self.build_workspace))
        fail_on_error(self.call, s, self.info)
        return column_major(self.memory, self.rows, self.q_columns, self.dtype)


@kernel("qr", strided=True, serves=has_elements)
def qr(call: KernelCall) -> None:
    """Q with orthonormal columns and upper triangular R."""
    (a,), (q, r) = call.operands, call.results
    rows, rank, columns = q.shape[-2], q.shape[-1], r.shape[-1]
    factorization = _QR(call, rows, columns, rank, rank, working_dtype(q.dtype))
    upper_rows = factorization.matrix._replace(shape=(rank, columns))
    with batches(call, q, 2) as (s, index):
        factorization.factor(s, batch_item(call, s, a, index, 2))
        target = batch_item(call, s, r, index, 2)
        copy(call, s, target, upper_rows)
        clear_triangle(call, s, target, lower=False)
        copy(call, s, batch_item(call, s, q, index, 2), factorization.build(s))


@kernel("completing_columns", strided=True, serves=has_elements)
def completing_columns(call: KernelCall) -> None:
    """The columns that complete those of tall matrices to a basis."""
    (a,), (x,) = call.operands, call.results
    if x.shape[-1] == 0:
        return
    rows, columns = a.shape[-2:]
    factorization = _QR(call, rows, columns, columns, rows, working_dtype(x.dtype))
    with batches(call, x, 2) as (s, index):
        factorization.factor(s, batch_item(call, s, a, index, 2))
        q = factorization.build(s)
        distance = s.times(call.number(columns), call.number(rows))
        pointer = offset(s, q.pointer, distance, q.dtype)
        completing = ArrayPointer(pointer, x.shape[-2:], q.strides, q.dtype)
        copy(call, s, batch_item(call, s, x, index, 2), completing)


@kernel("linalg.lu_factors", strided=True, serves=is_for_lapack)
def lu_factors(call: KernelCall) -> None:
    """L, U and the permutation p with a[p] = L @ U; the kernel fails for NaN and infinity."""
    (a,), (low, up, order) = call.operands, call.results
    rows, columns, rank, dtype = a.shape[-2], a.shape[-1], low.shape[-1], low.dtype
    fortran_calls.check_lengths(call, *[call.number(n) for n in (rows, columns)])
    call.record_flops(rows * columns * rank)
    matrix = column_major(memory(call, rows * columns, dtype), rows, columns, dtype)
    pivots, info = memory(call, rank, I32), fortran_calls.integer_slot(call)
    language = call.language
    with batches(call, low, 2) as (s, index):
        copy(call, s, matrix, batch_item(call, s, a, index, 2))
        fail_unless_finite(call, s, matrix)
        sizes = (length(call, rows), length(call, columns))
        lda = leading_dimension(call, s, rows)
        fortran_calls.run(call, s, "getrf", dtype, *sizes, matrix.pointer, lda, pivots, info)
        lower, upper, row_order = (
            batch_item(call, s, x, index, n) for x, n in ((low, 2), (up, 2), (order, 1))
        )
        copy(call, s, lower, matrix._replace(shape=(rows, rank)))
        clear_triangle(call, s, lower, lower=True)
        copy(call, s, upper, matrix._replace(shape=(rank, columns)))
        clear_triangle(call, s, upper, lower=False)
        with s.loop("0", call.number(rows)) as (t, i):
            write(t, address(call, t, row_order, [i]), Lane(language, t, i, row_order.dtype, 1))
        with s.loop("0", call.number(rank)) as (t, i):
            write(t, address(call, t, lower, [i, i]), language.constant(1, dtype))
            pivot = t.value(f"load i32, ptr {offset(t, pivots, i, I32)}")
            other = t.plus(t.value(f"sext i32 {pivot} to i64"), "-1")
            addresses = [address(call, t, row_order, [k]) for k in (i, other)]
            x, y = (t.value(f"load i64, ptr {p}") for p in addresses)
            t.write(f"store i64 {y}, ptr {addresses[0]}")
            t.write(f"store i64 {x}, ptr {addresses[1]}")

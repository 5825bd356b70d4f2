"""Cholesky, QR and LU factorizations, and the cotangent of the first.

    cholesky               potrf in place; LAPACK sees the transpose, whose upper triangle is the
                           lower one of the row-major matrix, so nothing is transposed
    qr, completing_columns geqrf and orgqr
    lu_factors             getrf; row exchanges are applied one after the other
    cholesky_cotangent     matrices with few rows: one per SIMD lane; others: in blocks, with BLAS

Blocks of columns are computed from the last to the first.  `out` is the result, which is Hermitian,
D a diagonal block of the factor, and C the columns of the factor below it:

    rest = (t - 2 out C) inv(D)       the rows below; half of it is that part of the result
    block of out = adjoint(inv(D)) S inv(D), S from adjoint(D) @ (t - adjoint(rest) @ C)

with S as in ops/linalg/factorizations.py.  In SIMD lanes each column is a block.
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core.symbolic.dim import Length

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import F16, F32, I32, Dtype
from ...ir.simd_value import ComplexLane, Lane
from ...tuning import thresholds
from .. import fortran_calls
from ..batched_matrices import Block, SimdMatrix, blocks, each
from ..fortran_calls import (
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
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import (
    address,
    copy,
    in_section,
    is_c_contiguous,
    offset,
    read,
    transposer,
    write,
)
from . import small_matrices
from .small_matrices import MAX_ROWS


@kernel("cholesky", strided=True, in_lanes=True)
def cholesky(call: KernelCall) -> None:
    """The triangular factor of positive definite matrices."""
    if small_matrices.is_small(call):
        small_matrices.cholesky(call)
        return
    (a,), (x,) = call.operands, call.results
    n, dtype = x.shape[-1], working_dtype(x.dtype)
    upper = bool(call.params.get("upper", False))
    fortran_calls.check_lengths(call, n)
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
        fortran_calls.check_lengths(call, rows, columns)
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
        arguments = self._factor(s, *self.factor_workspace)
        fortran_calls.run(self.call, s, "geqrf", self.dtype, *arguments)
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
    fortran_calls.check_lengths(call, rows, columns)
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


# ---- the cotangent of a Cholesky factorization ---------------------------------------------------


def _is_small(call: KernelCall) -> bool:
    n = call.operands[0].shape[-1]
    return type(n) is int and 1 <= n <= MAX_ROWS and all(x.dtype.kind != "c" for x in call.operands)


@kernel("cholesky_cotangent", strided=True, in_lanes=True)
def cholesky_cotangent(call: KernelCall) -> None:
    """The cotangent of a matrix, from that of its Cholesky factor."""
    if _is_small(call):
        _in_lanes(call)
        return
    low, t = call.operands
    (x,) = call.results
    n, dtype = x.shape[-1], F32 if x.dtype == F16 else x.dtype
    fortran_calls.check_lengths(call, n)
    call.record_flops(n * n * n)
    square = memory(call, thresholds.cholesky_vjp_columns**2, dtype)
    matrix = low._replace(shape=low.shape[-2:], strides=low.strides[-2:])
    is_usable = [low.dtype == dtype and is_c_contiguous(matrix), x.dtype == dtype]
    factor, result_memory = (
        None if r else ArrayPointer(memory(call, n * n, dtype), (n, n), (n, 1), dtype)
        for r in is_usable
    )
    with batches(call, x, 2) as (s, index):
        factor_i, result = batch_item(call, s, low, index, 2), batch_item(call, s, x, index, 2)
        if factor is not None:
            copy(call, s, factor, factor_i)
            factor_i = factor
        _ColumnBlocks(
            call, factor_i, batch_item(call, s, t, index, 2), result_memory or result, square
        ).write(s)
        if result_memory is not None:
            copy(call, s, result, result_memory)


def _in_lanes(call: KernelCall) -> None:
    low, t = call.operands
    (x,) = call.results
    n: Any = x.shape[-1]
    dtype = F32 if x.dtype == F16 else x.dtype

    def write_block(block: Block) -> None:
        language, s = call.language, block.section
        factor, out = SimdMatrix(block, n, n, dtype), SimdMatrix(block, n, n, dtype)
        unrolled = factor.unrolled
        for u, i in each(s, 0, n, unrolled):
            for v, j in each(u, 0, u.plus(i, "1"), unrolled):
                factor.put(v, language.cast(block.element(0, v, (i, j)), dtype), i, j)
                out.put(v, language.cast(block.element(1, v, (i, j)), dtype), i, j)
        total = SimdMatrix(block, 1, dtype=dtype)
        for u, j in each(s, 0, n, unrolled, down=True):
            after = u.plus(j, "1")
            inverse = 1 / factor.get(u, j, j)
            # `rest` is kept in the upper triangle until the diagonal element has been computed
            for v, i in each(u, after, n, unrolled):
                total.put(v, 0)
                for w, k in each(v, after, n, unrolled):
                    product = out.get(w, i, k), factor.get(w, k, j)
                    total.put(w, language.fma(*product, total.get(w)))
                rest = (out.get(v, i, j) - 2 * total.get(v)) * in_section(v, inverse)
                out.put(v, rest, j, i)
            total.put(u, out.get(u, j, j))
            for v, i in each(u, after, n, unrolled):
                rest = out.get(v, j, i)
                total.put(v, language.fma(-rest, factor.get(v, i, j), total.get(v)))
                out.put(v, rest * 0.5, i, j)
                out.put(v, rest * 0.5, j, i)
            out.put(u, total.get(u) * in_section(u, inverse) * 0.5, j, j)
        for u, i in each(s, 0, n, unrolled):
            for v, j in each(u, 0, n, unrolled):
                block.set_element(2, v, out.get(v, i, j), (i, j))

    blocks(call, [(low, 2), (t, 2), (x, 2)], dtype, write_block)


class _ColumnBlocks:
    """One matrix, by blocks of columns.

    BLAS sees all matrices as transposes: the factor is an upper triangle, and every formula is
    transposed.  Half of `rest` is computed directly in the result.

    Parameters
    ----------
    low, t, out : ArrayPointer
        One matrix each; `low` and `out` in C order.
    square : Name
        Memory for one block.
    """

    def __init__(
        self, call: KernelCall, low: ArrayPointer, t: ArrayPointer, out: ArrayPointer, square: Name
    ) -> None:
        self.call, self.n, self.dtype = call, out.shape[-1], out.dtype
        self.lda = length(call, self.n)
        self.columns = thresholds.cholesky_vjp_columns
        self.square = column_major(square, self.columns, self.columns, self.dtype)
        n = self.n
        self.low, self.out = (column_major(x.pointer, n, n, self.dtype) for x in (low, out))
        self.t = t._replace(strides=t.strides[::-1])
        self.adjoint = "C" if self.dtype.kind == "c" else "T"

    def _product(
        self, s: Section, sizes: tuple[str, ...], a: Name, b: Name, c: tuple[Any, ...], trans_b: str
    ) -> None:
        """c -= 2 a @ op(b)."""
        call, lda = self.call, self.lda
        factor, unit = (fortran_calls.number(call, x, self.dtype) for x in (-2, 1))
        counts = [("int", x) for x in sizes]
        arguments = ("N", trans_b, *counts, factor, a, lda, b, lda, unit, *c)
        fortran_calls.run(call, s, "gemm", self.dtype, *arguments)

    def _divide(
        self,
        s: Section,
        position: str,
        sizes: tuple[str, ...],
        d: Name,
        b: tuple[Any, ...],
        scale: float = 1.0,
    ) -> None:
        """b = scale * inv(d) @ b, or scale * b @ adjoint(inv(d)), with d upper triangular."""
        side, trans = ("L", "N") if position == "left" else ("R", self.adjoint)
        factor = fortran_calls.number(self.call, scale, self.dtype)
        counts = [("int", x) for x in sizes]
        arguments = (side, "U", trans, "N", *counts, factor, d, self.lda, *b)
        fortran_calls.run(self.call, s, "trsm", self.dtype, *arguments)

    def write(self, s: Section) -> None:
        """Compute `out` from `low` and `t`."""
        call, n = self.call, self.call.number(self.n)
        columns = str(self.columns)
        count = s.value(f"sdiv i64 {s.plus(n, str(self.columns - 1))}, {columns}")
        with s.loop("0", count) as (t, k):
            stop = t.minus(n, t.times(k, columns))
            width = t.smaller(stop, columns)
            start, below = t.minus(stop, width), t.minus(n, stop)
            diagonal = address(call, t, self.low, [start, start])
            self._copy_from_t(t, self.square, start, start, (width, width))
            with t.when(t.value(f"icmp sgt i64 {below}, 0")) as u:
                right = self.out._replace(pointer=address(call, u, self.out, [start, stop]))
                self._copy_from_t(u, right, start, stop, (width, below))
                column = address(call, u, self.low, [start, stop])
                computed = address(call, u, self.out, [stop, stop])
                rest = (right.pointer, self.lda)
                self._product(u, (width, below, below), column, computed, rest, "N")
                self._divide(u, "left", (width, below), diagonal, rest, 0.5)
                square = (self.square.pointer, self.columns)
                self._product(u, (width, width, below), column, rest[0], square, self.adjoint)
                self._write_adjoint(u, right, start, stop, (width, below))
            self._solve_block(t, width, diagonal)
            block = self.out._replace(pointer=address(call, t, self.out, [start, start]))
            self._write_block(t, block, width)

    def _copy_from_t(
        self, s: Section, to: ArrayPointer, row: Name, column: Name, sizes: Any
    ) -> None:
        call, language = self.call, self.call.language
        part = self.t._replace(pointer=address(call, s, self.t, [row, column]))
        with s.loop("0", sizes[1]) as (t, j), t.loop("0", sizes[0]) as (u, i):
            value = read(language, u, address(call, u, part, [i, j]), part.dtype)
            write(u, address(call, u, to, [i, j]), language.cast(value, self.dtype))

    def _write_adjoint(
        self, s: Section, right: ArrayPointer, start: Name, stop: Name, sizes: tuple[str, ...]
    ) -> None:
        """Write the part below a block: the adjoint of the part to its right."""
        call, language, dtype = self.call, self.call.language, self.dtype
        below = self.out._replace(pointer=address(call, s, self.out, [stop, start]))
        if dtype.kind == "c":
            with s.loop("0", sizes[1]) as (t, j), t.loop("0", sizes[0]) as (u, i):
                value = read(language, u, address(call, u, right, [i, j]), dtype)
                write(u, address(call, u, below, [j, i]), _conjugate(language, value))
            return
        function, n = transposer(call.module, dtype.itemsize), call.number(self.n)
        arguments = ", ".join(f"i64 {x}" for x in (*sizes, n, n))
        s.write(f"call void @{function}(ptr {below.pointer}, ptr {right.pointer}, {arguments})")

    def _solve_block(self, s: Section, width: Name, diagonal: Name) -> None:
        """Compute a diagonal block of the result in `square`, from its upper triangle."""
        call, square, language, dtype = self.call, self.square, self.call.language, self.dtype
        zero = language.constant(0, dtype)
        with s.loop("0", width) as (t, j), t.loop(t.plus(j, "1"), width) as (u, i):
            write(u, address(call, u, square, [i, j]), zero)
        unit, size = fortran_calls.number(call, 1, dtype), ("int", width)
        target = (square.pointer, self.columns)
        arguments = ("R", "U", self.adjoint, "N", size, size, unit, diagonal, self.lda, *target)
        fortran_calls.run(call, s, "trmm", dtype, *arguments)
        with s.loop("0", width) as (t, j):
            with t.loop("0", j) as (u, i):
                half = _halved(language, read(language, u, address(call, u, square, [i, j]), dtype))
                write(u, address(call, u, square, [i, j]), half)
                write(u, address(call, u, square, [j, i]), _conjugate(language, half))
            pointer = address(call, t, square, [j, j])
            write(t, pointer, _real(language, _halved(language, read(language, t, pointer, dtype))))
        self._divide(s, "left", (width, width), diagonal, target)
        self._divide(s, "right", (width, width), diagonal, target)

    def _write_block(self, s: Section, block: ArrayPointer, width: Name) -> None:
        """Write the diagonal block: its Hermitian part."""
        call, language, dtype = self.call, self.call.language, self.dtype
        with s.loop("0", width) as (t, j), t.loop("0", width) as (u, i):
            pair = [
                read(language, u, address(call, u, self.square, indices), dtype)
                for indices in ([i, j], [j, i])
            ]
            mean = _halved(language, pair[0] + _conjugate(language, pair[1]))
            write(u, address(call, u, block, [i, j]), mean)


def _halved(language: Any, x: Any) -> Any:
    if type(x) is ComplexLane:
        return ComplexLane(language, x.real * 0.5, x.imag * 0.5, x.dtype)
    return x * 0.5


def _conjugate(language: Any, x: Any) -> Any:
    return ComplexLane(language, x.real, -x.imag, x.dtype) if type(x) is ComplexLane else x


def _real(language: Any, x: Any) -> Any:
    """A number without its imaginary part."""
    if type(x) is ComplexLane:
        return ComplexLane(language, x.real, language.constant(0, x.imag.dtype), x.dtype)
    return x

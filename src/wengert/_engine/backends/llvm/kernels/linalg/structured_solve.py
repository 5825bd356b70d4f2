"""Linear systems whose matrix has a known structure.

    linalg.banded_solve             gtsv (tridiagonal), gbsv
    linalg.definite_banded_solve    pbsv
    linalg.structured_solve         positive definite: potrf, potrs; pocon estimates the condition
    interpolate.banded              gbsv
    solve_triangular                trsm, on the right-hand side in C order; small systems:
                                    small_matrices.py
    linalg.toeplitz_solve           Levinson's recursion, which adds a row in each step: n**2
                                    operations for each column

The kernels fail for NaN, infinity and singular or nearly singular matrices (Toeplitz: leading
submatrices); the interpreter then raises or warns as SciPy does.  Other structures are host
callbacks.

The diagonals of banded matrices are rows, ab[upper + i - j, j] = A[i, j].  LAPACK's array is
column-major, with extra rows above for the fill-in of pivoting.  For a conjugate transpose,
elements are moved to the mirrored diagonals while they are copied.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.ops.linalg.factorizations import TRANS

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import F64, I32, Dtype, part_of
from ...ir.simd_value import ComplexLane
from .. import fortran_calls
from ..fortran_calls import (
    batch_item,
    batches,
    column_major,
    element,
    fail_on_error,
    fail_unless_finite,
    is_for_lapack,
    leading_dimension,
    length,
    memory,
    working_dtype,
)
from ..kernel_call import ArrayPointer, KernelCall, contiguous, kernel
from ..loop_helpers import (
    address,
    clear,
    copy,
    is_c_contiguous,
    nest,
    offset,
    read,
    stack_slot,
    write,
)
from . import small_matrices as small
from .lu_solve import one_norm
from .packed_factors import fail_at_zero
from .schur import absolute


@kernel("linalg.banded_solve", strided=True, serves=is_for_lapack)
def banded_solve(call: KernelCall) -> None:
    """x with a @ x = b, a in banded form."""
    ab, b = call.operands
    (x,) = call.results
    below, above = int(call.params["below"]), int(call.params["above"])
    if below == above == 1:  # as SciPy does; a third of the time of gbsv
        _tridiagonal_solve(call)
        return
    n, columns, dtype = x.shape[-2], x.shape[-1], x.dtype
    band_rows = 2 * below + above + 1
    fortran_calls.check_lengths(call, n, columns)
    call.record_flops(n * (band_rows * band_rows + columns * band_rows))
    # gbsv needs rows above the band for the fill-in of elimination
    matrix = column_major(memory(call, n * band_rows, dtype), band_rows, n, dtype)
    rhs = column_major(memory(call, n * columns, dtype), n, columns, dtype)
    pivots, info = memory(call, n, I32), fortran_calls.integer_slot(call)
    with batches(call, x, 2) as (s, index):
        clear(call, s, matrix.pointer, n * band_rows, dtype)
        band = matrix._replace(
            pointer=offset(s, matrix.pointer, str(below), dtype), shape=(below + above + 1, n)
        )
        copy(call, s, band, batch_item(call, s, ab, index, 2))
        copy(call, s, rhs, batch_item(call, s, b, index, 2))
        fail_unless_finite(call, s, matrix)
        fail_unless_finite(call, s, rhs)
        sizes = (length(call, n), below, above, length(call, columns))
        ldb = leading_dimension(call, s, n)
        arguments = (*sizes, matrix.pointer, band_rows, pivots, rhs.pointer, ldb, info)
        fortran_calls.run(call, s, "gbsv", dtype, *arguments)
        _fail_or_put_nan(call, s, info, rhs)
        copy(call, s, batch_item(call, s, x, index, 2), rhs)


def _tridiagonal_solve(call: KernelCall) -> None:
    ab, b = call.operands
    (x,) = call.results
    n, columns, dtype = x.shape[-2], x.shape[-1], x.dtype
    fortran_calls.check_lengths(call, n, columns)
    call.record_flops(n * (5 + columns * 5))
    bands = contiguous(memory(call, n * 3, dtype), (3, n), dtype)
    rhs = column_major(memory(call, n * columns, dtype), n, columns, dtype)
    info = fortran_calls.integer_slot(call)
    with batches(call, x, 2) as (s, index):
        copy(call, s, bands, batch_item(call, s, ab, index, 2))
        copy(call, s, rhs, batch_item(call, s, b, index, 2))
        fail_unless_finite(call, s, bands)
        fail_unless_finite(call, s, rhs)
        lower, diagonal, upper = (
            address(call, s, bands, place) for place in (["2", "0"], ["1", "0"], ["0", "1"])
        )
        sizes = length(call, n), length(call, columns)
        arguments = (lower, diagonal, upper, rhs.pointer, leading_dimension(call, s, n), info)
        fortran_calls.run(call, s, "gtsv", dtype, *sizes, *arguments)
        _fail_or_put_nan(call, s, info, rhs)
        copy(call, s, batch_item(call, s, x, index, 2), rhs)


def _fail_or_put_nan(call: KernelCall, s: Section, info: Name, x: ArrayPointer) -> None:
    """If a routine has failed, the kernel does, too, or the solutions are NaN."""
    if not call.params.get("or_nan"):
        fail_on_error(call, s, info)
        return
    nan = call.language.constant(np.nan, x.dtype)
    failed = s.value(f"icmp ne i32 {s.value(f'load i32, ptr {info}')}, 0")
    with s.when(failed) as t, nest(t, [call.number(k) for k in x.shape[::-1]]) as (u, (j, i)):
        write(u, address(call, u, x, [i, j]), nan)


@kernel("linalg.definite_banded_solve", strided=True, serves=is_for_lapack)
def definite_banded_solve(call: KernelCall) -> None:
    """x with a @ x = b, for a positive definite a given by one half in banded form."""
    ab, b = call.operands
    (x,) = call.results
    band_rows, n, columns, dtype = ab.shape[-2], x.shape[-2], x.shape[-1], x.dtype
    fortran_calls.check_lengths(call, band_rows, n, columns)
    call.record_flops(n * (band_rows * band_rows + columns * band_rows))
    matrix = column_major(memory(call, n * band_rows, dtype), band_rows, n, dtype)
    rhs = column_major(memory(call, n * columns, dtype), n, columns, dtype)
    info, uplo = fortran_calls.integer_slot(call), "L" if call.params["lower"] else "U"
    with batches(call, x, 2) as (s, index):
        copy(call, s, matrix, batch_item(call, s, ab, index, 2))
        copy(call, s, rhs, batch_item(call, s, b, index, 2))
        fail_unless_finite(call, s, matrix)
        fail_unless_finite(call, s, rhs)
        bandwidth = ("int", s.plus(call.number(band_rows), "-1"))
        sizes = (length(call, n), bandwidth, length(call, columns))
        band = matrix.pointer, leading_dimension(call, s, band_rows)
        ldb = leading_dimension(call, s, n)
        fortran_calls.run(call, s, "pbsv", dtype, uplo, *sizes, *band, rhs.pointer, ldb, info)
        fail_on_error(call, s, info)
        copy(call, s, batch_item(call, s, x, index, 2), rhs)


@kernel(
    "linalg.structured_solve",
    strided=True,
    serves=lambda node: is_for_lapack(node) and node.params["structure"] == "positive definite",
)
def structured_solve(call: KernelCall) -> None:
    """x with a @ x = b, for a positive definite a given by one triangle."""
    a, b = call.operands
    (x,) = call.results
    n, columns, dtype = x.shape[-2], x.shape[-1], x.dtype
    lower = bool(call.params["lower"])
    fortran_calls.check_lengths(call, n, columns)
    call.record_flops(n * n * (n + columns * 2))
    matrix = column_major(memory(call, n * n, dtype), n, n, dtype)
    rhs = column_major(memory(call, n * columns, dtype), n, columns, dtype)
    info, uplo = fortran_calls.integer_slot(call), "L" if lower else "U"
    condition = _Condition(call, n, matrix)
    with batches(call, x, 2) as (s, index):
        copy(call, s, matrix, batch_item(call, s, a, index, 2))
        copy(call, s, rhs, batch_item(call, s, b, index, 2))
        fail_unless_finite(call, s, matrix)
        fail_unless_finite(call, s, rhs)
        condition.prepare(s, lower)
        lda = leading_dimension(call, s, n)
        factor = (matrix.pointer, lda)
        fortran_calls.run(call, s, "potrf", dtype, uplo, length(call, n), *factor, info)
        fail_on_error(call, s, info)
        condition.fail_if_poor(s, uplo)
        sizes = (length(call, n), length(call, columns))
        fortran_calls.run(call, s, "potrs", dtype, uplo, *sizes, *factor, rhs.pointer, lda, info)
        copy(call, s, batch_item(call, s, x, index, 2), rhs)


class _Condition:
    """The reciprocal condition number of a positive definite matrix; SciPy warns if it is small."""

    def __init__(self, call: KernelCall, n: Any, matrix: ArrayPointer) -> None:
        self.call, self.n, self.matrix = call, n, matrix
        self.real = part_of(matrix.dtype)
        self.norm, self.reciprocal = (stack_slot(call, self.real) for _ in range(2))
        self.info = fortran_calls.integer_slot(call)
        complex_ = matrix.dtype.kind == "c"
        self.work = memory(call, n * (2 if complex_ else 3), matrix.dtype)
        self.second_work = memory(call, n, self.real if complex_ else I32)

    def prepare(self, s: Section, lower: bool) -> None:
        """Mirror the given triangle, and store the norm of the matrix."""
        call, matrix, language = self.call, self.matrix, self.call.language
        with s.loop("0", call.number(self.n)) as (t, j), t.loop("0", j) as (u, i):
            indices = [[j, i], [i, j]] if lower else [[i, j], [j, i]]
            x = element(call, u, matrix, *indices[0])
            value = language.unary("conjugate", x) if matrix.dtype.kind == "c" else x
            write(u, address(call, u, matrix, indices[1]), value)
        write(s, self.norm, one_norm(call, s, matrix))

    def fail_if_poor(self, s: Section, uplo: str) -> None:
        """Fail if a solution would have no correct digit."""
        call, language = self.call, self.call.language
        matrix = length(call, self.n), self.matrix.pointer, leading_dimension(call, s, self.n)
        others = self.norm, self.reciprocal, self.work, self.second_work, self.info
        fortran_calls.run(call, s, "pocon", self.matrix.dtype, uplo, *matrix, *others)
        limit = 2.0 * float(np.finfo(self.real).eps)
        reciprocal = language.cast(read(language, s, self.reciprocal, self.real), F64)
        is_poor = language.compare("less_equal", reciprocal, language.constant(limit, F64))
        call.fail_if(is_poor.name, 1, s)


@kernel(
    "interpolate.banded",
    strided=True,
    serves=lambda node: fortran_calls.is_of_blas(node.spec.dtype),
)
def banded(call: KernelCall) -> None:
    """The columns x with A x = b, or with the conjugate transpose of A."""
    (ab, b), (x,) = call.operands, call.results
    n, columns = x.shape
    dtype, s, language = x.dtype, call.section, call.language
    lower, upper = call.params["lower"], call.params["upper"]
    transposed = call.params.get("transposed", False)
    below, above = (upper, lower) if transposed else (lower, upper)
    band_rows = 2 * below + above + 1
    fortran_calls.check_lengths(call, n, columns)
    call.record_flops(n * (below + 1) * (below + above + columns) * 2)
    bands = memory(call, n * band_rows, dtype)
    rhs = column_major(memory(call, n * columns, dtype), n, columns, dtype)
    pivots, info = memory(call, n, np.dtype(np.int32)), fortran_calls.integer_slot(call)
    clear(call, s, bands, n * band_rows, dtype)
    copy(call, s, rhs, b)
    count = call.number(n)
    for r in range(lower + upper + 1):
        stop = s.minus(count, str(max(0, r - upper)))
        with s.loop(str(max(0, upper - r)), stop) as (t, j):
            i = t.plus(j, str(r - upper))
            value = language.cast(
                read(language, t, address(call, t, ab, [str(r), j]), ab.dtype), dtype
            )
            row, column = (j, i) if transposed else (i, j)
            if transposed and type(value) is ComplexLane:
                value = ComplexLane(language, value.real, -value.imag, dtype)
            band_row = t.plus(t.minus(row, column), str(below + above))
            distance = t.plus(t.times(column, str(band_rows)), band_row)
            write(t, offset(t, bands, distance, dtype), value)
    ldb = leading_dimension(call, s, n)
    arguments = [length(call, n), below, above, length(call, columns), bands, band_rows, pivots]
    fortran_calls.run(call, s, "gbsv", dtype, *arguments, rhs.pointer, ldb, info)
    fail_on_error(call, s, info)
    copy(call, s, x, rhs)


@kernel("solve_triangular", strided=True, in_lanes=True)
def solve_triangular(call: KernelCall) -> None:
    """x with op(a) @ x = b, a triangular.

    BLAS sees x.T and a.T, so x.T @ op(a).T = b.T is solved, with the triangle on the right.
    """
    if small.is_small(call):
        small.solve_triangular(call)
        return
    a, b = call.operands
    (x,) = call.results
    b, x = small.as_columns(b, x)
    n, columns, dtype = x.shape[-2], x.shape[-1], x.dtype
    fortran_calls.check_lengths(call, n, columns)
    call.record_flops(n * n * columns)
    lower, unit = bool(call.params.get("lower", False)), bool(call.params.get("unit_diagonal"))
    trans = TRANS[call.params.get("trans", 0)]
    in_place = a.dtype == dtype and is_c_contiguous(
        a._replace(shape=a.shape[-2:], strides=a.strides[-2:])
    )
    matrix_memory = "" if in_place else memory(call, n * n, dtype)
    with batches(call, x, 2) as (s, index):
        matrix, target = batch_item(call, s, a, index, 2), batch_item(call, s, x, index, 2)
        if not in_place:
            ordered = ArrayPointer(matrix_memory, (n, n), (n, 1), dtype)
            copy(call, s, ordered, matrix)
            matrix = ordered
        if not unit:
            fail_at_zero(call, s, matrix)
        copy(call, s, target, batch_item(call, s, b, index, 2))
        flags = "R", "U" if lower else "L", "NTC"[trans], "U" if unit else "N"
        sizes = length(call, columns), length(call, n), fortran_calls.number(call, 1, dtype)
        triangle = matrix.pointer, leading_dimension(call, s, n)
        rhs = target.pointer, leading_dimension(call, s, columns)
        fortran_calls.run(call, s, "trsm", dtype, *flags, *sizes, *triangle, *rhs)


# ---- Toeplitz matrices ---------------------------------------------------------------------------


@kernel("linalg.toeplitz_solve", strided=True, serves=is_for_lapack)
def toeplitz_solve(call: KernelCall) -> None:
    """x with toeplitz(c, r) @ x = b."""
    c, r, b = call.operands
    (x,) = call.results
    n, columns, dtype = x.shape[-2], x.shape[-1], working_dtype(x.dtype)
    call.record_flops(n * n * (columns + 2))
    vectors = [ArrayPointer(memory(call, n, dtype), (n,), (1,), dtype) for _ in range(6)]
    rhs = ArrayPointer(memory(call, n * columns, dtype), (n, columns), (1, n), dtype)
    out = rhs._replace(pointer=memory(call, n * columns, dtype))
    with batches(call, x, 2) as (s, index):
        copy(call, s, vectors[0], batch_item(call, s, c, index, 1))
        copy(call, s, vectors[1], batch_item(call, s, r, index, 1))
        copy(call, s, rhs, batch_item(call, s, b, index, 2))
        for vector in vectors[:2]:
            fail_unless_finite(call, s, vector._replace(shape=(n, 1), strides=(1, n)))
        fail_unless_finite(call, s, rhs)
        _Recursion(call, call.number(n), dtype, vectors).write(s, rhs, out, call.number(columns))
        copy(call, s, batch_item(call, s, x, index, 2), out)


class _Recursion:
    """Levinson's recursion.

    The leading submatrix of m rows maps f to the first unit vector, and g to the last one.
    """

    def __init__(self, call: KernelCall, n: Name, dtype: Dtype, vectors: Any) -> None:
        self.call, self.n, self.dtype, self.language = call, n, dtype, call.language
        self.c, self.r, self.f, self.g, self.new_f, self.new_g = vectors
        self.sums = [stack_slot(call, dtype) for _ in range(2)]

    def _at(self, s: Section, vector: ArrayPointer, i: Name) -> Any:
        return read(self.language, s, offset(s, vector.pointer, i, self.dtype), self.dtype)

    def _put(self, s: Section, vector: ArrayPointer, i: Name, value: Any) -> None:
        write(s, offset(s, vector.pointer, i, self.dtype), value)

    def _sum(self, s: Section, cell: Name, term: Any) -> None:
        old = read(self.language, s, cell, self.dtype)
        write(s, cell, old + term)

    def _inverse(self, s: Section, x: Any, reference: Any) -> Any:
        """1 / x; the kernel fails if x is negligible compared to a reference."""
        limit = absolute(reference) * (1e3 * float(np.finfo(part_of(self.dtype)).eps))
        is_small = self.language.binary("less_equal", absolute(x), limit)
        self.call.fail_if(is_small.name, 1, s)
        return self.language.constant(1, self.dtype) / x

    def write(self, s: Section, b: ArrayPointer, x: ArrayPointer, columns: Name) -> None:
        """Write the solution for all columns."""
        call, language, zero = self.call, self.language, self.language.constant(0, self.dtype)
        first = self._at(s, self.c, "0")
        start = self._inverse(s, first, language.constant(0, self.dtype))
        for vector in (self.f, self.g):
            self._put(s, vector, "0", start)
        with s.loop("0", columns) as (t, j):
            value = element(call, t, b, "0", j) * self._at(t, self.f, "0")
            write(t, address(call, t, x, ["0", j]), value)
        with s.loop("1", self.n) as (t, m):
            for cell in self.sums:
                write(t, cell, zero)
            with t.loop("0", m) as (u, i):
                below = self._at(u, self.c, u.minus(m, i))
                above = self._at(u, self.r, u.plus(i, "1"))
                self._sum(u, self.sums[0], below * self._at(u, self.f, i))
                self._sum(u, self.sums[1], above * self._at(u, self.g, i))
            self._extend(t, m)
            with t.loop("0", columns) as (u, j):
                write(u, self.sums[0], element(call, u, b, m, j))
                with u.loop("0", m) as (v, i):
                    term = self._at(v, self.c, v.minus(m, i)) * element(call, v, x, i, j)
                    self._sum(v, self.sums[0], -term)
                write(u, address(call, u, x, [m, j]), zero)
                with u.loop("0", u.plus(m, "1")) as (v, i):
                    residual = read(language, v, self.sums[0], self.dtype)
                    cell = address(call, v, x, [i, j])
                    correction = residual * self._at(v, self.g, i)
                    write(v, cell, read(language, v, cell, self.dtype) + correction)

    def _extend(self, s: Section, m: Name) -> None:
        """Extend f and g by one row, given their residuals in it (`sums`)."""
        language = self.language
        e_f, e_g = (read(language, s, cell, self.dtype) for cell in self.sums)
        one_ = language.constant(1, self.dtype)
        determinant = one_ - e_f * e_g
        factor = self._inverse(s, determinant, one_)
        cells = [stack_slot(self.call, self.dtype) for _ in range(3)]
        for cell, value in zip(cells, (factor, e_f, e_g), strict=True):
            write(s, cell, value)
        for vector in (self.f, self.g):
            self._put(s, vector, m, language.constant(0, self.dtype))
        with s.loop("0", s.plus(m, "1")) as (t, i):
            scale, residual_f, residual_g = (read(language, t, cell, self.dtype) for cell in cells)
            previous = t.minus(i, "1")
            has_previous = t.value(f"icmp sgt i64 {i}, 0")
            # zero is stored at m
            safe = t.value(f"select i1 {has_previous}, i64 {previous}, i64 {m}")
            f, g = self._at(t, self.f, i), self._at(t, self.g, safe)
            self._put(t, self.new_f, i, (f - residual_f * g) * scale)
            self._put(t, self.new_g, i, (g - residual_g * f) * scale)
        with s.loop("0", s.plus(m, "1")) as (t, i):
            self._put(t, self.f, i, self._at(t, self.new_f, i))
            self._put(t, self.g, i, self._at(t, self.new_g, i))

"""Eigenvalues, singular values, and functions of them, by LAPACK.

eigh            syevd, heevd; for few rows see linalg/symmetric_eigenvalues.py
eig             geev; the kernel fails for NaN and infinity, for which numpy.linalg raises
svd             gesdd
pinv            the inverses of the singular values above a cutoff
matrix_rank     the number of singular values above a tolerance
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.node import DiscreteLeaf
from wengert._engine.core.symbolic.dim import Dim, Length

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import C128, F64, Dtype, in_register, part_of
from ...ir.simd_value import ComplexLane, Lane
from .. import fortran_calls
from ..fortran_calls import (
    Workspace,
    batch_item,
    batches,
    column_major,
    element,
    fail_on_error,
    fail_unless_finite,
    has_elements,
    leading_dimension,
    length,
    memory,
    scale_into_range,
    working_dtype,
)
from ..gemm.operands import Matrix, MatrixAxis, Product
from ..gemm.write_product import write_product
from ..kernel_call import ArrayPointer, KernelCall, contiguous, kernel
from ..loop_helpers import address, copy, nest, offset, read, stack_slot, write
from . import symmetric_eigenvalues

# ---- eigenvalues -------------------------------------------------------------------------------


@kernel("eigh", strided=True, skips_unused=True, in_lanes=True)
def eigh(call: KernelCall) -> None:
    """Eigenvalues in ascending order and eigenvectors of Hermitian matrices."""
    if symmetric_eigenvalues.is_small(call):
        symmetric_eigenvalues.eigh(call)
        return
    (a,), (w, v) = call.operands, call.results
    n, dtype = v.shape[-1], working_dtype(v.dtype)
    fortran_calls.check_lengths(call, n)
    call.record_flops(n * n * n * 8)
    matrix = column_major(memory(call, n * n, dtype), n, n, dtype)
    values = ArrayPointer(memory(call, n, part_of(dtype)), (n,), (1,), part_of(dtype))
    info = fortran_calls.integer_slot(call)
    space = Workspace(call, dtype)
    uplo = "L" if call.params.get("lower", True) else "U"
    lda = leading_dimension(call, call.section, n)
    vectors = 1 not in call.options.get("unused", ())
    first_arguments = ["V" if vectors else "N", uplo, length(call, n), matrix.pointer, lda]
    query_arguments = [
        space.cell,
        -1,
        *([space.real, -1] if dtype.kind == "c" else []),
        space.integer,
        -1,
    ]
    work = space.query("syevd", *first_arguments, space.real, *query_arguments, info)
    workspaces = [*work, *(space.reals() if dtype.kind == "c" else ()), *space.integers()]
    with batches(call, v, 2) as (s, index):
        copy(call, s, matrix, batch_item(call, s, a, index, 2))
        fail_unless_finite(call, s, matrix)
        fortran_calls.run(
            call, s, "syevd", dtype, *first_arguments, values.pointer, *workspaces, info
        )
        fail_on_error(call, s, info)
        copy(call, s, batch_item(call, s, w, index, 1), values)
        if vectors:
            copy(call, s, batch_item(call, s, v, index, 2), matrix)


@kernel("eig", strided=True)
def eig(call: KernelCall) -> None:
    """Eigenvalues and eigenvectors of any square matrices, complex."""
    (a,), (w, v) = call.operands, call.results
    n = v.shape[-1]
    language, dtype = call.language, working_dtype(a.dtype)
    real = part_of(dtype)
    fortran_calls.check_lengths(call, n)
    call.record_flops(n * n * n * 8)
    matrix = column_major(memory(call, n * n, dtype), n, n, dtype)
    vectors = column_major(memory(call, n * n, dtype), n, n, dtype)
    info, space = fortran_calls.integer_slot(call), Workspace(call, dtype)
    lda = leading_dimension(call, call.section, n)
    values = [memory(call, n, dtype)]
    last_arguments = []
    if dtype.kind == "c":
        last_arguments = [memory(call, n * 2, real)]
    else:
        values.append(memory(call, n, dtype))
    first_arguments = [
        "N",
        "V",
        length(call, n),
        matrix.pointer,
        lda,
        *values,
        vectors.pointer,
        lda,
    ]
    first_arguments += [vectors.pointer, lda]
    work = space.query("geev", *first_arguments, space.cell, -1, *last_arguments, info)
    with batches(call, v, 2) as (s, index):
        copy(call, s, matrix, batch_item(call, s, a, index, 2))
        fail_unless_finite(call, s, matrix)
        scale_slot = stack_slot(call, F64)
        write(s, scale_slot, scale_into_range(call, s, matrix))
        fortran_calls.run(call, s, "geev", dtype, *first_arguments, *work, *last_arguments, info)
        fail_on_error(call, s, info)
        targets = batch_item(call, s, w, index, 1), batch_item(call, s, v, index, 2)
        if dtype.kind == "c":
            eigenvalues = ArrayPointer(values[0], (n,), (1,), dtype)
            with s.loop("0", call.number(n)) as (t, j):
                z, scale = (
                    read(language, t, address(call, t, eigenvalues, [j]), C128),
                    read(language, t, scale_slot, F64),
                )
                z = ComplexLane(language, z.real * scale, z.imag * scale, C128)
                write(t, address(call, t, targets[0], [j]), language.cast(z, w.dtype))
            copy(call, s, targets[1], vectors)
        else:
            _pairs(call, s, values, vectors, *targets, scale_slot)


def _pairs(
    call: KernelCall,
    s: Section,
    values: list[Name],
    vectors: ArrayPointer,
    w: ArrayPointer,
    v: ArrayPointer,
    scale_slot: Name,
) -> None:
    """The complex results of geev for real matrices; eigenvalues times the value in `scale_slot`.

    The first eigenvalue of a conjugate pair has a positive imaginary part; the two columns of the
    pair are the real and the imaginary part of its eigenvector.
    """
    language, real = call.language, vectors.dtype
    n = call.number(vectors.shape[0])
    kind = in_register(real)
    last_index = s.minus(n, "1")
    with s.loop("0", n) as (t, j):
        scale = read(language, t, scale_slot, real)
        re, im = (read(language, t, offset(t, p, j, real), real) * scale for p in values)
        write(
            t, address(call, t, w, [j]), language.cast(ComplexLane(language, re, im, C128), w.dtype)
        )
        is_first = t.value(f"fcmp ogt {kind} {im.name}, 0.0")
        is_second = t.value(f"fcmp olt {kind} {im.name}, 0.0")
        next_column, previous_column = (
            t.smaller(t.plus(j, "1"), last_index),
            t.larger(t.minus(j, "1"), "0"),
        )
        column = t.value(f"select i1 {is_second}, i64 {previous_column}, i64 {j}")
        other = t.value(f"select i1 {is_first}, i64 {next_column}, i64 {j}")
        is_single = t.value(f"xor i1 {is_first}, true")
        is_single = t.value(f"xor i1 {is_second}, {is_single}")  # neither of a pair
        with t.loop("0", n) as (u, i):
            x, y = (element(call, u, vectors, i, k) for k in (column, other))
            name = u.value(
                f"select i1 {is_second}, {kind} {u.value(f'fneg {kind} {y.name}')}, {kind} {y.name}"
            )
            name = u.value(f"select i1 {is_single}, {kind} 0.0, {kind} {name}")
            pair = ComplexLane(language, x, Lane(language, u, name, real, 1), C128)
            write(u, address(call, u, v, [i, j]), language.cast(pair, v.dtype))


# ---- singular values ---------------------------------------------------------------------------


class _Singular:
    """Singular value decompositions, one after the other.

    Parameters
    ----------
    rows, columns : Length
        The shape of the matrices.
    job : str
        The argument `jobz` of gesdd: "A" all vectors, "S" as many as values, "N" none.
    u_columns, vh_rows : Length
        The number of left and right singular vectors.
    """

    def __init__(
        self,
        call: KernelCall,
        rows: Length,
        columns: Length,
        job: str,
        u_columns: Length,
        vh_rows: Length,
        dtype: Dtype,
    ) -> None:
        self.call, self.dtype = call, dtype
        self.real = part_of(dtype)
        fortran_calls.check_lengths(call, rows, columns)
        call.record_flops(rows * columns * (rows + columns) * 8)
        self.matrix = column_major(memory(call, rows * columns, dtype), rows, columns, dtype)
        self.u = column_major(memory(call, rows * u_columns, dtype), rows, u_columns, dtype)
        self.vh = column_major(memory(call, columns * vh_rows, dtype), vh_rows, columns, dtype)
        s = call.section
        self.rank = s.smaller(call.number(rows), call.number(columns))
        self.info = fortran_calls.integer_slot(call)
        sizes = [length(call, rows), length(call, columns)]
        self._first_arguments = [job, *sizes, self.matrix.pointer, leading_dimension(call, s, rows)]
        self._vectors = [self.u.pointer, leading_dimension(call, s, rows), self.vh.pointer]
        self._vectors.append(leading_dimension(call, s, vh_rows))
        self._last_arguments = self._other_workspaces(rows, columns)
        space = Workspace(call, dtype)
        values = [space.real, *self._vectors]
        self._work = space.query(
            "gesdd", *self._first_arguments, *values, space.cell, -1, *self._last_arguments
        )

    def _other_workspaces(self, rows: Length, columns: Length) -> list[Any]:
        """The real workspace of complex matrices, the integer workspace, and `info`."""
        call, s = self.call, self.call.section
        workspaces: list[Any] = []
        if self.dtype.kind == "c":
            largest = s.larger(call.number(rows), call.number(columns))
            double, five = (s.value(f"mul i64 {self.rank}, {k}") for k in (2, 5))
            square = s.value(f"mul i64 {five}, {self.rank}")
            other = s.value(f"mul i64 {s.value(f'add i64 {double}, {largest}')}, {double}")
            count = s.value(f"add i64 {s.larger(square, other)}, {s.value(f'mul i64 {five}, 2')}")
            workspaces.append(call.scratch(s.value(f"mul i64 {count}, {self.real.itemsize}")))
        size = s.value(f"mul i64 {self.rank}, 32")
        return [*workspaces, call.scratch(size), self.info]

    def write(self, s: Section, a: ArrayPointer, values: Name) -> None:
        """Decompose a matrix; the singular values are written to an address."""
        copy(self.call, s, self.matrix, a)
        fail_unless_finite(self.call, s, self.matrix)
        arguments = [*self._vectors, *self._work, *self._last_arguments]
        fortran_calls.run(
            self.call, s, "gesdd", self.dtype, *self._first_arguments, values, *arguments
        )
        fail_on_error(self.call, s, self.info)


@kernel("svd", strided=True, serves=has_elements, skips_unused=True)
def svd(call: KernelCall) -> None:
    """Singular values in descending order, and the singular vectors."""
    (a,), (u, values, vh) = call.operands, call.results
    job = "A" if call.params.get("full_matrices", False) else "S"
    rows, columns = a.shape[-2:]
    sizes: tuple[Length, Length] = (u.shape[-1], vh.shape[-2])
    vectors = not {0, 2} <= {*call.options.get("unused", ())}
    if not vectors:
        job, sizes = "N", (1, 1)
    decomposition = _Singular(call, rows, columns, job, *sizes, working_dtype(u.dtype))
    values_of_one = contiguous("", values.shape[-1:], decomposition.real)
    values_of_one = values_of_one._replace(
        pointer=memory(call, values.shape[-1], decomposition.real)
    )
    with batches(call, u, 2) as (s, index):
        decomposition.write(s, batch_item(call, s, a, index, 2), values_of_one.pointer)
        copy(call, s, batch_item(call, s, values, index, 1), values_of_one)
        if vectors:
            copy(call, s, batch_item(call, s, u, index, 2), decomposition.u)
            copy(call, s, batch_item(call, s, vh, index, 2), decomposition.vh)


def _smaller(rows: Length, columns: Length) -> Length | None:
    """The smaller of two lengths; None if it is not the same one for all sizes."""
    if rows == columns:
        return rows
    if isinstance(rows, Dim) or isinstance(columns, Dim):
        return None
    return min(rows, columns)


def _is_pinv_supported(node: DiscreteLeaf) -> bool:
    shape, params = node.inputs[0].spec.shape, node.params
    return (
        has_elements(node)
        and _smaller(*shape[-2:]) is not None
        and not params.get("hermitian")
        and np.ndim(params.get("rtol") or 0.0) == 0
    )


@kernel("pinv", strided=True, serves=_is_pinv_supported)
def pinv(call: KernelCall) -> None:
    """The pseudoinverse, from the decomposition of the conjugate: vh.T @ diag(1 / s) @ u.T."""
    (a,), (x,) = call.operands, call.results
    rows, columns = a.shape[-2:]
    rank = _smaller(rows, columns)
    assert rank is not None
    dtype, rtol = working_dtype(x.dtype), call.params.get("rtol")
    cutoff = 1e-15 if rtol is None else float(rtol)
    decomposition = _Singular(call, rows, columns, "S", rank, rank, dtype)
    values = memory(call, rank, decomposition.real)
    product_memory = "" if dtype == x.dtype else memory(call, rows * columns, dtype)
    with batches(call, x, 2) as (s, index):
        copy(call, s, decomposition.matrix, batch_item(call, s, a, index, 2), conjugate=True)
        decomposition.write(s, decomposition.matrix, values)
        _divide_columns(call, s, decomposition, values, call.number(rank), cutoff)
        target = result = batch_item(call, s, x, index, 2)
        if product_memory:
            target = ArrayPointer(product_memory, (columns, rows), (rows, 1), dtype)
        u, vh = decomposition.u, decomposition.vh
        # x is (u @ vh).T, which in column-major order has the memory of u @ vh
        product = Product(
            Matrix(vh.pointer, MatrixAxis(columns, rank), MatrixAxis(rank, 1)),
            Matrix(u.pointer, MatrixAxis(rank, rows), MatrixAxis(rows, 1)),
            Matrix(target.pointer, MatrixAxis(columns, rows), MatrixAxis(rows, 1)),
            dtype,
        )
        write_product(call, s, product)
        if product_memory:
            copy(call, s, result, target)


def _divide_columns(
    call: KernelCall, s: Section, decomposition: _Singular, values: Name, rank: Name, cutoff: float
) -> None:
    """Divide the columns of u by the singular values; those below the cutoff become zero."""
    language, real = call.language, decomposition.real
    largest = language.cast(read(language, s, values, real), F64)
    limit = largest * cutoff
    with s.loop("0", rank) as (t, j):
        size = read(language, t, offset(t, values, j, real), real)
        wide = language.cast(size, F64)
        is_above = t.value(f"fcmp ogt double {wide.name}, {limit.name}")
        inverse = language.constant(1, real) / size
        name = t.value(
            f"select i1 {is_above}, {in_register(real)} {inverse.name}, {in_register(real)} 0.0"
        )
        with t.loop("0", call.number(decomposition.u.shape[0])) as (v, i):
            factor = Lane(language, v, name, real, 1)
            pointer = address(call, v, decomposition.u, [i, j])
            x = read(language, v, pointer, decomposition.dtype)
            if type(x) is ComplexLane:
                x = ComplexLane(language, x.real * factor, x.imag * factor, decomposition.dtype)
            else:
                x = x * factor
            write(v, pointer, x)


def _is_rank_supported(node: DiscreteLeaf) -> bool:
    params = node.params
    chosen = [params.get("tol"), params.get("rtol")]
    return (
        has_elements(node)
        and node.inputs[0].spec.ndim >= 2
        and not params.get("hermitian")
        and all(c is None or np.ndim(c) == 0 for c in chosen)
    )


@kernel("matrix_rank", strided=True, serves=_is_rank_supported)
def matrix_rank(call: KernelCall) -> None:
    """The number of singular values larger than the tolerance."""
    (a,), (x,) = call.operands, call.results
    rows, columns = a.shape[-2:]
    dtype = working_dtype(a.dtype)
    decomposition = _Singular(call, rows, columns, "N", 1, 1, dtype)
    language, real = call.language, decomposition.real
    values = memory(call, rows, real)  # at least the smaller of both
    counter = stack_slot(call, x.dtype)
    tol, rtol = call.params.get("tol"), call.params.get("rtol")
    with batches(call, x, 0) as (s, index):
        decomposition.write(s, batch_item(call, s, a, index, 2), values)
        if tol is not None:
            limit = language.constant(float(tol), F64)
        else:
            largest = language.cast(read(language, s, values, real), F64)
            limit = largest * _relative(call, s, a, rtol)
        write(s, counter, language.constant(0, x.dtype))
        with nest(s, [decomposition.rank]) as (t, (i,)):
            size = language.cast(read(language, t, offset(t, values, i, real), real), F64)
            is_above = t.value(f"fcmp ogt double {size.name}, {limit.name}")
            increment = t.value(f"zext i1 {is_above} to i64")
            old = t.value(f"load i64, ptr {counter}")
            t.write(f"store i64 {t.value(f'add i64 {old}, {increment}')}, ptr {counter}")
        write(s, address(call, s, x, index), read(language, s, counter, x.dtype))


def _relative(call: KernelCall, s: Section, a: ArrayPointer, rtol: float | None) -> Any:
    """The tolerance relative to the largest singular value."""
    if rtol is not None:
        return call.language.constant(float(rtol), F64)
    largest = s.larger(*(call.number(n) for n in a.shape[-2:]))
    count = s.value(f"sitofp i64 {largest} to double")
    dtype = a.dtype if a.dtype.kind in "fc" else F64
    lane = Lane(call.language, s, count, F64, 1)
    return lane * call.language.constant(float(np.finfo(dtype).eps), F64)

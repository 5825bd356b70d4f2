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
from ..gemm.operands import Matrix, MatrixAxis, Product
from ..gemm.write_product import write_product
from ..kernel_call import ArrayPointer, KernelCall, contiguous, kernel
from ..loop_helpers import copy, held, nest, offset, place, read, write
from . import symmetric_eigenvalues
from .lapack import (
    Workspace,
    batches,
    by_columns,
    distance,
    element,
    fail_if_refused,
    fails_unless_finite,
    has_elements,
    into_range,
    length,
    memory,
    one,
    working,
)

# ---- eigenvalues -------------------------------------------------------------------------------


@kernel("eigh", strided=True, spares=True)
def eigh(call: KernelCall) -> None:
    """Eigenvalues in rising order and eigenvectors of Hermitian matrices."""
    if symmetric_eigenvalues.is_small(call):
        symmetric_eigenvalues.eigh(call)
        return
    (a,), (w, v) = call.operands, call.results
    n, dtype = v.shape[-1], working(v.dtype)
    fortran_calls.check_lengths(call, call.number(n))
    call.works(n * n * n * 8)
    matrix = by_columns(memory(call, n * n, dtype), n, n, dtype)
    values = ArrayPointer(memory(call, n, part_of(dtype)), (n,), (1,), part_of(dtype))
    info = fortran_calls.whole_cell(call)
    space = Workspace(call, dtype)
    which = "L" if call.params.get("lower", True) else "U"
    near = distance(call, call.section, n)
    vectors = 1 not in call.options.get("unused", ())
    start = ["V" if vectors else "N", which, length(call, n), matrix.pointer, near]
    asking = [space.cell, -1, *([space.real, -1] if dtype.kind == "c" else []), space.whole, -1]
    work = space.asked("syevd", *start, space.real, *asking, info)
    rest = [*work, *(space.real_asked() if dtype.kind == "c" else ()), *space.whole_asked()]
    with batches(call, v, 2) as (s, at):
        copy(call, s, matrix, one(call, s, a, at, 2))
        fails_unless_finite(call, s, matrix)
        fortran_calls.run(call, s, "syevd", dtype, *start, values.pointer, *rest, info)
        fail_if_refused(call, s, info)
        copy(call, s, one(call, s, w, at, 1), values)
        if vectors:
            copy(call, s, one(call, s, v, at, 2), matrix)


@kernel("eig", strided=True)
def eig(call: KernelCall) -> None:
    """Eigenvalues and eigenvectors of any square matrices, complex."""
    (a,), (w, v) = call.operands, call.results
    n = v.shape[-1]
    language, dtype = call.language, working(a.dtype)
    real = part_of(dtype)
    fortran_calls.check_lengths(call, call.number(n))
    call.works(n * n * n * 8)
    matrix = by_columns(memory(call, n * n, dtype), n, n, dtype)
    vectors = by_columns(memory(call, n * n, dtype), n, n, dtype)
    info, space = fortran_calls.whole_cell(call), Workspace(call, dtype)
    near = distance(call, call.section, n)
    values = [memory(call, n, dtype)]
    after = []
    if dtype.kind == "c":
        after = [memory(call, n * 2, real)]
    else:
        values.append(memory(call, n, dtype))
    start = ["N", "V", length(call, n), matrix.pointer, near, *values, vectors.pointer, near]
    start += [vectors.pointer, near]
    work = space.asked("geev", *start, space.cell, -1, *after, info)
    with batches(call, v, 2) as (s, at):
        copy(call, s, matrix, one(call, s, a, at, 2))
        fails_unless_finite(call, s, matrix)
        unit = held(call, F64)
        write(s, unit, into_range(call, s, matrix))
        fortran_calls.run(call, s, "geev", dtype, *start, *work, *after, info)
        fail_if_refused(call, s, info)
        target = one(call, s, w, at, 1), one(call, s, v, at, 2)
        if dtype.kind == "c":
            own = ArrayPointer(values[0], (n,), (1,), dtype)
            with s.loop("0", call.number(n)) as (t, j):
                z, by = (
                    read(language, t, place(call, t, own, [j]), C128),
                    read(language, t, unit, F64),
                )
                z = ComplexLane(language, z.real * by, z.imag * by, C128)
                write(t, place(call, t, target[0], [j]), language.cast(z, w.dtype))
            copy(call, s, target[1], vectors)
        else:
            _pairs(call, s, values, vectors, *target, unit)


def _pairs(
    call: KernelCall,
    s: Section,
    values: list[Name],
    vectors: ArrayPointer,
    w: ArrayPointer,
    v: ArrayPointer,
    unit: Name,
) -> None:
    """The complex results of geev for real matrices; eigenvalues times the number in `unit`.

    Of a conjugate pair, that with the positive imaginary part comes first; the two columns of
    vectors are the real and the imaginary part of its vector.
    """
    language, real = call.language, vectors.dtype
    n = call.number(vectors.shape[0])
    kind = in_register(real)
    last = s.minus(n, "1")
    with s.loop("0", n) as (t, j):
        by = read(language, t, unit, real)
        re, im = (read(language, t, offset(t, p, j, real), real) * by for p in values)
        write(
            t, place(call, t, w, [j]), language.cast(ComplexLane(language, re, im, C128), w.dtype)
        )
        first = t.value(f"fcmp ogt {kind} {im.name}, 0.0")
        second = t.value(f"fcmp olt {kind} {im.name}, 0.0")
        after, before = t.smaller(t.plus(j, "1"), last), t.larger(t.minus(j, "1"), "0")
        column = t.value(f"select i1 {second}, i64 {before}, i64 {j}")
        other = t.value(f"select i1 {first}, i64 {after}, i64 {j}")
        single = t.value(f"xor i1 {first}, true")
        single = t.value(f"xor i1 {second}, {single}")  # neither of a pair
        with t.loop("0", n) as (u, i):
            x, y = (element(call, u, vectors, i, k) for k in (column, other))
            name = u.value(
                f"select i1 {second}, {kind} {u.value(f'fneg {kind} {y.name}')}, {kind} {y.name}"
            )
            name = u.value(f"select i1 {single}, {kind} 0.0, {kind} {name}")
            pair = ComplexLane(language, x, Lane(language, u, name, real, 1), C128)
            write(u, place(call, u, v, [i, j]), language.cast(pair, v.dtype))


# ---- singular values ---------------------------------------------------------------------------


class _Singular:
    """Singular value decompositions, one after the other.

    Parameters
    ----------
    rows, columns : Length
        Of the matrices.
    least : Name
        The smaller of both.
    wanted : str
        The job of gesdd: "A" all vectors, "S" as many as values, "N" none.
    u_wide, v_high : Length
        How many vectors on either side.
    """

    def __init__(
        self,
        call: KernelCall,
        rows: Length,
        columns: Length,
        wanted: str,
        u_wide: Length,
        v_high: Length,
        dtype: Dtype,
    ) -> None:
        self.call, self.dtype = call, dtype
        self.real = part_of(dtype)
        fortran_calls.check_lengths(call, call.number(rows), call.number(columns))
        call.works(rows * columns * (rows + columns) * 8)
        self.matrix = by_columns(memory(call, rows * columns, dtype), rows, columns, dtype)
        self.u = by_columns(memory(call, rows * u_wide, dtype), rows, u_wide, dtype)
        self.vh = by_columns(memory(call, columns * v_high, dtype), v_high, columns, dtype)
        s = call.section
        self.least = s.smaller(call.number(rows), call.number(columns))
        self.info = fortran_calls.whole_cell(call)
        sizes = [length(call, rows), length(call, columns)]
        self._before = [wanted, *sizes, self.matrix.pointer, distance(call, s, rows)]
        self._vectors = [self.u.pointer, distance(call, s, rows), self.vh.pointer]
        self._vectors.append(distance(call, s, v_high))
        self._after = self._rest(rows, columns)
        space = Workspace(call, dtype)
        values = [space.real, *self._vectors]
        self._work = space.asked("gesdd", *self._before, *values, space.cell, -1, *self._after)

    def _rest(self, rows: Length, columns: Length) -> list[Any]:
        call, s = self.call, self.call.section
        rest: list[Any] = []
        if self.dtype.kind == "c":
            most = s.larger(call.number(rows), call.number(columns))
            double, five = (s.value(f"mul i64 {self.least}, {k}") for k in (2, 5))
            square = s.value(f"mul i64 {five}, {self.least}")
            other = s.value(f"mul i64 {s.value(f'add i64 {double}, {most}')}, {double}")
            count = s.value(f"add i64 {s.larger(square, other)}, {s.value(f'mul i64 {five}, 2')}")
            rest.append(call.scratch(s.value(f"mul i64 {count}, {self.real.itemsize}")))
        size = s.value(f"mul i64 {self.least}, 32")
        return [*rest, call.scratch(size), self.info]

    def write(self, s: Section, a: ArrayPointer, values: Name) -> None:
        """Decompose a matrix; the values go to an address."""
        copy(self.call, s, self.matrix, a)
        fails_unless_finite(self.call, s, self.matrix)
        more = [*self._vectors, *self._work, *self._after]
        fortran_calls.run(self.call, s, "gesdd", self.dtype, *self._before, values, *more)
        fail_if_refused(self.call, s, self.info)


@kernel("svd", strided=True, serves=has_elements, spares=True)
def svd(call: KernelCall) -> None:
    """Singular values, falling, and the vectors of both sides."""
    (a,), (u, values, vh) = call.operands, call.results
    wanted = "A" if call.params.get("full_matrices", False) else "S"
    rows, columns = a.shape[-2:]
    sizes: tuple[Length, Length] = (u.shape[-1], vh.shape[-2])
    vectors = not {0, 2} <= {*call.options.get("unused", ())}
    if not vectors:
        wanted, sizes = "N", (1, 1)
    found = _Singular(call, rows, columns, wanted, *sizes, working(u.dtype))
    own = contiguous("", values.shape[-1:], found.real)
    own = own._replace(pointer=memory(call, values.shape[-1], found.real))
    with batches(call, u, 2) as (s, at):
        found.write(s, one(call, s, a, at, 2), own.pointer)
        copy(call, s, one(call, s, values, at, 1), own)
        if vectors:
            copy(call, s, one(call, s, u, at, 2), found.u)
            copy(call, s, one(call, s, vh, at, 2), found.vh)


def _least(rows: Length, columns: Length) -> Length | None:
    """The smaller length, where that is one for all sizes."""
    if rows == columns:
        return rows
    if isinstance(rows, Dim) or isinstance(columns, Dim):
        return None
    return min(rows, columns)


def _inverts(node: DiscreteLeaf) -> bool:
    shape, params = node.inputs[0].spec.shape, node.params
    return (
        has_elements(node)
        and _least(*shape[-2:]) is not None
        and not params.get("hermitian")
        and np.ndim(params.get("rtol") or 0.0) == 0
    )


@kernel("pinv", strided=True, serves=_inverts)
def pinv(call: KernelCall) -> None:
    """The pseudoinverse: v.T @ diag(1 / s) @ u.T of the conjugate."""
    (a,), (x,) = call.operands, call.results
    rows, columns = a.shape[-2:]
    rank = _least(rows, columns)
    assert rank is not None
    dtype, rtol = working(x.dtype), call.params.get("rtol")
    cutoff = 1e-15 if rtol is None else float(rtol)
    found = _Singular(call, rows, columns, "S", rank, rank, dtype)
    values = memory(call, rank, found.real)
    own = "" if dtype == x.dtype else memory(call, rows * columns, dtype)
    with batches(call, x, 2) as (s, at):
        copy(call, s, found.matrix, one(call, s, a, at, 2), conjugate=True)
        found.write(s, found.matrix, values)
        _inverted(call, s, found, values, call.number(rank), cutoff)
        target = result = one(call, s, x, at, 2)
        if own:
            target = ArrayPointer(own, (columns, rows), (rows, 1), dtype)
        u, vh = found.u, found.vh
        # x = (u @ vh).T: its memory read by columns is u @ vh
        product = Product(
            Matrix(vh.pointer, MatrixAxis(columns, rank), MatrixAxis(rank, 1)),
            Matrix(u.pointer, MatrixAxis(rank, rows), MatrixAxis(rows, 1)),
            Matrix(target.pointer, MatrixAxis(columns, rows), MatrixAxis(rows, 1)),
            dtype,
        )
        write_product(call, s, product)
        if own:
            copy(call, s, result, target)


def _inverted(
    call: KernelCall, s: Section, found: _Singular, values: Name, rank: Name, cutoff: float
) -> None:
    """Divide the columns of u by the singular values; those below the cutoff become zero."""
    language, real = call.language, found.real
    most = language.cast(read(language, s, values, real), F64)
    limit = most * cutoff
    with s.loop("0", rank) as (t, j):
        size = read(language, t, offset(t, values, j, real), real)
        wide = language.cast(size, F64)
        kept = t.value(f"fcmp ogt double {wide.name}, {limit.name}")
        one_over = language.constant(1, real) / size
        name = t.value(
            f"select i1 {kept}, {in_register(real)} {one_over.name}, {in_register(real)} 0.0"
        )
        with t.loop("0", call.number(found.u.shape[0])) as (v, i):
            factor = Lane(language, v, name, real, 1)
            pointer = place(call, v, found.u, [i, j])
            x = read(language, v, pointer, found.dtype)
            if type(x) is ComplexLane:
                x = ComplexLane(language, x.real * factor, x.imag * factor, found.dtype)
            else:
                x = x * factor
            write(v, pointer, x)


def _counts(node: DiscreteLeaf) -> bool:
    params = node.params
    chosen = [params.get("tol"), params.get("rtol")]
    return (
        has_elements(node)
        and node.inputs[0].spec.ndim >= 2
        and not params.get("hermitian")
        and all(c is None or np.ndim(c) == 0 for c in chosen)
    )


@kernel("matrix_rank", strided=True, serves=_counts)
def matrix_rank(call: KernelCall) -> None:
    """The number of singular values larger than the tolerance."""
    (a,), (x,) = call.operands, call.results
    rows, columns = a.shape[-2:]
    dtype = working(a.dtype)
    found = _Singular(call, rows, columns, "N", 1, 1, dtype)
    language, real = call.language, found.real
    values = memory(call, rows, real)  # at least the smaller of both
    counter = held(call, x.dtype)
    tol, rtol = call.params.get("tol"), call.params.get("rtol")
    with batches(call, x, 0) as (s, at):
        found.write(s, one(call, s, a, at, 2), values)
        if tol is not None:
            limit = language.constant(float(tol), F64)
        else:
            most = language.cast(read(language, s, values, real), F64)
            limit = most * _relative(call, s, a, rtol)
        write(s, counter, language.constant(0, x.dtype))
        with nest(s, [found.least]) as (t, (i,)):
            size = language.cast(read(language, t, offset(t, values, i, real), real), F64)
            larger_one = t.value(f"fcmp ogt double {size.name}, {limit.name}")
            more = t.value(f"zext i1 {larger_one} to i64")
            old = t.value(f"load i64, ptr {counter}")
            t.write(f"store i64 {t.value(f'add i64 {old}, {more}')}, ptr {counter}")
        write(s, place(call, s, x, at), read(language, s, counter, x.dtype))


def _relative(call: KernelCall, s: Section, a: ArrayPointer, rtol: float | None) -> Any:
    """The tolerance relative to the largest singular value."""
    if rtol is not None:
        return call.language.constant(float(rtol), F64)
    most = s.larger(*(call.number(n) for n in a.shape[-2:]))
    count = s.value(f"sitofp i64 {most} to double")
    given = a.dtype if a.dtype.kind in "fc" else F64
    lane = Lane(call.language, s, count, F64, 1)
    return lane * call.language.constant(float(np.finfo(given).eps), F64)

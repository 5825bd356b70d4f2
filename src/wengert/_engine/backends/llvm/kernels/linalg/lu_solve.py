"""Linear systems, inverses and determinants, by LAPACK's LU factorization.

    solve                      gesv
    inv                        getrf, trtri
    det, slogdet               getrf, and the product of the diagonal
    det_derivative             of first order: det times inverse; singular and nearly singular
                               matrices are left to the interpreter, which uses singular values
    solve_triangular           trsm, on the right-hand side in its own order

The kernel fails for a singular matrix; the interpreter raises the error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.symbolic.dim import Length
from wengert._engine.ops.linalg.factorizations import TRANS

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import F64, Dtype, in_register, part_of
from ...ir.simd_value import ComplexLane, Lane
from .. import fortran_calls
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import (
    clear,
    copy,
    held,
    is_in_order,
    moved,
    nest,
    offset,
    place,
    read,
    size_of,
    write,
)
from . import determinants
from . import small_matrices as small
from .lapack import (
    batches,
    by_columns,
    distance,
    element,
    fail_if_refused,
    length,
    memory,
    one,
    working,
)
from .packed_factors import fail_at_zero, substitute

_I32 = np.dtype(np.int32)


def _factored(
    call: KernelCall, s: Section, of: ArrayPointer, to: ArrayPointer, pivots: Name, info: Name
) -> None:
    """LU factorization of a copy."""
    n = of.shape[0]
    copy(call, s, to, of)
    near = distance(call, s, n)
    sizes = (length(call, n), length(call, n))
    fortran_calls.run(call, s, "getrf", to.dtype, *sizes, to.pointer, near, pivots, info)


def gesv(
    call: KernelCall, s: Section, a: ArrayPointer, b: ArrayPointer, pivots: Name, info: Name
) -> None:
    """Solve with a, which is lost, for b, which becomes the solution; both by columns.

    Fails if a is singular.  Of several columns what gesv does is done here, as OpenBLAS solves with
    triangles in two thirds of its time.
    """
    n, columns = b.shape
    near, size, width = distance(call, s, n), length(call, n), length(call, columns)
    if columns == 1:
        both = (a.pointer, near, pivots, b.pointer, near, info)
        fortran_calls.run(call, s, "gesv", a.dtype, size, width, *both)
        fail_if_refused(call, s, info)
        return
    fortran_calls.run(call, s, "getrf", a.dtype, size, size, a.pointer, near, pivots, info)
    fail_if_refused(call, s, info)
    substitute(call, s, a, b, pivots)


@kernel("solve", strided=True)
def solve(call: KernelCall) -> None:
    """x with a @ x = b."""
    if small.is_small(call):
        small.solve(call)
        return
    a, b = call.operands
    (x,) = call.results
    b, x = small.as_columns(b, x)
    n, columns, dtype = x.shape[-2], x.shape[-1], working(x.dtype)
    fortran_calls.check_lengths(call, call.number(n), call.number(columns))
    call.works(n * n * (n + columns * 2))
    left = by_columns(memory(call, n * n, dtype), n, n, dtype)
    right = by_columns(memory(call, n * columns, dtype), n, columns, dtype)
    pivots, info = memory(call, n, _I32), fortran_calls.whole_cell(call)
    with batches(call, x, 2) as (s, at):
        copy(call, s, left, one(call, s, a, at, 2))
        copy(call, s, right, one(call, s, b, at, 2))
        gesv(call, s, left, right, pivots, info)
        copy(call, s, one(call, s, x, at, 2), right)


@kernel("inv", strided=True)
def inv(call: KernelCall) -> None:
    """The inverse."""
    if small.is_small(call):
        small.inv(call)
        return
    (a,), (x,) = call.operands, call.results
    n, dtype = x.shape[-1], working(x.dtype)
    fortran_calls.check_lengths(call, call.number(n))
    call.works(n * n * n * 2)
    inverse = Inverse(call, n, dtype)
    with batches(call, x, 2) as (s, at):
        inverse.write(s, one(call, s, a, at, 2))
        copy(call, s, one(call, s, x, at, 2), inverse.right)


class Inverse:
    """Inverses of matrices, one after the other, in `right`.

    inv(U) @ inv(L) with its columns exchanged.  This takes a third of the time of solving for all
    columns of the identity, because OpenBLAS inverts and multiplies triangles in blocks; the error
    bound is of the same order (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2002,
    14.3).
    """

    def __init__(self, call: KernelCall, n: Length, dtype: Dtype) -> None:
        self.call = call
        self.left = by_columns(memory(call, n * n, dtype), n, n, dtype)
        self.right = by_columns(memory(call, n * n, dtype), n, n, dtype)
        self.pivots, self.info = memory(call, n, _I32), fortran_calls.whole_cell(call)

    def factor(self, s: Section, a: ArrayPointer) -> None:
        """L and U of a, in `left`."""
        _factored(self.call, s, a, self.left, self.pivots, self.info)

    def write(self, s: Section, a: ArrayPointer) -> None:
        """The inverse of a."""
        self.factor(s, a)
        fail_if_refused(self.call, s, self.info)
        self.invert(s)

    def invert(self, s: Section) -> None:
        """The inverse of the factorized matrix; `left` is overwritten."""
        call, left, right = self.call, self.left, self.right
        dtype, n = right.dtype, right.shape[0]
        near, size = distance(call, s, n), length(call, n)
        for triangle, diagonal in (("U", "N"), ("L", "U")):
            own = (size, left.pointer, near, self.info)
            fortran_calls.run(call, s, "trtri", dtype, triangle, diagonal, *own)
            fail_if_refused(call, s, self.info)
        clear(call, s, right.pointer, size_of(right), dtype)
        with s.loop("0", call.number(n)) as (t, j):
            count = t.times(t.plus(j, "1"), str(dtype.itemsize))
            to, of = (place(call, t, m, ["0", j]) for m in (right, left))
            t.copy_bytes(to, of, count)
        one_ = fortran_calls.number(call, 1, dtype)
        given = (size, size, one_, left.pointer, near, right.pointer, near)
        fortran_calls.run(call, s, "trmm", dtype, "R", "L", "N", "U", *given)
        last = s.minus(call.number(n), "1")
        with s.loop("0", call.number(n)) as (t, k):
            j = t.minus(last, k)
            kept = t.value(f"load i32, ptr {offset(t, self.pivots, j, _I32)}")
            other = t.plus(t.value(f"sext i32 {kept} to i64"), "-1")
            with t.when(t.value(f"icmp ne i64 {other}, {j}")) as u:
                columns = [place(call, u, right, ["0", c]) for c in (j, other)]
                fortran_calls.run(call, u, "swap", dtype, size, columns[0], 1, columns[1], 1)


# ---- determinants ------------------------------------------------------------------------------


class _Determinant:
    """Sign and logarithm of determinants, as numpy.linalg computes them, in two cells."""

    def __init__(
        self, call: KernelCall, n: Length, dtype: Dtype, factors: Inverse | None = None
    ) -> None:
        self.call, self.n, self.dtype = call, n, dtype
        fortran_calls.check_lengths(call, call.number(n))
        call.works(n * n * n)
        if factors is not None:
            self.matrix, self.pivots, self.info = factors.left, factors.pivots, factors.info
        else:
            self.matrix = by_columns(memory(call, n * n, dtype), n, n, dtype)
            self.pivots, self.info = memory(call, n, _I32), fortran_calls.whole_cell(call)
        self.sign, self.log = held(call, dtype), held(call, part_of(dtype))

    def write(self, s: Section, a: ArrayPointer) -> None:
        """Fill the cells for one matrix."""
        _factored(self.call, s, a, self.matrix, self.pivots, self.info)
        self.read(s)

    def read(self, s: Section) -> None:
        """Fill the cells from given factors."""
        call, dtype = self.call, self.dtype
        language, real = call.language, part_of(self.dtype)
        write(s, self.sign, language.constant(0, dtype))
        write(s, self.log, language.constant(-np.inf, real))
        info = s.value(f"load i32, ptr {self.info}")
        with s.when(s.value(f"icmp eq i32 {info}, 0")) as t:
            write(t, self.sign, language.constant(1, dtype))
            write(t, self.log, language.constant(0, real))
            with t.loop("0", call.number(self.n)) as (u, i):
                self._diagonal(u, i)

    def _diagonal(self, s: Section, i: Name) -> None:
        """One element of the diagonal, and whether its row was exchanged."""
        call, language = self.call, self.call.language
        x = element(call, s, self.matrix, i, i)
        size = absolute(x)
        kept = s.value(f"load i32, ptr {offset(s, self.pivots, i, _I32)}")
        own = s.value(f"trunc i64 {s.plus(i, '1')} to i32")
        swapped = s.value(f"icmp ne i32 {kept}, {own}")
        old = read(language, s, self.sign, self.dtype)
        empty = language.binary("equal", size, 0.0)  # as LAPACK may leave of denormal numbers
        direction = _divided(x, language.where(empty, 1.0, size))
        new = _product(old, direction)
        flag = Lane(language, s, swapped, np.dtype(bool), 1)
        write(s, self.sign, _negative_if(flag, new))
        total = read(language, s, self.log, size.dtype)
        write(s, self.log, total + language.unary("log", size))

    def give(self, s: Section, sign: Name, log: Name, of_sign: Dtype, of_log: Dtype) -> None:
        """Write sign and logarithm to addresses."""
        language = self.call.language
        for target, to, cell, of in (
            (sign, of_sign, self.sign, self.dtype),
            (log, of_log, self.log, F64),
        ):
            write(s, target, language.cast(read(language, s, cell, of), to))

    def value(self, s: Section) -> Any:
        """sign * exp(log)."""
        language = self.call.language
        size = language.unary("exp", read(language, s, self.log, part_of(self.dtype)))
        sign = read(language, s, self.sign, self.dtype)
        if type(sign) is ComplexLane:
            return ComplexLane(language, sign.real * size, sign.imag * size, self.dtype)
        return sign * size


def absolute(x: Any) -> Any:
    """The absolute value of a number, without intermediate overflow."""
    language = x.language
    if type(x) is not ComplexLane:
        return language.unary("absolute", x)
    one, two = language.unary("absolute", x.real), language.unary("absolute", x.imag)
    big, small = language.binary("maximum", one, two), language.binary("minimum", one, two)
    safe = language.where(language.binary("equal", big, 0.0), 1.0, big)
    ratio = small / safe
    return big * language.unary("sqrt", 1.0 + ratio * ratio)


def _divided(x: Any, size: Any) -> Any:
    if type(x) is ComplexLane:
        return ComplexLane(x.language, x.real / size, x.imag / size, x.dtype)
    return x.language.binary("copysign", x / size, x)


def _product(x: Any, y: Any) -> Any:
    if type(x) is not ComplexLane:
        return x * y
    real = x.real * y.real - x.imag * y.imag
    return ComplexLane(x.language, real, x.real * y.imag + x.imag * y.real, x.dtype)


def _negative_if(flag: Any, x: Any) -> Any:
    if type(x) is ComplexLane:
        parts = [_negative_if(flag, p) for p in (x.real, x.imag)]
        return ComplexLane(x.language, parts[0], parts[1], x.dtype)
    return x.language.select(flag, -x, x)


@kernel("det", strided=True)
def det(call: KernelCall) -> None:
    """The determinant."""
    if small.is_small(call):
        determinants.det(call)
        return
    (a,), (x,) = call.operands, call.results
    found = _Determinant(call, a.shape[-1], working(x.dtype))
    with batches(call, x, 0) as (s, at):
        found.write(s, one(call, s, a, at, 2))
        write(s, place(call, s, x, at), call.language.cast(found.value(s), x.dtype))


@kernel("slogdet", strided=True)
def slogdet(call: KernelCall) -> None:
    """Sign and logarithm of the determinant."""
    if small.is_small(call):
        determinants.slogdet(call)
        return
    (a,), (sign, log) = call.operands, call.results
    found = _Determinant(call, a.shape[-1], working(sign.dtype))
    with batches(call, sign, 0) as (s, at):
        found.write(s, one(call, s, a, at, 2))
        found.give(s, place(call, s, sign, at), place(call, s, log, at), sign.dtype, log.dtype)


@kernel("inverse_slogdet", strided=True)
def inverse_slogdet(call: KernelCall) -> None:
    """The inverse, and sign and logarithm of the determinant, from one factorization."""
    (a,), (x, sign, log) = call.operands, call.results
    inverse = Inverse(call, x.shape[-1], working(x.dtype))
    found = _Determinant(call, x.shape[-1], working(x.dtype), inverse)
    with batches(call, x, 2) as (s, at):
        inverse.factor(s, one(call, s, a, at, 2))
        fail_if_refused(call, s, inverse.info)
        found.read(s)
        inverse.invert(s)
        copy(call, s, one(call, s, x, at, 2), inverse.right)
        found.give(s, place(call, s, sign, at), place(call, s, log, at), sign.dtype, log.dtype)


@kernel("det_derivative", strided=True, serves=lambda node: len(node.inputs) == 1)
def det_derivative(call: KernelCall) -> None:
    """The cofactors of regular matrices: det(a) inv(a).T."""
    if small.is_small(call):
        determinants.det_derivative(call)
        return
    _cofactors(call, None)


@kernel("cofactors_det", strided=True)
def cofactors_det(call: KernelCall) -> None:
    """The cofactors, and the determinants, from one factorization."""
    _cofactors(call, call.results[1])


def _cofactors(call: KernelCall, value: ArrayPointer | None) -> None:
    a, x = call.operands[0], call.results[0]
    n, dtype = x.shape[-1], working(x.dtype)
    inverse = Inverse(call, n, dtype)
    found = _Determinant(call, n, dtype, inverse)
    real = part_of(dtype)
    limit = 0.01 / float(np.finfo(x.dtype).eps)
    with batches(call, x, 2) as (s, at):
        given = one(call, s, a, at, 2)
        inverse.factor(s, given)
        fail_if_refused(call, s, inverse.info)
        found.read(s)
        inverse.invert(s)
        copy(call, s, inverse.left, given)
        condition = one_norm(call, s, inverse.left) * one_norm(call, s, inverse.right)
        rows = s.value(f"sitofp i64 {call.number(n)} to {in_register(real)}")
        scaled = condition * Lane(call.language, s, rows, real, 1)
        sound = call.language.binary("less", scaled, call.language.constant(limit, real))
        call.fail_if(s.value(f"xor i1 {sound.name}, true"), 1, s)
        scale = found.value(s)
        if value is not None:
            write(s, place(call, s, value, at), call.language.cast(scale, value.dtype))
        target, source = one(call, s, x, at, 2), inverse.right
        with nest(s, [call.number(n)] * 2) as (t, (i, j)):
            term = _product(moved(t, scale), element(call, t, source, j, i))
            write(t, place(call, t, target, [i, j]), call.language.cast(term, x.dtype))


def one_norm(call: KernelCall, s: Section, matrix: ArrayPointer) -> Any:
    """The largest sum of sizes in a column; NaN if there is one."""
    language, real = call.language, part_of(matrix.dtype)
    most, total = held(call, real), held(call, real)
    write(s, most, language.constant(0, real))
    rows, columns = (call.number(n) for n in matrix.shape)
    with s.loop("0", columns) as (t, j):
        write(t, total, language.constant(0, real))
        with t.loop("0", rows) as (u, i):
            size = absolute(element(call, u, matrix, i, j))
            write(u, total, read(language, u, total, real) + size)
        before = read(language, t, most, real)
        write(t, most, language.binary("maximum", before, read(language, t, total, real)))
    return read(language, s, most, real)


# ---- triangles ---------------------------------------------------------------------------------


@kernel("solve_triangular", strided=True)
def solve_triangular(call: KernelCall) -> None:
    """x with op(a) @ x = b, a triangular.

    In NumPy's order BLAS sees x.T and a.T: x.T @ op(a).T = b.T is solved from the right.
    """
    if small.is_small(call):
        small.solve_triangular(call)
        return
    a, b = call.operands
    (x,) = call.results
    b, x = small.as_columns(b, x)
    n, columns, dtype = x.shape[-2], x.shape[-1], x.dtype
    fortran_calls.check_lengths(call, call.number(n), call.number(columns))
    call.works(n * n * columns)
    lower, unit = bool(call.params.get("lower", False)), bool(call.params.get("unit_diagonal"))
    way = TRANS[call.params.get("trans", 0)]
    in_place = a.dtype == dtype and is_in_order(
        a._replace(shape=a.shape[-2:], strides=a.strides[-2:])
    )
    own = "" if in_place else memory(call, n * n, dtype)
    with batches(call, x, 2) as (s, at):
        left, target = one(call, s, a, at, 2), one(call, s, x, at, 2)
        if not in_place:
            ordered = ArrayPointer(own, (n, n), (n, 1), dtype)
            copy(call, s, ordered, left)
            left = ordered
        if not unit:
            fail_at_zero(call, s, left)
        copy(call, s, target, one(call, s, b, at, 2))
        fortran_calls.run(
            call,
            s,
            "trsm",
            dtype,
            "R",
            "U" if lower else "L",
            "NTC"[way],
            "U" if unit else "N",
            length(call, columns),
            length(call, n),
            fortran_calls.number(call, 1, dtype),
            left.pointer,
            distance(call, s, n),
            target.pointer,
            distance(call, s, columns),
        )

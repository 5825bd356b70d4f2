"""Linear systems, inverses and determinants, by LAPACK's LU factorization.

    solve                      gesv; real systems of up to 64 rows: lu_in_cache.py; complex ones:
                               complex_solve.py
    inv                        getrf, trtri
    det, slogdet               getrf, and the product of the diagonal
    det_derivative             of first order: det times inverse; the kernel fails for singular and
                               nearly singular matrices, for which singular values are needed

The kernel fails for a singular matrix; the interpreter then raises the error.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from wengert._engine.core.symbolic.dim import Length

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import C128, F64, I32, Dtype, in_register, part_of
from ...ir.simd_value import ComplexLane, Lane
from ...tuning import thresholds
from .. import fortran_calls
from ..fortran_calls import (
    batch_item,
    batches,
    column_major,
    element,
    fail_on_error,
    leading_dimension,
    length,
    memory,
    working_dtype,
)
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import (
    address,
    clear,
    copy,
    in_section,
    nest,
    offset,
    read,
    size_of,
    stack_slot,
    write,
)
from . import complex_solve, determinants, lu_in_cache
from . import small_matrices as small
from .packed_factors import InCache, substitute


def factor(
    call: KernelCall,
    s: Section,
    source: ArrayPointer,
    target: ArrayPointer,
    pivots: Name,
    info: Name,
) -> None:
    """Copy a matrix, and factorize the copy."""
    n = source.shape[0]
    copy(call, s, target, source)
    lda = leading_dimension(call, s, n)
    sizes = (length(call, n), length(call, n))
    fortran_calls.run(call, s, "getrf", target.dtype, *sizes, target.pointer, lda, pivots, info)


def gesv(
    call: KernelCall, s: Section, a: ArrayPointer, b: ArrayPointer, pivots: Name, info: Name
) -> None:
    """Solve a @ x = b; `a` is overwritten, and `b` becomes the solution; both column-major.

    Fails if a is singular.  For several columns getrf and triangular solves are called instead of
    gesv, which takes two thirds of the time in OpenBLAS.
    """
    n, columns = b.shape
    lda, size, width = leading_dimension(call, s, n), length(call, n), length(call, columns)
    if columns == 1:
        arguments = (a.pointer, lda, pivots, b.pointer, lda, info)
        fortran_calls.run(call, s, "gesv", a.dtype, size, width, *arguments)
        fail_on_error(call, s, info)
        return
    fortran_calls.run(call, s, "getrf", a.dtype, size, size, a.pointer, lda, pivots, info)
    fail_on_error(call, s, info)
    substitute(call, s, a, b, pivots)


@kernel("solve", strided=True, in_lanes=True)
def solve(call: KernelCall) -> None:
    """x with a @ x = b."""
    if small.is_small(call):
        small.solve(call)
        return
    a, b = call.operands
    (x,) = call.results
    b, x = small.as_columns(b, x)
    n, columns = x.shape[-2:]
    if isinstance(n, int) and a.dtype == b.dtype and lu_in_cache.serves(n, x.dtype):
        _solve_in_cache(call, a, b, x)
        return
    call.record_flops(n * n * (n + columns * 2))
    separates = _may_separate_parts(a, b, x)
    if separates and type(n) is int:
        with batches(call, x, 2) as (s, index):
            complex_solve.run(call, s, *[batch_item(call, s, y, index, 2) for y in (a, b, x)])
        return
    dtype = working_dtype(x.dtype)
    fortran_calls.check_lengths(call, n, columns)
    matrix = column_major(memory(call, n * n, dtype), n, n, dtype)
    rhs = column_major(memory(call, n * columns, dtype), n, columns, dtype)
    pivots, info = memory(call, n, I32), fortran_calls.integer_slot(call)
    with batches(call, x, 2) as (s, index):
        items = [batch_item(call, s, y, index, 2) for y in (a, b, x)]
        if separates:
            limit = str(thresholds.separate_parts_rows)
            fits = s.value(f"icmp sle i64 {call.number(n)}, {limit}")
            with s.when(fits) as t:
                complex_solve.run(call, t, *items)
        with s.unless(fits) if separates else nullcontext(s) as t:
            copy(call, t, matrix, items[0])
            copy(call, t, rhs, items[1])
            gesv(call, t, matrix, rhs, pivots, info)
            copy(call, t, items[2], rhs)


def _solve_in_cache(call: KernelCall, a: ArrayPointer, b: ArrayPointer, x: ArrayPointer) -> None:
    """x with a @ x = b, by factors in a first-level cache."""
    (n, columns), dtype = x.shape[-2:], x.dtype
    assert isinstance(n, int)
    work, pivots = memory(call, n * lu_in_cache.padded(n), dtype), memory(call, n, I32)
    factors = column_major(memory(call, n * n, dtype), n, n, dtype)
    substitution = InCache(call, n, columns, dtype, 0)
    with batches(call, x, 2) as (s, index):
        matrix, right, target = [batch_item(call, s, y, index, 2) for y in (a, b, x)]
        lu_in_cache.factorize(call, s, matrix, work, factors, pivots)
        substitution.solve(s, factors, pivots, right, target)


def _may_separate_parts(a: ArrayPointer, b: ArrayPointer, x: ArrayPointer) -> bool:
    """Whether a system is solved with separate real and imaginary parts, if it has few rows."""
    n, columns = x.shape[-2:]
    return (
        a.dtype == b.dtype == x.dtype == C128
        and x.strides[-1] == 1
        and columns != 1
        and not (type(n) is int and n > thresholds.separate_parts_rows)
    )


@kernel("inv", strided=True, in_lanes=True)
def inv(call: KernelCall) -> None:
    """The inverse."""
    if small.is_small(call):
        small.inv(call)
        return
    (a,), (x,) = call.operands, call.results
    n, dtype = x.shape[-1], working_dtype(x.dtype)
    fortran_calls.check_lengths(call, n)
    call.record_flops(n * n * n * 2)
    inverse = Inverse(call, n, dtype)
    with batches(call, x, 2) as (s, index):
        inverse.write(s, batch_item(call, s, a, index, 2))
        copy(call, s, batch_item(call, s, x, index, 2), inverse.right)


class Inverse:
    """Inverses of matrices, one after the other, in `right`.

    inv(U) @ inv(L), with columns exchanged as by the pivots.  This takes a third of the time of
    solving for all columns of the identity, because OpenBLAS inverts and multiplies triangles in
    blocks; the error bound is of the same order (N. J. Higham, Accuracy and Stability of Numerical
    Algorithms, 2002, 14.3).
    """

    def __init__(self, call: KernelCall, n: Length, dtype: Dtype) -> None:
        self.call = call
        self.left = column_major(memory(call, n * n, dtype), n, n, dtype)
        self.right = column_major(memory(call, n * n, dtype), n, n, dtype)
        self.pivots, self.info = memory(call, n, I32), fortran_calls.integer_slot(call)

    def factor(self, s: Section, a: ArrayPointer) -> None:
        """L and U of a, in `left`."""
        factor(self.call, s, a, self.left, self.pivots, self.info)

    def write(self, s: Section, a: ArrayPointer) -> None:
        """The inverse of a."""
        self.factor(s, a)
        fail_on_error(self.call, s, self.info)
        self.invert(s)

    def invert(self, s: Section) -> None:
        """The inverse of the factorized matrix; `left` is overwritten."""
        call, left, right = self.call, self.left, self.right
        dtype, n = right.dtype, right.shape[0]
        lda, size = leading_dimension(call, s, n), length(call, n)
        for triangle, diagonal in (("U", "N"), ("L", "U")):
            arguments = (size, left.pointer, lda, self.info)
            fortran_calls.run(call, s, "trtri", dtype, triangle, diagonal, *arguments)
            fail_on_error(call, s, self.info)
        clear(call, s, right.pointer, size_of(right), dtype)
        with s.loop("0", call.number(n)) as (t, j):
            count = t.times(t.plus(j, "1"), str(dtype.itemsize))
            target, source = (address(call, t, m, ["0", j]) for m in (right, left))
            t.copy_bytes(target, source, count)
        one_ = fortran_calls.number(call, 1, dtype)
        product_arguments = (size, size, one_, left.pointer, lda, right.pointer, lda)
        fortran_calls.run(call, s, "trmm", dtype, "R", "L", "N", "U", *product_arguments)
        last_index = s.minus(call.number(n), "1")
        with s.loop("0", call.number(n)) as (t, k):
            j = t.minus(last_index, k)
            pivot = t.value(f"load i32, ptr {offset(t, self.pivots, j, I32)}")
            other = t.plus(t.value(f"sext i32 {pivot} to i64"), "-1")
            with t.when(t.value(f"icmp ne i64 {other}, {j}")) as u:
                columns = [address(call, u, right, ["0", c]) for c in (j, other)]
                fortran_calls.run(call, u, "swap", dtype, size, columns[0], 1, columns[1], 1)


# ---- determinants ------------------------------------------------------------------------------


class _Determinant:
    """Sign and logarithm of determinants, as numpy.linalg computes them, in two stack slots."""

    def __init__(
        self, call: KernelCall, n: Length, dtype: Dtype, factors: Inverse | None = None
    ) -> None:
        self.call, self.n, self.dtype = call, n, dtype
        fortran_calls.check_lengths(call, n)
        call.record_flops(n * n * n)
        if factors is not None:
            self.matrix, self.pivots, self.info = factors.left, factors.pivots, factors.info
        else:
            self.matrix = column_major(memory(call, n * n, dtype), n, n, dtype)
            self.pivots, self.info = memory(call, n, I32), fortran_calls.integer_slot(call)
        self.sign, self.log = stack_slot(call, dtype), stack_slot(call, part_of(dtype))

    def write(self, s: Section, a: ArrayPointer) -> None:
        factor(self.call, s, a, self.matrix, self.pivots, self.info)
        self.read(s)

    def read(self, s: Section) -> None:
        """Compute sign and logarithm from the factors."""
        call, dtype = self.call, self.dtype
        language, real = call.language, part_of(self.dtype)
        write(s, self.sign, language.constant(0, dtype))
        write(s, self.log, language.constant(-np.inf, real))
        info = s.value(f"load i32, ptr {self.info}")
        with s.when(s.value(f"icmp eq i32 {info}, 0")) as t:
            write(t, self.sign, language.constant(1, dtype))
            write(t, self.log, language.constant(0, real))
            with t.loop("0", call.number(self.n)) as (u, i):
                self._multiply_pivot(u, i)

    def _multiply_pivot(self, s: Section, i: Name) -> None:
        """Multiply by one element of the diagonal, and by -1 if its row was exchanged."""
        call, language = self.call, self.call.language
        x = element(call, s, self.matrix, i, i)
        size = absolute(x)
        pivot = s.value(f"load i32, ptr {offset(s, self.pivots, i, I32)}")
        row = s.value(f"trunc i64 {s.plus(i, '1')} to i32")
        swapped = s.value(f"icmp ne i32 {pivot}, {row}")
        old = read(language, s, self.sign, self.dtype)
        is_zero = language.binary("equal", size, 0.0)  # possible for denormal numbers
        phase = _divided(x, language.where(is_zero, 1.0, size))
        new = _product(old, phase)
        flag = Lane(language, s, swapped, np.dtype(bool), 1)
        write(s, self.sign, _negative_if(flag, new))
        total = read(language, s, self.log, size.dtype)
        write(s, self.log, total + language.unary("log", size))

    def store(self, s: Section, sign: Name, log: Name, of_sign: Dtype, of_log: Dtype) -> None:
        """Write sign and logarithm to addresses."""
        language = self.call.language
        for target, dtype, slot, slot_dtype in (
            (sign, of_sign, self.sign, self.dtype),
            (log, of_log, self.log, F64),
        ):
            write(s, target, language.cast(read(language, s, slot, slot_dtype), dtype))

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
    real_size, imag_size = language.unary("absolute", x.real), language.unary("absolute", x.imag)
    larger, smaller = (
        language.binary("maximum", real_size, imag_size),
        language.binary("minimum", real_size, imag_size),
    )
    divisor = language.where(language.binary("equal", larger, 0.0), 1.0, larger)
    ratio = smaller / divisor
    return larger * language.unary("sqrt", 1.0 + ratio * ratio)


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


@kernel("det", strided=True, in_lanes=True)
def det(call: KernelCall) -> None:
    """The determinant."""
    if small.is_small(call):
        determinants.det(call)
        return
    (a,), (x,) = call.operands, call.results
    determinant = _Determinant(call, a.shape[-1], working_dtype(x.dtype))
    with batches(call, x, 0) as (s, index):
        determinant.write(s, batch_item(call, s, a, index, 2))
        write(s, address(call, s, x, index), call.language.cast(determinant.value(s), x.dtype))


@kernel("slogdet", strided=True, in_lanes=True)
def slogdet(call: KernelCall) -> None:
    """Sign and logarithm of the determinant."""
    if small.is_small(call):
        determinants.slogdet(call)
        return
    (a,), (sign, log) = call.operands, call.results
    determinant = _Determinant(call, a.shape[-1], working_dtype(sign.dtype))
    with batches(call, sign, 0) as (s, index):
        determinant.write(s, batch_item(call, s, a, index, 2))
        determinant.store(
            s, address(call, s, sign, index), address(call, s, log, index), sign.dtype, log.dtype
        )


@kernel("inverse_slogdet", strided=True)
def inverse_slogdet(call: KernelCall) -> None:
    """The inverse, and sign and logarithm of the determinant, from one factorization."""
    (a,), (x, sign, log) = call.operands, call.results
    inverse = Inverse(call, x.shape[-1], working_dtype(x.dtype))
    determinant = _Determinant(call, x.shape[-1], working_dtype(x.dtype), inverse)
    with batches(call, x, 2) as (s, index):
        inverse.factor(s, batch_item(call, s, a, index, 2))
        fail_on_error(call, s, inverse.info)
        determinant.read(s)
        inverse.invert(s)
        copy(call, s, batch_item(call, s, x, index, 2), inverse.right)
        determinant.store(
            s, address(call, s, sign, index), address(call, s, log, index), sign.dtype, log.dtype
        )


@kernel("det_derivative", strided=True, serves=lambda node: len(node.inputs) == 1, in_lanes=True)
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
    n, dtype = x.shape[-1], working_dtype(x.dtype)
    inverse = Inverse(call, n, dtype)
    determinant = _Determinant(call, n, dtype, inverse)
    real = part_of(dtype)
    limit = 0.01 / float(np.finfo(x.dtype).eps)
    with batches(call, x, 2) as (s, index):
        matrix = batch_item(call, s, a, index, 2)
        inverse.factor(s, matrix)
        fail_on_error(call, s, inverse.info)
        determinant.read(s)
        inverse.invert(s)
        copy(call, s, inverse.left, matrix)
        condition = one_norm(call, s, inverse.left) * one_norm(call, s, inverse.right)
        rows = s.value(f"sitofp i64 {call.number(n)} to {in_register(real)}")
        scaled = condition * Lane(call.language, s, rows, real, 1)
        is_accurate = call.language.binary("less", scaled, call.language.constant(limit, real))
        call.fail_if(s.value(f"xor i1 {is_accurate.name}, true"), 1, s)
        scale = determinant.value(s)
        if value is not None:
            write(s, address(call, s, value, index), call.language.cast(scale, value.dtype))
        target, source = batch_item(call, s, x, index, 2), inverse.right
        with nest(s, [call.number(n)] * 2) as (t, (i, j)):
            term = _product(in_section(t, scale), element(call, t, source, j, i))
            write(t, address(call, t, target, [i, j]), call.language.cast(term, x.dtype))


def one_norm(call: KernelCall, s: Section, matrix: ArrayPointer) -> Any:
    """The largest column sum of absolute values; NaN if an element is NaN."""
    language, real = call.language, part_of(matrix.dtype)
    largest, total = stack_slot(call, real), stack_slot(call, real)
    write(s, largest, language.constant(0, real))
    rows, columns = (call.number(n) for n in matrix.shape)
    with s.loop("0", columns) as (t, j):
        write(t, total, language.constant(0, real))
        with t.loop("0", rows) as (u, i):
            size = absolute(element(call, u, matrix, i, j))
            write(u, total, read(language, u, total, real) + size)
        before = read(language, t, largest, real)
        write(t, largest, language.binary("maximum", before, read(language, t, total, real)))
    return read(language, s, largest, real)

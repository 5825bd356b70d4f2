"""Functions of matrices: exponential, square root, logarithm, sign.

    expm                  scaling and squaring: N. J. Higham, "The scaling and squaring method for
                          the matrix exponential revisited", SIAM J. Matrix Anal. Appl. 26 (2005),
                          1179-1193; the diagonal Pade approximant of degree 13, after halving the
                          matrix until its norm is below 5.37
    linalg.square_root    of the triangle of a complex Schur form (A. Bjorck and S. Hammarling,
                          "A Schur method for the square root of a matrix", Linear Algebra Appl.
                          52/53 (1983), 127-140)
    linalg.logarithm      inverse scaling and squaring, with Gauss' rule for the integral of
                          (1 + t x)**-1 x (A. H. Al-Mohy and N. J. Higham, "Improved inverse scaling
                          and squaring algorithms for the matrix logarithm", SIAM J. Sci. Comput. 34
                          (2012), C153-C169)
    linalg.matrix_sign    Newton's iteration, scaled (N. J. Higham, Functions of Matrices, 2008,
                          section 5.5)

All matrices of the exponential are polynomials of one matrix, or quotients of such polynomials.
They commute, so the formulas hold for the transposes too, and nothing is transposed for LAPACK.

The kernels fail for NaN and infinity; if an eigenvalue is zero or, up to rounding, on the negative
real axis; or if the sign does not exist.  The interpreter then calls SciPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb, factorial
from typing import Any

import numpy as np

from wengert._engine.core.symbolic.dim import Length

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import C128, F64, I32, Dtype
from ...ir.simd_value import ComplexLane
from .. import fortran_calls
from ..fortran_calls import (
    batch_item,
    batches,
    column_major,
    element,
    fail_unless_finite,
    is_for_lapack,
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
from .lu_solve import Inverse, gesv, one_norm
from .schur import Schur, absolute, product

_NEAR_ONE = 0.25  # the norm up to which Gauss' rule with these nodes is accurate
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(7)
_MAX_ROOTS = 60  # more square roots leave no digits of a double
_MAX_STEPS = 60
_CLOSE = 1e-8  # the relative change after which one more Newton step suffices


def _is_small(limit: int) -> Callable[[Any], bool]:
    """Supports up to `limit` rows: SciPy is faster for more rows (benchmarks/callbacks.py)."""

    def serves(node: Any) -> bool:
        n = node.spec.shape[-1]
        return type(n) is int and n <= limit and is_for_lapack(node)

    return serves


class _Triangle:
    """Complex Schur forms, and functions of their triangles."""

    def __init__(self, call: KernelCall, n: Length) -> None:
        self.call, self.n = call, n
        self.schur = Schur(call, n, C128)
        call.record_flops(n * n * n * 8)
        self.form = self.schur.form
        self.other, self.root = (
            column_major(memory(call, n * n, C128), n, n, C128) for _ in range(2)
        )
        self.sum, self.size = stack_slot(call, C128), stack_slot(call, F64)

    def read(self, s: Section, a: ArrayPointer) -> None:
        """Compute the Schur form; fail if an eigenvalue is zero or on the negative real axis."""
        call, language = self.call, self.call.language
        self.schur.write(s, a)
        write(s, self.size, one_norm(call, s, self.form))
        with s.loop("0", call.number(self.n)) as (t, i):
            x = element(call, t, self.form, i, i)
            limit = read(language, t, self.size, F64) * (1e3 * float(np.finfo(float).eps))
            is_real = language.binary("less_equal", language.unary("absolute", x.imag), limit)
            is_not_positive = language.binary("less_equal", x.real, limit)
            call.fail_if(language.binary("logical_and", is_real, is_not_positive).name, 1, t)

    def take_root(self, s: Section, source: ArrayPointer, target: ArrayPointer) -> None:
        """The square root of an upper triangle; the elements below are unchanged."""
        call, language, n = self.call, self.call.language, self.call.number(self.n)
        with s.loop("0", n) as (t, j):
            root = language.unary("sqrt", element(call, t, source, j, j))
            write(t, address(call, t, target, [j, j]), root)
            with t.loop("0", j) as (u, k):
                i = u.minus(u.minus(j, "1"), k)
                write(u, self.sum, element(call, u, source, i, j))
                with u.loop(u.plus(i, "1"), j) as (v, m):
                    term = element(call, v, target, i, m) * element(call, v, target, m, j)
                    old = read(language, v, self.sum, C128)
                    write(v, self.sum, old - term)
                divisor = element(call, u, target, i, i) + element(call, u, target, j, j)
                total = read(language, u, self.sum, C128)
                write(u, address(call, u, target, [i, j]), total / divisor)

    def clear_below(self, s: Section, x: ArrayPointer) -> None:
        """Clear the elements below the diagonal."""
        zero = self.call.language.constant(0, C128)
        n = self.call.number(self.n)
        with s.loop("0", n) as (t, j), t.loop(t.plus(j, "1"), n) as (u, i):
            write(u, address(self.call, u, x, [i, j]), zero)

    def store(self, s: Section, x: ArrayPointer, to: ArrayPointer) -> None:
        """Store v @ x @ v.H, the matrix of a triangle x, in `to`; its real part if `to` is real."""
        call, n, z = self.call, self.n, self.schur.vectors
        product(call, s, (n, n, n), (z, "N"), (x, "N"), self.form)
        product(call, s, (n, n, n), (self.form, "N"), (z, "C"), x)
        fail_unless_finite(call, s, x)
        if to.dtype.kind == "c":
            copy(call, s, to, x)
            return
        with nest(s, [call.number(n)] * 2) as (t, (j, i)):
            real = element(call, t, x, i, j).real
            write(t, address(call, t, to, [i, j]), call.language.cast(real, to.dtype))


@kernel("linalg.square_root", strided=True, serves=_is_small(12))
def square_root(call: KernelCall) -> None:
    """The principal square root."""
    (a,), (x,) = call.operands, call.results
    triangle = _Triangle(call, x.shape[-1])
    with batches(call, x, 2) as (s, index):
        triangle.read(s, batch_item(call, s, a, index, 2))
        triangle.clear_below(s, triangle.root)
        triangle.take_root(s, triangle.form, triangle.root)
        triangle.store(s, triangle.root, batch_item(call, s, x, index, 2))


@kernel("linalg.logarithm", strided=True, serves=_is_small(40))
def logarithm(call: KernelCall) -> None:
    """The principal logarithm."""
    (a,), (x,) = call.operands, call.results
    n = x.shape[-1]
    triangle = _Triangle(call, n)
    logs = ArrayPointer(memory(call, n, C128), (n,), (1,), C128)
    count = call.function.slot("i64")
    with batches(call, x, 2) as (s, index):
        triangle.read(s, batch_item(call, s, a, index, 2))
        with s.loop("0", call.number(n)) as (t, i):
            log_of_diagonal = call.language.unary("log", element(call, t, triangle.form, i, i))
            write(t, address(call, t, logs, [i]), log_of_diagonal)
        _bring_near_one(triangle, s, count)
        power = s.value(f"load i64, ptr {count}")
        small = s.value(f"shl i64 {s.value(f'sub i64 1023, {power}')}, 52")
        large = s.value(f"shl i64 {s.value(f'add i64 1023, {power}')}, 52")
        scales = stack_slot(call, F64), stack_slot(call, F64)
        for bits, cell in zip((small, large), scales, strict=True):
            s.write(f"store i64 {bits}, ptr {cell}")
        _set_diagonal(triangle, s, logs, scales[0], near_one=True)
        _integral(triangle, s)
        _multiply(triangle, s, scales[1])
        _set_diagonal(triangle, s, logs, "", near_one=False)
        triangle.store(s, triangle.root, batch_item(call, s, x, index, 2))


def _bring_near_one(triangle: _Triangle, s: Section, count: Name) -> None:
    """Take square roots of `form` until it is near the identity; `other` is then form - 1."""
    call, language, n = triangle.call, triangle.call.language, triangle.call.number(triangle.n)
    s.write(f"store i64 0, ptr {count}")
    triangle.clear_below(s, triangle.other)
    done = call.function.slot("i1")
    s.write(f"store i1 false, ptr {done}")
    with s.loop("0", str(_MAX_ROOTS)) as (t, _), t.when(_is_not_done(t, done)) as u:
        copy(call, u, triangle.root, triangle.form)
        with u.loop("0", n) as (v, i):
            cell = address(call, v, triangle.root, [i, i])
            minus_one = read(language, v, cell, C128) - 1.0
            write(v, cell, minus_one)
        is_near = language.binary(
            "less_equal", one_norm(call, u, triangle.root), language.constant(_NEAR_ONE, F64)
        )
        u.write(f"store i1 {is_near.name}, ptr {done}")
        with u.unless(is_near.name) as v:
            triangle.take_root(v, triangle.form, triangle.other)
            copy(call, v, triangle.form, triangle.other)
            new_count = v.value(f"add i64 {v.value(f'load i64, ptr {count}')}, 1")
            v.write(f"store i64 {new_count}, ptr {count}")
    call.fail_if(_is_not_done(s, done), 1, s)
    copy(call, s, triangle.other, triangle.root)


def _is_not_done(s: Section, done: Name) -> Name:
    return s.value(f"xor i1 {s.value(f'load i1, ptr {done}')}, true")


def _set_diagonal(
    triangle: _Triangle, s: Section, logs: ArrayPointer, scale: Name, near_one: bool
) -> None:
    """Set the diagonal of `root` to the logarithms; or that of `other` to exp(scale log) - 1.

    Both are more accurate than what was computed from the square roots.
    """
    call, language = triangle.call, triangle.call.language
    with s.loop("0", call.number(triangle.n)) as (t, i):
        x = read(language, t, address(call, t, logs, [i]), C128)
        if near_one:
            factor = read(language, t, scale, F64)
            x = language.unary(
                "expm1", ComplexLane(language, x.real * factor, x.imag * factor, C128)
            )
        target = triangle.other if near_one else triangle.root
        write(t, address(call, t, target, [i, i]), x)


def _integral(triangle: _Triangle, s: Section) -> None:
    """Sum inv(1 + t x) x over the nodes t of Gauss' rule, for x in `other`; in `root`."""
    call, language, n = triangle.call, triangle.call.language, triangle.n
    x, total = triangle.other, triangle.root
    size = [call.number(n)] * 2
    with nest(s, size) as (t, (j, i)):
        write(t, address(call, t, total, [i, j]), language.constant(0, C128))
    divisor, dividend = triangle.form, column_major(memory(call, n * n, C128), n, n, C128)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        with nest(s, size) as (t, (j, i)):
            value = element(call, t, x, i, j)
            node_scale = 0.5 + 0.5 * float(node)
            write(t, address(call, t, divisor, [i, j]), value * node_scale)
            write(t, address(call, t, dividend, [i, j]), value * (0.5 * float(weight)))
        with s.loop("0", call.number(n)) as (t, i):
            cell = address(call, t, divisor, [i, i])
            write(t, cell, read(language, t, cell, C128) + 1.0)
        lda = leading_dimension(call, s, n)
        sizes = length(call, n), length(call, n), fortran_calls.number(call, 1, C128)
        arguments = (*sizes, divisor.pointer, lda, dividend.pointer, lda)
        fortran_calls.run(call, s, "trsm", C128, *"LUNN", *arguments)
        with nest(s, size) as (t, (j, i)):
            cell = address(call, t, total, [i, j])
            new_total = read(language, t, cell, C128) + element(call, t, dividend, i, j)
            write(t, cell, new_total)


def _multiply(triangle: _Triangle, s: Section, scale: Name) -> None:
    call, language = triangle.call, triangle.call.language
    with nest(s, [call.number(triangle.n)] * 2) as (t, (j, i)):
        cell, factor = address(call, t, triangle.root, [i, j]), read(language, t, scale, F64)
        x = read(language, t, cell, C128)
        write(t, cell, ComplexLane(language, x.real * factor, x.imag * factor, C128))


# ---- signs -------------------------------------------------------------------------------------


@kernel("linalg.matrix_sign", strided=True, serves=is_for_lapack)
def matrix_sign(call: KernelCall) -> None:
    """1 for eigenvalues in the right half plane, -1 in the left one."""
    (a,), (y,) = call.operands, call.results
    language, n, dtype = call.language, y.shape[-1], working_dtype(y.dtype)
    fortran_calls.check_lengths(call, n)
    call.record_flops(n * n * n * 20)
    x, inverse = column_major(memory(call, n * n, dtype), n, n, dtype), Inverse(call, n, dtype)
    state_slot, change = call.function.slot("i64"), stack_slot(call, F64)
    with batches(call, y, 2) as (s, index):
        copy(call, s, x, batch_item(call, s, a, index, 2))
        fail_unless_finite(call, s, x)
        scale_into_range(call, s, x)
        s.write(f"store i64 2, ptr {state_slot}")  # 2: continue; 1: a last step; 0: done
        with s.loop("0", str(_MAX_STEPS)) as (t, _):
            state = t.value(f"load i64, ptr {state_slot}")
            with t.when(t.value(f"icmp ne i64 {state}, 0")) as u:
                inverse.write(u, x)
                norms = [one_norm(call, u, m) for m in (x, inverse.right)]
                scale_for_norms = language.unary("sqrt", norms[1] / norms[0])
                is_last = u.value(f"icmp eq i64 {state}, 1")
                scale = u.value(f"select i1 {is_last}, double 1.0, double {scale_for_norms.name}")
                _newton(call, u, x, inverse.right, scale, change)
                norm = one_norm(call, u, x)
                is_changed = language.binary(
                    "greater", read(language, u, change, F64), norm * _CLOSE
                )
                next_state = u.value(f"select i1 {is_last}, i64 0, i64 1")
                next_state = u.value(f"select i1 {is_changed.name}, i64 2, i64 {next_state}")
                u.write(f"store i64 {next_state}, ptr {state_slot}")
        state = s.value(f"load i64, ptr {state_slot}")
        call.fail_if(s.value(f"icmp ne i64 {state}, 0"), 1, s)
        fail_unless_finite(call, s, x)
        copy(call, s, batch_item(call, s, y, index, 2), x)


def _newton(
    call: KernelCall, s: Section, x: ArrayPointer, inverse: ArrayPointer, scale: Name, change: Name
) -> None:
    """x = (scale x + inverse / scale) / 2; the largest change of an element goes to `change`."""
    language = call.language
    cell = stack_slot(call, F64)
    s.write(f"store double {scale}, ptr {cell}")
    write(s, change, language.constant(0, F64))
    with nest(s, [call.number(k) for k in x.shape[::-1]]) as (t, (j, i)):
        factor = read(language, t, cell, F64)
        old, other = element(call, t, x, i, j), element(call, t, inverse, i, j)
        new = old * (factor * 0.5) + other / (factor * 2.0)
        write(t, address(call, t, x, [i, j]), new)
        size = absolute(new - old)
        largest = language.binary("maximum", read(language, t, change, F64), size)
        write(t, change, largest)


# ---- the exponential -----------------------------------------------------------------------------


_DEGREE = 13
_MAX_NORM = 5.371920351148152  # the norm up to which degree 13 has double precision

# The coefficients of x**k in the numerator, and of (-x)**k in the denominator.
_COEFFICIENTS = [
    factorial(2 * _DEGREE - k) * comb(_DEGREE, k) / factorial(_DEGREE) for k in range(_DEGREE + 1)
]


class _Scratch:
    """Square matrices of one size in scratch memory."""

    def __init__(self, call: KernelCall, n: Length, dtype: Dtype) -> None:
        self.call, self.n, self.dtype = call, n, dtype

    def new(self) -> ArrayPointer:
        pointer = memory(self.call, self.n * self.n, self.dtype)
        return contiguous(pointer, (self.n, self.n), self.dtype)

    def product(self, s: Section, x: ArrayPointer, y: ArrayPointer, out: ArrayPointer) -> None:
        """Write the product of two matrices to `out`."""
        matrices = [
            Matrix(m.pointer, MatrixAxis(self.n, self.n), MatrixAxis(self.n, 1))
            for m in (x, y, out)
        ]
        write_product(self.call, s, Product(matrices[0], matrices[1], matrices[2], self.dtype))

    def sum(
        self,
        s: Section,
        out: ArrayPointer,
        terms: Sequence[tuple[float, ArrayPointer]],
        diagonal: float = 0.0,
    ) -> None:
        """Write a linear combination of matrices, plus a multiple of the identity, to `out`."""
        call, language = self.call, self.call.language
        n = call.number(self.n)
        with s.loop("0", s.times(n, n)) as (t, i):
            total = None
            for factor, x in terms:
                value = read(language, t, offset(t, x.pointer, i, self.dtype), self.dtype)
                scaled = value * language.constant(factor, self.dtype)
                total = scaled if total is None else total + scaled
            write(t, offset(t, out.pointer, i, self.dtype), total)
        if diagonal:
            with s.loop("0", n) as (t, i):
                target = address(call, t, out, [i, i])
                value = read(language, t, target, self.dtype)
                shift = language.constant(diagonal, self.dtype)
                write(t, target, value + shift)


@kernel("expm", strided=True)
def expm(call: KernelCall) -> None:
    """The exponential of square matrices."""
    (a,), (y,) = call.operands, call.results
    n, dtype = y.shape[-1], working_dtype(y.dtype)
    fortran_calls.check_lengths(call, n)
    call.record_flops(n * n * n * 2)
    matrices = _Scratch(call, n, dtype)
    x, numerator, denominator = matrices.new(), matrices.new(), matrices.new()
    powers = [matrices.new() for _ in range(3)]
    pivots, info = memory(call, n, I32), fortran_calls.integer_slot(call)
    with batches(call, y, 2) as (s, index):
        copy(call, s, x, batch_item(call, s, a, index, 2))
        fail_unless_finite(call, s, x)
        count = _scale(call, s, x)
        _approximant(matrices, s, x, powers, numerator, denominator)
        gesv(call, s, denominator, numerator, pivots, info)
        with s.loop("0", count) as (t, _):
            matrices.product(t, numerator, numerator, x)
            copy(call, t, numerator, x)
        copy(call, s, batch_item(call, s, y, index, 2), numerator)


def _scale(call: KernelCall, s: Section, x: ArrayPointer) -> Name:
    """Divide a matrix by a power of two so that its norm is below the bound; the exponent."""
    language = call.language
    norm = one_norm(call, s, x)
    bits = s.value(f"bitcast double {norm.name} to i64")
    # norm = m * 2**e with 1 <= m < 2; the bound is 1.34... * 2**2
    exponent = s.plus(s.value(f"lshr i64 {bits}, 52"), "-1025")
    mantissa_bits = s.value(f"or i64 {s.value(f'and i64 {bits}, {2**52 - 1}')}, {1023 << 52}")
    mantissa = s.value(f"bitcast i64 {mantissa_bits} to double")
    bound = language.constant(_MAX_NORM / 4.0, F64).name
    exceeds = s.value(f"fcmp ogt double {mantissa}, {bound}")
    needed = s.value(f"add i64 {exponent}, {s.value(f'zext i1 {exceeds} to i64')}")
    count = s.larger(needed, "0")
    factor_bits = s.value(f"shl i64 {s.value(f'sub i64 1023, {count}')}, 52")
    cell = stack_slot(call, F64)
    s.write(f"store i64 {factor_bits}, ptr {cell}")
    with nest(s, [call.number(k) for k in x.shape]) as (t, indices):
        target = address(call, t, x, indices)
        value = read(language, t, target, x.dtype)
        factor = language.cast(read(language, t, cell, F64), x.dtype)
        write(t, target, value * factor)
    return count


def _approximant(
    matrices: _Scratch,
    s: Section,
    x: ArrayPointer,
    powers: Sequence[ArrayPointer],
    numerator: ArrayPointer,
    denominator: ArrayPointer,
) -> None:
    """Numerator and denominator: even powers plus and minus odd ones."""
    b = _COEFFICIENTS
    square, fourth, sixth = powers
    matrices.product(s, x, x, square)
    matrices.product(s, square, square, fourth)
    matrices.product(s, fourth, square, sixth)
    # odd powers: x times an even polynomial, computed in `numerator`, then in `denominator`
    matrices.sum(s, numerator, [(b[13], sixth), (b[11], fourth), (b[9], square)])
    matrices.product(s, sixth, numerator, denominator)
    odd = [(1.0, denominator), (b[7], sixth), (b[5], fourth), (b[3], square)]
    matrices.sum(s, numerator, odd, b[1])
    matrices.product(s, x, numerator, denominator)
    # even powers, computed in `x`, which is no longer needed
    matrices.sum(s, numerator, [(b[12], sixth), (b[10], fourth), (b[8], square)])
    matrices.product(s, sixth, numerator, x)
    matrices.sum(s, x, [(1.0, x), (b[6], sixth), (b[4], fourth), (b[2], square)], b[0])
    matrices.sum(s, numerator, [(1.0, x), (1.0, denominator)])
    matrices.sum(s, denominator, [(1.0, x), (-1.0, denominator)])

"""The matrix exponential by scaling and squaring.

    expm    N. J. Higham, "The scaling and squaring method for the matrix exponential revisited",
            SIAM J. Matrix Anal. Appl. 26 (2005), 1179-1193: the diagonal Pade approximant of
            degree 13, after halving the matrix until its norm is below 5.37

All matrices here are polynomials of one matrix, or quotients of such polynomials.  They commute, so
the formulas hold for the transposes too, and nothing is transposed for LAPACK.  The kernel fails
for NaN and infinity.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, factorial

import numpy as np

from wengert._engine.core.symbolic.dim import Length

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import F64, Dtype
from .. import fortran_calls
from ..gemm.operands import Matrix, MatrixAxis, Product
from ..gemm.write_product import write_product
from ..kernel_call import ArrayPointer, KernelCall, contiguous, kernel
from ..loop_helpers import address, copy, nest, offset, read, stack_slot, write
from .lapack import batch_item, batches, fail_unless_finite, memory, working_dtype
from .lu_solve import gesv, one_norm

_DEGREE = 13
_MAX_NORM = 5.371920351148152  # the norm up to which degree 13 has double precision

# The coefficients of x**k in the numerator, and of (-x)**k in the denominator.
_COEFFICIENTS = [
    factorial(2 * _DEGREE - k) * comb(_DEGREE, k) / factorial(_DEGREE) for k in range(_DEGREE + 1)
]
_I32 = np.dtype(np.int32)


class _Scratch:
    """Square matrices of one size in scratch memory."""

    def __init__(self, call: KernelCall, n: Length, dtype: Dtype) -> None:
        self.call, self.n, self.dtype = call, n, dtype

    def new(self) -> ArrayPointer:
        """A new matrix."""
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
    fortran_calls.check_lengths(call, call.number(n))
    call.record_flops(n * n * n * 2)
    matrices = _Scratch(call, n, dtype)
    x, numerator, denominator = matrices.new(), matrices.new(), matrices.new()
    powers = [matrices.new() for _ in range(3)]
    pivots, info = memory(call, n, _I32), fortran_calls.integer_slot(call)
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

"""The matrix exponential by scaling and squaring.

    expm    N. J. Higham, "The scaling and squaring method for the matrix exponential revisited",
            SIAM J. Matrix Anal. Appl. 26 (2005), 1179-1193: the diagonal Pade approximant of
            degree 13, after halving the matrix until its norm is below 5.37

All matrices here are polynomials of one matrix, or quotients of two; these commute, and what holds
for a matrix holds for its transpose, so nothing is transposed for LAPACK.  The kernel fails for NaN
and infinity.
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
from ..loop_helpers import copy, held, nest, offset, place, read, write
from .lapack import batches, fails_unless_finite, memory, one, working
from .lu_solve import gesv, one_norm

_DEGREE = 13
_MAX_NORM = 5.371920351148152  # the norm up to which degree 13 is right to double precision

# x**k has this factor in the numerator; in the denominator, with the sign of (-x)**k.
_FACTORS = [
    factorial(2 * _DEGREE - k) * comb(_DEGREE, k) / factorial(_DEGREE) for k in range(_DEGREE + 1)
]
_I32 = np.dtype(np.int32)


class _Scratch:
    """Square matrices of one size."""

    def __init__(self, call: KernelCall, n: Length, dtype: Dtype) -> None:
        self.call, self.n, self.dtype = call, n, dtype

    def new(self) -> ArrayPointer:
        """Another one."""
        pointer = memory(self.call, self.n * self.n, self.dtype)
        return contiguous(pointer, (self.n, self.n), self.dtype)

    def product(self, s: Section, x: ArrayPointer, y: ArrayPointer, to: ArrayPointer) -> None:
        """The product of two."""
        matrices = [
            Matrix(m.pointer, MatrixAxis(self.n, self.n), MatrixAxis(self.n, 1)) for m in (x, y, to)
        ]
        write_product(self.call, s, Product(matrices[0], matrices[1], matrices[2], self.dtype))

    def sum(
        self,
        s: Section,
        to: ArrayPointer,
        terms: Sequence[tuple[float, ArrayPointer]],
        diagonal: float = 0.0,
    ) -> None:
        """A sum of multiples of some, and of the identity."""
        call, language = self.call, self.call.language
        n = call.number(self.n)
        with s.loop("0", s.times(n, n)) as (t, i):
            total = None
            for factor, x in terms:
                value = read(language, t, offset(t, x.pointer, i, self.dtype), self.dtype)
                scaled = value * language.constant(factor, self.dtype)
                total = scaled if total is None else total + scaled
            write(t, offset(t, to.pointer, i, self.dtype), total)
        if diagonal:
            with s.loop("0", n) as (t, i):
                target = place(call, t, to, [i, i])
                value = read(language, t, target, self.dtype)
                more = language.constant(diagonal, self.dtype)
                write(t, target, value + more)


@kernel("expm", strided=True)
def expm(call: KernelCall) -> None:
    """The exponential of square matrices."""
    (a,), (y,) = call.operands, call.results
    n, dtype = y.shape[-1], working(y.dtype)
    fortran_calls.check_lengths(call, call.number(n))
    call.works(n * n * n * 2)
    matrices = _Scratch(call, n, dtype)
    x, top, bottom = matrices.new(), matrices.new(), matrices.new()
    powers = [matrices.new() for _ in range(3)]
    pivots, info = memory(call, n, _I32), fortran_calls.whole_cell(call)
    with batches(call, y, 2) as (s, at):
        copy(call, s, x, one(call, s, a, at, 2))
        fails_unless_finite(call, s, x)
        count = _halved(call, s, x)
        _approximant(matrices, s, x, powers, top, bottom)
        gesv(call, s, bottom, top, pivots, info)
        with s.loop("0", count) as (t, _):
            matrices.product(t, top, top, x)
            copy(call, t, top, x)
        copy(call, s, one(call, s, y, at, 2), top)


def _halved(call: KernelCall, s: Section, x: ArrayPointer) -> Name:
    """Divide a matrix by a power of two that makes it small; the exponent."""
    language = call.language
    norm = one_norm(call, s, x)
    bits = s.value(f"bitcast double {norm.name} to i64")
    # norm = m * 2**e with 1 <= m < 2; the bound is 1.34... * 2**2
    exponent = s.plus(s.value(f"lshr i64 {bits}, 52"), "-1025")
    rest = s.value(f"or i64 {s.value(f'and i64 {bits}, {2**52 - 1}')}, {1023 << 52}")
    mantissa = s.value(f"bitcast i64 {rest} to double")
    bound = language.constant(_MAX_NORM / 4.0, F64).name
    over = s.value(f"fcmp ogt double {mantissa}, {bound}")
    wanted = s.value(f"add i64 {exponent}, {s.value(f'zext i1 {over} to i64')}")
    count = s.larger(wanted, "0")
    field = s.value(f"shl i64 {s.value(f'sub i64 1023, {count}')}, 52")
    cell = held(call, F64)
    s.write(f"store i64 {field}, ptr {cell}")
    with nest(s, [call.number(k) for k in x.shape]) as (t, indices):
        target = place(call, t, x, indices)
        value = read(language, t, target, x.dtype)
        factor = language.cast(read(language, t, cell, F64), x.dtype)
        write(t, target, value * factor)
    return count


def _approximant(
    matrices: _Scratch,
    s: Section,
    x: ArrayPointer,
    powers: Sequence[ArrayPointer],
    top: ArrayPointer,
    bottom: ArrayPointer,
) -> None:
    """Numerator and denominator: even powers plus and minus odd ones."""
    b = _FACTORS
    two, four, six = powers
    matrices.product(s, x, x, two)
    matrices.product(s, two, two, four)
    matrices.product(s, four, two, six)
    # odd powers: x times an even polynomial, made in `top`, then in `bottom`
    matrices.sum(s, top, [(b[13], six), (b[11], four), (b[9], two)])
    matrices.product(s, six, top, bottom)
    odd = [(1.0, bottom), (b[7], six), (b[5], four), (b[3], two)]
    matrices.sum(s, top, odd, b[1])
    matrices.product(s, x, top, bottom)
    # even powers, made in `x`, which is not needed any more
    matrices.sum(s, top, [(b[12], six), (b[10], four), (b[8], two)])
    matrices.product(s, six, top, x)
    matrices.sum(s, x, [(1.0, x), (b[6], six), (b[4], four), (b[2], two)], b[0])
    matrices.sum(s, top, [(1.0, x), (1.0, bottom)])
    matrices.sum(s, bottom, [(1.0, x), (-1.0, bottom)])

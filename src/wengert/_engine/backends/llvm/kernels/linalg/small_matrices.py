"""Linear systems, inverses and factorizations of batches of matrices of up to eight rows.

Each formula is evaluated for as many matrices as a vector has lanes, instead of a LAPACK call for
each matrix; loops over the elements are unrolled up to four rows (batched_matrices.py).  The
algorithms are LAPACK's:

    Elimination                   Gaussian elimination with partial pivoting; rows are exchanged by
                                  selects, not branches
    solve, inv                    elimination, then back substitution
    solve_triangular, cholesky    by definition

The kernel fails, and the interpreter calls LAPACK, if a pivot is zero or of the size of rounding
errors (far below the terms of its sum).  For complex matrices LAPACK is called.  Determinants are
in determinants.py.

    reduced    the tridiagonal form of a symmetric matrix: diagonal, off-diagonal, and the
               orthogonal matrix Q with a = Q t Q.T
    scaled     scaling by powers of two, so that nothing overflows later, and its inverse
    lifted     a power of two for numbers so small that their squares underflow

Householder reflections, chosen as in LAPACK's sytd2 and larfg, so that signs are LAPACK's;
off-diagonal elements may be negative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.types import Scalar
from wengert._engine.ops.linalg.factorizations import TRANS

from ...ir.ir_builder import Section
from ...ir.llvm_types import F64, I64, Dtype
from ...ir.scalar_language import Language
from ..batched_matrices import Block, SimdMatrix, blocks, each, load, save
from ..kernel_call import UNROLLED, ArrayPointer, KernelCall
from ..loop_helpers import in_section

MAX_ROWS = 8
MAX_COLUMNS = 8  # of a right-hand side
_SMALLEST_PIVOT = float(np.finfo(np.float64).tiny)  # smaller numbers have no reciprocal
_ROUNDING = 32.0 * float(np.finfo(np.float64).eps)  # relative error of a few operations


def is_small(call: KernelCall) -> bool:
    """Whether these kernels support a call: real matrices with few rows, of static sizes."""
    a, *others = call.operands
    n = a.shape[-1]
    sizes = [x.shape[-1] for x in others if len(x.shape) > 1]
    return (
        all(x.dtype.kind != "c" for x in call.operands)
        and type(n) is int
        and 1 <= n <= MAX_ROWS
        and all(type(m) is int and 1 <= m <= MAX_COLUMNS for m in sizes)
    )


class Elimination:
    """Gaussian elimination of the matrices of a block.

    Parameters
    ----------
    a : SimdMatrix
        The matrices; afterwards U, and L below the diagonal.
    b : SimdMatrix, optional
        Right-hand sides; their rows are exchanged and eliminated as those of the matrix.
    section : Section, optional
        The section of the instructions; by default that of the block.

    Attributes
    ----------
    doubt : SimdMatrix
        1 where a pivot is zero or of the size of rounding errors.
    sign : SimdMatrix
        -1 where the number of row exchanges is odd.
    """

    def __init__(
        self,
        block: Block,
        a: SimdMatrix,
        b: SimdMatrix | None = None,
        section: Section | None = None,
    ) -> None:
        self.block, self.a, self.b, self.n = block, a, b, a.rows
        self.section: Section = section or block.section
        self.doubt, self.sign = SimdMatrix(block, 1, dtype=I64), SimdMatrix(block, 1)
        self._size = SimdMatrix(block, 1)
        s, n, unrolled = self.section, self.n, a.unrolled
        self.doubt.put(s, 0)
        self.sign.put(s, 1.0)
        for t, k in each(s, 0, n, unrolled):
            after = t.plus(k, "1")
            for u, i in each(t, after, n, unrolled):
                self._exchange(u, k, i)
            self._check_pivot(t, k)
            inverse = 1.0 / a.get(t, k, k)
            for u, i in each(t, after, n, unrolled):
                self._subtract(u, k, i, after, in_section(u, inverse))

    def _exchange(self, s: Section, k: str, i: str) -> None:
        """Exchange two rows in the lanes in which the lower one has the larger element."""
        language, a = self.block.call.language, self.a
        sizes = [language.unary("absolute", a.get(s, row, k)) for row in (i, k)]
        swap = language.compare("greater", *sizes)
        self.sign.put(s, language.select(swap, -self.sign.get(s), self.sign.get(s)))
        for matrix in (self.a, self.b):
            for j in range(0 if matrix is None else matrix.columns):
                assert matrix is not None
                x, y = matrix.get(s, k, j), matrix.get(s, i, j)
                matrix.put(s, language.select(swap, y, x), k, j)
                matrix.put(s, language.select(swap, x, y), i, j)

    def _check_pivot(self, s: Section, k: str) -> None:
        """Set `doubt` where cancellation has left no digit of a pivot."""
        language, a = self.block.call.language, self.a
        self._size.put(s, _SMALLEST_PIVOT / _ROUNDING)
        for t, m in each(s, 0, k, a.unrolled):
            left, above = (language.unary("absolute", a.get(t, *at)) for at in ((k, m), (m, k)))
            self._size.put(t, language.fma(left, above, self._size.get(t)))
        size = language.unary("absolute", a.get(s, k, k))
        is_doubtful = language.compare("less_equal", size, self._size.get(s) * _ROUNDING)
        self.doubt.put_where(s, is_doubtful, 1)

    def _subtract(self, s: Section, k: str, i: str, after: str, inverse: Scalar) -> None:
        """Subtract a multiple of row k from row i."""
        language, a, b = self.block.call.language, self.a, self.b
        factor = a.get(s, i, k) * inverse
        a.put(s, factor, i, k)
        for t, j in each(s, after, self.n, a.unrolled):
            a.put(t, language.fma(-in_section(t, factor), a.get(t, k, j), a.get(t, i, j)), i, j)
        for j in range(0 if b is None else b.columns):
            assert b is not None
            b.put(s, language.fma(-factor, b.get(s, k, j), b.get(s, i, j)), i, j)

    def fail_in_doubt(self, flag: Scalar | None = None) -> None:
        """Fail if a lane has a doubtful pivot, and its flag is true."""
        s, language = self.section, self.block.call.language
        doubt = language.compare("equal", self.doubt.get(s), language.constant(1, I64))
        if flag is not None:
            doubt = language.binary("logical_and", doubt, flag)
        self.block.fail_if(doubt, s)

    def put_nan_in_doubt(self, x: SimdMatrix) -> None:
        """Make solutions NaN in the lanes that have a doubtful pivot."""
        s, language = self.section, self.block.call.language
        doubt = language.compare("equal", self.doubt.get(s), language.constant(1, I64))
        nan = language.constant(float("nan"), F64)
        for t, i in each(s, 0, x.rows, x.unrolled):
            for j in range(x.columns):
                x.put_where(t, doubt, nan, i, j)

    def substitute(self) -> SimdMatrix:
        """The solutions, in the memory of the right-hand sides."""
        assert self.b is not None
        _substitute(self.section, self.a, self.b, lower=False, unit=False, reciprocal=True)
        return self.b

    def diagonal(self) -> tuple[list[Any], Any]:
        """The pivots, and the sign of the row exchanges."""
        s = self.section
        return [self.a.get(s, k, k) for k in range(self.n)], self.sign.get(s)


def _substitute(
    s: Section, a: SimdMatrix, b: SimdMatrix, lower: bool, unit: bool, reciprocal: bool = False
) -> None:
    """Solve a triangular system row by row; the solution replaces the right-hand side.

    With `reciprocal`, multiply by the reciprocals of the diagonal: faster, but rounded twice.
    """
    language, n = a.language, a.rows
    for t, i in each(s, 0, n, a.unrolled, down=not lower):
        first, last = ("0", i) if lower else (t.plus(i, "1"), n)
        for u, j in each(t, first, last, a.unrolled):
            factor = -a.get(u, i, j)
            for k in range(b.columns):
                b.put(u, language.fma(factor, b.get(u, j, k), b.get(u, i, k)), i, k)
        if unit:
            continue
        pivot = a.get(t, i, i)
        inverse = 1.0 / pivot if reciprocal else None
        for k in range(b.columns):
            element = b.get(t, i, k)
            b.put(t, element / pivot if inverse is None else element * inverse, i, k)


def loaded(block: Block, k: int, n: int, columns: int, dtype: Dtype = F64) -> SimdMatrix:
    """The matrices of array k of a block."""
    matrix = SimdMatrix(block, n, columns, dtype)
    load(block, k, matrix, block.section)
    return matrix


def identity(block: Block, n: int) -> SimdMatrix:
    """An identity matrix in every lane."""
    matrix, s = SimdMatrix(block, n, n), block.section
    for t, i in each(s, 0, n, matrix.unrolled):
        for j in range(n):
            matrix.put(t, 0.0, i, j)
        matrix.put(t, 1.0, i, i)
    return matrix


# ---- operations --------------------------------------------------------------------------------


def as_columns(b: ArrayPointer, x: ArrayPointer) -> list[ArrayPointer]:
    """Right-hand sides and solutions; vectors as matrices with one column."""
    if len(b.shape) > 1:
        return [b, x]
    return [y._replace(shape=(*y.shape, 1), strides=(*y.strides, 1)) for y in (b, x)]


def solve(call: KernelCall, or_nan: bool = False) -> None:
    """x with a @ x = b; in doubt a failure, or NaN."""
    (a, b), (x,) = call.operands, call.results
    b, x = as_columns(b, x)
    n: Any = x.shape[-2]
    columns: Any = x.shape[-1]

    def write(block: Block) -> None:
        elimination = Elimination(block, loaded(block, 0, n, n), loaded(block, 1, n, columns))
        if not or_nan:
            elimination.fail_in_doubt()
        x = elimination.substitute()
        if or_nan:
            elimination.put_nan_in_doubt(x)
        save(block, 2, x, block.section)

    blocks(call, [(a, 2), (b, 2), (x, 2)], F64, write)


def inv(call: KernelCall) -> None:
    """The inverse."""
    (a,), (x,) = call.operands, call.results
    n: Any = x.shape[-1]

    def write(block: Block) -> None:
        elimination = Elimination(block, loaded(block, 0, n, n), identity(block, n))
        elimination.fail_in_doubt()
        save(block, 1, elimination.substitute(), block.section)

    blocks(call, [(a, 2), (x, 2)], F64, write)


def solve_triangular(call: KernelCall) -> None:
    """x with op(a) @ x = b, a triangular; in the precision of the result."""
    (a, b), (x,) = call.operands, call.results
    b, x = as_columns(b, x)
    n: Any = x.shape[-2]
    columns: Any = x.shape[-1]
    lower, unit = bool(call.params.get("lower", False)), bool(call.params.get("unit_diagonal"))
    transposed = TRANS[call.params.get("trans", 0)] > 0

    def write(block: Block) -> None:
        language, s = call.language, block.section
        matrix = SimdMatrix(block, n, n, x.dtype)
        zero = language.constant(0, x.dtype)
        for t, i in each(s, 0, n, matrix.unrolled):
            first, last = ("0", t.plus(i, "1")) if lower else (i, n)
            for u, j in each(t, first, last, matrix.unrolled):
                value = block.element(0, u, (i, j))
                matrix.put(u, value, *((j, i) if transposed else (i, j)))
            if not unit:
                is_zero = language.compare("equal", matrix.get(t, i, i), zero)
                block.fail_if(is_zero, t)
        rhs = loaded(block, 1, n, columns, x.dtype)
        _substitute(s, matrix, rhs, lower != transposed, unit)
        save(block, 2, rhs, s)

    blocks(call, [(a, 2), (b, 2), (x, 2)], x.dtype, write)


def cholesky(call: KernelCall) -> None:
    """The triangular factor of positive definite matrices, from one triangle of each."""
    (a,), (x,) = call.operands, call.results
    n: Any = x.shape[-1]
    upper = bool(call.params.get("upper", False))

    def write(block: Block) -> None:
        language, s = call.language, block.section
        low = SimdMatrix(block, n, n)
        unrolled = low.unrolled
        zero = language.constant(0.0, F64)
        for t, i in each(s, 0, n, unrolled):
            for u, j in each(t, 0, n, unrolled):
                low.put(u, zero, i, j)
            for u, j in each(t, 0, t.plus(i, "1"), unrolled):
                low.put(u, block.element(0, u, (j, i) if upper else (i, j)), i, j)
        for t, j in each(s, 0, n, unrolled):
            for u, k in each(t, 0, j, unrolled):
                factor = -low.get(u, j, k)
                for v, i in each(u, j, n, unrolled):
                    element = low.get(v, i, j)
                    low.put(v, language.fma(in_section(v, factor), low.get(v, i, k), element), i, j)
            square = low.get(t, j, j)
            block.fail_if(language.compare("less_equal", square, zero), t)
            root = language.unary("sqrt", square)
            inverse = 1.0 / root
            for u, i in each(t, j, n, unrolled):
                low.put(u, low.get(u, i, j) * in_section(u, inverse), i, j)
            low.put(t, root, j, j)
        for t, i in each(s, 0, n, unrolled):
            for u, j in each(t, 0, n, unrolled):
                block.set_element(1, u, low.get(u, i, j), (j, i) if upper else (i, j))

    blocks(call, [(a, 2), (x, 2)], F64, write)


# ---- tridiagonalization --------------------------------------------------------------------------


SCALED_BELOW, SCALE_FACTOR = 2.0**-500, 2.0**1000  # of numbers that are squared
_MAX_EXPONENT, _MANTISSA_BITS = 2046, 52


def sum_of(s: Language, terms: list[tuple[Any, Any]]) -> Any:
    """The sum of products."""
    total: Any = None
    for x, y in terms:
        total = x * y if total is None else s.fma(x, y, total)
    return total


def largest(s: Language, xs: list[Any]) -> Any:
    """The largest absolute value; NaN if an element is NaN."""
    result: Any = None
    for x in xs:
        size = s.unary("absolute", x)
        result = size if result is None else s.binary("maximum", result, size)
    return result


def lifted(s: Language, size: Any) -> tuple[Any, Any]:
    """The factor for numbers of a given size that are squared, and its inverse."""
    is_small = s.compare("less", size, s.constant(SCALED_BELOW, F64))
    one = s.constant(1.0, F64)
    up = s.select(is_small, s.constant(SCALE_FACTOR, F64), one)
    return up, s.select(is_small, s.constant(1.0 / SCALE_FACTOR, F64), one)


def scaled(block: Block, s: Section, a: SimdMatrix) -> Any:
    """Scale the largest element of each matrix to about one; returns the power of two removed.

    The kernel fails for matrices that are not finite, and LAPACK is called.
    """
    language, n = block.call.language, a.rows
    size = largest(language, [a.get(s, i, j) for i in range(n) for j in range(i + 1)])
    finite = language.unary("isfinite", size)
    bad = block.any_of(s, language.unary("logical_not", finite))
    block.call.fail_if(bad, 1, s)
    exponent = language.bits(size) >> _MANTISSA_BITS
    power = language.constant(_MAX_EXPONENT, I64) - exponent
    power = language.binary("minimum", power, language.constant(_MAX_EXPONENT - 1, I64))
    power = language.binary("maximum", power, language.constant(1, I64))
    factor = language.number(power << _MANTISSA_BITS)
    for t, i in each(s, 0, n, unrolled=n <= UNROLLED):
        for j in range(n):
            a.put(t, a.get(t, i, j) * in_section(t, factor), i, j)
    return language.number((language.constant(_MAX_EXPONENT, I64) - power) << _MANTISSA_BITS)


def reduced(
    block: Block, s: Section, a: SimdMatrix, d: SimdMatrix, e: SimdMatrix, z: SimdMatrix | None
) -> None:
    """Fill d, e and, if needed, z for symmetric matrices, which are overwritten."""
    language, n = block.call.language, a.rows
    v, w = SimdMatrix(block, max(n - 2, 1), n), SimdMatrix(block, n)
    tau: list[Any] = []
    for i in range(n - 2):
        column = [a.get(s, j, i) for j in range(i + 1, n)]
        beta, factor, vector = _reflection(language, column)
        e.put(s, beta, i)
        tau.append(factor)
        for j, x in enumerate(vector, i + 1):
            v.put(s, x, i, j)
        _update(block, s, a, v, w, factor, i)
    for i in range(n):
        d.put(s, a.get(s, i, i), i)
    if n > 1:
        e.put(s, a.get(s, n - 1, n - 2), n - 2)
    if z is None:
        return
    for t, i in each(s, 0, n, unrolled=n <= UNROLLED):
        for j in range(n):
            z.put(t, 0.0, i, j)
        z.put(t, 1.0, i, i)
    for i in reversed(range(n - 2)):
        vector = [v.get(s, i, j) for j in range(i + 1, n)]
        for t, c in each(s, i + 1, n, unrolled=n <= UNROLLED):
            below = [z.get(t, j, c) for j in range(i + 1, n)]
            total = sum_of(language, list(zip(vector, below, strict=True))) * tau[i]
            for j, (x, old) in enumerate(zip(vector, below, strict=True), i + 1):
                z.put(t, language.fma(-total, x, old), j, c)


def _reflection(s: Language, column: list[Any]) -> tuple[Any, Any, list[Any]]:
    """beta, tau and v, whose first element is one: I - tau v v.T takes the column to (beta, 0)."""
    alpha, *rest = column
    size = largest(s, rest)
    up, down = lifted(s, s.binary("maximum", size, s.unary("absolute", alpha)))
    alpha_up, *rest_up = [x * up for x in column]
    norm = s.unary("sqrt", sum_of(s, [(x, x) for x in (alpha_up, *rest_up)]))
    beta = -s.binary("copysign", norm, alpha_up)
    zero, one = s.constant(0.0, F64), s.constant(1.0, F64)
    is_zero = s.compare("equal", size, zero)
    tau = s.select(is_zero, zero, (beta - alpha_up) / beta)
    inverse = s.select(is_zero, zero, 1.0 / (alpha_up - beta))
    return s.select(is_zero, alpha, beta * down), tau, [one, *(x * inverse for x in rest_up)]


def _update(
    block: Block, s: Section, a: SimdMatrix, v: SimdMatrix, w: SimdMatrix, tau: Scalar, i: int
) -> None:
    """Apply a reflection to the remaining matrix from both sides."""
    language, n = block.call.language, a.rows
    vector = [v.get(s, i, j) for j in range(i + 1, n)]
    for t, j in each(s, i + 1, n, unrolled=n <= UNROLLED):
        row = [a.get(t, j, k) for k in range(i + 1, n)]
        w.put(t, sum_of(language, list(zip(row, vector, strict=True))) * in_section(t, tau), j)
    w_values = [w.get(s, j) for j in range(i + 1, n)]
    half = sum_of(language, list(zip(w_values, vector, strict=True))) * tau * -0.5
    w_values = [language.fma(half, x, y) for x, y in zip(vector, w_values, strict=True)]
    for x, j in zip(w_values, range(i + 1, n), strict=True):
        w.put(s, x, j)
    for t, j in each(s, i + 1, n, unrolled=n <= UNROLLED):
        left, other = v.get(t, i, j), w.get(t, j)
        for k, (x, y) in enumerate(zip(vector, w_values, strict=True), i + 1):
            old = a.get(t, j, k)
            a.put(t, language.fma(-left, y, language.fma(-other, x, old)), j, k)

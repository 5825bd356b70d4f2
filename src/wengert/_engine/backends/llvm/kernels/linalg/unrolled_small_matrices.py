"""Small: linear systems, inverses, determinants and triangles of few rows; up to four unrolled.

Formulas for one matrix, written once for many side by side (batched_matrices.py), in place of a
call of LAPACK for each.  What LAPACK does with a matrix is what they do:

    solve, inv                    Gaussian elimination with partial pivoting; rows are exchanged by
                                  choices, and not by branches
    cholesky, solve_triangular    as they are defined

Determinants are in linalg/determinants.py; of more than four rows all of it is in
linalg/looped_small_matrices.py.

A matrix that is singular, or so close to it that a pivot is nothing but rounding, makes the step
fail: the interpreter asks LAPACK, and does what that says.  Complex matrices are left to LAPACK.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wengert._engine.backends.llvm.ir.llvm_types import F64, Dtype
from wengert._engine.backends.llvm.ir.scalar_language import Language
from wengert._engine.backends.llvm.ir.simd_value import Lane
from wengert._engine.ops.linalg.factorizations import TRANS

from ..batched_matrices import Block, blocks
from ..kernel_call import Array, Call
from . import looped_small_matrices

ROWS = 8  # at most
UNROLLED = 4  # of more rows the text is loops (linalg/looped_small_matrices.py)
COLUMNS = 8  # of a right-hand side, at most
_LEAST = float(np.finfo(np.float64).tiny)  # smaller numbers have no reciprocal
_ROUNDING = 16.0 * float(np.finfo(np.float64).eps)  # what a few operations lose

Rows = list[list[Any]]  # of lanes


def is_small(call: Call) -> bool:
    """Whether the matrices of a step are unrolled: real ones, of few rows, and of known sizes."""
    a, *others = call.operands
    n = a.shape[-1]
    sizes = [x.shape[-1] for x in others if len(x.shape) > 1]
    return (
        all(x.dtype.kind != "c" for x in call.operands)
        and type(n) is int
        and 1 <= n <= ROWS
        and all(type(m) is int and 1 <= m <= COLUMNS for m in sizes)
    )


def as_columns(array: Array) -> Array:
    """Vectors as matrices with one column."""
    return array._replace(shape=(*array.shape, 1), strides=(*array.strides, 1))


def rows_of(block: Block, k: int, rows: int, columns: int, dtype: Dtype) -> Rows:
    """The elements of array k of a block."""
    language = block.call.language
    return [
        [language.cast(block.read(k, i, j), dtype) for j in range(columns)] for i in range(rows)
    ]


def write_rows(block: Block, k: int, x: Rows) -> None:
    """Write the elements of array k of a block."""
    for i, row in enumerate(x):
        for j, value in enumerate(row):
            block.write(k, value, i, j)


# ---- elimination -------------------------------------------------------------------------------


class Eliminated(NamedTuple):
    """A matrix after elimination.

    upper : what is right of the diagonal.
    pivots : the diagonal.
    right : the right-hand sides, rows exchanged and eliminated as those of the matrix.
    odd : whether the number of exchanges is odd.
    doubt : whether some pivot is zero, or nothing but rounding.
    """

    upper: Rows
    pivots: list[Any]
    right: Rows
    odd: Any
    doubt: Any


def eliminated(s: Language, a: Rows, b: Rows) -> Eliminated:
    """Gaussian elimination with partial pivoting.

    Beside each element the sizes of the terms that it is a sum of are summed up: a pivot far below
    that sum is what cancellation has left.
    """
    n = len(a)
    a, b = [list(row) for row in a], [list(row) for row in b]
    sizes: list[list[Any]] = [[None] * n for _ in range(n)]
    odd: Any = None
    doubt: Any = None
    for k in range(n):
        for i in range(k + 1, n):
            swap = s.compare("greater", size_of(s, a[i][k]), size_of(s, a[k][k]))
            odd = swap if odd is None else s.binary("bitwise_xor", odd, swap)
            for rows, first in ((a, k), (b, 0), (sizes, k)):
                for j in range(first, len(rows[k])):
                    rows[k][j], rows[i][j] = _exchanged(s, swap, rows[k][j], rows[i][j])
        pivot, size = a[k][k], size_of(s, a[k][k])
        flag = s.compare("less", size, s.constant(_LEAST, F64))
        if sizes[k][k] is not None:
            small = s.compare("less_equal", size, sizes[k][k] * _ROUNDING)
            flag = s.binary("logical_or", flag, small)
        doubt = flag if doubt is None else s.binary("logical_or", doubt, flag)
        if k + 1 == n:
            break
        inverse = 1.0 / pivot
        for i in range(k + 1, n):
            factor = a[i][k] * inverse
            for j in range(k + 1, n):
                before = size_of(s, a[i][j]) if sizes[i][j] is None else sizes[i][j]
                sizes[i][j] = s.fma(size_of(s, factor), size_of(s, a[k][j]), before)
                a[i][j] = s.fma(-factor, a[k][j], a[i][j])
            b[i] = [s.fma(-factor, above, own) for above, own in zip(b[k], b[i], strict=True)]
    return Eliminated(a, [a[k][k] for k in range(n)], b, odd, doubt)


def size_of(s: Language, x: Any) -> Any:
    """The size of a number."""
    return s.unary("absolute", x)


def _exchanged(s: Language, swap: Lane, x: Any, y: Any) -> tuple[Any, Any]:
    if x is None:
        return None, None
    return s.select(swap, y, x), s.select(swap, x, y)


def solved(s: Language, found: Eliminated) -> Rows:
    """The solutions, from the last row up."""
    n = len(found.pivots)
    x: Rows = [[] for _ in range(n)]
    for i in reversed(range(n)):
        inverse = 1.0 / found.pivots[i]
        total = list(found.right[i])
        for j in range(i + 1, n):
            total = [
                s.fma(-found.upper[i][j], below, own)
                for below, own in zip(x[j], total, strict=True)
            ]
        x[i] = [own * inverse for own in total]
    return x


def identity(s: Language, n: int) -> Rows:
    """The identity matrix."""
    return [[s.constant(float(i == j), F64) for j in range(n)] for i in range(n)]


def solve(call: Call) -> None:
    """x with a @ x = b."""
    (a, b), (x,) = call.operands, call.results
    if len(b.shape) == 1:
        b, x = as_columns(b), as_columns(x)
    n, columns = x.shape[-2:]
    assert type(n) is int and type(columns) is int
    if n > UNROLLED:
        looped_small_matrices.solve(call, a, b, x)
        return

    def write(block: Block) -> None:
        language = call.language
        left, right = rows_of(block, 0, n, n, F64), rows_of(block, 1, n, columns, F64)
        found = eliminated(language, left, right)
        block.fail_if(found.doubt)
        write_rows(block, 2, solved(language, found))

    blocks(call, [(a, 2), (b, 2), (x, 2)], F64, write)


def inv(call: Call) -> None:
    """The inverse."""
    (a,), (x,) = call.operands, call.results
    n: Any = x.shape[-1]
    if n > UNROLLED:
        looped_small_matrices.inv(call)
        return

    def write(block: Block) -> None:
        language = call.language
        found = eliminated(language, rows_of(block, 0, n, n, F64), identity(language, n))
        block.fail_if(found.doubt)
        write_rows(block, 1, solved(language, found))

    blocks(call, [(a, 2), (x, 2)], F64, write)


# ---- triangles ---------------------------------------------------------------------------------


def solve_triangular(call: Call) -> None:
    """x with op(a) @ x = b, a triangular; in the precision of the result."""
    (a, b), (x,) = call.operands, call.results
    if len(b.shape) == 1:
        b, x = as_columns(b), as_columns(x)
    n: Any = x.shape[-2]
    columns: Any = x.shape[-1]
    if n > UNROLLED:
        looped_small_matrices.solve_triangular(call, a, b, x)
        return
    dtype = x.dtype
    lower, unit = bool(call.params.get("lower", False)), bool(call.params.get("unit_diagonal"))
    turned = TRANS[call.params.get("trans", 0)] > 0
    order = list(range(n)) if lower != turned else list(reversed(range(n)))

    def write(block: Block) -> None:
        language = call.language
        right = rows_of(block, 1, n, columns, dtype)

        def element(i: int, j: int) -> Any:
            place = (j, i) if turned else (i, j)
            return language.cast(block.read(0, *place), dtype)

        if not unit:
            diagonal = [element(i, i) for i in range(n)]
            zero = language.constant(0, dtype)
            for p in diagonal:
                block.fail_if(language.compare("equal", p, zero))
        for step, i in enumerate(order):
            for j in order[:step]:
                factor = -element(i, j)
                right[i] = [
                    language.fma(factor, above, own)
                    for above, own in zip(right[j], right[i], strict=True)
                ]
            if not unit:
                right[i] = [own / diagonal[i] for own in right[i]]
        write_rows(block, 2, right)

    blocks(call, [(a, 2), (b, 2), (x, 2)], dtype, write)


def cholesky(call: Call) -> None:
    """The triangular factor of positive definite matrices, from one triangle of each."""
    (a,), (x,) = call.operands, call.results
    n: Any = x.shape[-1]
    if n > UNROLLED:
        looped_small_matrices.cholesky(call)
        return
    upper = bool(call.params.get("upper", False))

    def write(block: Block) -> None:
        language = call.language
        zero = language.constant(0.0, F64)
        low: Rows = [[zero] * n for _ in range(n)]

        def rest(i: int, j: int) -> Any:
            """An element of the matrix less what the columns before give."""
            place = (j, i) if upper else (i, j)
            total = language.cast(block.read(0, *place), F64)
            for k in range(j):
                total = language.fma(-low[i][k], low[j][k], total)
            return total

        for j in range(n):
            square = rest(j, j)
            block.fail_if(language.compare("less_equal", square, zero))
            low[j][j] = language.unary("sqrt", square)
            inverse = 1.0 / low[j][j]
            for i in range(j + 1, n):
                low[i][j] = rest(i, j) * inverse
        write_rows(block, 1, [list(row) for row in zip(*low, strict=True)] if upper else low)

    blocks(call, [(a, 2), (x, 2)], F64, write)

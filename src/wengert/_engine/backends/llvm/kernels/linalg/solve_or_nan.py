"""Linear systems whose solution is NaN, and not a failure, if the matrix is singular.

    solve_or_nan    real systems of up to eight rows: small_matrices.py; others: getrf
    lu_or_nan       the factors of packed_factors.py, with NaN for pivots that are zero

Elimination of small matrices also gives NaN if a pivot is of the size of rounding errors.
"""

from __future__ import annotations

from typing import Any

from wengert._engine.ops.linalg.packed_factors import nan_of

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import I32
from .. import fortran_calls
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import address, copy, nest, write
from . import small_matrices as small
from .lapack import (
    batch_item,
    batches,
    column_major,
    has_elements,
    is_for_lapack,
    memory,
    working_dtype,
)
from .lu_solve import factor
from .packed_factors import is_zero, lu_packed, substitute


@kernel("solve_or_nan", strided=True, serves=is_for_lapack, in_lanes=True)
def solve_or_nan(call: KernelCall) -> None:
    """x with a @ x = b, NaN if a is singular."""
    if small.is_small(call):
        small.solve(call, or_nan=True)
        return
    (a, b), (x,) = call.operands, call.results
    b, x = small.as_columns(b, x)
    n: Any = x.shape[-2]
    columns: Any = x.shape[-1]
    dtype = working_dtype(x.dtype)
    fortran_calls.check_lengths(call, call.number(n), call.number(columns))
    call.record_flops(n * n * (n + columns * 2))
    matrix = column_major(memory(call, n * n, dtype), n, n, dtype)
    rhs = column_major(memory(call, n * columns, dtype), n, columns, dtype)
    pivots, info = memory(call, n, I32), fortran_calls.integer_slot(call)
    with batches(call, x, 2) as (s, index):
        given, right, target = [batch_item(call, s, y, index, 2) for y in (a, b, x)]
        factor(call, s, given, matrix, pivots, info)
        copy(call, s, rhs, right)
        is_regular = s.value(f"icmp eq i32 {s.value(f'load i32, ptr {info}')}, 0")
        with s.when(is_regular) as t:
            substitute(call, t, matrix, rhs, pivots)
        with s.unless(is_regular) as t, nest(t, [call.number(k) for k in (columns, n)]) as (u, at):
            _put_nan(call, u, rhs, at[::-1])
        copy(call, s, target, rhs)


@kernel("lu_or_nan", strided=True, serves=has_elements)
def lu_or_nan(call: KernelCall) -> None:
    """The factors, column-major, and the exchanges; zeros of the diagonal are replaced."""
    lu_packed(call)
    packed = call.results[0]
    with batches(call, packed, 2) as (s, index):
        factors = batch_item(call, s, packed, index, 2)
        with (
            s.loop("0", call.number(packed.shape[-1])) as (t, i),
            t.when(is_zero(call, t, factors, i)) as u,
        ):
            _put_nan(call, u, factors, [i, i])


def _put_nan(call: KernelCall, s: Section, array: ArrayPointer, index: list[Name]) -> None:
    nan = call.language.constant(nan_of(array.dtype), array.dtype)
    write(s, address(call, s, array, index), nan)

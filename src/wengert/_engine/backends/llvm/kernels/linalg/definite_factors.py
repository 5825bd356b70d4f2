"""Factors of a matrix that may be positive definite.

definite_packed   potrf if the matrix is symmetric with a positive diagonal; otherwise, or if potrf
                  finds that it is not positive definite, getrf
"""

from __future__ import annotations

import numpy as np

from wengert._engine.core.node import DiscreteLeaf
from wengert._engine.ops.linalg.definite_factors import ROUNDING

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import F32, F64, I32, I64, in_register
from ...ir.simd_value import Lane
from .. import fortran_calls
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import address, copy, read, stack_slot, write
from .lapack import batch_item, batches, column_major, element, leading_dimension, length
from .lu_solve import absolute


def _is_real(node: DiscreteLeaf) -> bool:
    return node.inputs[0].spec.dtype in (F32, F64)


@kernel("definite_packed", strided=True, serves=_is_real)
def definite_packed(call: KernelCall) -> None:
    """The factors, column-major, and the exchanges."""
    (a,), (packed, pivots) = call.operands, call.results
    n, dtype = a.shape[-1], packed.dtype
    fortran_calls.check_lengths(call, call.number(n))
    call.record_flops(n * n * n)
    info = fortran_calls.integer_slot(call)
    smallest, count = stack_slot(call, dtype), call.function.slot("i64")
    with batches(call, packed, 2) as (s, index):
        given, exchanges = batch_item(call, s, a, index, 2), batch_item(call, s, pivots, index, 1)
        target = column_major(batch_item(call, s, packed, index, 2).pointer, n, n, dtype)
        copy(call, s, target, given)
        s.write(f"store i32 1, ptr {info}")
        size, lda = length(call, n), leading_dimension(call, s, n)
        _count_differences(call, s, given, target, smallest, count)
        differences = s.value(f"load i64, ptr {count}")
        with s.when(s.value(f"icmp eq i64 {differences}, 0")) as t:
            fortran_calls.run(call, t, "potrf", dtype, "L", size, target.pointer, lda, info)
            with t.when(_is_zero(t, info)) as u:
                _to_lu(call, u, target, exchanges)
            with t.unless(_is_zero(t, info)) as u:
                copy(call, u, target, given)
        with s.unless(_is_zero(s, info)) as t:
            arguments = (target.pointer, lda, exchanges.pointer, info)
            fortran_calls.run(call, t, "getrf", dtype, size, size, *arguments)
            t.write(f"store i32 1, ptr {info}")


def _is_zero(s: Section, info: Name) -> Name:
    return s.value(f"icmp eq i32 {s.value(f'load i32, ptr {info}')}, 0")


def _count_differences(
    call: KernelCall,
    s: Section,
    given: ArrayPointer,
    copied: ArrayPointer,
    smallest: Name,
    count: Name,
) -> None:
    """Count elements that differ from their transposed ones, and diagonals that are not positive.

    Only up to the first row with such an element. The copy is column-major, so that its elements
    in memory are the transposed ones of the given matrix, if that is in C order.
    """
    language, dtype, n = call.language, given.dtype, call.number(given.shape[0])
    kind = in_register(dtype)
    write(s, smallest, language.constant(np.inf, dtype))
    s.write(f"store i64 0, ptr {count}")

    def add(t: Section, is_right: Name) -> None:
        wrong = t.value(f"zext i1 {t.value(f'xor i1 {is_right}, true')} to i64")
        t.write(f"store i64 {t.plus(t.value(f'load i64, ptr {count}'), wrong)}, ptr {count}")

    with s.loop("0", n) as (t, i):
        x = element(call, t, given, i, i)
        add(t, t.value(f"fcmp ogt {kind} {x.name}, 0.0"))
        least = language.binary("minimum", read(language, t, smallest, dtype), x)
        write(t, smallest, least)
    least = read(language, s, smallest, dtype)
    factor = language.constant(ROUNDING * float(np.finfo(dtype).eps), dtype)
    with s.loop("1", n) as (outer, i):
        so_far = outer.value(f"load i64, ptr {count}")
        with outer.when(outer.value(f"icmp eq i64 {so_far}, 0")) as row, row.loop("0", i) as (t, j):
            x, y = element(call, t, given, i, j), element(call, t, copied, j, i)
            own = Lane(language, t, least.name, dtype, 1)
            limit = factor * (absolute(x) + absolute(y) + own)
            add(t, t.value(f"fcmp ole {kind} {absolute(x - y).name}, {limit.name}"))


def _to_lu(call: KernelCall, s: Section, a: ArrayPointer, exchanges: ArrayPointer) -> None:
    """The LU factors from the Cholesky factor in the lower triangle, and no exchanges."""
    language, n = call.language, call.number(a.shape[0])
    with s.loop("0", n) as (t, j):
        pivot = element(call, t, a, j, j)
        inverse = language.constant(1.0, a.dtype) / pivot
        with t.loop(t.plus(j, "1"), n) as (u, i):
            x = element(call, u, a, i, j)
            for place, factor in (([j, i], pivot), ([i, j], inverse)):
                own = Lane(language, u, factor.name, a.dtype, 1)
                write(u, address(call, u, a, place), own * x)
        write(t, address(call, t, a, [j, j]), pivot * pivot)
        number = Lane(language, t, t.plus(j, "1"), I64, 1)
        write(t, address(call, t, exchanges, [j]), language.cast(number, I32))

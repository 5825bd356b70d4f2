"""Packed factors: of matrices that may be positive definite, and their condition numbers.

    definite_packed         potrf if the matrix is symmetric with a positive diagonal; otherwise, or
                            if potrf finds that it is not positive definite, getrf
    reciprocal_condition    the size of a solution; gecon if it is large
    refuse_singular         a copy

The kernels fail if a reciprocal condition number is too small.  The interpreter then considers the
equilibrated matrix, and raises the error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.node import DiscreteLeaf
from wengert._engine.ops.linalg.condition import MIXING, SAFETY_FACTOR, STEP, smallest_reciprocal
from wengert._engine.ops.linalg.packed_factors import ROUNDING

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import F32, F64, I32, I64, Dtype, in_register, literal, part_of
from ...ir.simd_value import Lane
from .. import fortran_calls
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import address, copy, in_section, is_c_contiguous, nest, read, stack_slot, write
from .lapack import (
    batch_item,
    batches,
    column_major,
    element,
    is_for_lapack,
    leading_dimension,
    length,
    memory,
)
from .lu_solve import absolute, one_norm


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


def _fail_if_small(call: KernelCall, s: Section, value: Name, dtype: Dtype) -> None:
    """Fail if a reciprocal condition number is too small; NaN is not."""
    limit = literal(smallest_reciprocal(dtype), dtype)
    call.fail_if(s.value(f"fcmp olt {in_register(dtype)} {value}, {limit}"), 1, s)


@kernel("reciprocal_condition", strided=True, serves=is_for_lapack)
def reciprocal_condition(call: KernelCall) -> None:
    """The estimate for each matrix, in the infinity norm."""
    (a, packed), (result,) = call.operands, call.results
    n, dtype = a.shape[-1], packed.dtype
    real = part_of(dtype)
    fortran_calls.check_lengths(call, call.number(n))
    call.record_flops(n * n * 20)
    in_place = is_c_contiguous(
        packed._replace(shape=packed.shape[-2:], strides=packed.strides[-2:])
    )
    factor_memory = "" if in_place else memory(call, n * n, dtype)
    norm, info = stack_slot(call, real), fortran_calls.integer_slot(call)
    is_complex = dtype.kind == "c"
    work = memory(call, n * (2 if is_complex else 4), dtype)
    second = memory(call, n * 2, real) if is_complex else memory(call, n, I32)
    with batches(call, result, 0) as (s, index):
        matrix = batch_item(call, s, a, index, 2)
        rows = matrix._replace(shape=matrix.shape[::-1], strides=matrix.strides[::-1])
        size = one_norm(call, s, rows)
        write(s, norm, size)
        target = address(call, s, result, index)
        write(s, target, call.language.constant(float(np.nan), real))
        # LAPACK rejects a norm that is not finite.
        kind = in_register(real)
        difference = s.value(f"fsub {kind} {size.name}, {size.name}")
        with s.when(s.value(f"fcmp oeq {kind} {difference}, 0.0")) as t:
            factors = batch_item(call, t, packed, index, 2)
            if factor_memory:
                ordered = ArrayPointer(factor_memory, (n, n), (n, 1), dtype)
                copy(call, t, ordered, factors)
                factors = ordered
            factors = column_major(factors.pointer, n, n, dtype)
            by_probe = _by_probe(call, t, factors, work, read(call.language, t, norm, real))
            write(t, target, by_probe)
            limit = literal(SAFETY_FACTOR * smallest_reciprocal(real), real)
            with t.unless(t.value(f"fcmp oge {kind} {by_probe.name}, {limit}")) as u:
                lda = leading_dimension(call, u, n)
                arguments = (factors.pointer, lda, norm, target, work, second, info)
                fortran_calls.run(call, u, "gecon", dtype, "I", length(call, n), *arguments)
                found = read(call.language, u, target, real)
                _fail_if_small(call, u, found.name, real)


def _by_probe(call: KernelCall, s: Section, factors: ArrayPointer, work: Name, norm: Any) -> Any:
    """The reciprocal condition number by the solution for a random vector."""
    n, dtype, language = factors.shape[0], factors.dtype, call.language
    real = part_of(dtype)
    x = ArrayPointer(work, (n,), (1,), dtype)
    with s.loop("0", call.number(n)) as (t, i):
        write(t, address(call, t, x, [i]), _probe_element(call, t, i, dtype))
    arguments = length(call, n), factors.pointer, leading_dimension(call, s, n), work, 1
    for which, diagonal in (("L", "U"), ("U", "N")):
        fortran_calls.run(call, s, "trsv", dtype, which, "N", diagonal, *arguments)
    largest = stack_slot(call, real)
    write(s, largest, language.constant(0, real))
    with s.loop("0", call.number(n)) as (t, i):
        size = absolute(read(language, t, address(call, t, x, [i]), dtype))
        before = read(language, t, largest, real)
        write(t, largest, language.binary("maximum", before, size))
    product = in_section(s, norm) * read(language, s, largest, real)
    one = language.constant(1.0, real)
    return language.binary("minimum", one / product, one)


def _probe_element(call: KernelCall, s: Section, i: Name, dtype: Dtype) -> Any:
    """An element of `probe` of the operation."""
    z = s.value(f"mul i64 {s.plus(i, '1')}, {_signed(STEP)}")
    for shift, factor in MIXING:
        z = s.value(f"xor i64 {z}, {s.value(f'lshr i64 {z}, {shift}')}")
        if factor != 1:
            z = s.value(f"mul i64 {z}, {_signed(factor)}")
    unit = s.value(f"uitofp i64 {s.value(f'lshr i64 {z}, 11')} to double")
    number = s.value(f"fadd double {s.value(f'fmul double {unit}, {2.0**-52!r}')}, -0.5")
    return call.language.cast(Lane(call.language, s, number, F64, 1), dtype)


def _signed(bits: int) -> int:
    """The number of type i64 with these bits."""
    return bits - (1 << 64) if bits >> 63 else bits


def _is_real_matrix(node: DiscreteLeaf) -> bool:
    return node.inputs[1].spec.dtype in (F32, F64)


@kernel("refuse_singular", strided=True, serves=_is_real_matrix)
def refuse_singular(call: KernelCall) -> None:
    """The first operand."""
    (b, reciprocal), (x,) = call.operands, call.results
    s = call.section
    with nest(s, [call.number(n) for n in reciprocal.shape]) as (t, index):
        value = read(call.language, t, address(call, t, reciprocal, index), reciprocal.dtype)
        _fail_if_small(call, t, value.name, reciprocal.dtype)
    copy(call, s, x, b)

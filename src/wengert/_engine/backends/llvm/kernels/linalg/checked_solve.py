"""Factors and solutions with checks: definite or not, condition numbers, NaN for singular.

    definite_packed         potrf if the matrix is symmetric with a positive diagonal; otherwise, or
                            if potrf finds that it is not positive definite, getrf
    reciprocal_condition    the size of a solution; gecon if it is large
    refuse_singular         a copy

These kernels fail if a reciprocal condition number is too small.  The interpreter then considers
the equilibrated matrix, and raises the error.

    solve_or_nan    real systems of up to eight rows: small_matrices.py; others: getrf
    lu_or_nan       the factors of packed_factors.py, with NaN for pivots that are zero

Here the solution is NaN if the matrix is singular; elimination of small matrices also gives NaN if
a pivot is of the size of rounding errors.

    accepted           any value, if a condition holds: one pass over the condition, one over it
    refuse_residual    the same, for a comparison of two numbers
    bracketed          the same, for signs of numbers and NaN

If not, the interpreter runs the graph, and the operation that rejects the value raises its error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.node import DiscreteLeaf
from wengert._engine.ops.linalg.condition import MIXING, SAFETY_FACTOR, STEP, smallest_reciprocal
from wengert._engine.ops.linalg.packed_factors import ROUNDING, nan_of

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import F32, F64, I32, I64, Dtype, in_register, literal, part_of
from ...ir.simd_value import Lane
from .. import fortran_calls
from ..fortran_calls import (
    batch_item,
    batches,
    column_major,
    element,
    has_elements,
    is_for_lapack,
    leading_dimension,
    length,
    memory,
    working_dtype,
)
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import address, copy, in_section, is_c_contiguous, nest, read, stack_slot, write
from . import small_matrices as small
from .lu_solve import absolute, factor, one_norm
from .packed_factors import is_zero, lu_packed, substitute


def _is_real(node: DiscreteLeaf) -> bool:
    return node.inputs[0].spec.dtype in (F32, F64)


@kernel("definite_packed", strided=True, serves=_is_real)
def definite_packed(call: KernelCall) -> None:
    """The factors, column-major, and the exchanges."""
    (a,), (packed, pivots) = call.operands, call.results
    n, dtype = a.shape[-1], packed.dtype
    fortran_calls.check_lengths(call, n)
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
    bound_factor = language.constant(ROUNDING * float(np.finfo(dtype).eps), dtype)
    with s.loop("1", n) as (outer, i):
        so_far = outer.value(f"load i64, ptr {count}")
        with outer.when(outer.value(f"icmp eq i64 {so_far}, 0")) as row, row.loop("0", i) as (t, j):
            x, y = element(call, t, given, i, j), element(call, t, copied, j, i)
            own = Lane(language, t, least.name, dtype, 1)
            limit = bound_factor * (absolute(x) + absolute(y) + own)
            add(t, t.value(f"fcmp ole {kind} {absolute(x - y).name}, {limit.name}"))


def _to_lu(call: KernelCall, s: Section, a: ArrayPointer, exchanges: ArrayPointer) -> None:
    """The LU factors from the Cholesky factor in the lower triangle, and no exchanges."""
    language, n = call.language, call.number(a.shape[0])
    with s.loop("0", n) as (t, j):
        pivot = element(call, t, a, j, j)
        inverse = language.constant(1.0, a.dtype) / pivot
        with t.loop(t.plus(j, "1"), n) as (u, i):
            x = element(call, u, a, i, j)
            for place, multiplier in (([j, i], pivot), ([i, j], inverse)):
                own = Lane(language, u, multiplier.name, a.dtype, 1)
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
    fortran_calls.check_lengths(call, n)
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
    for shift, multiplier in MIXING:
        z = s.value(f"xor i64 {z}, {s.value(f'lshr i64 {z}, {shift}')}")
        if multiplier != 1:
            z = s.value(f"mul i64 {z}, {_signed(multiplier)}")
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


# ---- NaN for singular matrices -------------------------------------------------------------------


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
    fortran_calls.check_lengths(call, n, columns)
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


# ---- checks of any values ------------------------------------------------------------------------


@kernel("accepted", strided=True)
def accepted(call: KernelCall) -> None:
    """x, if all of `holds` is true."""
    (x, holds), (y,) = call.operands, call.results
    s = call.section
    with nest(s, [call.number(n) for n in holds.shape]) as (t, index):
        flag = t.value(f"load i8, ptr {address(call, t, holds, index)}")
        call.fail_if(t.value(f"icmp eq i8 {flag}, 0"), 1, t)
    copy(call, s, y, x)


def _is_comparison(node: DiscreteLeaf) -> bool:
    _, size, limit = [a.spec for a in node.inputs]
    return bool(size == limit and size.dtype in (F32, F64))


@kernel("refuse_residual", strided=True, serves=_is_comparison)
def refuse_residual(call: KernelCall) -> None:
    """y, if no size is above its limit or NaN."""
    (y, size, limit), (result,) = call.operands, call.results
    s = call.section
    with nest(s, [call.number(n) for n in size.shape]) as (t, index):
        found, most = (
            read(call.language, t, address(call, t, x, index), x.dtype) for x in (size, limit)
        )
        kind = in_register(size.dtype)
        call.fail_if(t.value(f"fcmp ugt {kind} {found.name}, {most.name}"), 1, t)
    copy(call, s, result, y)


def _are_doubles(node: DiscreteLeaf) -> bool:
    first, second, third = [a.spec for a in node.inputs[1:]]
    return bool(first == second == third and first.dtype == F64)


@kernel("bracketed", strided=True, serves=_are_doubles)
def bracketed(call: KernelCall) -> None:
    """x, if the function has different signs at both ends, or is zero, and nowhere NaN."""
    (x, *values), (result,) = call.operands, call.results
    s = call.section
    with nest(s, [call.number(n) for n in values[0].shape]) as (t, index):
        fa, fb, last = (
            read(call.language, t, address(call, t, y, index), y.dtype).name for y in values
        )
        for y in (fa, fb, last):
            call.fail_if(t.value(f"fcmp uno double {y}, 0.0"), 1, t)
        bits = [t.value(f"bitcast double {y} to i64") for y in (fa, fb)]
        equal = t.value(f"icmp sge i64 {t.value(f'xor i64 {bits[0]}, {bits[1]}')}, 0")
        nonzero = [t.value(f"fcmp une double {y}, 0.0") for y in (fa, fb)]
        both = t.value(f"and i1 {nonzero[0]}, {nonzero[1]}")
        call.fail_if(t.value(f"and i1 {equal}, {both}"), 1, t)
    copy(call, s, result, x)

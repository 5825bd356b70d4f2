"""Which routine computes a matrix product.

    choose            for one product of two matrices: the routine, and the product as it takes it
    write_product     write a product by the routine that `choose` names
    is_small_batch    whether a contraction is a batch of small matrices (batched_small_gemm)

dtypes unknown to BLAS              simd_loops
a small matrix and a vector         unrolled_gemv
a matrix and a vector               blas_calls.gemv
a factor that fits into a cache     gemm_microkernel; on several threads if large
other matrices                      blas_calls.gemm

Every routine is called as ``routine(call, section, product)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

from wengert._engine.backends.llvm.ir.ir_builder import Name, Section
from wengert._engine.backends.llvm.tuning import thresholds
from wengert._engine.core.symbolic.dim import Length, bounds

from .. import fortran_calls
from ..kernel_call import KernelCall
from ..loop_helpers import offset, times
from . import blas_calls, gemm_microkernel, simd_loops, unrolled_gemv
from .operands import Product, Subscripts, leading


class ProductRoutine(NamedTuple):
    """The routine that computes a product.

    routine : called as ``routine(call, section, product)``.
    product : the product as the routine takes it: possibly transposed.
    calls_blas : whether the routine may call BLAS, which takes no `Product.addend`.
    """

    routine: Callable[[KernelCall, Section, Product], None]
    product: Product
    calls_blas: bool


def choose(product: Product) -> ProductRoutine:
    """The routine that computes a product fastest."""
    if not fortran_calls.is_of_blas(product.dtype):
        return ProductRoutine(simd_loops.run, product, False)
    if product.c.columns.length == 1 or product.c.rows.length == 1:
        if product.c.columns.length != 1:
            product = product.transposed
        if unrolled_gemv.serves(product):
            return ProductRoutine(unrolled_gemv.run, product, False)
        return ProductRoutine(blas_calls.gemv, product, True)
    order = leading(product.c)
    assert order is not None
    if order[0] != "N":
        product = product.transposed
    if not gemm_microkernel.serves(product):
        return ProductRoutine(blas_calls.gemm, product, True)
    work = product.operations
    if not isinstance(work, int) or work >= thresholds.blas_parallel_flops:
        return ProductRoutine(_microkernel_or_blas, product, True)
    m = product.c.rows.length
    if (
        work >= thresholds.parallel_matmul_flops
        and isinstance(m, int)
        and m >= 2 * thresholds.matmul_block_rows
    ):
        return ProductRoutine(_on_threads, product, False)
    return ProductRoutine(gemm_microkernel.run, product, False)


def write_product(call: KernelCall, s: Section, product: Product) -> None:
    """Write a product; the section may be that of a loop."""
    choice = choose(product)
    choice.routine(call, s, choice.product)


def _microkernel_or_blas(call: KernelCall, s: Section, product: Product) -> None:
    """Decided at run time, by the sizes: BLAS has several threads for large products."""
    small = s.value(
        f"icmp slt i64 {call.number(product.operations)}, {thresholds.blas_parallel_flops}"
    )
    one_thread = s.value(f"icmp eq i64 {call.threads(s)}, 1")
    here = s.value(f"or i1 {small}, {one_thread}")
    with s.when(here) as t:
        gemm_microkernel.run(call, t, product)
    with s.when(s.value(f"xor i1 {here}, true")) as t:
        blas_calls.gemm(call, t, product)


def _on_threads(call: KernelCall, s: Section, product: Product) -> None:
    """By the thread pool, if the product is all of the call: threads of BLAS wait too often."""
    given = {x.pointer for x in (*call.operands, *call.results)}
    used = {m.pointer for m in product[:3]} | {product.addend or product.c.pointer}
    if s is not call.section or not used <= given:
        gemm_microkernel.run(call, s, product)
        return
    one_thread = s.value(f"icmp eq i64 {call.threads(s)}, 1")
    with s.when(one_thread) as t:
        gemm_microkernel.run(call, t, product)
    with s.when(s.value(f"xor i1 {one_thread}, true")) as t:
        _row_blocks(call, t, product)


def _row_blocks(call: KernelCall, s: Section, product: Product) -> None:
    """Blocks of rows, shared among the threads of the pool."""
    m: Any = product.c.rows.length
    dtype, addend = product.dtype, product.addend
    size = max(thresholds.matmul_block_rows, -(-m // thresholds.matmul_blocks))
    last = m % size or size

    def write(part: KernelCall, start: Name, stop: Name) -> None:
        a, b, c = product[:3]
        s = part.section
        b = gemm_microkernel.packed(part, s, b, dtype)
        with s.loop(start, stop) as (t, q):
            row = times(t, q, str(size))
            here = [
                offset(t, x, times(t, row, part.number(y.rows.stride)), dtype)
                for x, y in ((a.pointer, a), (c.pointer, c), (addend or c.pointer, c))
            ]
            is_last = t.value(f"icmp eq i64 {q}, {-(-m // size) - 1}")
            for rows in {size, last}:
                wanted = is_last if rows == last else t.value(f"xor i1 {is_last}, true")
                with t.when("true" if last == size else wanted) as u:
                    left, target = (
                        x._replace(pointer=p, rows=x.rows._replace(length=rows))
                        for x, p in ((a, here[0]), (c, here[1]))
                    )
                    old = here[2] if addend else None
                    block = product._replace(a=left, b=b, c=target, addend=old)
                    gemm_microkernel.run(part, u, block)

    call.in_parts(-(-m // size), 1, write, s)


# ---- batches of small matrices -----------------------------------------------------------------


def is_small_batch(operands: Sequence[Subscripts], result: Subscripts) -> bool:
    """Whether a contraction multiplies many pairs of small matrices, or one matrix by many.

    Many by one matrix are one product of a long matrix, which is faster.
    """
    if len(operands) != 2 or any(w.array.dtype.kind not in "fiu" for w in operands):
        return False
    a, b = operands
    letters = dict.fromkeys(result.letters + a.letters + b.letters)
    many = batch_subscripts(operands, result)
    small = [length_of(operands, c) for c in letters if c not in many]
    least = [bounds(length_of(operands, c))[0] or 0 for c in many]
    if any(c not in a.letters for c in many) and any(c not in b.letters for c in many):
        return False  # many rows and many columns: the matrices are not small
    return (
        bool(many)
        and any(c in b.letters for c in many)
        and result.letters.startswith(many)
        and all(type(n) is int for n in small)
        and 1 <= prod(n for n in small if type(n) is int) <= thresholds.small_matrix_multiplications
        and (
            prod(least) >= thresholds.small_matrix_batch
            or any(type(length_of(operands, c)) is not int for c in many)
        )
    )


def batch_subscripts(operands: Sequence[Subscripts], result: Subscripts) -> str:
    """The subscripts of the batch: those of the result that both operands have, or long ones."""
    a, b = operands
    return "".join(
        c
        for c in result.letters
        if (c in a.letters and c in b.letters) or not _is_short(length_of(operands, c))
    )


def _is_short(n: Length) -> bool:
    return type(n) is int and n <= thresholds.small_matrix_side


def length_of(operands: Sequence[Subscripts], letter: str) -> Length:
    return next(w.axis(letter).length for w in operands if letter in w.letters)

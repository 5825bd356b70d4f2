"""The code of one matrix product, by the routine that choose.py names.

write_product    every routine is called as ``routine(call, section, product)``

If the choice depends on values known only at run time, both routines are written, and a branch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ...ir.ir_builder import Name, Section
from ...tuning import thresholds
from ..kernel_call import KernelCall
from ..loop_helpers import offset
from . import blas_calls, gemm_microkernel, simd_loops, streamed_gemm, unrolled_gemv
from .choose import Routine, choose, may_be_symmetric
from .operands import Product

_ROUTINES: dict[Routine, Callable[[KernelCall, Section, Product], None]] = {
    "simd loops": simd_loops.run,
    "unrolled gemv": unrolled_gemv.run,
    "gemv": blas_calls.gemv,
    "streamed": streamed_gemm.run,
    "microkernel": gemm_microkernel.run,
    "gemm": blas_calls.gemm,
}


def write_product(call: KernelCall, s: Section, product: Product) -> None:
    """Write a product; the section may be that of a loop."""
    if not may_be_symmetric(product):
        _write(call, s, product)
        return
    same = s.value(f"icmp eq ptr {product.a.pointer}, {product.b.pointer}")
    for length in dict.fromkeys((product.sizes[0], product.sizes[2])):
        if type(length) is not int:
            limit = thresholds.symmetric_product_rows
            large = s.value(f"icmp sge i64 {call.number(length)}, {limit}")
            same = s.value(f"and i1 {same}, {large}")
    with s.when(same) as t:
        blas_calls.syrk(call, t, product)
    with s.unless(same) as t:
        _write(call, t, product)


def _write(call: KernelCall, s: Section, product: Product) -> None:
    routine, product, limit = choose(product)
    if routine == "microkernel or gemm":
        work = call.number(product.operations)
        small = s.value(f"icmp slt i64 {work}, {limit}")
        one_thread = s.value(f"icmp eq i64 {call.threads(s)}, 1")
        use_microkernel = s.value(f"or i1 {small}, {one_thread}")
        _either(call, s, product, use_microkernel, blas_calls.gemm)
    elif routine == "streamed" and s is call.section and _has_shared_operands(call, product):
        streamed_gemm.run_in_parts(call, s, product, limit)
    elif routine != "threads":
        _ROUTINES[routine](call, s, product)
    elif s is call.section and _has_shared_operands(call, product):
        one_thread = s.value(f"icmp eq i64 {call.threads(s)}, 1")
        _either(call, s, product, one_thread, partial(_row_blocks, size=limit))
    else:
        gemm_microkernel.run(call, s, product)


def _either(
    call: KernelCall, s: Section, product: Product, condition: Name, other: Callable[..., None]
) -> None:
    """The microkernel if a condition holds, else another routine."""
    with s.when(condition) as t:
        gemm_microkernel.run(call, t, product)
    with s.unless(condition) as t:
        other(call, t, product)


def _has_shared_operands(call: KernelCall, product: Product) -> bool:
    """Whether all operands of a product are arguments of the call, so threads can access them."""
    arguments = {x.pointer for x in (*call.operands, *call.results)}
    return {m.pointer for m in product[:3]} | {product.addend or product.c.pointer} <= arguments


def _row_blocks(call: KernelCall, s: Section, product: Product, size: int) -> None:
    """Divide blocks of rows among the thread pool: threads of BLAS synchronize too often."""
    m: Any = product.c.rows.length
    dtype, addend = product.dtype, product.addend
    last = m % size or size

    def write(part: KernelCall, start: Name, stop: Name) -> None:
        a, b, c = product[:3]
        s = part.section
        b = gemm_microkernel.packed(part, s, b, dtype)
        with s.loop(start, stop) as (t, q):
            row = t.times(q, str(size))
            addresses = [
                offset(t, x, t.times(row, part.number(y.rows.stride)), dtype)
                for x, y in ((a.pointer, a), (c.pointer, c), (addend or c.pointer, c))
            ]
            is_last = t.value(f"icmp eq i64 {q}, {-(-m // size) - 1}")
            for rows in {size, last}:
                condition = is_last if rows == last else t.value(f"xor i1 {is_last}, true")
                with t.when("true" if last == size else condition) as u:
                    left, target = (
                        x._replace(pointer=p, rows=x.rows._replace(length=rows))
                        for x, p in ((a, addresses[0]), (c, addresses[1]))
                    )
                    old = addresses[2] if addend else None
                    block = product._replace(a=left, b=b, c=target, addend=old)
                    gemm_microkernel.run(part, u, block)

    call.in_parts(-(-m // size), 1, write, s)

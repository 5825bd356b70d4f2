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
from ..kernel_call import ArrayPointer, KernelCall
from ..loop_helpers import copy, offset
from . import (
    blas_calls,
    blocked_gemm,
    gemm_microkernel,
    simd_loops,
    streamed_dots,
    streamed_gemm,
    uncached_gemm,
    unrolled_gemv,
)
from .choose import ProductChoice, Routine, choose, may_be_symmetric
from .operands import Product
from .vector_code import panel_columns


def _gemm(call: KernelCall, s: Section, product: Product) -> None:
    blas_calls.gemm(call, s, _added_to(call, s, product))


def _gemv(call: KernelCall, s: Section, product: Product) -> None:
    blas_calls.gemv(call, s, _added_to(call, s, product))


def _added_to(call: KernelCall, s: Section, product: Product) -> Product:
    """A product as BLAS takes it, which adds to c only: an addend is copied to c."""
    if product.addend is None:
        return product
    c = product.c
    shape, strides = zip(c.rows, c.columns, strict=True)
    target = ArrayPointer(c.pointer, shape, strides, product.dtype)
    copy(call, s, target, target._replace(pointer=product.addend))
    return product._replace(addend=None)


_ROUTINES: dict[Routine, Callable[[KernelCall, Section, Product], None]] = {
    "simd loops": simd_loops.run,
    "unrolled gemv": unrolled_gemv.run,
    "gemv": _gemv,
    "streamed": streamed_gemm.run,
    "streamed dots": streamed_dots.run,
    "microkernel": gemm_microkernel.run,
    "blocked": blocked_gemm.run,
    "gemm": _gemm,
}
_BY_ROWS: dict[Routine, Callable[[KernelCall, Section, Product], None]] = {
    "threads": gemm_microkernel.run,
    "uncached": uncached_gemm.run,
}
_IN_PARTS: dict[Routine, Callable[[KernelCall, Section, Product, int], None]] = {
    "streamed": streamed_gemm.run_in_parts,
    "streamed dots": streamed_dots.run_in_parts,
    "blocked": blocked_gemm.run_in_parts,
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
    choice = choose(product)
    if choice.streamed_if is None:
        _write_choice(call, s, choice)
        return
    (most_rows, least_bytes), product = choice.streamed_if, choice.product
    m, n, k = product.sizes
    low = s.value(f"icmp sle i64 {call.number(m)}, {most_rows}")
    size = call.number(n * k * product.dtype.itemsize)
    large = s.value(f"icmp sge i64 {size}, {least_bytes}")
    streams = s.value(f"and i1 {low}, {large}")
    with s.when(streams) as t:
        if _can_share(call, s, product):
            streamed_gemm.run_in_parts(call, t, product)
        else:
            streamed_gemm.run(call, t, product)
    with s.unless(streams) as t:
        _write_choice(call, t, choice, _can_share(call, s, product))


def _write_choice(
    call: KernelCall, s: Section, choice: ProductChoice, can_share: bool | None = None
) -> None:
    """Write a product by the routine that was chosen."""
    routine, product, limit, _ = choice
    if can_share is None:
        can_share = _can_share(call, s, product)
    if routine in ("microkernel or gemm", "blocked or gemm"):
        work = call.number(product.operations)
        small = s.value(f"icmp slt i64 {work}, {limit}")
        one_thread = s.value(f"icmp eq i64 {call.threads(s)}, 1")
        condition = s.value(f"or i1 {small}, {one_thread}")
        if routine == "microkernel or gemm":
            _either(call, s, product, condition, _gemm)
            return
        columns = call.number(product.c.columns.length)
        is_wide = s.value(f"icmp sge i64 {columns}, {panel_columns()}")
        condition = s.value(f"and i1 {condition}, {is_wide}")
        _either(call, s, product, condition, _gemm, blocked_gemm.run)
    elif routine in _IN_PARTS and can_share:
        _IN_PARTS[routine](call, s, product, limit)
    elif routine in _BY_ROWS and can_share:
        one_thread = s.value(f"icmp eq i64 {call.threads(s)}, 1")
        run = _BY_ROWS[routine]
        _either(call, s, product, one_thread, partial(_row_blocks, size=limit, run=run), run)
    else:
        (_BY_ROWS.get(routine) or _ROUTINES[routine])(call, s, product)


def _either(
    call: KernelCall,
    s: Section,
    product: Product,
    condition: Name,
    other: Callable[..., None],
    first: Callable[..., None] = gemm_microkernel.run,
) -> None:
    """The microkernel, or `first`, if a condition holds, else another routine."""
    with s.when(condition) as t:
        first(call, t, product)
    with s.unless(condition) as t:
        other(call, t, product)


def _can_share(call: KernelCall, s: Section, product: Product) -> bool:
    """Whether threads can access the operands of a product: they are arguments of the call."""
    if s is not call.section:
        return False
    arguments = {x.pointer for x in (*call.operands, *call.results)}
    return {m.pointer for m in product[:3]} | {product.addend or product.c.pointer} <= arguments


def _row_blocks(
    call: KernelCall,
    s: Section,
    product: Product,
    size: int,
    run: Callable[[KernelCall, Section, Product], None],
) -> None:
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
                    run(part, u, block)

    call.in_parts(-(-m // size), 1, write, s)

"""The code of one matrix product, by the routine that choose.py names; calls of BLAS.

    write_product    every routine is called as ``routine(call, section, product)``
    gemm             a product of two matrices
    gemv             a product of a matrix and a vector
    syrk             a product of a matrix and its transpose

BLAS is column-major: it sees a row-major matrix as its transpose, so `c = a @ b` is computed as
`c.T = b.T @ a.T`.  If the choice depends on values known only at run time, both routines are
written, and a branch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from wengert._engine.core.symbolic.dim import Length

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import Dtype
from ...tuning import thresholds
from .. import fortran_calls
from ..kernel_call import ArrayPointer, KernelCall
from ..loop_helpers import copy, nest, offset, read, stack_slot, write
from . import blocked_gemm, gemm_microkernel, loop_products, streamed_gemm
from .choose import ProductChoice, Routine, choose, may_be_symmetric
from .operands import Matrix, MatrixAxis, Product, at_least, leading
from .vector_code import panel_columns

# ---- calls of BLAS -------------------------------------------------------------------------------


_TILE = 8  # rows that are mirrored together: they read one cache line of each row above


def gemm(call: KernelCall, s: Section, product: Product) -> None:
    """A product of matrices; c is row-major."""
    a, b, c, dtype, _, beta, _ = product
    m, n, k = product.sizes
    leading_a, leading_b, leading_c = leading(a), leading(b), leading(c)
    assert leading_a is not None and leading_b is not None and leading_c is not None
    (trans_a, lda), (trans_b, ldb), (_, ldc) = leading_a, leading_b, leading_c
    fortran_calls.run(
        call,
        s,
        "gemm",
        dtype,
        trans_b,
        trans_a,
        *(("int", call.number(length)) for length in (n, m, k)),
        _alpha(call, s, product),
        b.pointer,
        _leading_dimension(call, s, ldb),
        a.pointer,
        _leading_dimension(call, s, lda),
        fortran_calls.number(call, beta, dtype),
        c.pointer,
        _leading_dimension(call, s, ldc),
    )


def gemv(call: KernelCall, s: Section, product: Product) -> None:
    """A product of a matrix and a vector, the only column of b.

    c is set to 0 first and added to, because gemv does not write it if the matrix has no columns.
    """
    a, b, c, dtype, _, beta, _ = product
    x, y, x_axis, y_axis = b.pointer, c.pointer, b.rows, c.rows
    leading_a = leading(a)
    if beta == 0:
        with nest(s, [call.number(y_axis.length)]) as (inner, (i,)):
            target = offset(inner, y, inner.times(i, call.number(y_axis.stride)), dtype)
            write(inner, target, call.language.constant(0, dtype))
        beta = 1.0
    assert leading_a is not None
    trans, lda = leading_a
    m, k = (("int", call.number(n)) for n in (a.rows.length, a.columns.length))
    fortran_calls.run(
        call,
        s,
        "gemv",
        dtype,
        *(("T", k, m) if trans == "N" else ("N", m, k)),
        _alpha(call, s, product),
        a.pointer,
        _leading_dimension(call, s, lda),
        x,
        _increment(call, x_axis),
        fortran_calls.number(call, beta, dtype),
        y,
        _increment(call, y_axis),
    )


def syrk(call: KernelCall, s: Section, product: Product) -> None:
    """A product of a matrix and its transpose: one triangle is computed, and mirrored.

    c is not read, and is symmetric, so it does not matter that BLAS sees its transpose.
    """
    a, _, c, dtype, _, _, _ = product
    leading_a, leading_c = leading(a), leading(c)
    assert leading_a is not None and leading_c is not None
    trans, lda = leading_a
    m, k = (call.number(n) for n in (a.rows.length, a.columns.length))
    fortran_calls.run(
        call,
        s,
        "syrk",
        dtype,
        "L",
        "T" if trans == "N" else "N",
        ("int", m),
        ("int", k),
        _alpha(call, s, product),
        a.pointer,
        _leading_dimension(call, s, lda),
        fortran_calls.number(call, 0.0, dtype),
        c.pointer,
        _leading_dimension(call, s, leading_c[1]),
    )
    _mirror(call, s, c, call.number(leading_c[1]), dtype)


def _mirror(call: KernelCall, s: Section, c: Matrix, row: Name, dtype: Dtype) -> None:
    """Copy the triangle above the diagonal to the one below; `row` is the stride of rows."""
    m = call.number(c.rows.length)
    with s.loop("0", m, str(_TILE)) as (t, first):
        stop = t.smaller(t.plus(first, str(_TILE)), m)
        with t.loop("0", stop) as (u, j):
            start = u.larger(u.plus(j, "1"), first)
            above = u.times(j, row)
            with u.loop(start, stop) as (v, i):
                source = offset(v, c.pointer, v.plus(above, i), dtype)
                target = offset(v, c.pointer, v.plus(v.times(i, row), j), dtype)
                write(v, target, read(call.language, v, source, dtype))


def _alpha(call: KernelCall, s: Section, product: Product) -> Name:
    """The address of the factor of the product."""
    if product.alpha.pointer is None:
        return fortran_calls.number(call, product.alpha.number, product.dtype)
    cell = stack_slot(call, product.dtype)
    write(s, cell, product.alpha.value(call, s, product.dtype))
    return cell


def _leading_dimension(call: KernelCall, s: Section, length: Length) -> tuple[str, Name]:
    """The argument for a leading dimension, which BLAS requires to be at least one."""
    name = call.number(length)
    return "int", name if at_least(length, 1) else s.larger(name, "1")


def _increment(call: KernelCall, axis: MatrixAxis) -> tuple[str, Name]:
    return "int", "1" if axis.length == 1 else call.number(axis.stride)


# ---- all routines --------------------------------------------------------------------------------


def _gemm(call: KernelCall, s: Section, product: Product) -> None:
    gemm(call, s, _added_to(call, s, product))


def _gemv(call: KernelCall, s: Section, product: Product) -> None:
    gemv(call, s, _added_to(call, s, product))


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
    "simd loops": loop_products.simd_loops,
    "unrolled gemv": loop_products.unrolled_gemv,
    "gemv": _gemv,
    "streamed": streamed_gemm.run,
    "streamed dots": streamed_gemm.run_dots,
    "microkernel": gemm_microkernel.run,
    "blocked": blocked_gemm.run,
    "gemm": _gemm,
}
_BY_ROWS: dict[Routine, Callable[[KernelCall, Section, Product], None]] = {
    "threads": gemm_microkernel.run,
    "uncached": blocked_gemm.run_uncached,
}
_IN_PARTS: dict[Routine, Callable[[KernelCall, Section, Product, int], None]] = {
    "streamed": streamed_gemm.run_in_parts,
    "streamed dots": streamed_gemm.run_dots_in_parts,
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
        syrk(call, t, product)
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

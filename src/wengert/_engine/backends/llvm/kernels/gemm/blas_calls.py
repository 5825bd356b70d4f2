"""Calls of BLAS.

    gemm    a product of two matrices
    gemv    a product of a matrix and a vector
    syrk    a product of a matrix and its transpose

BLAS is column-major: it sees a row-major matrix as its transpose, so `c = a @ b` is computed as
`c.T = b.T @ a.T`.
"""

from __future__ import annotations

from wengert._engine.core.symbolic.dim import Length

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import Dtype
from .. import fortran_calls
from ..kernel_call import KernelCall
from ..loop_helpers import nest, offset, read, stack_slot, write
from .operands import Matrix, MatrixAxis, Product, at_least, leading

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

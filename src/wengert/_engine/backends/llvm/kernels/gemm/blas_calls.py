"""Calls of BLAS.

    gemm    a product of two matrices
    gemv    a product of a matrix and a vector

BLAS is column-major: of a row-major matrix it sees the transpose, so `c = a @ b` is computed as
`c.T = b.T @ a.T`.
"""

from __future__ import annotations

from wengert._engine.core.symbolic.dim import Length

from ...ir.ir_builder import Name, Section
from .. import fortran_calls
from ..kernel_call import KernelCall
from ..loop_helpers import nest, offset, write
from .operands import MatrixAxis, Product, at_least, leading


def gemm(call: KernelCall, s: Section, product: Product) -> None:
    """A product of matrices; c is row-major."""
    a, b, c, dtype, alpha, beta, _ = product
    m, n, k = product.sizes
    one, two, three = leading(a), leading(b), leading(c)
    assert one is not None and two is not None and three is not None
    (way_a, near_a), (way_b, near_b), (_, near_c) = one, two, three
    fortran_calls.run(
        call,
        s,
        "gemm",
        dtype,
        way_b,
        way_a,
        *(("int", call.number(length)) for length in (n, m, k)),
        fortran_calls.number(call, alpha, dtype),
        b.pointer,
        _distance(call, s, near_b),
        a.pointer,
        _distance(call, s, near_a),
        fortran_calls.number(call, beta, dtype),
        c.pointer,
        _distance(call, s, near_c),
    )


def gemv(call: KernelCall, s: Section, product: Product) -> None:
    """A product of a matrix and a vector, the only column of b.

    c is set to 0 first and added to: gemv leaves it as it was if the matrix has no columns.
    """
    a, b, c, dtype, alpha, beta, _ = product
    x, y, x_axis, y_axis = b.pointer, c.pointer, b.rows, c.rows
    found = leading(a)
    if beta == 0:
        with nest(s, [call.number(y_axis.length)]) as (inner, (i,)):
            target = offset(inner, y, inner.times(i, call.number(y_axis.stride)), dtype)
            write(inner, target, call.language.constant(0, dtype))
        beta = 1.0
    assert found is not None
    way, near = found
    m, k = (("int", call.number(n)) for n in (a.rows.length, a.columns.length))
    fortran_calls.run(
        call,
        s,
        "gemv",
        dtype,
        *(("T", k, m) if way == "N" else ("N", m, k)),
        fortran_calls.number(call, alpha, dtype),
        a.pointer,
        _distance(call, s, near),
        x,
        _step(call, x_axis),
        fortran_calls.number(call, beta, dtype),
        y,
        _step(call, y_axis),
    )


def _distance(call: KernelCall, s: Section, length: Length) -> tuple[str, Name]:
    """A leading dimension, which BLAS requires to be at least one."""
    name = call.number(length)
    return "int", name if at_least(length, 1) else s.larger(name, "1")


def _step(call: KernelCall, axis: MatrixAxis) -> tuple[str, Name]:
    return "int", "1" if axis.length == 1 else call.number(axis.stride)

"""Calls of BLAS.

    gemm    a product of two matrices
    gemv    a product of a matrix and a vector
    syrk    a product of a matrix and its transpose

BLAS is column-major: of a row-major matrix it sees the transpose, so `c = a @ b` is computed as
`c.T = b.T @ a.T`.
"""

from __future__ import annotations

from wengert._engine.core.symbolic.dim import Length

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import Dtype
from .. import fortran_calls
from ..kernel_call import KernelCall
from ..loop_helpers import held, nest, offset, read, write
from .operands import Matrix, MatrixAxis, Product, at_least, leading

_TILE = 8  # rows that are written together: an element of each row above is in one cache line


def gemm(call: KernelCall, s: Section, product: Product) -> None:
    """A product of matrices; c is row-major."""
    a, b, c, dtype, _, beta, _ = product
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
        _alpha(call, s, product),
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
    a, b, c, dtype, _, beta, _ = product
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
        _alpha(call, s, product),
        a.pointer,
        _distance(call, s, near),
        x,
        _step(call, x_axis),
        fortran_calls.number(call, beta, dtype),
        y,
        _step(call, y_axis),
    )


def syrk(call: KernelCall, s: Section, product: Product) -> None:
    """A product of a matrix and its transpose: half of it is computed, and copied to the other.

    c is not read; it is symmetric, so its transpose, which BLAS sees, is as good.
    """
    a, _, c, dtype, _, _, _ = product
    found, target = leading(a), leading(c)
    assert found is not None and target is not None
    way, near = found
    m, k = (call.number(n) for n in (a.rows.length, a.columns.length))
    fortran_calls.run(
        call,
        s,
        "syrk",
        dtype,
        "L",
        "T" if way == "N" else "N",
        ("int", m),
        ("int", k),
        _alpha(call, s, product),
        a.pointer,
        _distance(call, s, near),
        fortran_calls.number(call, 0.0, dtype),
        c.pointer,
        _distance(call, s, target[1]),
    )
    _mirror(call, s, c, call.number(target[1]), dtype)


def _mirror(call: KernelCall, s: Section, c: Matrix, row: Name, dtype: Dtype) -> None:
    """Copy what is above the diagonal, in rows of a distance, to below it."""
    m = call.number(c.rows.length)
    with s.loop("0", m, str(_TILE)) as (t, first):
        stop = t.smaller(t.plus(first, str(_TILE)), m)
        with t.loop("0", stop) as (u, j):
            start = u.larger(u.plus(j, "1"), first)
            above = u.times(j, row)
            with u.loop(start, stop) as (v, i):
                of = offset(v, c.pointer, v.plus(above, i), dtype)
                to = offset(v, c.pointer, v.plus(v.times(i, row), j), dtype)
                write(v, to, read(call.language, v, of, dtype))


def _alpha(call: KernelCall, s: Section, product: Product) -> Name:
    """The address of the factor of the product."""
    if product.alpha.pointer is None:
        return fortran_calls.number(call, product.alpha.number, product.dtype)
    cell = held(call, product.dtype)
    write(s, cell, product.alpha.value(call, s, product.dtype))
    return cell


def _distance(call: KernelCall, s: Section, length: Length) -> tuple[str, Name]:
    """A leading dimension, which BLAS requires to be at least one."""
    name = call.number(length)
    return "int", name if at_least(length, 1) else s.larger(name, "1")


def _step(call: KernelCall, axis: MatrixAxis) -> tuple[str, Name]:
    return "int", "1" if axis.length == 1 else call.number(axis.stride)

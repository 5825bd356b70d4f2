"""Systems with Toeplitz matrices.

    linalg.toeplitz_solve    Levinson's recursion, which adds a row in each step: n**2 operations
                             for each column

The kernel fails if a leading submatrix is singular or nearly so; the interpreter then raises the
error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import Dtype, part_of
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import address, copy, offset, read, stack_slot, write
from .lapack import (
    batch_item,
    batches,
    element,
    fail_unless_finite,
    is_for_lapack,
    memory,
    working_dtype,
)
from .schur import absolute


@kernel("linalg.toeplitz_solve", strided=True, serves=is_for_lapack)
def toeplitz_solve(call: KernelCall) -> None:
    """x with toeplitz(c, r) @ x = b."""
    c, r, b = call.operands
    (x,) = call.results
    n, columns, dtype = x.shape[-2], x.shape[-1], working_dtype(x.dtype)
    call.record_flops(n * n * (columns + 2))
    vectors = [ArrayPointer(memory(call, n, dtype), (n,), (1,), dtype) for _ in range(6)]
    rhs = ArrayPointer(memory(call, n * columns, dtype), (n, columns), (1, n), dtype)
    out = rhs._replace(pointer=memory(call, n * columns, dtype))
    with batches(call, x, 2) as (s, index):
        copy(call, s, vectors[0], batch_item(call, s, c, index, 1))
        copy(call, s, vectors[1], batch_item(call, s, r, index, 1))
        copy(call, s, rhs, batch_item(call, s, b, index, 2))
        for vector in vectors[:2]:
            fail_unless_finite(call, s, vector._replace(shape=(n, 1), strides=(1, n)))
        fail_unless_finite(call, s, rhs)
        _Recursion(call, call.number(n), dtype, vectors).write(s, rhs, out, call.number(columns))
        copy(call, s, batch_item(call, s, x, index, 2), out)


class _Recursion:
    """Levinson's recursion.

    The leading submatrix of m rows maps f to the first unit vector, and g to the last one.
    """

    def __init__(self, call: KernelCall, n: Name, dtype: Dtype, vectors: Any) -> None:
        self.call, self.n, self.dtype, self.language = call, n, dtype, call.language
        self.c, self.r, self.f, self.g, self.new_f, self.new_g = vectors
        self.sums = [stack_slot(call, dtype) for _ in range(2)]

    def _apply(self, op: str, x: Any, y: Any) -> Any:
        return self.language.binary(op, x, y)

    def _at(self, s: Section, vector: ArrayPointer, i: Name) -> Any:
        return read(self.language, s, offset(s, vector.pointer, i, self.dtype), self.dtype)

    def _put(self, s: Section, vector: ArrayPointer, i: Name, value: Any) -> None:
        write(s, offset(s, vector.pointer, i, self.dtype), value)

    def _sum(self, s: Section, cell: Name, term: Any) -> None:
        old = read(self.language, s, cell, self.dtype)
        write(s, cell, self._apply("add", old, term))

    def _inverse(self, s: Section, x: Any, reference: Any) -> Any:
        """1 / x; the kernel fails if x is negligible compared to a reference."""
        limit = absolute(reference) * (1e3 * float(np.finfo(part_of(self.dtype)).eps))
        is_small = self.language.binary("less_equal", absolute(x), limit)
        self.call.fail_if(is_small.name, 1, s)
        return self._apply("divide", self.language.constant(1, self.dtype), x)

    def write(self, s: Section, b: ArrayPointer, x: ArrayPointer, columns: Name) -> None:
        """Write the solution for all columns."""
        call, language, zero = self.call, self.language, self.language.constant(0, self.dtype)
        first = self._at(s, self.c, "0")
        start = self._inverse(s, first, language.constant(0, self.dtype))
        for vector in (self.f, self.g):
            self._put(s, vector, "0", start)
        with s.loop("0", columns) as (t, j):
            value = self._apply("multiply", element(call, t, b, "0", j), self._at(t, self.f, "0"))
            write(t, address(call, t, x, ["0", j]), value)
        with s.loop("1", self.n) as (t, m):
            for cell in self.sums:
                write(t, cell, zero)
            with t.loop("0", m) as (u, i):
                lower_element, upper_element = (
                    self._at(u, self.c, u.minus(m, i)),
                    self._at(u, self.r, u.plus(i, "1")),
                )
                self._sum(
                    u, self.sums[0], self._apply("multiply", lower_element, self._at(u, self.f, i))
                )
                self._sum(
                    u, self.sums[1], self._apply("multiply", upper_element, self._at(u, self.g, i))
                )
            self._extend(t, m)
            with t.loop("0", columns) as (u, j):
                write(u, self.sums[0], element(call, u, b, m, j))
                with u.loop("0", m) as (v, i):
                    term = self._apply(
                        "multiply", self._at(v, self.c, v.minus(m, i)), element(call, v, x, i, j)
                    )
                    self._sum(v, self.sums[0], language.unary("negative", term))
                write(u, address(call, u, x, [m, j]), zero)
                with u.loop("0", u.plus(m, "1")) as (v, i):
                    residual = read(language, v, self.sums[0], self.dtype)
                    cell = address(call, v, x, [i, j])
                    correction = self._apply("multiply", residual, self._at(v, self.g, i))
                    write(
                        v, cell, self._apply("add", read(language, v, cell, self.dtype), correction)
                    )

    def _extend(self, s: Section, m: Name) -> None:
        """Extend f and g by one row, given their residuals in it (`sums`)."""
        language = self.language
        e_f, e_g = (read(language, s, cell, self.dtype) for cell in self.sums)
        one_ = language.constant(1, self.dtype)
        determinant = self._apply("subtract", one_, self._apply("multiply", e_f, e_g))
        factor = self._inverse(s, determinant, one_)
        cells = [stack_slot(self.call, self.dtype) for _ in range(3)]
        for cell, value in zip(cells, (factor, e_f, e_g), strict=True):
            write(s, cell, value)
        for vector in (self.f, self.g):
            self._put(s, vector, m, language.constant(0, self.dtype))
        with s.loop("0", s.plus(m, "1")) as (t, i):
            scale, residual_f, residual_g = (read(language, t, cell, self.dtype) for cell in cells)
            previous = t.minus(i, "1")
            has_previous = t.value(f"icmp sgt i64 {i}, 0")
            # zero is stored at m
            safe = t.value(f"select i1 {has_previous}, i64 {previous}, i64 {m}")
            f, g = self._at(t, self.f, i), self._at(t, self.g, safe)
            new_f = self._apply("subtract", f, self._apply("multiply", residual_f, g))
            new_g = self._apply("subtract", g, self._apply("multiply", residual_g, f))
            self._put(t, self.new_f, i, self._apply("multiply", new_f, scale))
            self._put(t, self.new_g, i, self._apply("multiply", new_g, scale))
        with s.loop("0", s.plus(m, "1")) as (t, i):
            self._put(t, self.f, i, self._at(t, self.new_f, i))
            self._put(t, self.g, i, self._at(t, self.new_g, i))

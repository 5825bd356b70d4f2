"""Systems with Toeplitz matrices.

    linalg.toeplitz_solve    Levinson's recursion, one more row in each step: n**2 operations for
                             each column

The kernel fails if a leading submatrix is singular, or nearly so: the interpreter raises the error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import Dtype, part_of
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import copy, held, offset, place, read, write
from .lapack import batches, element, fails_unless_finite, is_for_lapack, memory, one, working
from .schur import absolute


@kernel("linalg.toeplitz_solve", strided=True, serves=is_for_lapack)
def toeplitz_solve(call: KernelCall) -> None:
    """x with toeplitz(c, r) @ x = b."""
    c, r, b = call.operands
    (x,) = call.results
    n, columns, dtype = x.shape[-2], x.shape[-1], working(x.dtype)
    call.works(n * n * (columns + 2))
    lines = [ArrayPointer(memory(call, n, dtype), (n,), (1,), dtype) for _ in range(6)]
    right = ArrayPointer(memory(call, n * columns, dtype), (n, columns), (1, n), dtype)
    out = right._replace(pointer=memory(call, n * columns, dtype))
    with batches(call, x, 2) as (s, at):
        copy(call, s, lines[0], one(call, s, c, at, 1))
        copy(call, s, lines[1], one(call, s, r, at, 1))
        copy(call, s, right, one(call, s, b, at, 2))
        for line in lines[:2]:
            fails_unless_finite(call, s, line._replace(shape=(n, 1), strides=(1, n)))
        fails_unless_finite(call, s, right)
        _Recursion(call, call.number(n), dtype, lines).write(s, right, out, call.number(columns))
        copy(call, s, one(call, s, x, at, 2), out)


class _Recursion:
    """The vectors f and g that a leading part of m rows takes to its first and its last axis."""

    def __init__(self, call: KernelCall, n: Name, dtype: Dtype, lines: Any) -> None:
        self.call, self.n, self.dtype, self.language = call, n, dtype, call.language
        self.c, self.r, self.f, self.g, self.new_f, self.new_g = lines
        self.sums = [held(call, dtype) for _ in range(2)]

    def _two(self, op: str, x: Any, y: Any) -> Any:
        return self.language.binary(op, x, y)

    def _at(self, s: Section, line: ArrayPointer, i: Name) -> Any:
        return read(self.language, s, offset(s, line.pointer, i, self.dtype), self.dtype)

    def _put(self, s: Section, line: ArrayPointer, i: Name, value: Any) -> None:
        write(s, offset(s, line.pointer, i, self.dtype), value)

    def _sum(self, s: Section, cell: Name, term: Any) -> None:
        old = read(self.language, s, cell, self.dtype)
        write(s, cell, self._two("add", old, term))

    def _inverse(self, s: Section, x: Any, beside: Any) -> Any:
        """1 / x; the kernel fails where x is negligible compared to another number."""
        limit = absolute(beside) * (1e3 * float(np.finfo(part_of(self.dtype)).eps))
        bad = self.language.binary("less_equal", absolute(x), limit)
        self.call.fail_if(bad.name, 1, s)
        return self._two("divide", self.language.constant(1, self.dtype), x)

    def write(self, s: Section, b: ArrayPointer, x: ArrayPointer, columns: Name) -> None:
        """The solution for all columns."""
        call, language, zero = self.call, self.language, self.language.constant(0, self.dtype)
        first = self._at(s, self.c, "0")
        start = self._inverse(s, first, language.constant(0, self.dtype))
        for line in (self.f, self.g):
            self._put(s, line, "0", start)
        with s.loop("0", columns) as (t, j):
            value = self._two("multiply", element(call, t, b, "0", j), self._at(t, self.f, "0"))
            write(t, place(call, t, x, ["0", j]), value)
        with s.loop("1", self.n) as (t, m):
            for cell in self.sums:
                write(t, cell, zero)
            with t.loop("0", m) as (u, i):
                below, beside = (
                    self._at(u, self.c, u.minus(m, i)),
                    self._at(u, self.r, u.plus(i, "1")),
                )
                self._sum(u, self.sums[0], self._two("multiply", below, self._at(u, self.f, i)))
                self._sum(u, self.sums[1], self._two("multiply", beside, self._at(u, self.g, i)))
            self._grow(t, m)
            with t.loop("0", columns) as (u, j):
                write(u, self.sums[0], element(call, u, b, m, j))
                with u.loop("0", m) as (v, i):
                    term = self._two(
                        "multiply", self._at(v, self.c, v.minus(m, i)), element(call, v, x, i, j)
                    )
                    self._sum(v, self.sums[0], language.unary("negative", term))
                write(u, place(call, u, x, [m, j]), zero)
                with u.loop("0", u.plus(m, "1")) as (v, i):
                    rest = read(language, v, self.sums[0], self.dtype)
                    cell = place(call, v, x, [i, j])
                    more = self._two("multiply", rest, self._at(v, self.g, i))
                    write(v, cell, self._two("add", read(language, v, cell, self.dtype), more))

    def _grow(self, s: Section, m: Name) -> None:
        """f and g for one more row, and the residuals of the old ones in it."""
        language = self.language
        e_f, e_g = (read(language, s, cell, self.dtype) for cell in self.sums)
        one_ = language.constant(1, self.dtype)
        across = self._two("subtract", one_, self._two("multiply", e_f, e_g))
        factor = self._inverse(s, across, one_)
        cells = [held(self.call, self.dtype) for _ in range(3)]
        for cell, value in zip(cells, (factor, e_f, e_g), strict=True):
            write(s, cell, value)
        for line in (self.f, self.g):
            self._put(s, line, m, language.constant(0, self.dtype))
        with s.loop("0", s.plus(m, "1")) as (t, i):
            by, left, right = (read(language, t, cell, self.dtype) for cell in cells)
            before = t.minus(i, "1")
            inside = t.value(f"icmp sgt i64 {i}, 0")
            safe = t.value(f"select i1 {inside}, i64 {before}, i64 {m}")  # zero is stored at m
            f, g = self._at(t, self.f, i), self._at(t, self.g, safe)
            new_f = self._two("subtract", f, self._two("multiply", left, g))
            new_g = self._two("subtract", g, self._two("multiply", right, f))
            self._put(t, self.new_f, i, self._two("multiply", new_f, by))
            self._put(t, self.new_g, i, self._two("multiply", new_g, by))
        with s.loop("0", s.plus(m, "1")) as (t, i):
            self._put(t, self.f, i, self._at(t, self.new_f, i))
            self._put(t, self.g, i, self._at(t, self.new_g, i))

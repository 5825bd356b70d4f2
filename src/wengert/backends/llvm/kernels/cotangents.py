"""Cotangents: the derivative of Cholesky's factorization backwards.

    cholesky_cotangent    of few rows in lanes, a matrix for each; of more by blocks, with BLAS

From the last columns to the first, out being the result, which is Hermitian, and C the columns of
the factor below its diagonal block D:

    rest = (t - 2 out C) inv(D)       the rows below; half of it is the result's
    out of the block = adjoint(inv(D)) S inv(D), S of adjoint(D) @ (t - adjoint(rest) @ C)

with S as ops/factorizations.py says.  A row is a block of its own in lanes.
"""

from __future__ import annotations

from typing import Any

from ..assembly import Name, Section
from ..dtypes import BOOL, F16, F32, Dtype
from ..lane import Lane, Pair
from . import fortran
from .batched import Block, blocks
from .call import Array, Call, kernel
from .lapack import batches, by_columns, length, memory, one
from .loops import copy, minus, moved, place, plus, read, smaller, times, write
from .panels import UNROLLED, Panel, each
from .small import ROWS

_BLOCK = 64


def _is_small(call: Call) -> bool:
    n = call.operands[0].shape[-1]
    return type(n) is int and 1 <= n <= ROWS and all(x.dtype.kind != "c" for x in call.operands)


@kernel("cholesky_cotangent", strided=True)
def cholesky_cotangent(call: Call) -> None:
    """The cotangent of a matrix by that of its factor."""
    if _is_small(call):
        _in_lanes(call)
        return
    low, t = call.operands
    (x,) = call.results
    work = _Blocks(call, x.shape[-1], F32 if x.dtype == F16 else x.dtype)
    with batches(call, x, 2) as (s, at):
        copy(call, s, work.low, one(call, s, low, at, 2))
        copy(call, s, work.bar, one(call, s, t, at, 2))
        work.write(s)
        copy(call, s, one(call, s, x, at, 2), work.out)


def _in_lanes(call: Call) -> None:
    low, t = call.operands
    (x,) = call.results
    n: Any = x.shape[-1]
    dtype = F32 if x.dtype == F16 else x.dtype

    def put(block: Block) -> None:
        language, s = call.language, block.section
        factor, out = Panel(block, n, n, dtype), Panel(block, n, n, dtype)
        unrolled = n <= UNROLLED
        for u, i in each(s, 0, n, unrolled=unrolled):
            for v, j in each(u, 0, int(i) + 1 if unrolled else plus(u, i, "1"), unrolled=unrolled):
                factor.put(v, language.cast(block.element(0, v, (i, j)), dtype), i, j)
                out.put(v, language.cast(block.element(1, v, (i, j)), dtype), i, j)
        total = Panel(block, 1, dtype=dtype)
        for u, j in each(s, 0, n, unrolled=unrolled, down=True):
            after = str(int(j) + 1) if unrolled else plus(u, j, "1")
            inverse = 1 / factor.get(u, j, j)
            # every rest is of the old result, so the column is written when all are known
            for v, i in each(u, after, n, unrolled=unrolled):
                total.put(v, 0)
                for w, k in each(v, after, n, unrolled=unrolled):
                    found = language.fma(out.get(w, i, k), factor.get(w, k, j), total.get(w))
                    total.put(w, found)
                rest = (out.get(v, i, j) - 2 * total.get(v)) * moved(v, inverse)
                out.put(v, rest, j, i)
            total.put(u, out.get(u, j, j))
            for v, i in each(u, after, n, unrolled=unrolled):
                rest = out.get(v, j, i)
                total.put(v, language.fma(-rest, factor.get(v, i, j), total.get(v)))
                out.put(v, rest * 0.5, i, j)
                out.put(v, rest * 0.5, j, i)
            out.put(u, total.get(u) * moved(u, inverse) * 0.5, j, j)
        for u, i in each(s, 0, n, unrolled=unrolled):
            for v, j in each(u, 0, n, unrolled=unrolled):
                block.set_element(2, v, out.get(v, i, j), (i, j))

    blocks(call, [(low, 2), (t, 2), (x, 2)], dtype, put)


class _Blocks:
    """One matrix after the other, by blocks of columns.

    Matrices are kept in the order of Fortran.  `bar` becomes the rest in its columns.
    """

    def __init__(self, call: Call, n: Any, dtype: Dtype) -> None:
        self.call, self.n, self.dtype = call, n, dtype
        fortran.check_lengths(call, call.number(n))
        call.works(n * n * n)
        self.low, self.bar, self.out = (
            by_columns(memory(call, n * n, dtype), n, n, dtype) for _ in range(3)
        )
        self.square = by_columns(memory(call, _BLOCK * _BLOCK, dtype), _BLOCK, _BLOCK, dtype)
        self.adjoint = "C" if dtype.kind == "c" else "T"

    def _product(self, s: Section, sizes: Any, a: Any, b: Any, c: Any, factor: float) -> None:
        """c += factor * a @ b; each is an address, a distance of columns, and N, T or C."""
        m, n, k = (("int", x) for x in sizes)
        call, dtype = self.call, self.dtype
        numbers = [fortran.number(call, x, dtype) for x in (factor, 1)]
        fortran.run(
            *(call, s, "gemm", dtype, a[2], b[2], m, n, k, numbers[0], a[0], a[1], b[0], b[1]),
            *(numbers[1], c[0], c[1]),
        )

    def _divide(self, s: Section, side: str, way: str, sizes: Any, d: Any, b: Any) -> None:
        """b = op(inv(d)) @ b, or b @ op(inv(d)), d lower triangular."""
        call, dtype = self.call, self.dtype
        m, n = (("int", x) for x in sizes)
        unit = fortran.number(call, 1, dtype)
        fortran.run(call, s, "trsm", dtype, side, "L", way, "N", m, n, unit, d[0], d[1], *b[:2])

    def write(self, s: Section) -> None:
        """Compute `out` of `low` and `bar`."""
        call, n = self.call, self.call.number(self.n)
        count = s.value(f"sdiv i64 {plus(s, n, str(_BLOCK - 1))}, {_BLOCK}")
        with s.loop("0", count) as (t, k):
            stop = minus(t, n, times(t, k, str(_BLOCK)))
            wide = smaller(t, stop, str(_BLOCK))
            start, below = minus(t, stop, wide), minus(t, n, stop)
            near = length(call, self.n)
            at = {
                name: place(call, t, array, [row, column])
                for name, array, row, column in (
                    ("diagonal", self.low, start, start),
                    ("column", self.low, stop, start),
                    ("inner", self.bar, start, start),
                    ("rest", self.bar, stop, start),
                    ("known", self.out, stop, stop),
                )
            }
            column, rest = (at["column"], near, "N"), (at["rest"], near, "N")
            diagonal = (at["diagonal"], near)
            with t.when(t.value(f"icmp sgt i64 {below}, 0")) as u:
                known = (at["known"], near, "N")
                self._product(u, (below, wide, below), known, column, rest, -2.0)
                self._divide(u, "R", "N", (below, wide), diagonal, rest)
                turned = (at["rest"], near, self.adjoint)
                inner = (at["inner"], near)
                self._product(u, (wide, wide, below), turned, column, inner, -1.0)
            self._of_block(t, wide, diagonal, at["inner"], near)
            self._keep(t, start, stop, wide, n)

    def _of_block(self, s: Section, wide: Name, diagonal: Any, inner: Name, near: Any) -> None:
        """The result of a diagonal block, in `square`."""
        call, square = self.call, self.square
        bar = Array(inner, (self.n, self.n), self.bar.strides, self.dtype)
        low = Array(diagonal[0], (self.n, self.n), self.low.strides, self.dtype)
        language = call.language
        zero = language.constant(0, self.dtype)
        with s.loop("0", wide) as (t, j), t.loop("0", wide) as (u, i):
            below = u.value(f"icmp slt i64 {i}, {j}")
            given = read(language, u, place(call, u, bar, [i, j]), self.dtype)
            value = language.where(Lane(language, u, below, BOOL, 1), zero, given)
            write(u, place(call, u, square, [i, j]), value)
        self._trmm(s, wide, low.pointer, near)
        with s.loop("0", wide) as (t, j):
            with t.loop(plus(t, j, "1"), wide) as (u, i):
                value = read(language, u, place(call, u, square, [i, j]), self.dtype)
                half = _halved(language, value)
                write(u, place(call, u, square, [i, j]), half)
                write(u, place(call, u, square, [j, i]), _conjugate(language, half))
            pointer = place(call, t, square, [j, j])
            write(
                t,
                pointer,
                _real(language, _halved(language, read(language, t, pointer, self.dtype))),
            )
        target = (square.pointer, _BLOCK)
        self._divide(s, "L", self.adjoint, (wide, wide), diagonal, target)
        self._divide(s, "R", "N", (wide, wide), diagonal, target)

    def _trmm(self, s: Section, wide: Name, low: Name, near: Any) -> None:
        """square = adjoint(diagonal block) @ square."""
        call, dtype = self.call, self.dtype
        unit = fortran.number(call, 1, dtype)
        size = ("int", wide)
        fortran.run(
            *(call, s, "trmm", dtype, "L", "L", self.adjoint, "N", size, size, unit, low, near),
            *(self.square.pointer, _BLOCK),
        )

    def _keep(self, s: Section, start: Name, stop: Name, wide: Name, n: Name) -> None:
        """Write the columns, and the rows that are their adjoint, to the result."""
        call, language = self.call, self.call.language
        with s.loop("0", wide) as (t, j):
            column = plus(t, start, j)
            with t.loop("0", wide) as (u, i):
                both = [
                    read(language, u, place(call, u, self.square, at), self.dtype)
                    for at in ([i, j], [j, i])
                ]
                mean = _halved(language, both[0] + _conjugate(language, both[1]))
                write(u, place(call, u, self.out, [plus(u, start, i), column]), mean)
            with t.loop(stop, n) as (u, i):
                half = _halved(
                    language, read(language, u, place(call, u, self.bar, [i, column]), self.dtype)
                )
                write(u, place(call, u, self.out, [i, column]), half)
                write(u, place(call, u, self.out, [column, i]), _conjugate(language, half))


def _halved(language: Any, x: Any) -> Any:
    if type(x) is Pair:
        return Pair(language, x.real * 0.5, x.imag * 0.5, x.dtype)
    return x * 0.5


def _conjugate(language: Any, x: Any) -> Any:
    return Pair(language, x.real, -x.imag, x.dtype) if type(x) is Pair else x


def _real(language: Any, x: Any) -> Any:
    """A number without its imaginary part."""
    if type(x) is Pair:
        return Pair(language, x.real, language.constant(0, x.imag.dtype), x.dtype)
    return x

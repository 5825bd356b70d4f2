"""The cotangent of a Cholesky factorization.

    cholesky_cotangent    for few rows, one matrix per SIMD lane; for more, in blocks, with BLAS

From the last columns to the first, where out is the result, which is Hermitian, and C the columns
of the factor below its diagonal block D:

    rest = (t - 2 out C) inv(D)       the rows below; half of it belongs to the result
    out of the block = adjoint(inv(D)) S inv(D), S from adjoint(D) @ (t - adjoint(rest) @ C)

with S as in ops/linalg/factorizations.py.  In lanes, each row is a block.
"""

from __future__ import annotations

from typing import Any

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import F16, F32, Dtype
from ...ir.simd_value import ComplexLane
from ...tuning import thresholds
from .. import fortran_calls
from ..batched_matrices import Block, blocks
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import copy, is_in_order, moved, place, read, write
from ..simd_matrix import SimdMatrix, each
from ..transpose import transposer
from .lapack import batches, by_columns, length, memory, one
from .small_matrices import MAX_ROWS


def _is_small(call: KernelCall) -> bool:
    n = call.operands[0].shape[-1]
    return type(n) is int and 1 <= n <= MAX_ROWS and all(x.dtype.kind != "c" for x in call.operands)


@kernel("cholesky_cotangent", strided=True)
def cholesky_cotangent(call: KernelCall) -> None:
    """The cotangent of a matrix, from that of its Cholesky factor."""
    if _is_small(call):
        _in_lanes(call)
        return
    low, t = call.operands
    (x,) = call.results
    n, dtype = x.shape[-1], F32 if x.dtype == F16 else x.dtype
    fortran_calls.check_lengths(call, call.number(n))
    call.works(n * n * n)
    square = memory(call, thresholds.cholesky_vjp_columns * thresholds.cholesky_vjp_columns, dtype)
    ready = [_is_ready(low, dtype), x.dtype == dtype]
    factor, own = (
        None if r else ArrayPointer(memory(call, n * n, dtype), (n, n), (n, 1), dtype)
        for r in ready
    )
    with batches(call, x, 2) as (s, at):
        given, result = one(call, s, low, at, 2), one(call, s, x, at, 2)
        if factor is not None:
            copy(call, s, factor, given)
            given = factor
        _ColumnBlocks(call, given, one(call, s, t, at, 2), own or result, square).write(s)
        if own is not None:
            copy(call, s, result, own)


def _is_ready(low: ArrayPointer, dtype: Dtype) -> bool:
    """Whether BLAS can read the factors where they lie."""
    last = low._replace(shape=low.shape[-2:], strides=low.strides[-2:])
    return low.dtype == dtype and is_in_order(last)


def _in_lanes(call: KernelCall) -> None:
    low, t = call.operands
    (x,) = call.results
    n: Any = x.shape[-1]
    dtype = F32 if x.dtype == F16 else x.dtype

    def put(block: Block) -> None:
        language, s = call.language, block.section
        factor, out = SimdMatrix(block, n, n, dtype), SimdMatrix(block, n, n, dtype)
        unrolled = factor.unrolled
        for u, i in each(s, 0, n, unrolled):
            for v, j in each(u, 0, u.plus(i, "1"), unrolled):
                factor.put(v, language.cast(block.element(0, v, (i, j)), dtype), i, j)
                out.put(v, language.cast(block.element(1, v, (i, j)), dtype), i, j)
        total = SimdMatrix(block, 1, dtype=dtype)
        for u, j in each(s, 0, n, unrolled, down=True):
            after = u.plus(j, "1")
            inverse = 1 / factor.get(u, j, j)
            # each rest uses the old result, so the column is written once all are computed
            for v, i in each(u, after, n, unrolled):
                total.put(v, 0)
                for w, k in each(v, after, n, unrolled):
                    found = language.fma(out.get(w, i, k), factor.get(w, k, j), total.get(w))
                    total.put(w, found)
                rest = (out.get(v, i, j) - 2 * total.get(v)) * moved(v, inverse)
                out.put(v, rest, j, i)
            total.put(u, out.get(u, j, j))
            for v, i in each(u, after, n, unrolled):
                rest = out.get(v, j, i)
                total.put(v, language.fma(-rest, factor.get(v, i, j), total.get(v)))
                out.put(v, rest * 0.5, i, j)
                out.put(v, rest * 0.5, j, i)
            out.put(u, total.get(u) * moved(u, inverse) * 0.5, j, j)
        for u, i in each(s, 0, n, unrolled):
            for v, j in each(u, 0, n, unrolled):
                block.set_element(2, v, out.get(v, i, j), (i, j))

    blocks(call, [(low, 2), (t, 2), (x, 2)], dtype, put)


class _ColumnBlocks:
    """One matrix, by blocks of columns.

    BLAS reads all matrices in Fortran order, as transposes: the factor is an upper triangle, and
    every formula is transposed.  Half of the rest is computed directly in the result.

    Parameters
    ----------
    low, t, out : ArrayPointer
        One matrix each; `low` and `out` in NumPy's order.
    square : Name
        Memory for one block.
    """

    def __init__(
        self, call: KernelCall, low: ArrayPointer, t: ArrayPointer, out: ArrayPointer, square: Name
    ) -> None:
        self.call, self.n, self.dtype = call, out.shape[-1], out.dtype
        self.near = length(call, self.n)
        self.square = by_columns(
            square, thresholds.cholesky_vjp_columns, thresholds.cholesky_vjp_columns, self.dtype
        )
        self.low, self.out = (by_columns(x.pointer, self.n, self.n, self.dtype) for x in (low, out))
        self.t = t._replace(strides=t.strides[::-1])
        self.adjoint = "C" if self.dtype.kind == "c" else "T"

    def _product(
        self, s: Section, sizes: tuple[str, ...], a: Name, b: Name, c: tuple[Any, ...], way: str
    ) -> None:
        """c -= 2 a @ op(b)."""
        call, near = self.call, self.near
        factor, unit = (fortran_calls.number(call, x, self.dtype) for x in (-2, 1))
        counts = [("int", x) for x in sizes]
        given = ("N", way, *counts, factor, a, near, b, near, unit, *c)
        fortran_calls.run(call, s, "gemm", self.dtype, *given)

    def _divide(
        self,
        s: Section,
        way: str,
        sizes: tuple[str, ...],
        d: Name,
        b: tuple[Any, ...],
        by: float = 1.0,
    ) -> None:
        """b = by * inv(d) @ b, or by * b @ adjoint(inv(d)), d upper triangular."""
        side, turn = ("L", "N") if way == "left" else ("R", self.adjoint)
        factor = fortran_calls.number(self.call, by, self.dtype)
        counts = [("int", x) for x in sizes]
        given = (side, "U", turn, "N", *counts, factor, d, self.near, *b)
        fortran_calls.run(self.call, s, "trsm", self.dtype, *given)

    def write(self, s: Section) -> None:
        """Compute `out` of `low` and `t`."""
        call, n = self.call, self.call.number(self.n)
        columns = thresholds.cholesky_vjp_columns
        count = s.value(f"sdiv i64 {s.plus(n, str(columns - 1))}, {columns}")
        with s.loop("0", count) as (t, k):
            stop = t.minus(n, t.times(k, str(thresholds.cholesky_vjp_columns)))
            wide = t.smaller(stop, str(thresholds.cholesky_vjp_columns))
            start, below = t.minus(stop, wide), t.minus(n, stop)
            diagonal = place(call, t, self.low, [start, start])
            self._read(t, self.square, start, start, (wide, wide))
            with t.when(t.value(f"icmp sgt i64 {below}, 0")) as u:
                beside = self.out._replace(pointer=place(call, u, self.out, [start, stop]))
                self._read(u, beside, start, stop, (wide, below))
                column, known = (
                    place(call, u, self.low, [start, stop]),
                    place(call, u, self.out, [stop, stop]),
                )
                rest = (beside.pointer, self.near)
                self._product(u, (wide, below, below), column, known, rest, "N")
                self._divide(u, "left", (wide, below), diagonal, rest, 0.5)
                square = (self.square.pointer, thresholds.cholesky_vjp_columns)
                self._product(u, (wide, wide, below), column, rest[0], square, self.adjoint)
                self._turn(u, beside, start, stop, (wide, below))
            self._of_block(t, wide, diagonal)
            block = self.out._replace(pointer=place(call, t, self.out, [start, start]))
            self._keep(t, block, wide)

    def _read(self, s: Section, to: ArrayPointer, row: Name, column: Name, sizes: Any) -> None:
        """Copy a part of t."""
        call, language = self.call, self.call.language
        part = self.t._replace(pointer=place(call, s, self.t, [row, column]))
        with s.loop("0", sizes[1]) as (t, j), t.loop("0", sizes[0]) as (u, i):
            value = read(language, u, place(call, u, part, [i, j]), part.dtype)
            write(u, place(call, u, to, [i, j]), language.cast(value, self.dtype))

    def _turn(
        self, s: Section, beside: ArrayPointer, start: Name, stop: Name, sizes: tuple[str, ...]
    ) -> None:
        """Write what is under a block: the adjoint of what is beside it."""
        call, language, dtype = self.call, self.call.language, self.dtype
        under = self.out._replace(pointer=place(call, s, self.out, [stop, start]))
        if dtype.kind == "c":
            with s.loop("0", sizes[1]) as (t, j), t.loop("0", sizes[0]) as (u, i):
                value = read(language, u, place(call, u, beside, [i, j]), dtype)
                write(u, place(call, u, under, [j, i]), _conjugate(language, value))
            return
        function, n = transposer(call.module, dtype.itemsize), call.number(self.n)
        given = ", ".join(f"i64 {x}" for x in (*sizes, n, n))
        s.write(f"call void @{function}(ptr {under.pointer}, ptr {beside.pointer}, {given})")

    def _of_block(self, s: Section, wide: Name, diagonal: Name) -> None:
        """The result of a diagonal block, in `square`, of which the upper triangle is given."""
        call, square, language, dtype = self.call, self.square, self.call.language, self.dtype
        zero = language.constant(0, dtype)
        with s.loop("0", wide) as (t, j), t.loop(t.plus(j, "1"), wide) as (u, i):
            write(u, place(call, u, square, [i, j]), zero)
        unit, size = fortran_calls.number(call, 1, dtype), ("int", wide)
        target = (square.pointer, thresholds.cholesky_vjp_columns)
        given = ("R", "U", self.adjoint, "N", size, size, unit, diagonal, self.near, *target)
        fortran_calls.run(call, s, "trmm", dtype, *given)
        with s.loop("0", wide) as (t, j):
            with t.loop("0", j) as (u, i):
                half = _halved(language, read(language, u, place(call, u, square, [i, j]), dtype))
                write(u, place(call, u, square, [i, j]), half)
                write(u, place(call, u, square, [j, i]), _conjugate(language, half))
            pointer = place(call, t, square, [j, j])
            write(t, pointer, _real(language, _halved(language, read(language, t, pointer, dtype))))
        self._divide(s, "left", (wide, wide), diagonal, target)
        self._divide(s, "right", (wide, wide), diagonal, target)

    def _keep(self, s: Section, block: ArrayPointer, wide: Name) -> None:
        """Write the diagonal block: its Hermitian part."""
        call, language, dtype = self.call, self.call.language, self.dtype
        with s.loop("0", wide) as (t, j), t.loop("0", wide) as (u, i):
            both = [
                read(language, u, place(call, u, self.square, at), dtype) for at in ([i, j], [j, i])
            ]
            mean = _halved(language, both[0] + _conjugate(language, both[1]))
            write(u, place(call, u, block, [i, j]), mean)


def _halved(language: Any, x: Any) -> Any:
    if type(x) is ComplexLane:
        return ComplexLane(language, x.real * 0.5, x.imag * 0.5, x.dtype)
    return x * 0.5


def _conjugate(language: Any, x: Any) -> Any:
    return ComplexLane(language, x.real, -x.imag, x.dtype) if type(x) is ComplexLane else x


def _real(language: Any, x: Any) -> Any:
    """A number without its imaginary part."""
    if type(x) is ComplexLane:
        return ComplexLane(language, x.real, language.constant(0, x.imag.dtype), x.dtype)
    return x

"""The cotangent of a Cholesky factorization.

    cholesky_cotangent    matrices with few rows: one per SIMD lane; others: in blocks, with BLAS

Blocks of columns are computed from the last to the first.  `out` is the result, which is Hermitian,
D a diagonal block of the factor, and C the columns of the factor below it:

    rest = (t - 2 out C) inv(D)       the rows below; half of it is that part of the result
    block of out = adjoint(inv(D)) S inv(D), S from adjoint(D) @ (t - adjoint(rest) @ C)

with S as in ops/linalg/factorizations.py.  In SIMD lanes each column is a block.
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
from ..loop_helpers import address, copy, in_section, is_c_contiguous, read, write
from ..simd_matrix import SimdMatrix, each
from ..transpose import transposer
from .lapack import batch_item, batches, column_major, length, memory
from .small_matrices import MAX_ROWS


def _is_small(call: KernelCall) -> bool:
    n = call.operands[0].shape[-1]
    return type(n) is int and 1 <= n <= MAX_ROWS and all(x.dtype.kind != "c" for x in call.operands)


@kernel("cholesky_cotangent", strided=True, in_lanes=True)
def cholesky_cotangent(call: KernelCall) -> None:
    """The cotangent of a matrix, from that of its Cholesky factor."""
    if _is_small(call):
        _in_lanes(call)
        return
    low, t = call.operands
    (x,) = call.results
    n, dtype = x.shape[-1], F32 if x.dtype == F16 else x.dtype
    fortran_calls.check_lengths(call, call.number(n))
    call.record_flops(n * n * n)
    square = memory(call, thresholds.cholesky_vjp_columns * thresholds.cholesky_vjp_columns, dtype)
    is_usable = [_is_usable(low, dtype), x.dtype == dtype]
    factor, result_memory = (
        None if r else ArrayPointer(memory(call, n * n, dtype), (n, n), (n, 1), dtype)
        for r in is_usable
    )
    with batches(call, x, 2) as (s, index):
        factor_i, result = batch_item(call, s, low, index, 2), batch_item(call, s, x, index, 2)
        if factor is not None:
            copy(call, s, factor, factor_i)
            factor_i = factor
        _ColumnBlocks(
            call, factor_i, batch_item(call, s, t, index, 2), result_memory or result, square
        ).write(s)
        if result_memory is not None:
            copy(call, s, result, result_memory)


def _is_usable(low: ArrayPointer, dtype: Dtype) -> bool:
    """Whether BLAS can read the factors without a copy."""
    matrix = low._replace(shape=low.shape[-2:], strides=low.strides[-2:])
    return low.dtype == dtype and is_c_contiguous(matrix)


def _in_lanes(call: KernelCall) -> None:
    low, t = call.operands
    (x,) = call.results
    n: Any = x.shape[-1]
    dtype = F32 if x.dtype == F16 else x.dtype

    def write_block(block: Block) -> None:
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
            # `rest` is kept in the upper triangle until the diagonal element has been computed
            for v, i in each(u, after, n, unrolled):
                total.put(v, 0)
                for w, k in each(v, after, n, unrolled):
                    sum_of_products = language.fma(
                        out.get(w, i, k), factor.get(w, k, j), total.get(w)
                    )
                    total.put(w, sum_of_products)
                rest = (out.get(v, i, j) - 2 * total.get(v)) * in_section(v, inverse)
                out.put(v, rest, j, i)
            total.put(u, out.get(u, j, j))
            for v, i in each(u, after, n, unrolled):
                rest = out.get(v, j, i)
                total.put(v, language.fma(-rest, factor.get(v, i, j), total.get(v)))
                out.put(v, rest * 0.5, i, j)
                out.put(v, rest * 0.5, j, i)
            out.put(u, total.get(u) * in_section(u, inverse) * 0.5, j, j)
        for u, i in each(s, 0, n, unrolled):
            for v, j in each(u, 0, n, unrolled):
                block.set_element(2, v, out.get(v, i, j), (i, j))

    blocks(call, [(low, 2), (t, 2), (x, 2)], dtype, write_block)


class _ColumnBlocks:
    """One matrix, by blocks of columns.

    BLAS sees all matrices as transposes: the factor is an upper triangle, and every formula is
    transposed.  Half of `rest` is computed directly in the result.

    Parameters
    ----------
    low, t, out : ArrayPointer
        One matrix each; `low` and `out` in C order.
    square : Name
        Memory for one block.
    """

    def __init__(
        self, call: KernelCall, low: ArrayPointer, t: ArrayPointer, out: ArrayPointer, square: Name
    ) -> None:
        self.call, self.n, self.dtype = call, out.shape[-1], out.dtype
        self.lda = length(call, self.n)
        self.square = column_major(
            square, thresholds.cholesky_vjp_columns, thresholds.cholesky_vjp_columns, self.dtype
        )
        self.low, self.out = (
            column_major(x.pointer, self.n, self.n, self.dtype) for x in (low, out)
        )
        self.t = t._replace(strides=t.strides[::-1])
        self.adjoint = "C" if self.dtype.kind == "c" else "T"

    def _product(
        self, s: Section, sizes: tuple[str, ...], a: Name, b: Name, c: tuple[Any, ...], trans_b: str
    ) -> None:
        """c -= 2 a @ op(b)."""
        call, lda = self.call, self.lda
        factor, unit = (fortran_calls.number(call, x, self.dtype) for x in (-2, 1))
        counts = [("int", x) for x in sizes]
        arguments = ("N", trans_b, *counts, factor, a, lda, b, lda, unit, *c)
        fortran_calls.run(call, s, "gemm", self.dtype, *arguments)

    def _divide(
        self,
        s: Section,
        position: str,
        sizes: tuple[str, ...],
        d: Name,
        b: tuple[Any, ...],
        scale: float = 1.0,
    ) -> None:
        """b = scale * inv(d) @ b, or scale * b @ adjoint(inv(d)), with d upper triangular."""
        side, trans = ("L", "N") if position == "left" else ("R", self.adjoint)
        factor = fortran_calls.number(self.call, scale, self.dtype)
        counts = [("int", x) for x in sizes]
        arguments = (side, "U", trans, "N", *counts, factor, d, self.lda, *b)
        fortran_calls.run(self.call, s, "trsm", self.dtype, *arguments)

    def write(self, s: Section) -> None:
        """Compute `out` from `low` and `t`."""
        call, n = self.call, self.call.number(self.n)
        columns = thresholds.cholesky_vjp_columns
        count = s.value(f"sdiv i64 {s.plus(n, str(columns - 1))}, {columns}")
        with s.loop("0", count) as (t, k):
            stop = t.minus(n, t.times(k, str(thresholds.cholesky_vjp_columns)))
            width = t.smaller(stop, str(thresholds.cholesky_vjp_columns))
            start, below = t.minus(stop, width), t.minus(n, stop)
            diagonal = address(call, t, self.low, [start, start])
            self._copy_from_t(t, self.square, start, start, (width, width))
            with t.when(t.value(f"icmp sgt i64 {below}, 0")) as u:
                right_of_block = self.out._replace(
                    pointer=address(call, u, self.out, [start, stop])
                )
                self._copy_from_t(u, right_of_block, start, stop, (width, below))
                column, computed = (
                    address(call, u, self.low, [start, stop]),
                    address(call, u, self.out, [stop, stop]),
                )
                rest = (right_of_block.pointer, self.lda)
                self._product(u, (width, below, below), column, computed, rest, "N")
                self._divide(u, "left", (width, below), diagonal, rest, 0.5)
                square = (self.square.pointer, thresholds.cholesky_vjp_columns)
                self._product(u, (width, width, below), column, rest[0], square, self.adjoint)
                self._write_adjoint(u, right_of_block, start, stop, (width, below))
            self._solve_block(t, width, diagonal)
            block = self.out._replace(pointer=address(call, t, self.out, [start, start]))
            self._write_block(t, block, width)

    def _copy_from_t(
        self, s: Section, to: ArrayPointer, row: Name, column: Name, sizes: Any
    ) -> None:
        """Copy a part of t."""
        call, language = self.call, self.call.language
        part = self.t._replace(pointer=address(call, s, self.t, [row, column]))
        with s.loop("0", sizes[1]) as (t, j), t.loop("0", sizes[0]) as (u, i):
            value = read(language, u, address(call, u, part, [i, j]), part.dtype)
            write(u, address(call, u, to, [i, j]), language.cast(value, self.dtype))

    def _write_adjoint(
        self,
        s: Section,
        right: ArrayPointer,
        start: Name,
        stop: Name,
        sizes: tuple[str, ...],
    ) -> None:
        """Write the part below a block: the adjoint of the part to its right."""
        call, language, dtype = self.call, self.call.language, self.dtype
        below = self.out._replace(pointer=address(call, s, self.out, [stop, start]))
        if dtype.kind == "c":
            with s.loop("0", sizes[1]) as (t, j), t.loop("0", sizes[0]) as (u, i):
                value = read(language, u, address(call, u, right, [i, j]), dtype)
                write(u, address(call, u, below, [j, i]), _conjugate(language, value))
            return
        function, n = transposer(call.module, dtype.itemsize), call.number(self.n)
        arguments = ", ".join(f"i64 {x}" for x in (*sizes, n, n))
        s.write(f"call void @{function}(ptr {below.pointer}, ptr {right.pointer}, {arguments})")

    def _solve_block(self, s: Section, width: Name, diagonal: Name) -> None:
        """Compute a diagonal block of the result in `square`, from its upper triangle."""
        call, square, language, dtype = self.call, self.square, self.call.language, self.dtype
        zero = language.constant(0, dtype)
        with s.loop("0", width) as (t, j), t.loop(t.plus(j, "1"), width) as (u, i):
            write(u, address(call, u, square, [i, j]), zero)
        unit, size = fortran_calls.number(call, 1, dtype), ("int", width)
        target = (square.pointer, thresholds.cholesky_vjp_columns)
        arguments = ("R", "U", self.adjoint, "N", size, size, unit, diagonal, self.lda, *target)
        fortran_calls.run(call, s, "trmm", dtype, *arguments)
        with s.loop("0", width) as (t, j):
            with t.loop("0", j) as (u, i):
                half = _halved(language, read(language, u, address(call, u, square, [i, j]), dtype))
                write(u, address(call, u, square, [i, j]), half)
                write(u, address(call, u, square, [j, i]), _conjugate(language, half))
            pointer = address(call, t, square, [j, j])
            write(t, pointer, _real(language, _halved(language, read(language, t, pointer, dtype))))
        self._divide(s, "left", (width, width), diagonal, target)
        self._divide(s, "right", (width, width), diagonal, target)

    def _write_block(self, s: Section, block: ArrayPointer, width: Name) -> None:
        """Write the diagonal block: its Hermitian part."""
        call, language, dtype = self.call, self.call.language, self.dtype
        with s.loop("0", width) as (t, j), t.loop("0", width) as (u, i):
            pair = [
                read(language, u, address(call, u, self.square, indices), dtype)
                for indices in ([i, j], [j, i])
            ]
            mean = _halved(language, pair[0] + _conjugate(language, pair[1]))
            write(u, address(call, u, block, [i, j]), mean)


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

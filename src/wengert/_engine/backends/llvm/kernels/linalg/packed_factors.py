"""`solve` in two steps: factorization, and solving with packed factors.

lu_packed        getrf, in LAPACK's memory layout; up to 64 rows: lu_in_cache.py
solve_packed     getrs; for several columns, laswp and trsm; up to 64 rows:
                 substitution_in_cache.py
InCache          its substitution with factors of up to 64 rows
is_zero          whether a pivot is zero
order_of, rows_exchanged, exchanges    permutations of rows, and the corresponding exchanges
"""

from __future__ import annotations

from wengert._engine.core.node import DiscreteLeaf
from wengert._engine.core.symbolic.dim import Length
from wengert._engine.ops.linalg.factorizations import TRANS

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import I32, I64, Dtype, in_register
from ...ir.simd_value import ComplexLane, Lane
from .. import fortran_calls
from ..fortran_calls import (
    batch_item,
    batches,
    column_major,
    element,
    has_elements,
    is_for_lapack,
    leading_dimension,
    length,
    memory,
)
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import address, copy, is_c_contiguous, read, write
from . import lu_in_cache, substitution_in_cache


@kernel("lu_packed", strided=True, serves=has_elements)
def lu_packed(call: KernelCall) -> None:
    """The factors, column-major, and the exchanges; a singular matrix has factors, too."""
    (a,), (packed, pivots) = call.operands, call.results
    n, dtype = a.shape[-1], packed.dtype
    fortran_calls.check_lengths(call, n)
    call.record_flops(n * n * n)
    if isinstance(n, int) and lu_in_cache.serves(n, dtype):
        work = memory(call, n * lu_in_cache.padded(n), dtype)

        def factorize(s: Section, matrix: ArrayPointer, target: Name, exchanges: Name) -> None:
            result = column_major(target, n, n, dtype)
            lu_in_cache.factorize(call, s, matrix, work, result, exchanges)

    else:
        info = fortran_calls.integer_slot(call)

        def factorize(s: Section, matrix: ArrayPointer, target: Name, exchanges: Name) -> None:
            copy(call, s, column_major(target, n, n, dtype), matrix)
            size, lda = length(call, n), leading_dimension(call, s, n)
            arguments = (target, lda, exchanges, info)
            fortran_calls.run(call, s, "getrf", dtype, size, size, *arguments)

    with batches(call, packed, 2) as (s, index):
        target, exchanges = (
            batch_item(call, s, packed, index, 2),
            batch_item(call, s, pivots, index, 1),
        )
        factorize(s, batch_item(call, s, a, index, 2), target.pointer, exchanges.pointer)


@kernel("solve_packed", strided=True, serves=is_for_lapack)
def solve_packed(call: KernelCall) -> None:
    """x with op(a) @ x = b, from the factors of a; fails if one of the pivots is zero."""
    (packed, pivots, b), (x,) = call.operands, call.results
    n, columns, dtype = x.shape[-2], x.shape[-1], x.dtype
    fortran_calls.check_lengths(call, n, columns)
    call.record_flops(n * n * columns)
    trans = TRANS[call.params.get("trans", 0)]
    in_place = packed.dtype == dtype and is_c_contiguous(
        packed._replace(shape=packed.shape[-2:], strides=packed.strides[-2:])
    )
    factor_memory = "" if in_place else memory(call, n * n, dtype)
    exchanges = (
        ""
        if is_c_contiguous(pivots._replace(shape=pivots.shape[-1:], strides=pivots.strides[-1:]))
        else memory(call, n, I32)
    )
    substitution = InCache if lu_in_cache.serves(n, dtype) else _Lapack
    solve = substitution(call, n, columns, dtype, trans).solve
    with batches(call, x, 2) as (s, index):
        packed_i, pivots_i = (
            batch_item(call, s, packed, index, 2),
            batch_item(call, s, pivots, index, 1),
        )
        if factor_memory:
            ordered = ArrayPointer(factor_memory, (n, n), (n, 1), dtype)
            copy(call, s, ordered, packed_i)
            packed_i = ordered
        if exchanges:
            contiguous_pivots = ArrayPointer(exchanges, (n,), (1,), I32)
            copy(call, s, contiguous_pivots, pivots_i)
            pivots_i = contiguous_pivots
        factors = column_major(packed_i.pointer, n, n, dtype)
        right, target = (batch_item(call, s, y, index, 2) for y in (b, x))
        solve(s, factors, pivots_i.pointer, right, target)


class _Substitution:
    """Solutions for matrices of n rows with so many right-hand sides.

    trans : the matrix, its transpose or its adjoint (0, 1, 2).
    """

    def __init__(
        self, call: KernelCall, n: Length, columns: Length, dtype: Dtype, trans: int
    ) -> None:
        self.call, self.n, self.columns, self.dtype = call, n, columns, dtype
        self.trans = trans

    def solve(
        self, s: Section, factors: ArrayPointer, pivots: Name, b: ArrayPointer, x: ArrayPointer
    ) -> None:
        """Write the solutions x for the columns of b; fails for a zero pivot."""
        raise NotImplementedError


class _Lapack(_Substitution):
    """By routines of LAPACK and BLAS."""

    def __init__(
        self, call: KernelCall, n: Length, columns: Length, dtype: Dtype, trans: int
    ) -> None:
        super().__init__(call, n, columns, dtype, trans)
        self._columns = column_major(memory(call, n * columns, dtype), n, columns, dtype)
        self._info = fortran_calls.integer_slot(call)

    def solve(
        self, s: Section, factors: ArrayPointer, pivots: Name, b: ArrayPointer, x: ArrayPointer
    ) -> None:
        """Write the solutions."""
        call, rhs = self.call, self._columns
        copy(call, s, rhs, b)
        fail_at_zero(call, s, factors)
        if self.columns == 1:
            _substitute_one(call, s, factors, rhs, pivots, self.trans, self._info)
        else:
            substitute(call, s, factors, rhs, pivots, self.trans)
        copy(call, s, x, rhs)


class InCache(_Substitution):
    """Of real matrices in a first-level cache."""

    def __init__(
        self, call: KernelCall, n: Length, columns: Length, dtype: Dtype, trans: int
    ) -> None:
        super().__init__(call, n, columns, dtype, trans)
        assert isinstance(n, int)
        self._vector = column_major("", n, 1, dtype)
        if columns == 1:
            self._vector = self._vector._replace(pointer=memory(call, lu_in_cache.padded(n), dtype))

    def solve(
        self, s: Section, factors: ArrayPointer, pivots: Name, b: ArrayPointer, x: ArrayPointer
    ) -> None:
        """Write the solutions."""
        call, vector, is_transposed = self.call, self._vector, self.trans != 0
        if self.columns != 1:
            if b.dtype != self.dtype:  # converted in the place of the result
                copy(call, s, x, b)
                b = x
            solve = substitution_in_cache.solve_columns
            solve(call, s, factors.pointer, pivots, b, x, is_transposed)
            return
        copy(call, s, vector, b)
        pointers = factors.pointer, pivots, vector.pointer
        assert isinstance(self.n, int)
        substitution_in_cache.solve_vector(call, s, self.n, *pointers, is_transposed)
        copy(call, s, x, vector)


def _substitute_one(
    call: KernelCall,
    s: Section,
    a: ArrayPointer,
    b: ArrayPointer,
    pivots: Name,
    trans: int,
    info: Name,
) -> None:
    """Solve with factors for one column b, which becomes the solution."""
    lda, size = leading_dimension(call, s, a.shape[0]), length(call, a.shape[0])
    arguments = (a.pointer, lda, pivots, b.pointer, lda, info)
    fortran_calls.run(call, s, "getrs", a.dtype, "NTC"[trans], size, 1, *arguments)


def substitute(
    call: KernelCall, s: Section, a: ArrayPointer, b: ArrayPointer, pivots: Name, trans: int = 0
) -> None:
    """Solve with factors for several columns b, which become the solution; all column-major."""
    n, columns = b.shape
    lda, size, width = leading_dimension(call, s, n), length(call, n), length(call, columns)
    arguments = (
        size,
        width,
        fortran_calls.number(call, 1, a.dtype),
        a.pointer,
        lda,
        b.pointer,
        lda,
    )
    steps = [("L", "U"), ("U", "N")]
    if not trans:
        fortran_calls.run(call, s, "laswp", a.dtype, width, b.pointer, lda, 1, size, pivots, 1)
    for triangle, diagonal in reversed(steps) if trans else steps:
        fortran_calls.run(
            call, s, "trsm", a.dtype, "L", triangle, "NTC"[trans], diagonal, *arguments
        )
    if trans:
        fortran_calls.run(call, s, "laswp", a.dtype, width, b.pointer, lda, 1, size, pivots, -1)


def fail_at_zero(call: KernelCall, s: Section, a: ArrayPointer) -> None:
    """Fail if an element of the diagonal is zero."""
    with s.loop("0", call.number(a.shape[0])) as (t, i):
        call.fail_if(is_zero(call, t, a, i), 1, t)


def is_zero(call: KernelCall, s: Section, a: ArrayPointer, i: Name) -> Name:
    """Whether element i of the diagonal is zero, an i1."""
    x = element(call, s, a, i, i)
    parts = [x.real, x.imag] if type(x) is ComplexLane else [x]
    flags = [s.value(f"fcmp oeq {in_register(p.dtype)} {p.name}, 0.0") for p in parts]
    return flags[0] if len(flags) == 1 else s.value(f"and i1 {flags[0]}, {flags[1]}")


# ---- exchanges of rows -------------------------------------------------------------------------


def _is_of_integers(node: DiscreteLeaf) -> bool:
    return has_elements(node) and node.inputs[0].spec.dtype.kind in "iu"


@kernel("linalg.order_of", strided=True, serves=_is_of_integers)
def order_of(call: KernelCall) -> None:
    """The order of rows after exchanges that count from 0; fails for invalid row numbers."""
    _apply_exchanges(call, 0)


@kernel("rows_exchanged", strided=True, serves=_is_of_integers)
def rows_exchanged(call: KernelCall) -> None:
    """The order of rows after LAPACK's exchanges, which count from 1."""
    _apply_exchanges(call, 1)


def _apply_exchanges(call: KernelCall, first: int) -> None:
    (pivots,), (order,) = call.operands, call.results
    n = call.number(order.shape[-1])
    with batches(call, order, 1) as (s, index):
        exchanges_i, rows = (
            batch_item(call, s, pivots, index, 1),
            batch_item(call, s, order, index, 1),
        )
        _count_up(call, s, rows, n)
        with s.loop("0", n) as (t, i):
            k = t.minus(_row(call, t, exchanges_i, i), str(first))
            call.fail_if(t.value(f"icmp uge i64 {k}, {n}"), 1, t)
            _swap(call, t, rows, i, k)


@kernel("linalg.exchanges", strided=True, serves=_is_of_integers)
def exchanges(call: KernelCall) -> None:
    """The exchanges that give an order of rows; fails for invalid row numbers."""
    (order,), (pivots,) = call.operands, call.results
    length_ = order.shape[-1]
    n = call.number(length_)
    rows, positions = (
        ArrayPointer(memory(call, length_, I64), (length_,), (1,), I64) for _ in range(2)
    )
    with batches(call, pivots, 1) as (s, index):
        order_i, target = (
            batch_item(call, s, order, index, 1),
            batch_item(call, s, pivots, index, 1),
        )
        _count_up(call, s, rows, n)
        _count_up(call, s, positions, n)
        with s.loop("0", n) as (t, i):
            row = _row(call, t, order_i, i)
            call.fail_if(t.value(f"icmp uge i64 {row}, {n}"), 1, t)
            k = _row(call, t, positions, row)
            call.fail_if(t.value(f"icmp slt i64 {k}, {i}"), 1, t)  # a row occurs twice
            _write_row(call, t, target, i, k)
            _swap(call, t, rows, i, k)
            _write_row(call, t, positions, row, i)
            _write_row(call, t, positions, _row(call, t, rows, k), k)


def _row(call: KernelCall, s: Section, array: ArrayPointer, i: Name) -> Name:
    lane = read(call.language, s, address(call, s, array, [i]), array.dtype)
    return str(call.language.cast(lane, I64).name)


def _write_row(call: KernelCall, s: Section, array: ArrayPointer, i: Name, row: Name) -> None:
    lane = Lane(call.language, s, row, I64, 1)
    write(s, address(call, s, array, [i]), call.language.cast(lane, array.dtype))


def _count_up(call: KernelCall, s: Section, rows: ArrayPointer, n: Name) -> None:
    with s.loop("0", n) as (t, i):
        _write_row(call, t, rows, i, i)


def _swap(call: KernelCall, s: Section, rows: ArrayPointer, i: Name, k: Name) -> None:
    x, y = _row(call, s, rows, i), _row(call, s, rows, k)
    _write_row(call, s, rows, i, y)
    _write_row(call, s, rows, k, x)

"""`solve` in two steps: factorization, and solving with packed factors.

lu_packed        getrf, as it is in memory
solve_packed     getrs; several columns are solved here
order_of, rows_exchanged, exchanges    permutations of rows, and the corresponding exchanges
"""

from __future__ import annotations

from wengert._engine.core.node import DiscreteLeaf
from wengert._engine.ops.linalg.factorizations import TRANS

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import I32, I64, in_register
from ...ir.simd_value import ComplexLane, Lane
from .. import fortran_calls
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import copy, is_in_order, place, read, write
from .lapack import (
    batches,
    by_columns,
    distance,
    element,
    has_elements,
    is_for_lapack,
    length,
    memory,
    one,
)


@kernel("lu_packed", strided=True, serves=has_elements)
def lu_packed(call: KernelCall) -> None:
    """The factors by columns, and the exchanges; a singular matrix has some, too."""
    (a,), (packed, pivots) = call.operands, call.results
    n, dtype = a.shape[-1], packed.dtype
    fortran_calls.check_lengths(call, call.number(n))
    call.works(n * n * n)
    info = fortran_calls.whole_cell(call)
    with batches(call, packed, 2) as (s, at):
        target, exchanged = one(call, s, packed, at, 2), one(call, s, pivots, at, 1)
        copy(call, s, by_columns(target.pointer, n, n, dtype), one(call, s, a, at, 2))
        size, near = length(call, n), distance(call, s, n)
        given = (target.pointer, near, exchanged.pointer, info)
        fortran_calls.run(call, s, "getrf", dtype, size, size, *given)


@kernel("solve_packed", strided=True, serves=is_for_lapack)
def solve_packed(call: KernelCall) -> None:
    """x with op(a) @ x = b, from the factors of a; fails if one on the diagonal is zero."""
    (packed, pivots, b), (x,) = call.operands, call.results
    n, columns, dtype = x.shape[-2], x.shape[-1], x.dtype
    fortran_calls.check_lengths(call, call.number(n), call.number(columns))
    call.works(n * n * columns)
    trans = TRANS[call.params.get("trans", 0)]
    in_place = packed.dtype == dtype and is_in_order(
        packed._replace(shape=packed.shape[-2:], strides=packed.strides[-2:])
    )
    own = "" if in_place else memory(call, n * n, dtype)
    exchanges = (
        ""
        if is_in_order(pivots._replace(shape=pivots.shape[-1:], strides=pivots.strides[-1:]))
        else memory(call, n, I32)
    )
    right = by_columns(memory(call, n * columns, dtype), n, columns, dtype)
    info = fortran_calls.whole_cell(call)
    with batches(call, x, 2) as (s, at):
        given, rows = one(call, s, packed, at, 2), one(call, s, pivots, at, 1)
        if own:
            ordered = ArrayPointer(own, (n, n), (n, 1), dtype)
            copy(call, s, ordered, given)
            given = ordered
        if exchanges:
            kept = ArrayPointer(exchanges, (n,), (1,), I32)
            copy(call, s, kept, rows)
            rows = kept
        factors = by_columns(given.pointer, n, n, dtype)
        fail_at_zero(call, s, factors)
        copy(call, s, right, one(call, s, b, at, 2))
        if columns == 1:
            near, size = distance(call, s, n), length(call, n)
            told = (factors.pointer, near, rows.pointer, right.pointer, near, info)
            fortran_calls.run(call, s, "getrs", dtype, "NTC"[trans], size, 1, *told)
        else:
            substitute(call, s, factors, right, rows.pointer, trans)
        copy(call, s, one(call, s, x, at, 2), right)


def substitute(
    call: KernelCall, s: Section, a: ArrayPointer, b: ArrayPointer, pivots: Name, trans: int = 0
) -> None:
    """Solve with factors for several columns b, which become the solution; all by columns."""
    n, columns = b.shape
    near, size, width = distance(call, s, n), length(call, n), length(call, columns)
    given = (size, width, fortran_calls.number(call, 1, a.dtype), a.pointer, near, b.pointer, near)
    steps = [("L", "U"), ("U", "N")]
    if not trans:
        fortran_calls.run(call, s, "laswp", a.dtype, width, b.pointer, near, 1, size, pivots, 1)
    for triangle, diagonal in reversed(steps) if trans else steps:
        fortran_calls.run(call, s, "trsm", a.dtype, "L", triangle, "NTC"[trans], diagonal, *given)
    if trans:
        fortran_calls.run(call, s, "laswp", a.dtype, width, b.pointer, near, 1, size, pivots, -1)


def fail_at_zero(call: KernelCall, s: Section, a: ArrayPointer) -> None:
    """Fail if an element of the diagonal is zero."""
    with s.loop("0", call.number(a.shape[0])) as (t, i):
        x = element(call, t, a, i, i)
        parts = [x.real, x.imag] if type(x) is ComplexLane else [x]
        flags = [t.value(f"fcmp oeq {in_register(p.dtype)} {p.name}, 0.0") for p in parts]
        name = flags[0] if len(flags) == 1 else t.value(f"and i1 {flags[0]}, {flags[1]}")
        call.fail_if(name, 1, t)


# ---- exchanges of rows -------------------------------------------------------------------------


def _is_of_whole_numbers(node: DiscreteLeaf) -> bool:
    return has_elements(node) and node.inputs[0].spec.dtype.kind in "iu"


@kernel("linalg.order_of", strided=True, serves=_is_of_whole_numbers)
def order_of(call: KernelCall) -> None:
    """The order of rows after exchanges; fails for invalid row numbers."""
    _ordered(call, 0)


@kernel("rows_exchanged", strided=True, serves=_is_of_whole_numbers)
def rows_exchanged(call: KernelCall) -> None:
    """The same of LAPACK's exchanges, which count from 1 on."""
    _ordered(call, 1)


def _ordered(call: KernelCall, first: int) -> None:
    (pivots,), (order,) = call.operands, call.results
    n = call.number(order.shape[-1])
    with batches(call, order, 1) as (s, at):
        given, rows = one(call, s, pivots, at, 1), one(call, s, order, at, 1)
        _count_up(call, s, rows, n)
        with s.loop("0", n) as (t, i):
            k = t.minus(_row(call, t, given, i), str(first))
            call.fail_if(t.value(f"icmp uge i64 {k}, {n}"), 1, t)
            _swap(call, t, rows, i, k)


@kernel("linalg.exchanges", strided=True, serves=_is_of_whole_numbers)
def exchanges(call: KernelCall) -> None:
    """The exchanges that give an order of rows; fails for invalid row numbers."""
    (order,), (found,) = call.operands, call.results
    length_ = order.shape[-1]
    n = call.number(length_)
    rows, places = (
        ArrayPointer(memory(call, length_, I64), (length_,), (1,), I64) for _ in range(2)
    )
    with batches(call, found, 1) as (s, at):
        given, target = one(call, s, order, at, 1), one(call, s, found, at, 1)
        _count_up(call, s, rows, n)
        _count_up(call, s, places, n)
        with s.loop("0", n) as (t, i):
            row = _row(call, t, given, i)
            call.fail_if(t.value(f"icmp uge i64 {row}, {n}"), 1, t)
            k = _row(call, t, places, row)
            call.fail_if(t.value(f"icmp slt i64 {k}, {i}"), 1, t)  # a row occurs twice
            _write_row(call, t, target, i, k)
            _swap(call, t, rows, i, k)
            _write_row(call, t, places, row, i)
            _write_row(call, t, places, _row(call, t, rows, k), k)


def _row(call: KernelCall, s: Section, of: ArrayPointer, i: Name) -> Name:
    """An integer of an array."""
    lane = read(call.language, s, place(call, s, of, [i]), of.dtype)
    return str(call.language.cast(lane, I64).name)


def _write_row(call: KernelCall, s: Section, to: ArrayPointer, i: Name, row: Name) -> None:
    lane = Lane(call.language, s, row, I64, 1)
    write(s, place(call, s, to, [i]), call.language.cast(lane, to.dtype))


def _count_up(call: KernelCall, s: Section, rows: ArrayPointer, n: Name) -> None:
    with s.loop("0", n) as (t, i):
        _write_row(call, t, rows, i, i)


def _swap(call: KernelCall, s: Section, rows: ArrayPointer, i: Name, k: Name) -> None:
    x, y = _row(call, s, rows, i), _row(call, s, rows, k)
    _write_row(call, s, rows, i, y)
    _write_row(call, s, rows, k, x)

"""Matrices: one product of matrices after the other, by BLAS or by loops of our own.

    Axis       a length and the distance of neighbours
    Matrix     where a matrix begins, and its two axes
    multiply   c = alpha * a @ b + beta * c

Where a factor stays in a near cache, loops of our own are faster (gemm/gemm_microkernel.py).  BLAS
takes a matrix whose rows, or whose columns, lie side by side; what it sees of a matrix in NumPy's
order is the transpose, so `c = a @ b` is asked for as `c.T = b.T @ a.T`.  Dtypes that BLAS does not
know are multiplied in vectors, b rearranged so that a vector of its columns lies together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.backends.llvm.ir.affine import is_stride
from wengert._engine.backends.llvm.ir.ir_builder import Name, Section
from wengert._engine.backends.llvm.ir.llvm_types import F16, F32, Dtype, in_memory, of_width
from wengert._engine.backends.llvm.ir.simd_value import Lane
from wengert._engine.backends.llvm.runtime.blas_threads import WORTH
from wengert._engine.core.symbolic.dim import Length, bounds, names_in

from .. import fortran_calls
from ..kernel_call import Call
from ..loop_helpers import larger, minus, nest, offset, plus, read, smaller, times, write
from . import gemm_microkernel, unrolled_gemv

U8 = np.dtype(np.uint8)
_SHARED = 16_000_000  # operations, some 0.2 ms of one thread: far more than sharing takes
_BLOCK, _BLOCKS = 48, 4  # rows of a block at least, and blocks at most


class Axis(NamedTuple):
    """A length and the distance of neighbours, in elements."""

    length: Length
    stride: Length


class Matrix(NamedTuple):
    """A matrix: where it begins, its axis of rows and its axis of columns."""

    pointer: Name
    rows: Axis
    columns: Axis

    @property
    def transposed(self) -> Matrix:
        """The same numbers, rows and columns exchanged."""
        return Matrix(self.pointer, self.columns, self.rows)


def at_least(x: Length, y: Length) -> bool:
    """Whether x >= y for all sizes, as far as that can be told."""
    apart = x - y
    if any(is_stride(name) for name in names_in([apart])):
        return False  # of any sign, and zero where an array is repeated
    low = bounds(apart)[0]
    return low is not None and low >= 0


def leading(matrix: Matrix) -> tuple[str, Length] | None:
    """How BLAS takes a matrix in NumPy's order: ("N", distance of rows), ("T", of columns).

    None if it cannot.
    """
    rows, columns = matrix.rows, matrix.columns
    if columns.stride == 1 or columns.length == 1:
        if rows.length == 1:
            return "N", columns.length
        if at_least(rows.stride, columns.length):
            return "N", rows.stride
    if rows.stride == 1 or rows.length == 1:
        if columns.length == 1:
            return "T", rows.length
        if at_least(columns.stride, rows.length):
            return "T", columns.stride
    return None


def takes(matrix: Matrix) -> bool:
    """Whether BLAS takes a matrix, or a vector, as it lies."""
    if leading(matrix) is not None:
        return True
    rows, columns = matrix.rows, matrix.columns
    vector = rows if columns.length == 1 else columns if rows.length == 1 else None
    return vector is not None and at_least(vector.stride, 1)


def multiply(
    call: Call,
    s: Section,
    a: Matrix,
    b: Matrix,
    c: Matrix,
    dtype: Dtype,
    alpha: complex = 1.0,
    beta: complex = 0.0,
    before: Name | None = None,
) -> None:
    """Write c = alpha * a @ b + beta * c.

    Parameters
    ----------
    call : Call
    s : Section
        May stand in a loop.
    a, b, c : Matrix
        Of shapes (m, k), (k, n), (m, n); each as `takes` asks for, if BLAS knows the dtype.
    dtype : numpy.dtype
        Of all three.
    alpha, beta : number
        Where beta is 0, what was in c is not read. Of dtypes unknown to BLAS alpha has to be 1 and
        beta 0 or 1.
    before : str, optional
        Where BLAS is not called, the address of a matrix that lies as c does; it takes the place of
        c on the right side.
    """
    if not fortran_calls.is_of_blas(dtype):
        _by_vectors(call, s, a, b, c, dtype, beta)
    elif c.columns.length == 1 or c.rows.length == 1:
        if c.columns.length != 1:
            a, b, c = b.transposed, a.transposed, c.transposed
        given = (a, b.rows, b.pointer, c.rows, c.pointer, dtype, alpha, beta)
        if unrolled_gemv.serves(a, dtype):
            unrolled_gemv.multiply(call, s, *given, before)
        else:
            _matrix_by_vector(call, s, *given)
    else:
        a, b, c = _in_numpy_order(a, b, c)
        if not gemm_microkernel.serves(a, b, c, dtype):
            _general(call, s, a, b, c, dtype, alpha, beta)
        elif _is_shared(call, s, (a, b, c), before):
            alone = s.value(f"icmp eq i64 {call.threads(s)}, 1")
            with s.when(alone) as t:
                gemm_microkernel.multiply(call, t, a, b, c, dtype, alpha, beta, before)
            with s.when(s.value(f"xor i1 {alone}, true")) as t:
                _in_blocks(call, t, (a, b, c), dtype, alpha, beta, before)
        elif _is_small(a, c):
            gemm_microkernel.multiply(call, s, a, b, c, dtype, alpha, beta, before)
        else:
            small = s.value(f"icmp slt i64 {call.number(_work(a, c))}, {WORTH}")
            alone = s.value(f"icmp eq i64 {call.threads(s)}, 1")
            here = s.value(f"or i1 {small}, {alone}")
            with s.when(here) as t:
                gemm_microkernel.multiply(call, t, a, b, c, dtype, alpha, beta)
            with s.when(s.value(f"xor i1 {here}, true")) as t:
                _general(call, t, a, b, c, dtype, alpha, beta)


def is_by_blas(a: Matrix, b: Matrix, c: Matrix, dtype: Dtype) -> bool:
    """Whether `multiply` calls BLAS."""
    if not fortran_calls.is_of_blas(dtype):
        return False
    if c.columns.length == 1 or c.rows.length == 1:
        return not unrolled_gemv.serves(a if c.columns.length == 1 else b, dtype)
    a, b, c = _in_numpy_order(a, b, c)
    return not (gemm_microkernel.serves(a, b, c, dtype) and _is_small(a, c))


def _is_small(a: Matrix, c: Matrix) -> bool:
    """Whether one thread is enough; else the run decides: BLAS has several for large products."""
    work = _work(a, c)
    return isinstance(work, int) and work < WORTH


def _is_shared(
    call: Call, s: Section, matrices: tuple[Matrix, Matrix, Matrix], before: Name | None
) -> bool:
    """Whether threads of our own share a product: those of BLAS wait for each other too often."""
    a, _, c = matrices
    lengths = (c.rows.length, c.columns.length, a.columns.length)
    if s is not call.section or not all(type(n) is int for n in lengths):
        return False  # one of many, which are shared among threads or too small for it
    given = {x.pointer for x in (*call.operands, *call.results)}
    is_given = {m.pointer for m in matrices} | {before or c.pointer} <= given
    work: Any = _work(a, c)
    return is_given and _SHARED <= work < WORTH and c.rows.length >= 2 * _BLOCK


def _in_blocks(
    call: Call,
    s: Section,
    matrices: tuple[Matrix, Matrix, Matrix],
    dtype: Dtype,
    alpha: Any,
    beta: Any,
    before: Name | None,
) -> None:
    """Blocks of rows, of which threads take some each."""
    m: Any = matrices[2].rows.length
    size = max(_BLOCK, -(-m // _BLOCKS))
    last = m % size or size

    def write(part: Call, start: Name, stop: Name) -> None:
        a, b, c = matrices
        s = part.section
        b = gemm_microkernel.ready(part, s, b, dtype)
        with s.loop(start, stop) as (t, q):
            row = times(t, q, str(size))
            here = [
                offset(t, x, times(t, row, part.number(y.rows.stride)), dtype)
                for x, y in ((a.pointer, a), (c.pointer, c), (before or c.pointer, c))
            ]
            is_last = t.value(f"icmp eq i64 {q}, {-(-m // size) - 1}")
            for rows in {size, last}:
                wanted = is_last if rows == last else t.value(f"xor i1 {is_last}, true")
                with t.when("true" if last == size else wanted) as u:
                    left, target = (
                        x._replace(pointer=p, rows=x.rows._replace(length=rows))
                        for x, p in ((a, here[0]), (c, here[1]))
                    )
                    old = here[2] if before else None
                    gemm_microkernel.multiply(part, u, left, b, target, dtype, alpha, beta, old)

    call.in_parts(-(-m // size), 1, write, s)


def _work(a: Matrix, c: Matrix) -> Length:
    """Floating-point operations of a product."""
    return 2 * c.rows.length * c.columns.length * a.columns.length


def _in_numpy_order(a: Matrix, b: Matrix, c: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """The same product, or that of the transposes, such that c's rows lie behind each other."""
    way = leading(c)
    assert way is not None
    return (a, b, c) if way[0] == "N" else (b.transposed, a.transposed, c.transposed)


def _general(
    call: Call, s: Section, a: Matrix, b: Matrix, c: Matrix, dtype: Dtype, alpha: Any, beta: Any
) -> None:
    """By gemm; c in NumPy's order."""
    m, n, k = c.rows.length, c.columns.length, a.columns.length
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


def _distance(call: Call, s: Section, length: Length) -> tuple[str, Name]:
    """A distance of rows, which BLAS wants to be at least one."""
    name = call.number(length)
    return "int", name if at_least(length, 1) else larger(s, name, "1")


def _matrix_by_vector(
    call: Call,
    s: Section,
    a: Matrix,
    x_axis: Axis,
    x: Name,
    y_axis: Axis,
    y: Name,
    dtype: Dtype,
    alpha: Any,
    beta: Any,
) -> None:
    """By gemv: y = alpha * a @ x + beta * y.

    y is set to 0 first and added to: of a matrix without columns gemv leaves y as it was.
    """
    found = leading(a)
    if beta == 0:
        with nest(s, [call.number(y_axis.length)]) as (inner, (i,)):
            target = offset(inner, y, times(inner, i, call.number(y_axis.stride)), dtype)
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


def _step(call: Call, axis: Axis) -> tuple[str, Name]:
    return "int", "1" if axis.length == 1 else call.number(axis.stride)


# ---- loops -------------------------------------------------------------------------------------


def _by_vectors(
    call: Call, s: Section, a: Matrix, b: Matrix, c: Matrix, dtype: Dtype, beta: Any
) -> None:
    """For whole numbers, which wrap around, truth values (or of and), and float16."""
    m, n = call.number(c.rows.length), call.number(c.columns.length)
    k = call.number(a.columns.length)
    stored = U8 if dtype.kind == "b" else dtype
    inner = F32 if dtype == F16 else stored
    width = execution_engine.vector_bytes() // inner.itemsize
    panel = _Panel(call, width, inner, dtype, a.columns.length)
    with s.loop("0", n, str(width)) as (t, j0):
        wide = smaller(t, str(width), minus(t, n, j0))
        panel.fill(t, b, j0, wide, k)
        with t.loop("0", m) as (u, i):
            total = panel.sums(u, a, i, k)
            u.write(f"store {total.kind} {total.name}, ptr {panel.row}")
            with u.loop("0", wide) as (v, j):
                own = read(call.language, v, offset(v, panel.row, j, inner), inner)
                place = plus(
                    v,
                    times(v, i, call.number(c.rows.stride)),
                    times(v, plus(v, j0, j), call.number(c.columns.stride)),
                )
                target = offset(v, c.pointer, place, stored)
                if beta:
                    before = call.language.cast(_read(call, v, target, stored), inner)
                    own = before | own if dtype.kind == "b" else before + own
                write(v, target, call.language.cast(own, stored))


def _read(call: Call, s: Section, pointer: Name, dtype: Dtype) -> Any:
    return read(call.language, s, pointer, dtype)


class _Panel:
    """So many columns of b side by side, in the dtype that is computed in, 0 beyond the last."""

    def __init__(self, call: Call, width: int, inner: Dtype, dtype: Dtype, depth: Length) -> None:
        self.call, self.width, self.inner = call, width, inner
        self.truth = dtype.kind == "b"
        self.stored = U8 if self.truth else dtype
        self.kind = of_width(in_memory(inner), width)
        self.memory = call.scratch(depth * (width * inner.itemsize))
        self.row = call.function.slot(self.kind)
        self.sum = call.function.slot(self.kind)

    def fill(self, s: Section, b: Matrix, start: Name, wide: Name, k: Name) -> None:
        """Bring the columns from `start` on together."""
        call = self.call
        with nest(s, [k, str(self.width)]) as (t, (p, j)):
            target = offset(t, self.memory, plus(t, times(t, p, str(self.width)), j), self.inner)
            inside = t.value(f"icmp slt i64 {j}, {wide}")
            write(t, target, call.language.constant(0, self.inner))
            with t.when(inside) as u:
                place = plus(
                    u,
                    times(u, p, call.number(b.rows.stride)),
                    times(u, plus(u, start, j), call.number(b.columns.stride)),
                )
                value = _read(call, u, offset(u, b.pointer, place, self.stored), self.stored)
                write(u, target, call.language.cast(value, self.inner))

    def sums(self, s: Section, a: Matrix, i: Name, k: Name) -> Lane:
        """A row of a by each of the columns."""
        call, kind = self.call, self.kind
        language = call.language
        s.write(f"store {kind} zeroinitializer, ptr {self.sum}")
        with s.loop("0", k) as (t, p):
            place = plus(
                t,
                times(t, i, call.number(a.rows.stride)),
                times(t, p, call.number(a.columns.stride)),
            )
            one = language.cast(
                _read(call, t, offset(t, a.pointer, place, self.stored), self.stored), self.inner
            )
            where = offset(t, self.memory, times(t, p, str(self.width)), self.inner)
            align = self.inner.itemsize
            column = t.value(f"load {kind}, ptr {where}, align {align}")
            old = t.value(f"load {kind}, ptr {self.sum}")
            before = Lane(language, t, old, self.inner, self.width)
            others = Lane(language, t, column, self.inner, self.width)
            new = before | (one & others) if self.truth else before + one * others
            t.write(f"store {kind} {new.name}, ptr {self.sum}")
        return Lane(language, s, s.value(f"load {kind}, ptr {self.sum}"), self.inner, self.width)

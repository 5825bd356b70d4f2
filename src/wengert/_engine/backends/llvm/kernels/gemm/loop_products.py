"""Products that are loops: of small matrices, unrolled, and of dtypes that BLAS does not have.

unrolled_gemv         c = alpha * a @ b + beta * c, b and c with one column; up to a size
                      (choose.py) the overhead of a BLAS call is longer than the product
batched_small_gemm    alpha * product + beta * addend, unrolled: the subscripts that are not of
                      the small matrices are the batch, and one product per lane is computed at
                      a time (batched_matrices.py)
simd_loops            integers, booleans and float16, in vectors over packed columns of b
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from wengert._engine.core.symbolic.dim import Length

from ...ir import execution_engine
from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import F16, F32, U8, Dtype, in_memory, of_width
from ...ir.simd_value import Lane
from ..batched_matrices import Block, blocks
from ..kernel_call import KernelCall
from ..loop_helpers import nest, offset, read, write
from .choose import batch_subscripts, length_of
from .operands import PLAIN, Epilogue, Matrix, Product, Subscripts, arranged

# ---- a small matrix and a vector -----------------------------------------------------------------


def unrolled_gemv(call: KernelCall, s: Section, product: Product) -> None:
    """Write the product; b and c have one column."""
    a, b, c, dtype, alpha, beta, addend = product
    language = call.language
    m, k = a.rows.length, a.columns.length
    assert type(m) is int and type(k) is int

    def element(pointer: Name, *indices: tuple[int, Length]) -> Any:
        return read(language, s, _element_address(call, s, pointer, indices, dtype), dtype)

    factors = [element(b.pointer, (j, b.rows.stride)) for j in range(k)]
    results = []
    for i in range(m):
        total: Any = None
        for j, factor in enumerate(factors):
            element_of_a = element(a.pointer, (i, a.rows.stride), (j, a.columns.stride))
            total = (
                element_of_a * factor
                if total is None
                else language.fma(element_of_a, factor, total)
            )
        total = alpha.applied(call, s, total)
        if beta != 0:
            old = element(addend or c.pointer, (i, c.rows.stride))
            total = total + (old if beta == 1 else old * language.constant(beta, dtype))
        results.append(total)
    for i, value in enumerate(results):
        write(s, _element_address(call, s, c.pointer, [(i, c.rows.stride)], dtype), value)


def _element_address(
    call: KernelCall, s: Section, pointer: Name, indices: Sequence[Any], dtype: Dtype
) -> Name:
    distance = "0"
    for i, stride in indices:
        distance = s.plus(distance, s.times(str(i), call.number(stride)))
    return offset(s, pointer, distance, dtype)


# ---- batches of small matrices -------------------------------------------------------------------


def batched_small_gemm(
    call: KernelCall,
    operands: Sequence[Subscripts],
    result: Subscripts,
    epilogue: Epilogue = PLAIN,
) -> None:
    """Write the products; the addend does not overlap the result."""
    alpha, beta, addend = epilogue
    batch = batch_subscripts(operands, result)
    dtype = F32 if result.array.dtype == F16 else result.array.dtype
    axes = [[c for c in w.labels if c not in batch] for w in (*operands, result)]
    contracted = list(dict.fromkeys(c for labels in axes[:2] for c in labels if c not in axes[2]))
    lengths: dict[str, Any] = {c: length_of(operands, c) for c in [*axes[2], *contracted]}
    arrays, cores = [*operands, result], axes
    if addend is not None:
        arrays, cores = [*operands, addend, result], [axes[0], axes[1], axes[2], axes[2]]
    batches = [
        (arranged(w, [*batch, *core]), len(core)) for w, core in zip(arrays, cores, strict=True)
    ]
    if alpha.pointer is not None:
        batches.insert(0, (alpha.pointer, 0))
    first, last = len(batches) - len(arrays), len(batches) - 1

    def write(block: Block) -> None:
        language = call.language
        factors: list[dict[tuple[int, ...], Any]] = [
            {
                index: language.cast(block.read(first + k, *index), dtype)
                for index in product(*(range(lengths[c]) for c in axes[k]))
            }
            for k in (0, 1)
        ]
        values = {}
        for index in product(*(range(lengths[c]) for c in axes[2])):
            total: Any = None
            for summed in product(*(range(lengths[c]) for c in contracted)):
                indices = dict(zip([*axes[2], *contracted], [*index, *summed], strict=True))
                x, y = (factors[k][tuple(indices[c] for c in axes[k])] for k in (0, 1))
                if total is None:
                    total = x * y
                elif dtype.kind == "f":
                    total = language.fma(x, y, total)
                else:
                    total = total + x * y
            if alpha.pointer is not None:
                total = total * language.cast(block.read(0), dtype)
            if alpha.number != 1:
                total = total * language.constant(alpha.number, dtype)
            if beta != 0:
                old = language.cast(block.read(first + 2, *index), dtype)
                total = total + (old if beta == 1 else old * language.constant(beta, dtype))
            values[index] = total
        for index, value in values.items():
            block.write(last, value, *index)

    blocks(call, batches, dtype, write)


# ---- integers, booleans and float16 --------------------------------------------------------------


def simd_loops(call: KernelCall, s: Section, product: Product) -> None:
    """Write the product: integers wrap around, booleans are or of and, float16 sums in float32."""
    a, b, c, dtype, _, beta, _ = product
    m, n = call.number(c.rows.length), call.number(c.columns.length)
    k = call.number(a.columns.length)
    stored = U8 if dtype.kind == "b" else dtype
    sum_dtype = F32 if dtype == F16 else stored
    width = execution_engine.vector_bytes() // sum_dtype.itemsize
    packed = _Columns(call, width, sum_dtype, dtype, a.columns.length)
    with s.loop("0", n, str(width)) as (t, j0):
        count = t.smaller(str(width), t.minus(n, j0))
        packed.fill(t, b, j0, count, k)
        with t.loop("0", m) as (u, i):
            total = packed.sums(u, a, i, k)
            u.write(f"store {total.kind} {total.name}, ptr {packed.row}")
            with u.loop("0", count) as (v, j):
                total_j = read(call.language, v, offset(v, packed.row, j, sum_dtype), sum_dtype)
                distance = v.plus(
                    v.times(i, call.number(c.rows.stride)),
                    v.times(v.plus(j0, j), call.number(c.columns.stride)),
                )
                target = offset(v, c.pointer, distance, stored)
                if beta:
                    old = call.language.cast(_read(call, v, target, stored), sum_dtype)
                    total_j = old | total_j if dtype.kind == "b" else old + total_j
                write(v, target, call.language.cast(total_j, stored))


def _read(call: KernelCall, s: Section, pointer: Name, dtype: Dtype) -> Any:
    return read(call.language, s, pointer, dtype)


class _Columns:
    """A vector of columns of b, packed in the dtype of the sums; 0 beyond the last column."""

    def __init__(
        self, call: KernelCall, width: int, sum_dtype: Dtype, dtype: Dtype, depth: Length
    ) -> None:
        self.call, self.width, self.sum_dtype = call, width, sum_dtype
        self.is_boolean = dtype.kind == "b"
        self.stored = U8 if self.is_boolean else dtype
        self.kind = of_width(in_memory(sum_dtype), width)
        self.memory = call.scratch(depth * (width * sum_dtype.itemsize))
        self.row = call.function.slot(self.kind)
        self.sum = call.function.slot(self.kind)

    def fill(self, s: Section, b: Matrix, start: Name, count: Name, k: Name) -> None:
        """Pack the columns from `start` on."""
        call = self.call
        with nest(s, [k, str(self.width)]) as (t, (p, j)):
            target = offset(t, self.memory, t.plus(t.times(p, str(self.width)), j), self.sum_dtype)
            inside = t.value(f"icmp slt i64 {j}, {count}")
            write(t, target, call.language.constant(0, self.sum_dtype))
            with t.when(inside) as u:
                distance = u.plus(
                    u.times(p, call.number(b.rows.stride)),
                    u.times(u.plus(start, j), call.number(b.columns.stride)),
                )
                value = _read(call, u, offset(u, b.pointer, distance, self.stored), self.stored)
                write(u, target, call.language.cast(value, self.sum_dtype))

    def sums(self, s: Section, a: Matrix, i: Name, k: Name) -> Lane:
        """The products of a row of a with each of the columns."""
        call, kind = self.call, self.kind
        language = call.language
        s.write(f"store {kind} zeroinitializer, ptr {self.sum}")
        with s.loop("0", k) as (t, p):
            distance = t.plus(
                t.times(i, call.number(a.rows.stride)), t.times(p, call.number(a.columns.stride))
            )
            element_of_a = language.cast(
                _read(call, t, offset(t, a.pointer, distance, self.stored), self.stored),
                self.sum_dtype,
            )
            pointer = offset(t, self.memory, t.times(p, str(self.width)), self.sum_dtype)
            align = self.sum_dtype.itemsize
            packed = t.value(f"load {kind}, ptr {pointer}, align {align}")
            old = t.value(f"load {kind}, ptr {self.sum}")
            total = Lane(language, t, old, self.sum_dtype, self.width)
            columns = Lane(language, t, packed, self.sum_dtype, self.width)
            new = (
                total | (element_of_a & columns)
                if self.is_boolean
                else total + element_of_a * columns
            )
            t.write(f"store {kind} {new.name}, ptr {self.sum}")
        return Lane(
            language, s, s.value(f"load {kind}, ptr {self.sum}"), self.sum_dtype, self.width
        )

"""Matrix products for dtypes that BLAS does not have.

run         integers, booleans and float16, in vectors over packed columns of b
_Columns    packed columns of b, and the products of a row of a with them
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.symbolic.dim import Length

from ...ir import execution_engine
from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import F16, F32, Dtype, in_memory, of_width
from ...ir.simd_value import Lane
from ..kernel_call import KernelCall
from ..loop_helpers import nest, offset, read, write
from .operands import Matrix, Product

_U8 = np.dtype(np.uint8)


def run(call: KernelCall, s: Section, product: Product) -> None:
    """Write the product: integers wrap around, booleans are or of and, float16 sums in float32."""
    a, b, c, dtype, _, beta, _ = product
    m, n = call.number(c.rows.length), call.number(c.columns.length)
    k = call.number(a.columns.length)
    stored = _U8 if dtype.kind == "b" else dtype
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
        self.stored = _U8 if self.is_boolean else dtype
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

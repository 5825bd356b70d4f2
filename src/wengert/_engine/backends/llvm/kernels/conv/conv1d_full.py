"""Convolution and correlation of two sequences.

    slide       s_i = sum_k x_{i+k} v_k
    convolve    c_i = sum_k x_{i-k} v_k

Where all of v overlaps x, neighboring sums are computed in SIMD vectors; at the ends of a
convolution, where only a part of it does, one by one.  x is not padded with zeros, since 0 * inf is
NaN.
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core.node import Node

from ...ir import execution_engine
from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import F16, F32
from ...ir.memory_access import load, store
from ..kernel_call import KernelCall, kernel
from ..loop_helpers import address, offset, read, stack_slot, write

_VECTORS = 4  # independent sums, to hide the latency of additions


def _is_not_boolean(node: Node) -> bool:
    return bool(node.spec.dtype.kind != "b")


@kernel("slide", strided=True, serves=_is_not_boolean)
def slide(call: KernelCall) -> None:
    """s_i = sum_k x_{i+k} v_k."""
    sums = _Sums(call, backwards=False)
    sums.full_sums(call.section, "0", call.number(call.results[0].shape[0]))


@kernel("convolve", strided=True, serves=_is_not_boolean)
def convolve(call: KernelCall) -> None:
    """c_i = sum_k x_{i-k} v_k, for all i where they overlap."""
    sums, s = _Sums(call, backwards=True), call.section
    x, v = call.operands
    n, k = call.number(x.shape[0]), call.number(v.shape[0])
    count = call.number(call.results[0].shape[0])
    first = s.minus(k, "1")
    last = s.larger(first, n)
    sums.partial_sums(s, "0", first)
    sums.full_sums(s, first, n)
    sums.partial_sums(s, last, count)


class _Sums:
    """The sums of one call.

    Parameters
    ----------
    backwards : bool
        Whether x is read at i - k, and not at i + k.
    """

    def __init__(self, call: KernelCall, backwards: bool) -> None:
        self.call, self.backwards = call, backwards
        self.x, self.v = call.operands
        (self.y,) = call.results
        self.sum_dtype = F32 if self.y.dtype == F16 else self.y.dtype  # rounded once, at the end
        self.cell = stack_slot(call, self.sum_dtype)
        self.n, self.k = call.number(self.x.shape[0]), call.number(self.v.shape[0])

    def _index(self, s: Section, i: Name, k: Name) -> Name:
        return s.minus(i, k) if self.backwards else s.plus(i, k)

    def partial_sums(self, s: Section, start: Name, stop: Name) -> None:
        """The partial sums at the ends of a convolution, one by one."""
        call, language, sum_dtype = self.call, self.call.language, self.sum_dtype
        with s.loop(start, stop) as (t, i):
            write(t, self.cell, language.constant(0, sum_dtype))
            low, high = "0", self.k
            if self.backwards:
                low = t.larger("0", t.plus(t.minus(i, self.n), "1"))
                high = t.smaller(self.k, t.plus(i, "1"))
            with t.loop(low, high) as (u, k):
                factors = []
                for array, index in ((self.x, self._index(u, i, k)), (self.v, k)):
                    value = read(language, u, address(call, u, array, [index]), array.dtype)
                    factors.append(language.cast(value, sum_dtype))
                write(
                    u, self.cell, _multiply_add(read(language, u, self.cell, sum_dtype), *factors)
                )
            total = language.cast(read(language, t, self.cell, sum_dtype), self.y.dtype)
            write(t, address(call, t, self.y, [i]), total)

    def full_sums(self, s: Section, start: Name, stop: Name) -> None:
        """Sums over the whole of v, in vectors if x is contiguous."""
        if self.x.strides != (1,) or self.y.strides != (1,):
            self.partial_sums(s, start, stop)
            return
        call, language, sum_dtype, x = self.call, self.call.language, self.sum_dtype, self.x
        width = _VECTORS * execution_engine.vector_bytes() // sum_dtype.itemsize
        memory = call.scratch(width * sum_dtype.itemsize)
        steps = s.value(f"sdiv i64 {s.larger(s.minus(stop, start), '0')}, {width}")
        middle = s.plus(start, s.times(steps, str(width)))
        with s.loop(start, middle, str(width)) as (t, i):
            zero = language.constant(0, sum_dtype)
            store(language, t, memory, _in_all_lanes(language, zero, width), width, None)
            with t.loop("0", self.k) as (u, k):
                pointer = offset(u, x.pointer, self._index(u, i, k), x.dtype)
                x_value = language.cast(load(language, u, pointer, x.dtype, width, None), sum_dtype)
                pointer = address(call, u, self.v, [k])
                v_value = language.cast(read(language, u, pointer, self.v.dtype), sum_dtype)
                total = _multiply_add(
                    load(language, u, memory, sum_dtype, width, None), x_value, v_value
                )
                store(language, u, memory, total, width, None)
            result = language.cast(load(language, t, memory, sum_dtype, width, None), self.y.dtype)
            store(language, t, offset(t, self.y.pointer, i, self.y.dtype), result, width, None)
        self.partial_sums(s, middle, stop)


def _in_all_lanes(language: Any, x: Any, width: int) -> Any:
    """A constant, in all lanes of a vector."""
    if x.dtype.kind != "c":
        return language.widened(x, width)
    real, imag = (language.widened(p, width) for p in (x.real, x.imag))
    return type(x)(language, real, imag, x.dtype)


def _multiply_add(total: Any, x: Any, y: Any) -> Any:
    """total + x * y."""
    language = total.language
    if total.dtype.kind == "f":
        return language.fma(x, y, total)
    return total + x * y

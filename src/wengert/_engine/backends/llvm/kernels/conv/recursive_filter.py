"""Recursive (IIR) filters: signal.lfilter as loops.

    y_n = (sum_k b_k x_{n-k} - sum_{k>0} a_k y_{n-k}) / a_0

In transposed direct form II, as in SciPy: the state contains the contributions of earlier samples,
so each step reads one sample, writes one, and updates the state.  Coefficients are divided by a_0
first, and padded with zeros to a common length.
"""

from __future__ import annotations

from typing import Any

from ...ir.ir_builder import Name, Section
from ...ir.llvm_types import F16
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..loop_helpers import address, in_section, nest, offset, read, write


@kernel(
    "signal.lfilter",
    strided=True,
    serves=lambda node: node.spec.dtype.kind in "fc" and node.spec.dtype != F16,
)
def lfilter(call: KernelCall) -> None:
    """Filter along the last axis, from a state of zeros."""
    (b, a, x), (y,) = call.operands, call.results
    language, s, dtype = call.language, call.section, y.dtype
    count = s.larger(call.number(b.shape[0]), call.number(a.shape[0]))
    size = (b.shape[0] + a.shape[0]) * dtype.itemsize  # at least count + 1 elements
    first = language.cast(read(language, s, a.pointer, a.dtype), dtype)
    numerator, denominator = (
        _divided(call, s, c, call.scratch(size), count, first) for c in (b, a)
    )
    state = call.scratch(size)
    last = s.minus(count, "1")
    lengths = [call.number(n) for n in y.shape[:-1]]
    with nest(s, lengths) as (t, indices):
        source = address(call, t, x, [*indices, "0"])
        target = address(call, t, y, [*indices, "0"])
        with t.loop("0", count) as (u, k):
            write(u, offset(u, state, k, dtype), language.constant(0, dtype))
        with t.loop("0", call.number(y.shape[-1])) as (u, n):
            pointer = offset(u, source, u.times(n, call.number(x.strides[-1])), x.dtype)
            new = language.cast(read(language, u, pointer, x.dtype), dtype)
            out = _added(
                _scaled(call, u, numerator, "0", dtype, new), read(language, u, state, dtype)
            )
            write(u, offset(u, target, u.times(n, call.number(y.strides[-1])), dtype), out)
            with u.loop("0", last) as (v, k):
                next_index = v.plus(k, "1")
                next_state = read(language, v, offset(v, state, next_index, dtype), dtype)
                input_term = _scaled(call, v, numerator, next_index, dtype, new)
                output_term = _scaled(call, v, denominator, next_index, dtype, out)
                total = _added(input_term, next_state) - output_term
                write(v, offset(v, state, k, dtype), total)


def _added(x: Any, y: Any) -> Any:
    return x + y


def _scaled(call: KernelCall, s: Section, c: Name, k: Name, dtype: Any, x: Any) -> Any:
    """A coefficient times a value."""
    language = call.language
    return read(language, s, offset(s, c, k, dtype), dtype) * in_section(s, x)


def _divided(
    call: KernelCall, s: Section, c: ArrayPointer, into: Name, count: Name, first: Any
) -> Name:
    """Coefficients in the dtype of the result, divided, and padded with zeros."""
    language, dtype = call.language, first.dtype
    length = call.number(c.shape[0])
    with s.loop("0", length) as (t, k):
        value = language.cast(read(language, t, address(call, t, c, [k]), c.dtype), dtype)
        write(t, offset(t, into, k, dtype), value / in_section(t, first))
    with s.loop(length, count) as (t, k):
        write(t, offset(t, into, k, dtype), language.constant(0, dtype))
    return into

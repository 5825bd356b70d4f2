"""Convolutions along any number of axes: signal.convolve and signal.slide.

    signal.convolve    y_i = sum_k x_{i-k} v_k, for all i where they overlap
    signal.slide       y_i = sum_k x_{i+k} v_k, where v fits

For each element of v, x times that element is added to the result, row by row, so that the
innermost loop has no condition.  There is no padding with zeros: 0 * inf is NaN.
"""

from __future__ import annotations

from wengert._engine.core.node import Node

from ...ir.ir_builder import Name
from ...ir.llvm_types import F16
from ..kernel_call import KernelCall, kernel
from ..loop_helpers import address, clear, in_section, nest, offset, read, size_of, write


def _serves(node: Node) -> bool:
    return node.spec.dtype.kind in "fc" and node.spec.dtype != F16


@kernel("signal.convolve", strided=True, serves=_serves)
def convolve(call: KernelCall) -> None:
    """Each product of elements is added at the sum of their positions."""
    _accumulate(call, [call.number(n) for n in call.operands[0].shape], to_result=True)


@kernel("signal.slide", strided=True, serves=_serves)
def slide(call: KernelCall) -> None:
    """Each sum has the products of v with the elements of x at its position."""
    _accumulate(call, [call.number(n) for n in call.results[0].shape], to_result=False)


def _accumulate(call: KernelCall, lengths: list[Name], to_result: bool) -> None:
    """Add all products: element k of v shifts the index into the result, or into x, by k."""
    (x, v), (y,) = call.operands, call.results
    language, dtype = call.language, y.dtype
    clear(call, call.section, y.pointer, size_of(y), dtype)
    with nest(call.section, [call.number(n) for n in v.shape]) as (s, k):
        factor = language.cast(read(language, s, address(call, s, v, k), v.dtype), dtype)
        with nest(s, lengths[:-1]) as (t, i):
            shifted = [t.plus(a, b) for a, b in zip(i, k, strict=False)]
            shifted_index, plain_index = ([*shifted, k[-1]], [*i, "0"])
            target = address(call, t, y, shifted_index if to_result else plain_index)
            source = address(call, t, x, plain_index if to_result else shifted_index)
            steps = [call.number(a.strides[-1]) for a in (x, y)]
            with t.loop("0", lengths[-1]) as (u, j):
                start = offset(u, source, u.times(j, steps[0]), x.dtype)
                x_value = language.cast(read(language, u, start, x.dtype), dtype)
                pointer = offset(u, target, u.times(j, steps[1]), dtype)
                product = x_value * in_section(u, factor)
                write(u, pointer, read(language, u, pointer, dtype) + product)

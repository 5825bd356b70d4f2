"""Checks: a value is copied, and the kernel fails if a condition does not hold everywhere.

    accepted          one pass over the condition, one over the value
    refuse_residual   the same, for a comparison of two numbers
    bracketed         the same, for signs of numbers and NaN

The interpreter then runs the graph, and the operation that rejects the value raises its error.
"""

from __future__ import annotations

from wengert._engine.core.node import DiscreteLeaf

from ..ir.llvm_types import F32, F64, in_register
from .kernel_call import KernelCall, kernel
from .loop_helpers import address, copy, nest, read


@kernel("accepted", strided=True)
def accepted(call: KernelCall) -> None:
    """x, if all of `holds` is true."""
    (x, holds), (y,) = call.operands, call.results
    s = call.section
    with nest(s, [call.number(n) for n in holds.shape]) as (t, index):
        flag = t.value(f"load i8, ptr {address(call, t, holds, index)}")
        call.fail_if(t.value(f"icmp eq i8 {flag}, 0"), 1, t)
    copy(call, s, y, x)


def _is_real(node: DiscreteLeaf) -> bool:
    _, size, limit = [a.spec for a in node.inputs]
    return bool(size == limit and size.dtype in (F32, F64))


@kernel("refuse_residual", strided=True, serves=_is_real)
def refuse_residual(call: KernelCall) -> None:
    """y, if no size is above its limit or NaN."""
    (y, size, limit), (result,) = call.operands, call.results
    s = call.section
    with nest(s, [call.number(n) for n in size.shape]) as (t, index):
        found, most = (
            read(call.language, t, address(call, t, x, index), x.dtype) for x in (size, limit)
        )
        kind = in_register(size.dtype)
        call.fail_if(t.value(f"fcmp ugt {kind} {found.name}, {most.name}"), 1, t)
    copy(call, s, result, y)


def _are_doubles(node: DiscreteLeaf) -> bool:
    first, second, third = [a.spec for a in node.inputs[1:]]
    return bool(first == second == third and first.dtype == F64)


@kernel("bracketed", strided=True, serves=_are_doubles)
def bracketed(call: KernelCall) -> None:
    """x, if the function has different signs at both ends, or is zero, and nowhere NaN."""
    (x, *values), (result,) = call.operands, call.results
    s = call.section
    with nest(s, [call.number(n) for n in values[0].shape]) as (t, index):
        fa, fb, last = (
            read(call.language, t, address(call, t, y, index), y.dtype).name for y in values
        )
        for y in (fa, fb, last):
            call.fail_if(t.value(f"fcmp uno double {y}, 0.0"), 1, t)
        bits = [t.value(f"bitcast double {y} to i64") for y in (fa, fb)]
        equal = t.value(f"icmp sge i64 {t.value(f'xor i64 {bits[0]}, {bits[1]}')}, 0")
        nonzero = [t.value(f"fcmp une double {y}, 0.0") for y in (fa, fb)]
        both = t.value(f"and i1 {nonzero[0]}, {nonzero[1]}")
        call.fail_if(t.value(f"and i1 {equal}, {both}"), 1, t)
    copy(call, s, result, x)

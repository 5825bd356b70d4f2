"""Checks: kernels that fail if a condition does not hold, and scans for NaN and infinities.

    accepted           one pass over the condition, one over the value
    refuse_residual    the same, for a comparison of two numbers
    bracketed          the same, for signs of numbers and NaN
    any_of             whether an array contains NaN
    any_not_finite     whether an array contains NaN or infinities

The interpreter then runs the graph, and the operation that rejects the value raises its error.

A product with strong zeros is computed like any other and then scanned: without NaN it is correct.
The scan takes a few percent of the time of the product; a scalar loop takes nearly as long as the
product itself.  So it is if the factors that zeros are multiplied by are finite, which takes less
time to find out for a product of two long vectors.
"""

from __future__ import annotations

from wengert._engine.core.node import DiscreteLeaf

from ..ir import execution_engine
from ..ir.ir_builder import Function, ModuleBuilder, Name, Section
from ..ir.llvm_types import F32, F64, Dtype, in_memory, in_register, of_width, part_of
from .kernel_call import ArrayPointer, KernelCall, kernel
from .loop_helpers import address, copy, nest, read, size_of


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


_UNROLL = 4  # vectors per iteration: one instruction tests two of them


def any_of(call: KernelCall, s: Section, array: ArrayPointer) -> Name:
    """Whether an array in C order contains NaN in any part, an i1."""
    return _scanned(call, s, array, False)


def any_not_finite(call: KernelCall, s: Section, array: ArrayPointer) -> Name:
    """Whether an array in C order contains NaN or an infinity in any part, an i1."""
    return _scanned(call, s, array, True)


def _scanned(call: KernelCall, s: Section, array: ArrayPointer, infinities: bool) -> Name:
    part = part_of(array.dtype)
    count = s.times(call.number(size_of(array)), "2" if array.dtype.kind == "c" else "1")
    function = _scan_function(call.module, part, infinities)
    return s.value(f"call i1 @{function}(ptr {array.pointer}, i64 {count})")


def _scan_function(module: ModuleBuilder, dtype: Dtype, infinities: bool) -> str:
    name = f"{'infinite' if infinities else 'undefined'}.{dtype.str[1:]}"
    if name in module:
        return name
    kind, width = in_memory(dtype), execution_engine.vector_bytes() // dtype.itemsize
    vector, flags = of_width(kind, width), of_width("i1", width)
    function = Function(module, name, [("ptr", "x"), ("i64", "n")], "i1", "noinline nounwind #1")
    body = function.body
    any_nan = function.slot("i1")
    body.write(f"store i1 false, ptr {any_nan}")
    step = width * _UNROLL
    full = body.value(f"and i64 %n, {-step}")
    with body.loop("0", full, str(step)) as (s, i):
        first = s.value(f"getelementptr {kind}, ptr %x, i64 {i}")
        lanes = []
        for k in range(_UNROLL):
            pointer = s.value(f"getelementptr {vector}, ptr {first}, i64 {k}")
            lane = s.value(f"load {vector}, ptr {pointer}, align {dtype.itemsize}")
            lanes.append(_nan_if_infinite(s, vector, lane) if infinities else lane)
        pairs = [
            s.value(f"fcmp uno {vector} {lanes[k]}, {lanes[k + 1]}") for k in range(0, _UNROLL, 2)
        ]
        both = s.value(f"or {flags} {pairs[0]}, {pairs[1]}")
        _update(s, any_nan, s.any_lane(both, width))
    with body.loop(full, "%n") as (s, i):
        pointer = s.value(f"getelementptr {kind}, ptr %x, i64 {i}")
        element = s.value(f"load {kind}, ptr {pointer}")
        element = _nan_if_infinite(s, kind, element) if infinities else element
        _update(s, any_nan, s.value(f"fcmp uno {kind} {element}, {element}"))
    body.write(f"ret i1 {body.value(f'load i1, ptr {any_nan}')}")
    module.add(function)
    return name


def _nan_if_infinite(s: Section, kind: str, x: Name) -> Name:
    """The difference of a number and itself: zero, or NaN if it is not finite."""
    return s.value(f"fsub {kind} {x}, {x}")


def _update(s: Section, cell: Name, flag: Name) -> None:
    before = s.value(f"load i1, ptr {cell}")
    s.write(f"store i1 {s.value(f'or i1 {before}, {flag}')}, ptr {cell}")

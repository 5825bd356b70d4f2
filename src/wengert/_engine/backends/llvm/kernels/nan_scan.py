"""NaN scan: whether an array contains NaN, or infinities, in vectors.

A product with strong zeros is computed like any other and then scanned: without NaN it is correct.
The scan takes a few percent of the time of the product; a scalar loop takes nearly as long as the
product itself.  So it is if the factors that zeros are multiplied by are finite, which takes less
time to find out for a product of two long vectors.

any_of            whether an array contains NaN
any_not_finite    whether an array contains NaN or infinities
"""

from __future__ import annotations

from ..ir import execution_engine
from ..ir.ir_builder import Function, ModuleBuilder, Name, Section
from ..ir.llvm_types import Dtype, in_memory, of_width, part_of
from .kernel_call import ArrayPointer, KernelCall
from .loop_helpers import size_of

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

"""Writes to computed positions on a device, in the order of the host.

The positions are sorted, with equal ones in their order, so each element of the result has a
segment of the values: a thread adds them one after the other, or takes the last. No atomic
operations: the same bits as on the host, in each run.

    scattered    the result of `scatter`, `scatter_add` or `setitem`
    scattered_along    that of `scatter_along`
    added_at    values added to elements with these numbers; numbers_of, serves
    written      several stores at known positions, one after the other
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from wengert._engine.ops.indexing.template import IndexSlot, join_index

from ..llvm.ir.ir_builder import Function, ModuleBuilder, Name, Section
from .device import Device
from .kernel_codegen import DeviceKernel
from .loaded_kernels import element_kernel, launch_of

_KINDS = {"f4": "float", "f8": "double", "c8": "float", "c16": "double"} | {
    f"{kind}{size}": f"i{8 * size}" for kind in "iu" for size in (1, 2, 4, 8)
}


class OutOfRange(Exception):
    """An index is out of range; the interpreter raises the error."""


def scattered(name: str, device: Device, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """The result of an operation; NotImplemented for dtypes without a kernel."""
    adds = name != "setitem"
    base, (t, *given) = (None, operands) if name == "scatter" else (operands[0], operands[1:])
    shape = tuple(params["shape"]) if base is None else np.shape(base)
    dtype = np.result_type(t) if base is None else base.dtype
    if dtype.str[1:] not in _KINDS or not all(map(device.owns, given)) or not shape:
        return NotImplemented
    indices = [device.put(x) for x in given]
    _check(device, params["index"], indices, shape)
    numbers = numbers_of(device, shape)
    chosen = device.put(numbers[join_index(params["index"], indices)])
    values = np.broadcast_to(device.put(t).astype(dtype), chosen.shape).reshape(-1)
    base = None if base is None else device.contiguous(device.put(base))
    return added_at(device, base, values, chosen.reshape(-1), shape, adds)


def scattered_along(
    name: str, device: Device, operands: Sequence[Any], params: dict[str, Any]
) -> Any:
    """The result of `scatter_along`: values added at positions along an axis."""
    t, positions = map(device.put, operands)
    shape, own = tuple(params["shape"]), params["of_op"]
    if t.dtype.str[1:] not in _KINDS:
        return NotImplemented
    axis = own["axis"] % len(shape)
    n = shape[axis]
    if positions.size and bool(np.any((positions < -n) | (positions >= n))):
        raise OutOfRange
    chosen = np.take_along_axis(numbers_of(device, shape), positions, axis).reshape(-1)
    return added_at(device, None, t.reshape(-1), chosen, shape, True)


def serves(dtype: np.dtype[Any]) -> bool:
    """Whether there is a kernel for values of a dtype."""
    return dtype.str[1:] in _KINDS


def numbers_of(device: Device, shape: tuple[int, ...]) -> Any:
    """The number of each element."""
    like = device.empty((0,), np.dtype(np.int64))
    return np.arange(math.prod(shape), like=like).reshape(shape)


def added_at(
    device: Device, base: Any, values: Any, positions: Any, shape: tuple[int, ...], adds: bool
) -> Any:
    """Values added to elements of an array, or stored there, in their order."""
    dtype, size = values.dtype, math.prod(shape)
    like = device.empty((0,), np.dtype(np.int64))
    order = np.argsort(positions, kind="stable").astype(np.int64)
    starts = np.searchsorted(positions[order], np.arange(size + 1, like=like)).astype(np.int64)
    out = device.empty(shape, dtype)
    before = out if base is None else base
    parts = 2 if dtype.kind == "c" else 1
    full = f"segments_{dtype.str[1:]}_{int(adds)}{int(base is not None)}"
    make = partial(_kernel, full, _KINDS[dtype.str[1:]], adds, base is not None, parts)
    launch = launch_of(device, full, make)
    if size:
        arrays = [device.contiguous(x) for x in (values, order, starts)]
        launch([*arrays, before, out, np.int64(size * parts)], size * parts)
    return out


def written(name: str, device: Device, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """An array with values stored into it in order (lowering/scatter_chains.py)."""
    values = list(operands)
    if params["from_zero"]:
        out = device.empty(tuple(params["shape"]), params["dtype"])
        out[...] = 0
    else:
        out = device.put(values.pop(0)).copy()
    for value, (index, adds) in zip(values, params["writes"], strict=True):
        value = device.put(value).astype(out.dtype)
        out[index] = out[index] + value if adds else value
    return out


def _check(device: Device, index: Any, arrays: Sequence[Any], shape: tuple[int, ...]) -> None:
    """Compare index arrays with the axes that they index."""
    template = index if isinstance(index, tuple) else (index,)
    used = sum(_axes(part, arrays) for part in template)
    axis = 0
    for part in template:
        if part is Ellipsis:
            axis += len(shape) - used
            continue
        if isinstance(part, IndexSlot) and arrays[part.k].dtype.kind != "b":
            x, n = arrays[part.k], shape[axis]
            if x.size and bool(np.any((x < -n) | (x >= n))):
                raise OutOfRange
        axis += _axes(part, arrays)


def _axes(part: Any, arrays: Sequence[Any]) -> int:
    """How many axes a part of an index takes."""
    if part is None or part is Ellipsis:
        return 0
    if isinstance(part, IndexSlot) and arrays[part.k].dtype.kind == "b":
        return int(arrays[part.k].ndim)
    return 1


def _kernel(full: str, kind: str, adds: bool, has_base: bool, parts: int) -> DeviceKernel:
    arguments = [("ptr", n) for n in ("values", "order", "starts", "before", "out")]
    return element_kernel(full, arguments, partial(_segment, kind, adds, has_base, parts))


def _segment(
    kind: str,
    adds: bool,
    has_base: bool,
    parts: int,
    module: ModuleBuilder,
    function: Function,
    s: Section,
    element: Name,
) -> None:
    """Write one element: the sum of its segment, or the last value of it."""

    def at(section: Section, array: Name, index: Name, type_: str) -> Name:
        return section.value(f"getelementptr {type_}, ptr {array}, i64 {index}")

    place, part = element, "0"
    if parts == 2:
        place, part = s.value(f"lshr i64 {element}, 1"), s.value(f"and i64 {element}, 1")
    start = s.value(f"load i64, ptr {at(s, '%starts', place, 'i64')}")
    after = s.value(f"add i64 {place}, 1")
    stop = s.value(f"load i64, ptr {at(s, '%starts', after, 'i64')}")
    zero = "0" if kind.startswith("i") else "0.0"
    first = zero
    if has_base:
        first = s.value(f"load {kind}, ptr {at(s, '%before', element, kind)}")
    total = function.slot(kind)
    s.write(f"store {kind} {first}, ptr {total}")
    begin = start
    if not adds:  # the last value only
        last = s.value(f"sub i64 {stop}, 1")
        begin = s.larger(start, last)
    with s.loop(begin, stop) as (inner, k):
        which = inner.value(f"load i64, ptr {at(inner, '%order', k, 'i64')}")
        index = inner.plus(inner.times(which, str(parts)), part)
        value = inner.value(f"load {kind}, ptr {at(inner, '%values', index, kind)}")
        if adds:
            now = inner.value(f"load {kind}, ptr {total}")
            value = inner.value(f"{'add' if zero == '0' else 'fadd'} {kind} {now}, {value}")
        inner.write(f"store {kind} {value}, ptr {total}")
    s.write(
        f"store {kind} {s.value(f'load {kind}, ptr {total}')}, ptr {at(s, '%out', element, kind)}"
    )

"""Arrays that consist of others: concatenation, shifts, and chains of stores.

    stack, concatenate    copy each operand to its position
    roll                  for shifts that are known only at run time
    writes                several stores into one array, which is copied at most once

A few arrays are concatenated in the loop that reads the result (lowering/).  Many are copied here,
each once, so the work is proportional to the size of the result.

Single elements, of which unrolled loops store many, are stored in a loop over a table of addresses
and offsets; slices one after the other, as in scatter.py, several of them by functions of the
module, since the code of a loop for each is a tenth of a large program.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from wengert._engine.core.node import Node
from wengert._engine.core.symbolic.dim import Length

from ..ir.index_analysis import moves_of
from ..ir.ir_builder import Name, Section
from ..ir.llvm_types import BOOL, Dtype
from ..ir.simd_value import Lane
from .kernel_call import ArrayPointer, KernelCall, kernel
from .loop_helpers import address, clear, copy, copy_unless_same, nest, offset, read, size_of, write
from .scatter import store_at_index


@kernel("stack", strided=True)
def stack(call: KernelCall) -> None:
    """Each operand at its position along a new axis."""
    (z,) = call.results
    axis = call.params["axis"] % len(z.shape)
    strides = (*z.strides[:axis], *z.strides[axis + 1 :])
    _copy_all(call, z, strides, z.strides[axis], [1] * len(call.operands))


@kernel("concatenate", strided=True)
def concatenate(call: KernelCall) -> None:
    """The operands one after the other."""
    (z,) = call.results
    axis = call.params["axis"] % len(z.shape)
    _copy_all(call, z, z.strides, z.strides[axis], [x.shape[axis] for x in call.operands])


def _copy_all(
    call: KernelCall,
    z: ArrayPointer,
    strides: Sequence[Length],
    stride: Length,
    lengths: Sequence[Length],
) -> None:
    """Copy the operands one after the other.

    Consecutive operands of the same shape, strides and dtype share a loop over their addresses.
    """
    start: Length = 0
    pairs = zip(call.operands, lengths, strict=True)
    for (shape, steps, dtype, length), group in itertools.groupby(
        pairs, lambda pair: (*pair[0][1:], pair[1])
    ):
        pointers = [x.pointer for x, _ in group]
        s = call.section
        table = call.function.slot(f"[{len(pointers)} x ptr]", 8)
        for n, pointer in enumerate(pointers):
            cell = s.value(f"getelementptr ptr, ptr {table}, i64 {n}")
            s.write(f"store ptr {pointer}, ptr {cell}")
        first = offset(s, z.pointer, call.number(start * stride), z.dtype)
        with s.loop("0", str(len(pointers))) as (t, k):
            pointer = t.value(
                f"load ptr, ptr {t.value(f'getelementptr ptr, ptr {table}, i64 {k}')}"
            )
            distance = t.times(k, call.number(length * stride))
            target = ArrayPointer(
                offset(t, first, distance, z.dtype), shape, tuple(strides), z.dtype
            )
            copy(call, t, target, ArrayPointer(pointer, shape, steps, dtype))
        start = start + length * len(pointers)


def _is_static(node: Node) -> bool:
    shift, axis = node.params["shift"], node.params.get("axis")
    return moves_of(shift, axis) is not None and (axis is not None or node.spec.ndim == 1)


@kernel("roll", strided=True, serves=_is_static)
def roll(call: KernelCall) -> None:
    """A cyclic shift along axes."""
    (x,), (z,) = call.operands, call.results
    moves = moves_of(call.params["shift"], call.params.get("axis"))
    assert moves is not None
    shifts: dict[int, int] = {}
    for a, n in moves:
        k = a % len(x.shape)
        shifts[k] = shifts.get(k, 0) + n
    s = call.section
    starts = {k: _start(s, call.number(x.shape[k]), n) for k, n in shifts.items()}
    with nest(s, [call.number(n) for n in z.shape]) as (t, indices):
        source = [
            _wrapped(t, i, starts[k], call.number(x.shape[k])) if k in starts else i
            for k, i in enumerate(indices)
        ]
        value = read(call.language, t, address(call, t, x, source), x.dtype)
        write(t, address(call, t, z, indices), call.language.cast(value, z.dtype))


def _start(s: Section, n: Name, shift: int) -> Name:
    """The old position of the first element: -by, modulo the length n."""
    divisor = s.larger(n, "1")  # an empty axis must not divide by zero
    remainder = s.value(f"srem i64 {-shift}, {divisor}")
    negative = s.value(f"icmp slt i64 {remainder}, 0")
    return s.value(
        f"select i1 {negative}, i64 {s.value(f'add i64 {remainder}, {divisor}')}, i64 {remainder}"
    )


def _wrapped(s: Section, i: Name, start: Name, n: Name) -> Name:
    """The index i + start, modulo the length n."""
    index = s.value(f"add i64 {i}, {start}")
    wrapped = s.minus(index, n)
    is_beyond = s.value(f"icmp sge i64 {index}, {n}")
    return s.value(f"select i1 {is_beyond}, i64 {wrapped}, i64 {index}")


# ---- store chains --------------------------------------------------------------------------------


_SHARED = 4  # slices from which they are stored by functions that all of them call


def _has_base(params: Mapping[str, Any]) -> bool:
    return not params["from_zero"]


@kernel("writes", strided=True, updates=_has_base, unrolled=True)
def writes(call: KernelCall) -> None:
    """A copy of the first operand, or zeros, into which the other operands are stored in order.

    In place if the first operand has the memory of the result.
    """
    (z,) = call.results
    values = list(call.operands)
    if call.params["from_zero"]:
        clear(call, call.section, z.pointer, size_of(z), z.dtype)
    else:
        copy_unless_same(call, call.section, z, values.pop(0))
    stores = [
        (value, index, adds, _element_offset(index, z))
        for value, (index, adds) in zip(values, call.params["writes"], strict=True)
    ]
    for key, group in itertools.groupby(stores, _loop_key):
        stores_of_group = list(group)
        if key is None:
            shared = len(stores_of_group) >= _SHARED
            for value, index, adds, _ in stores_of_group:
                store_at_index(call, z, value, (), index, adds, shared)
        else:
            _single_elements(
                call, z, *zip(*[(v, p, adds) for v, _, adds, p in stores_of_group], strict=True)
            )


def _element_offset(index: Any, z: ArrayPointer) -> int | None:
    """The offset of the element that an index selects; None if it is not one element."""
    entries = index if isinstance(index, tuple) else (index,)
    if len(entries) != len(z.shape) or not all(type(i) is int for i in entries):
        return None
    total = 0
    for i, n, stride in zip(entries, z.shape, z.strides, strict=True):
        total += i % n * stride
    return total


def _loop_key(store: tuple[Any, ...]) -> Any:
    """The key of stores that share a loop; None for slices."""
    value, _, _, element_offset = store
    # `.str`, because numpy.dtype(float64) == None
    return None if element_offset is None or value.shape else value.dtype.str


def _single_elements(
    call: KernelCall,
    z: ArrayPointer,
    values: Sequence[ArrayPointer],
    places: Sequence[int],
    adds: Sequence[bool],
) -> None:
    """Store single elements in a loop; each replaces an element, or is added to it."""
    s, n = call.section, len(values)
    if n == 1:
        target = offset(s, z.pointer, str(places[0]), z.dtype)
        _store_element(call, s, target, values[0].pointer, values[0].dtype, z.dtype, adds[0])
        return
    pointers = call.function.slot(f"[{n} x ptr]", 8)
    for m, value in enumerate(values):
        cell = s.value(f"getelementptr ptr, ptr {pointers}, i64 {m}")
        s.write(f"store ptr {value.pointer}, ptr {cell}")
    offsets = _table(call, "places", "i64", places)
    flags = _table(call, "adds", "i1", [str(a).lower() for a in adds]) if len({*adds}) > 1 else ""
    with s.loop("0", str(n)) as (t, k):
        source = _entry(t, pointers, "ptr", k)
        target = offset(t, z.pointer, _entry(t, offsets, "i64", k), z.dtype)
        adding = Lane(call.language, t, _entry(t, flags, "i1", k), BOOL, 1) if flags else adds[0]
        _store_element(call, t, target, source, values[0].dtype, z.dtype, adding)


def _store_element(
    call: KernelCall,
    s: Section,
    target: Name,
    source: Name,
    value_dtype: Dtype,
    dtype: Dtype,
    adding: bool | Lane,
) -> None:
    """Store a value in place of an element, or add it to the element."""
    new = call.language.cast(read(call.language, s, source, value_dtype), dtype)
    if adding is not False:
        total = call.language.cast(read(call.language, s, target, dtype) + new, dtype)
        new = total if adding is True else call.language.where(adding, total, new)
    write(s, target, new)


def _table(call: KernelCall, what: str, kind: str, values: Sequence[object]) -> Name:
    """A constant array of the module."""
    title = f"{call.function.name}.{what}{call.function.number()}"
    listed = ", ".join(f"{kind} {v}" for v in values)
    return call.module.constant(title, f"[{len(values)} x {kind}]", f"[{listed}]")


def _entry(s: Section, table: Name, kind: str, k: Name) -> Name:
    cell = s.value(f"getelementptr {kind}, ptr {table}, i64 {k}")
    value: Name = s.value(f"load {kind}, ptr {cell}")
    return value

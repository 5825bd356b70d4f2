"""Store chains: many writes into one array, which is copied once.

Single elements, of which unrolled loops write many, are written in a loop over a table of addresses
and positions; slices one after the other, as in scatter.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from ..ir.ir_builder import Name, Section
from ..ir.llvm_types import BOOL, Dtype
from ..ir.simd_value import Lane
from .kernel_call import ArrayPointer, KernelCall, kernel
from .loop_helpers import clear, copy_apart, offset, read, size_of, write
from .scatter import at_index


def _has_base(params: Mapping[str, Any]) -> bool:
    return not params["from_zero"]


@kernel("writes", strided=True, updates=_has_base, unrolled=True)
def writes(call: KernelCall) -> None:
    """A copy of the first operand, or zeros, into which the others are written in their order.

    In place if the first operand is in the memory of the result.
    """
    (z,) = call.results
    values = list(call.operands)
    if call.params["from_zero"]:
        clear(call, call.section, z.pointer, size_of(z), z.dtype)
    else:
        copy_apart(call, call.section, z, values.pop(0))
    lines = [
        (value, index, adds, _place(index, z))
        for value, (index, adds) in zip(values, call.params["writes"], strict=True)
    ]
    for key, group in itertools.groupby(lines, _kind):
        some = list(group)
        if key is None:
            for value, index, adds, _ in some:
                at_index(call, z, value, (), index, adds)
        else:
            _singles(call, z, *zip(*[(v, p, adds) for v, _, adds, p in some], strict=True))


def _place(index: Any, z: ArrayPointer) -> int | None:
    """The offset of the element that an index selects; None if it is not one element."""
    entries = index if isinstance(index, tuple) else (index,)
    if len(entries) != len(z.shape) or not all(type(i) is int for i in entries):
        return None
    total = 0
    for i, n, stride in zip(entries, z.shape, z.strides, strict=True):
        total += i % n * stride
    return total


def _kind(line: tuple[Any, ...]) -> Any:
    """The key of writes that share a loop; None for slices."""
    value, _, _, place = line
    return None if place is None or value.shape else value.dtype.str  # dtypes equal None


def _singles(
    call: KernelCall,
    z: ArrayPointer,
    values: Sequence[ArrayPointer],
    places: Sequence[int],
    adds: Sequence[bool],
) -> None:
    """Single elements, in a loop; each replaces an element, or is added to it."""
    s, n = call.section, len(values)
    if n == 1:
        target = offset(s, z.pointer, str(places[0]), z.dtype)
        _put(call, s, target, values[0].pointer, values[0].dtype, z.dtype, adds[0])
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
        _put(call, t, target, source, values[0].dtype, z.dtype, adding)


def _put(
    call: KernelCall,
    s: Section,
    target: Name,
    source: Name,
    kind: Dtype,
    dtype: Dtype,
    adding: bool | Lane,
) -> None:
    """Write one element of a dtype of its own, or add it to the one that is there."""
    new = call.language.cast(read(call.language, s, source, kind), dtype)
    if adding is not False:
        total = call.language.cast(read(call.language, s, target, dtype) + new, dtype)
        new = total if adding is True else call.language.where(adding, total, new)
    write(s, target, new)


def _table(call: KernelCall, what: str, kind: str, values: Sequence[object]) -> Name:
    """Constants of the module."""
    title = f"{call.function.name}.{what}{call.function.number()}"
    listed = ", ".join(f"{kind} {v}" for v in values)
    return call.module.constant(title, f"[{len(values)} x {kind}]", f"[{listed}]")


def _entry(s: Section, table: Name, kind: str, k: Name) -> Name:
    cell = s.value(f"getelementptr {kind}, ptr {table}, i64 {k}")
    found: Name = s.value(f"load {kind}, ptr {cell}")
    return found

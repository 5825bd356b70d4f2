"""Writes: many writes into one array, which is copied once.

Single elements, of which unrolled loops write many, are written in a loop over a table of addresses
and places; slices one after the other, as in indexing.py.
"""

from __future__ import annotations

import itertools
from typing import Any

from ..assembly import Name
from .call import Array, Call, kernel
from .indexing import at_index
from .loops import clear, copy, offset, read, size_of, write


@kernel("writes", strided=True)
def writes(call: Call) -> None:
    """A copy of the first operand, or zeros, into which the others are written in their order."""
    (z,) = call.results
    values = list(call.operands)
    if call.params["from_zero"]:
        clear(call, call.section, z.pointer, size_of(z), z.dtype)
    else:
        copy(call, call.section, z, values.pop(0))
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
            _singles(call, z, [v for v, *_ in some], [p for *_, p in some], some[0][2])


def _place(index: Any, z: Array) -> int | None:
    """How far from the first element the one is that an index chooses; None if it is not one."""
    entries = index if isinstance(index, tuple) else (index,)
    if len(entries) != len(z.shape) or not all(type(i) is int for i in entries):
        return None
    return sum(
        (i % n) * stride for i, n, stride in zip(entries, z.shape, z.strides, strict=True)
    )


def _kind(line: Any) -> Any:
    """What writes have in common that are made in one loop; None for slices."""
    value, _, adds, place = line
    return None if place is None or value.shape else (value.dtype, adds)


def _singles(
    call: Call, z: Array, values: list[Array], places: list[int], adds: bool
) -> None:
    """Single elements, in a loop."""
    s, n = call.section, len(values)
    pointers = call.function.slot(f"[{n} x ptr]", 8)
    for k, value in enumerate(values):
        cell = s.value(f"getelementptr ptr, ptr {pointers}, i64 {k}")
        s.write(f"store ptr {value.pointer}, ptr {cell}")
    title = f"{call.function.name}.places{call.function.number()}"
    listed = ", ".join(f"i64 {p}" for p in places)
    table = call.module.constant(title, f"[{n} x i64]", f"[{listed}]")
    with s.loop("0", str(n)) as (t, k):
        source = _entry(t, pointers, "ptr", k)
        target = offset(t, z.pointer, _entry(t, table, "i64", k), z.dtype)
        new = call.language.cast(read(call.language, t, source, values[0].dtype), z.dtype)
        if adds:
            new = call.language.cast(read(call.language, t, target, z.dtype) + new, z.dtype)
        write(t, target, new)


def _entry(s: Any, table: Name, kind: str, k: Name) -> Name:
    cell = s.value(f"getelementptr {kind}, ptr {table}, i64 {k}")
    found: Name = s.value(f"load {kind}, ptr {cell}")
    return found

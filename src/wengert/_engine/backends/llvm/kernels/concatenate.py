"""Concatenation: many arrays copied into one; elements shifted cyclically along an axis.

Few arrays are concatenated where they are used (lowering/); of many, each is copied once, so the
work is proportional to the result.

    stack, concatenate    copy each operand to its position
    roll                  for shifts that are known only at run time
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from wengert._engine.core.node import Node
from wengert._engine.core.symbolic.dim import Length

from ..ir.index_analysis import moves_of
from ..ir.ir_builder import Name, Section
from .kernel_call import ArrayPointer, KernelCall, kernel
from .loop_helpers import copy, nest, offset, place, read, write


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
    """The operands one after the other; identical ones in a loop over their addresses."""
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


def _is_of_numbers(node: Node) -> bool:
    """Whether the shifts and axes are static."""
    shift, axis = node.params["shift"], node.params.get("axis")
    return moves_of(shift, axis) is not None and (axis is not None or node.spec.ndim == 1)


@kernel("roll", strided=True, serves=_is_of_numbers)
def roll(call: KernelCall) -> None:
    """A cyclic shift along axes."""
    (x,), (z,) = call.operands, call.results
    moves = moves_of(call.params["shift"], call.params.get("axis"))
    assert moves is not None
    by: dict[int, int] = {}
    for a, n in moves:
        k = a % len(x.shape)
        by[k] = by.get(k, 0) + n
    s = call.section
    starts = {k: _start(s, call.number(x.shape[k]), n) for k, n in by.items()}
    with nest(s, [call.number(n) for n in z.shape]) as (t, indices):
        of = [
            _around(t, i, starts[k], call.number(x.shape[k])) if k in starts else i
            for k, i in enumerate(indices)
        ]
        value = read(call.language, t, place(call, t, x, of), x.dtype)
        write(t, place(call, t, z, indices), call.language.cast(value, z.dtype))


def _start(s: Section, n: Name, by: int) -> Name:
    """The old position of the first element: -by, modulo the length n."""
    some = s.larger(n, "1")
    rest = s.value(f"srem i64 {-by}, {some}")
    negative = s.value(f"icmp slt i64 {rest}, 0")
    return s.value(f"select i1 {negative}, i64 {s.value(f'add i64 {rest}, {some}')}, i64 {rest}")


def _around(s: Section, i: Name, start: Name, n: Name) -> Name:
    far = s.value(f"add i64 {i}, {start}")
    back = s.minus(far, n)
    beyond = s.value(f"icmp sge i64 {far}, {n}")
    return s.value(f"select i1 {beyond}, i64 {back}, i64 {far}")

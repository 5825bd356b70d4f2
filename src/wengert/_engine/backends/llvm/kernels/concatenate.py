"""Concatenation: many arrays copied into one; elements shifted cyclically along an axis.

A few arrays are concatenated in the loop that reads the result (lowering/).  Many are copied here,
each once, so the work is proportional to the size of the result.

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
from .loop_helpers import address, copy, nest, offset, read, write


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
    """Whether the shifts and axes are static."""
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

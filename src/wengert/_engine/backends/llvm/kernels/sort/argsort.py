"""Sorting: indices that sort an array, by NumPy's own functions.

    argsort    one key; the order of equal elements is NumPy's, for every kind of sort
    lexsort    several keys

A sequence that is not contiguous is copied first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wengert._engine.core.node import DiscreteLeaf

from ...ir.ir_builder import Name, Section
from ...ir.processors import foreign
from ...runtime import library_symbols
from ..kernel_call import ArrayPointer, KernelCall, kernel
from ..linalg.lapack import memory
from ..loop_helpers import address, copy, nest, offset

_I64 = np.dtype(np.int64)


def _kind(kind: str | None) -> str:
    """The algorithm of a sorting kind, which NumPy identifies by its first letter."""
    first = str(kind or "quicksort")[0].lower()
    return {"q": "quicksort", "h": "heapsort"}.get(first, "stable")


def _is_known(node: DiscreteLeaf) -> bool:
    """Whether all versions of NumPy use the same algorithm, which is not the case for heapsort."""
    return _has_axis(node) and _kind(node.params.get("kind")) != "heapsort"


def _has_axis(node: DiscreteLeaf) -> bool:
    # NumPy treats a 0-d array as an array of one element.
    ranks = [x.spec.ndim for x in (node, *node.inputs)]
    return min(ranks) > 0 and isinstance(node.params.get("axis", -1), int)


@kernel("argsort", strided=True, serves=_is_known)
def argsort(call: KernelCall) -> None:
    """The positions that sort each sequence."""
    _sort(call, _kind(call.params.get("kind")))


@kernel("lexsort", strided=True, serves=_has_axis)
def lexsort(call: KernelCall) -> None:
    """The positions that sort by the last key, then by the one before."""
    _sort(call, "stable")


def _sort(call: KernelCall, kind: str) -> None:
    """Sort each sequence, by one key after the other."""
    (y,) = call.results
    axis = call.params.get("axis", -1) % len(y.shape)
    others = [k for k in range(len(y.shape)) if k != axis]
    n = y.shape[axis]
    keys = [(x, "" if x.strides[axis] == 1 else memory(call, n, x.dtype)) for x in call.operands]
    result_copy = "" if y.strides[axis] == 1 else memory(call, n, _I64)
    with nest(call.section, [call.number(y.shape[k]) for k in others]) as (s, indices):
        target = _sequence(call, s, y, axis, others, indices)
        positions = target._replace(pointer=result_copy, strides=(1,)) if result_copy else target
        with s.loop("0", call.number(n)) as (t, i):
            t.write(f"store i64 {i}, ptr {offset(t, positions.pointer, i, _I64)}")
        for x, scratch in keys:
            sequence = _sequence(call, s, x, axis, others, indices)
            if scratch:
                ordered = sequence._replace(pointer=scratch, strides=(1,))
                copy(call, s, ordered, sequence)
                sequence = ordered
            if foreign() is not None:  # its function of exported code allocates (export/sorting.py)
                call.module.allocations.append((call.function.name, n * _I64.itemsize))
            symbol = f"argsort.{kind}.{x.dtype.str[1:]}"
            address = library_symbols.address_of(symbol)
            sort = call.external(symbol, address, "i32", ["ptr", "ptr", "i64", "ptr"])
            arguments = (
                f"ptr {sequence.pointer}, ptr {positions.pointer}, i64 {call.number(n)}, ptr null"
            )
            status = s.value(f"call i32 {sort}({arguments})")
            call.fail_if(s.value(f"icmp slt i32 {status}, 0"), 1, s)
        if result_copy:
            copy(call, s, target, positions)


def _sequence(
    call: KernelCall,
    s: Section,
    x: ArrayPointer,
    axis: int,
    others: Sequence[int],
    indices: Sequence[Name],
) -> ArrayPointer:
    """A sequence along the axis, at some indices of the other axes."""
    shape, strides = (tuple(lengths[k] for k in others) for lengths in (x.shape, x.strides))
    pointer = address(call, s, ArrayPointer(x.pointer, shape, strides, x.dtype), indices)
    return ArrayPointer(pointer, (x.shape[axis],), (x.strides[axis],), x.dtype)

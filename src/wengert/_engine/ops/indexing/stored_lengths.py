"""Lengths and cotangents of stored values.

A value may have fewer axes than the elements that it is stored to, or axes of length one.

    length_pairs     pairs of lengths of a value and its target
    with_lengths     a cotangent with the value's expressions for its lengths
    of_last_stores   a cotangent, zero for stores that a later one to the same element overwrote
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .template import is_unique

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Size


def is_one(n: Size) -> bool:
    return type(n) is int and n == 1


def length_pairs(shape: tuple[Any, ...], chosen: tuple[Any, ...]) -> list[tuple[Any, Any]]:
    """Pairs of lengths of a value and its target, padded with leading axes of length one."""
    ndim = max(len(shape), len(chosen))
    padded = ((1,) * (ndim - len(s)) + s for s in (shape, chosen))
    return list(zip(*padded, strict=True))


def with_lengths(v_bar: Array, shape: tuple[Any, ...]) -> Any:
    """`v_bar` with the value's expressions for lengths that are required to be equal."""
    pairs = length_pairs(shape, v_bar.shape)
    lengths = tuple(m if is_one(n) else n for n, m in pairs)[len(pairs) - v_bar.ndim :]
    return v_bar if lengths == v_bar.shape else v_bar.reshape(lengths)


def of_last_stores(v_bar: Any, shape: tuple[int, ...], index: Any) -> Any:
    """The cotangent of the stored elements, zero for stores that a repeated index overwrote."""
    if is_unique(index):
        return v_bar
    last_write = np.full(shape, -1, np.intp)
    writes = np.arange(last_write[index].size).reshape(last_write[index].shape)
    last_write[index] = writes
    is_last = last_write[index] == writes
    return v_bar if is_last.all() else np.where(is_last, v_bar, 0.0)

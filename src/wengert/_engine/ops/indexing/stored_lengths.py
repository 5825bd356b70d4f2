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
    """Pairs of lengths of a value and its target, without leading axes of length one."""
    ndim = max(len(shape), len(chosen))
    both = ((1,) * (ndim - len(s)) + s for s in (shape, chosen))
    return list(zip(*both, strict=True))


def with_lengths(v_bar: Array, shape: tuple[Any, ...]) -> Any:
    """`v_bar` with the value's expressions for lengths that are required to be equal."""
    pairs = length_pairs(shape, v_bar.shape)
    own = tuple(m if is_one(n) else n for n, m in pairs)[len(pairs) - v_bar.ndim :]
    return v_bar if own == v_bar.shape else v_bar.reshape(own)


def of_last_stores(v_bar: Any, shape: tuple[int, ...], index: Any) -> Any:
    """The cotangent of the stored elements, zero for stores that a repeated index overwrote."""
    if is_unique(index):
        return v_bar
    number = np.full(shape, -1, np.intp)
    writes = np.arange(number[index].size).reshape(number[index].shape)
    number[index] = writes
    won = number[index] == writes
    return v_bar if won.all() else np.where(won, v_bar, 0.0)

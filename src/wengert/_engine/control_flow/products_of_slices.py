"""Products of slices whose length differs between the steps of a loop, for all steps.

    for i in range(n):                        blocks of steps: for a block from p up to q,
        c[i] = a[i + 1:, i] @ b[i + 1:]       a[q:, p:q].T @ b[q:] and, of the positions between,
                                              (mask * a[p + 1:q, p:q]).T @ b[p + 1:q]

A block of steps is a product over the positions that all of them use, and one over the others,
with a mask.  The mask removes terms also if they are infinite or NaN, and from derivatives.

    product_of_slices    the products of all steps
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, shape_of
from wengert._engine.core.op import lookup
from wengert.errors import TraceError

_MIN_RESULTS = 32  # of each step; sums of fewer are as fast in the loop
_MIN_WORK = 1 << 19  # multiplications; fewer are one block
_BLOCKS = 4
_MIN_STEPS, _MAX_STEPS = 32, 128  # of a block, unless there is only one
_MAX_BLOCKS = 32


def product_of_slices(
    factors: Sequence[Any],
    subscripts: Sequence[str],
    letters: tuple[str, str],
    first: np.ndarray[Any, Any],
    last: np.ndarray[Any, Any],
) -> Any:
    """The products of all steps.

    Parameters
    ----------
    factors : sequence of tensors
        Whole arrays.
    subscripts : sequence of str
        Of each of them, and of the result, whose first axis is that of the steps.
    letters : (str, str)
        Of the steps, and of the axis that is summed.
    first, last : numpy.ndarray
        In each step, the first and the last position that is summed.

    Raises
    ------
    TraceError
        It is not worth it.
    """
    _, summed = letters
    sizes = {
        c: n
        for x, w in zip(factors, subscripts, strict=False)
        for c, n in zip(w, shape_of(x), strict=True)
    }
    results = prod([n for c, n in sizes.items() if c not in letters])
    count = len(first)
    length = count
    if count * sizes[summed] * results >= _MIN_WORK:
        length = min(max(_MIN_STEPS, -(-count // _BLOCKS)), _MAX_STEPS)
    if results < _MIN_RESULTS or count > _MAX_BLOCKS * length:
        raise TraceError("a product of slices that is as fast in the loop, or too many of them")
    blocks = []
    for p in range(0, count, length):
        own = slice(p, min(p + length, count))
        blocks.append(_block(factors, subscripts, letters, own, first[own], last[own]))
    return blocks[0] if len(blocks) == 1 else lookup("concatenate")(*blocks, axis=0)


def _block(
    factors: Sequence[Any],
    subscripts: Sequence[str],
    letters: tuple[str, str],
    steps: slice,
    first: np.ndarray[Any, Any],
    last: np.ndarray[Any, Any],
) -> Any:
    """The products of some steps."""
    low, high = int(first.max()), int(last.min())
    ends = [(int(first.min()), low - 1), (low, high), (high + 1, int(last.max()))]
    if high < low:  # there is no position that all of them use
        ends = [(int(first.min()), int(last.max()))]
    total: Any = None
    dtype = np.result_type(*map(dtype_of, factors))
    for start, stop in ends:
        if start > stop:
            continue
        parts = [
            _part(x, w, {letters[0]: steps, letters[1]: slice(start, stop + 1)})
            for x, w in zip(factors, subscripts, strict=False)
        ]
        places = np.arange(start, stop + 1)
        mask = (places >= first[:, None]) & (places <= last[:, None])
        if mask.all():
            product = lookup("einsum")(*parts, subscripts=tuple(subscripts))
        else:
            weights = mask.astype(dtype)
            words = ("".join(letters), *subscripts)
            product = lookup("strong_einsum")(weights, *parts, subscripts=words)
        total = product if total is None else total + product
    if total is None:
        raise TraceError("a product of slices that are empty")
    return total


def _part(x: Any, word: str, slices: dict[str, slice]) -> Any:
    """A part of a factor."""
    index = tuple([slices.get(c, slice(None)) for c in word])
    return lookup("getitem")(x, index=index)

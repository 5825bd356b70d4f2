"""Sums of values over the steps of a loop, as products where they are such sums.

s += a[k] * b[k]            s += a @ b
c[:] += a[k] * B[k, :]      c[:] += a @ B

sum_of_steps    the sum of a node over all steps

Products of slices whose length differs between the steps of a loop, for all steps.

    for i in range(n):                        blocks of steps: for a block from p up to q,
        c[i] = a[i + 1:, i] @ b[i + 1:]       a[q:, p:q].T @ b[q:] and, of the positions between,
                                              (mask * a[p + 1:q, p:q]).T @ b[p + 1:q]

A block of steps is a product over the positions that all of them use, and one over the others,
with a mask.  The mask removes terms also if they are infinite or NaN, and from derivatives.

    product_of_slices    the products of all steps
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from string import ascii_letters
from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, shape_of
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.tracing import size_value
from wengert._engine.ops.casts import astype
from wengert.errors import TraceError

Value = Callable[[Node], tuple[Any, bool]]


def sum_of_steps(node: Node, dtype: np.dtype[Any], value: Value, count: Any) -> Any:
    """The sum of a node over all steps.

    Parameters
    ----------
    node : Node
    dtype : numpy.dtype
        Of what it is added to.
    value : callable
        Returns the value of a node for all steps, and whether it has an axis for them.
    count : int, Dim or None
        The number of steps; None if it may be zero.

    Raises
    ------
    TraceError
        It is the same in each step, and the number of steps may be zero.
    """
    total = _of_products(node, value) if node.spec.dtype == dtype and dtype.kind in "fc" else None
    if total is None:
        x, batched = value(node)
        x = astype(x, dtype)
        if batched:
            total = lookup("sum")(x, axis=0)
        elif count is not None:
            total = x * astype(size_value(count) if isinstance(count, Dim) else count, dtype)
        else:
            raise TraceError("a term that is the same in each step of a loop without steps")
    return astype(total, dtype)


def _of_products(node: Node, value: Value) -> Any:
    """The sum of products, and sums and differences of them, as products; None for others."""
    if node.op in (lookup("add"), lookup("subtract")):
        same = [
            (a.spec.shape, a.spec.dtype) == (node.spec.shape, node.spec.dtype) for a in node.inputs
        ]
        if not all(same):
            return None
        parts = [_of_products(a, value) for a in node.inputs]
        return None if any([x is None for x in parts]) else lookup(node.op.name)(*parts)
    factors = _factors(node)
    pairs = [value(f) for f in factors]
    batched = [f for f, (_, is_batched) in zip(factors, pairs, strict=True) if is_batched]
    arrays = [f for f in factors if f.spec.shape]
    if (
        len(batched) < 2
        or len(arrays) > 1
        or any([f.spec.dtype != node.spec.dtype for f in batched])
    ):
        return None
    last = arrays[0] if arrays else batched[-1]
    if last not in batched or last.spec.shape != node.spec.shape:
        return None
    place = factors.index(last)
    weights: Any = None
    for x, _ in sorted(pairs[:place] + pairs[place + 1 :], key=lambda pair: pair[1]):
        weights = x if weights is None else weights * x
    letters = ascii_letters[: len(node.spec.shape) + 1]
    return lookup("einsum")(weights, pairs[place][0], subscripts=(letters[0], letters, letters[1:]))


def _factors(node: Node) -> list[Node]:
    """The factors of a product of numbers and arrays."""
    factors: list[Node] = []
    stack = [node]
    while stack:
        n = stack.pop()
        if n.op is lookup("multiply") and n.spec.dtype == node.spec.dtype:
            stack += n.inputs
        else:
            factors.append(n)
    return factors


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

"""Sums of values over the steps of a loop, as products where they are such sums.

s += a[k] * b[k]            s += a @ b
c[:] += a[k] * B[k, :]      c[:] += a @ B

sum_of_steps    the sum of a node over all steps
"""

from __future__ import annotations

from collections.abc import Callable
from string import ascii_letters
from typing import Any

import numpy as np

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

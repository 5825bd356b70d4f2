"""Cotangents of large arrays, by kernels of the operations (core/large_arrays.py).

    accumulate     add the contributions of an elementwise operation to the cotangents so far
    contributions  the contributions of any operation, as its rule returns them

A kernel computes the partial derivatives, multiplies them by the cotangent and adds the sum of
earlier contributions in one pass.  Only passes that are neither recorded nor guarded use them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.large_arrays import KERNELS, kernels
from wengert._engine.core.node import Node, Watched

from .cotangent_space import project

if TYPE_CHECKING:
    from wengert._engine.core.op import RuleContext


def accumulate(node: Node, t: Any, bars: dict[Node, Any], owned: set[Node]) -> bool:
    """Add the contributions of a node to the cotangents of its operands.

    Parameters
    ----------
    node : Node
        Of an elementwise operation of one or two operands.
    t : numpy.ndarray
        Its cotangent.
    bars : dict
        The sums so far.
    owned : set of Node
        The nodes whose cotangent is an array that nothing else refers to; operands are added.

    Returns
    -------
    bool
        False if NumPy is to run the rule; then nothing has been changed.
    """
    if not KERNELS:
        return False
    args = node.args
    op: Any = node.op
    if op.constant_partials:  # a plain array is not read, which would check it for changes
        _accumulate(node, t, None, (None,) * len(args), bars, owned)
        return True
    if Watched in map(type, args) and _of_watched(node, t, bars, owned):
        return True
    wanted = [type(a) is Node for a in args]
    targets = list(dict.fromkeys([a for a in args if type(a) is Node]))
    is_repeated = sum(wanted) > len(targets)  # x * x
    values = [a.value if isinstance(a, Node) else a for a in args]
    out = node.value
    sums = [bars.get(a) for a in targets]
    new = kernels().cotangents(op, node.params, t, out, values, wanted, is_repeated, sums)
    if new is None:
        _accumulate(node, t, out, values, bars, owned)
        return True
    bars.update(zip(targets, new, strict=True))
    owned.update(targets)
    return True


def _of_watched(node: Node, t: Any, bars: dict[Node, Any], owned: set[Node]) -> bool:
    """Add the contribution of a product with a plain array, which is checked in the same pass."""
    op: Any = node.op
    if op.ufunc is not np.multiply or not op.is_built_in:
        return False
    a, factor = node.args if type(node.args[1]) is Watched else reversed(node.args)
    if type(a) is not Node or a.value.shape != t.shape or a.value.dtype != t.dtype:
        return False
    bar = kernels().product_with(t, factor)
    if bar is None:
        return False
    if a in bars:
        bar += bars[a]
    bars[a] = bar
    owned.add(a)
    return True


def _accumulate(
    node: Node, t: Any, out: Any, values: Sequence[Any], bars: dict[Node, Any], owned: set[Node]
) -> None:
    """Add the contributions, computed by NumPy."""
    op: Any = node.op
    for pull, a in zip(op.pulls, node.args, strict=True):
        if type(a) is not Node:
            continue
        bar = project(pull(t, out, *values), a)
        current = bars.get(a)
        if current is None:
            bars[a] = bar
        elif a in owned:
            current += bar
        else:
            bars[a] = current + bar
            owned.add(a)


def contributions(
    node: Node, t: Any, out: Any, values: Sequence[Any], ctx: RuleContext
) -> list[Any] | None:
    """The cotangents of the operands, None if not wanted; None if NumPy is to run the rule."""
    if not KERNELS:
        return None
    wanted = [ctx.wants(a) for a in node.args]
    op: Any = node.op
    bars = kernels().cotangents(op, node.params, t, out, values, wanted)
    if bars is None:
        return None
    remaining = iter(bars)
    return [next(remaining) if is_wanted else None for is_wanted in wanted]

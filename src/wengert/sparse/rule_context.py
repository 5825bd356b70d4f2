"""The context of sparsity rules: a node, and the dependency sets of its operands.

It has the operands that depend on anything, with sizes and known values.  The fallback of all rules
is here too: `everything`, by which each element of the result depends on all that any element of
any operand depends on.  That is always correct; other rules give smaller sets.

    NodeContext  the node, with the sets of its operands (dependency_sets.py)
    everything   the rule for opaque operations
    size_of      the number of elements of a spec
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.node import Node
from wengert._engine.core.spec import Spec
from wengert.errors import ShapeError, at, user_line

from .dependency_sets import Sets, chosen, gathered, nothing, united
from .known_values import KnownValues


class NodeContext:
    """One node.

    Parameters
    ----------
    node : Node
    sets : sequence
        For each operand the sets of its elements; None for one that depends on nothing.
    columns : int
        The number of scalars to differentiate with respect to.
    values : KnownValues, optional
        The known values of the graph.
    """

    def __init__(
        self,
        node: Node,
        sets: Sequence[Sets | None],
        columns: int,
        values: KnownValues | None = None,
    ) -> None:
        self.node, self.sets, self.columns = node, list(sets), columns
        self.values = values or KnownValues()
        self.op: Any = node.op
        self.params = node.params
        self.specs = [a.spec for a in node.inputs]
        self.moving = [k for k, s in enumerate(sets) if s is not None]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result, if it is one array."""
        return self.node.spec.shape  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """The size of the result, if it is one array."""
        return size_of(self.node.spec)

    def known(self, k: int) -> Any:
        """The value of an operand, if it does not depend on data; else None."""
        return self.values.of(self.node.inputs[k])

    def others_known(self) -> bool:
        """Whether the values of all operands that depend on nothing are known."""
        return all(self.known(k) is not None for k, s in enumerate(self.sets) if s is None)

    def numbers(self, k: int, first: int = 1) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The elements of an operand, counted in C order."""
        spec = self.specs[k]
        return np.arange(first, first + size_of(spec)).reshape(spec.shape)


def size_of(spec: Any) -> int:
    """The number of elements of an array of that spec.

    Raises
    ------
    ShapeError
        It is symbolic.
    """
    size = math.prod(spec.shape) if type(spec) is Spec else None
    if not isinstance(size, int):
        raise ShapeError(
            f"the sparsity pattern cannot be computed, because {spec} has an unknown length: the "
            "number of steps of a while_loop, or a symbolic size. Pass arrays, and "
            f"use a loop of known length (scan, fori_loop){at(user_line())}."
        )
    return size


def everything(ctx: NodeContext) -> Any:
    """Each element of each result depends on everything that any operand depends on."""
    all_of = united([one_of(ctx.sets[k]) for k in ctx.moving])
    spec = ctx.node.spec
    if isinstance(spec, tuple):
        return [spread(all_of, size_of(s)) if s.dtype.kind in "fc" else None for s in spec]
    return spread(all_of, ctx.size)


def one_of(sets: Sets) -> Sets:
    """The union over all elements."""
    return gathered(sets, np.zeros(sets.shape[0], np.int64), 1)


def spread(sets: Sets, count: int) -> Sets:
    """One set, repeated for many elements."""
    if not count:
        return nothing(0, sets.shape[1])
    return chosen(sets, np.ones(count, np.int64))

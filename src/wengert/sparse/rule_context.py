"""A node of a graph as the rules of sparsity see it.

It says which operands depend on anything, and of which sizes and values they are.  What every rule
falls back on is here too: `everything`, by which each element of the result depends on all that any
element of any operand depends on.  That is always true; other rules say less where they know less
to be true.

    NodeContext  the line, with the sets of its operands (dependency_sets.py)
    everything   the rule for opaque operations
    size_of      of a spec, as a number
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.node import CONSTANT, ConstantLeaf, Node, is_variable
from wengert._engine.core.spec import Spec
from wengert.errors import ShapeError, at, user_line

from .dependency_sets import Sets, chosen, gathered, nothing, united


class NodeContext:
    """One line.

    Parameters
    ----------
    node : Node
    sets : sequence
        For each operand the sets of its elements; None for one that depends on nothing.
    columns : int
        The number of scalars to differentiate with respect to.
    """

    def __init__(self, node: Node, sets: Sequence[Sets | None], columns: int) -> None:
        self.node, self.sets, self.columns = node, list(sets), columns
        self.op: Any = node.op
        self.params = node.params
        self.specs = [a.spec for a in node.inputs]
        self.moving = [k for k, s in enumerate(sets) if s is not None]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the result, if that is one array."""
        return self.node.spec.shape  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """Of the result, if that is one array."""
        return size_of(self.node.spec)

    def known(self, k: int) -> Any:
        """The value of an operand, if it is the same in every run; else None."""
        a = self.node.inputs[k]
        if a.op is CONSTANT and isinstance(a, ConstantLeaf) and not is_variable(a):
            return a.value
        return None

    def others_known(self) -> bool:
        """Whether all operands that depend on nothing are the same in every run."""
        return all(self.known(k) is not None for k, s in enumerate(self.sets) if s is None)

    def numbers(self, k: int, first: int = 1) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The elements of an operand, counted in C order."""
        spec = self.specs[k]
        return np.arange(first, first + size_of(spec)).reshape(spec.shape)


def size_of(spec: Any) -> int:
    """How many numbers an array of that spec holds.

    Raises
    ------
    ShapeError
        The graph does not know.
    """
    size = math.prod(spec.shape) if type(spec) is Spec else None
    if not isinstance(size, int):
        raise ShapeError(
            f"the sparsity of a function was asked for, in which {spec} has a length that the "
            "graph does not know: the number of steps of a while_loop, or a named size. Give it "
            f"arrays, and take a loop whose length is known (scan, fori_loop){at(user_line())}."
        )
    return size


def everything(line: NodeContext) -> Any:
    """Each element of each result depends on all that any operand depends on."""
    all_of = united([one_of(line.sets[k]) for k in line.moving])
    spec = line.node.spec
    if isinstance(spec, tuple):
        return [spread(all_of, size_of(s)) if s.dtype.kind in "fc" else None for s in spec]
    return spread(all_of, line.size)


def one_of(sets: Sets) -> Sets:
    """All elements as one."""
    return gathered(sets, np.zeros(sets.shape[0], np.int64), 1)


def spread(sets: Sets, count: int) -> Sets:
    """One element as many."""
    if not count:
        return nothing(0, sets.shape[1])
    return chosen(sets, np.ones(count, np.int64))

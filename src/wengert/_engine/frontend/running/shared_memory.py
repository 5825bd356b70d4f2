"""Which results of branches share memory with existing arrays.

    if c: b = a            # after the branch, b is a new array if c is false, and a if it is true
    else: b = 2.0 * a

BranchMemory    records this for the results of a branch
shared_with     the existing arrays with which a value at the end of a block shares memory
arrays_in       the arrays in the value of a variable
outside_view    a view of an existing array that a block has made, made again after it
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.branch_aliases import (
    add_choices,
    add_unknown,
    choices_of,
    unknown_of,
)
from wengert._engine.core.handle import Handle, link, owner_of_memory
from wengert._engine.core.loop_rows import LoopRow
from wengert._engine.core.node import LeafOp, Node
from wengert._engine.core.op import lookup

from ..state import UNBOUND
from .block_tracing import TracedBlock
from .values import MaybeUnbound, PartitionedValue

Key = tuple[str, int]  # a variable, and the number of one of the arrays in its value


def arrays_in(value: Any) -> list[Handle | None]:
    """The arrays among the numbers of a value, None for others."""
    if type(value) is MaybeUnbound:
        value = value.value
    if value is UNBOUND:
        return []
    return [
        x if isinstance(x, Handle) and not isinstance(x, LoopRow) and x.node.spec.shape else None
        for x in PartitionedValue.of(value).numeric_leaves
    ]


def shared_with(array: Handle, since: int) -> list[tuple[Handle, Any]]:
    """The arrays from before a block with which an array shares memory, with the conditions.

    Parameters
    ----------
    array : Handle
    since : int
        The serial number of the first node of the block.

    Returns
    -------
    list of (Handle, condition)
        A condition is True, a traced boolean of the block, or None if it is not known.
    """
    if array.node.serial < since:
        return [(array, True)]
    owner = owner_of_memory(array)
    if owner is not array:
        view = outside_view(array, since)
        if view is not None:
            return [(view, True)]
        return [(x, None) for x, _ in shared_with(owner, since)]
    conditional = [
        (other, condition)
        for memory, condition in choices_of(array)
        for other, _ in memory.arrays()
        if other is not array
    ]
    pairs = [*conditional, *[(other, None) for other in unknown_of(array)]]
    return [(x, c) for x, c in pairs if x.node.serial < since]


def outside_view(view: Handle, since: int) -> Handle | None:
    """A view of an existing array that a block has made, made again after it.

    None if its index is computed in the block, if it is a view of an array made there, or of one
    that shares the memory of others on a condition.
    """
    if choices_of(owner_of_memory(view)):
        return None
    if view.node.serial < since:
        return view
    shared = getattr(view, "_link", None)
    if shared is None:
        return None
    base, take, put = shared
    new_base = outside_view(base, since)
    if new_base is None or not all(_is_known(a, since) for a in view.node.args[1:]):
        return None
    new: Handle = take(new_base)
    link(new, new_base, take, put, shares=True)
    return new


def _is_known(operand: object, since: int) -> bool:
    """Whether an operand does not depend on the nodes of a block."""
    return not isinstance(operand, Node) or operand.serial < since or isinstance(operand.op, LeafOp)


class BranchMemory:
    """Which arrays the results of a branch share memory with.

    Parameters
    ----------
    blocks : sequence of TracedBlock
        The else branch, and the if branch.
    names : iterable of str
        The variables that they assign.
    """

    def __init__(self, blocks: Sequence[TracedBlock], names: Iterable[str]) -> None:
        self._blocks = blocks
        self._names: dict[str, list[list[Handle | None]]] = {}
        self._outside: list[tuple[str, int, int, Handle, Any]] = []
        self._conditions: list[tuple[int, Any]] = []
        for name in names:
            self._add(name)

    def _add(self, name: str) -> None:
        self._names[name] = [arrays_in(b.values[name]) for b in self._blocks]
        for k, (block, arrays) in enumerate(zip(self._blocks, self._names[name], strict=True)):
            for number, array in enumerate(arrays):
                for other, condition in (
                    shared_with(array, block.since) if array is not None else ()
                ):
                    self._outside.append((name, number, k, other, condition))
                    if isinstance(condition, Handle):
                        self._conditions.append((k, condition))

    def same(self, name: str, numbers: list[Any]) -> list[Any]:
        """The results for a variable; if it is the same existing array in both branches, that."""
        other, then = self._names[name]
        if len(other) != len(then):
            return numbers
        pairs = zip(other, then, strict=True)
        first = self._blocks[0].since
        both = [a if a is b and a is not None and a.node.serial < first else None for a, b in pairs]
        return [x if a is None else a for a, x in zip(both, numbers, strict=False)] + numbers[
            len(both) :
        ]

    def outputs(self, branch: int) -> list[Any]:
        """The conditions that are computed in the branches, as outputs of one of them."""
        return [c if k == branch else np.False_ for k, c in self._conditions]

    def record(self, results: dict[str, list[Any]], test: Any, conditions: Sequence[Any]) -> None:
        """Record with which arrays results share memory.

        Parameters
        ----------
        results : dict
            The numeric leaves of the variables after the branch.
        test : Tensor
            The condition of the branch.
        conditions : sequence of Tensor
            The results that correspond to `outputs`.
        """
        taken = lookup("logical_not")(test), test
        inside = iter(conditions)
        others: dict[tuple[str, int], list[tuple[Handle, Any]]] = {}
        for name, number, k, other, condition in self._outside:
            if isinstance(condition, Handle):
                condition = next(inside)
            elif condition is True:
                condition = taken[k]
            others.setdefault((name, number), []).append((other, condition))
        first: dict[tuple[int, int], Handle] = {}
        for name, branches in self._names.items():
            for k, arrays in enumerate(branches):
                for number, array in enumerate(arrays):
                    if array is None or array.node.serial < self._blocks[k].since:
                        continue
                    owner = owner_of_memory(array)
                    result = results[name][number]
                    key = k, id(owner)
                    if key in first and first[key] is not result:
                        condition = taken[k] if owner is array else None
                        others.setdefault((name, number), []).append((first[key], condition))
                    elif owner is array or owner.node.serial >= self._blocks[k].since:
                        first[key] = result
        for (name, number), pairs in others.items():
            result = results[name][number]
            if isinstance(result, Handle) and not any(o is result for o, _ in pairs):
                add_choices(result, [(o, c) for o, c in pairs if c is not None])
                add_unknown([(result, o) for o, c in pairs if c is None])

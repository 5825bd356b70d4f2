"""Which results of branches and loops share memory with existing arrays.

    if c: b = a            # after the branch, b is a new array if c is false, and a if it is true
    else: b = 2.0 * a

BranchMemory    records this for the results of a branch
LoopMemory      records this for the variables of a loop, in its iterations and after it
shared_with     the existing arrays with which a value at the end of a block shares memory
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.branch_aliases import (
    add_choices,
    add_unknown,
    choices_of,
    may_share,
    unknown_of,
)
from wengert._engine.core.handle import AMBIGUOUS, Handle, owner_of_memory
from wengert._engine.core.loop_rows import LoopRow
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup

from ..state import UNBOUND, NotTraceable, subject
from .block_tracing import TracedBlock
from .values import MaybeUnbound, PartitionedValue

Key = tuple[str, int]  # a variable, and the number of one of the arrays in its value


def _arrays_in(value: Any) -> list[Handle | None]:
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
        return [(x, None) for x, _ in shared_with(owner, since)]
    conditional = [
        (other, condition)
        for memory, condition in choices_of(array)
        for other, _ in memory.arrays()
        if other is not array
    ]
    pairs = [*conditional, *[(other, None) for other in unknown_of(array)]]
    return [(x, c) for x, c in pairs if x.node.serial < since]


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
        self._names[name] = [_arrays_in(b.values[name]) for b in self._blocks]
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


class LoopMemory:
    """Which arrays the variables of a loop share memory with, in its iterations and after it.

    If an iteration writes to an array that may be the value of two variables, reading the other
    one afterwards in the same iteration is an error (branch_aliases.py).
    """

    def __init__(self) -> None:
        self._pairs: set[tuple[Key, Key | Handle]] = set()
        self._since = 0
        self._start: dict[Key, Handle] = {}
        self._inside: dict[Key, tuple[Handle, Any]] = {}
        self._end: dict[Key, list[Handle]] = {}
        self._last: dict[Key, Handle] = {}
        self._outside: set[int] = set()  # arrays from before the loop, by identity

    def begin(self, since: int) -> None:
        """Start another attempt to trace the body, and drop the values of the previous one."""
        self._since = since
        self._start, self._inside, self._end, self._last = {}, {}, {}, {}
        self._outside = set()

    def enter(
        self, name: str, before: PartitionedValue, during: Sequence[Any], nodes: Sequence[Any]
    ) -> None:
        """Record a variable: its value before the loop, its leaves in the body and their nodes."""
        for number, (x, y, node) in enumerate(
            zip(before.numeric_leaves, during, nodes, strict=True)
        ):
            if isinstance(y, Handle) and node.spec.shape:
                self._inside[name, number] = y, node
                if isinstance(x, Handle) and not isinstance(x, LoopRow):
                    self._start[name, number] = owner_of_memory(x)

    def relate(self) -> None:
        """Record, at the start of the body, which arrays variables may share memory with."""
        pairs = [(self._inside[k][0], x) for k, x in self._start.items()]
        for key, other in self._pairs:
            array = other if isinstance(other, Handle) else self._inside[other][0]
            pairs.append((self._inside[key][0], array))
        add_unknown(pairs)

    def leave(self, name: str, after: Any) -> None:
        """Record the value of a variable at the end of the body."""
        for number, x in enumerate(_arrays_in(after)):
            if x is not None:
                self._last[name, number] = x
                owner, *others = may_share(x)
                if id(owner) in self._placeholders():
                    others = []
                before = set(map(id, self._start.values()))
                ends = [owner, *[x for x in others if id(x) not in before]]
                self._end[name, number] = ends
                # After the loop those that it modifies have newer nodes.
                self._outside |= {id(a) for a in (x, *ends) if a.node.serial < self._since}
                if x.node.op is AMBIGUOUS:
                    raise _another_name(name)

    def _writes(self, key: Key) -> bool:
        """Whether the body writes to the array that is the value of a variable at its start."""
        array, node = self._inside.get(key, (None, None))
        return array is not None and array.node is not node and array.node.op is not AMBIGUOUS

    def is_known(self, modified: dict[Handle, Node]) -> bool:
        """Whether `relate` had all pairs of arrays that may share memory; if not, they are added.

        Parameters
        ----------
        modified : dict
            The arrays from before the loop that the body modifies, with their final nodes.
        """
        if any(node.op is AMBIGUOUS for node in modified.values()):
            raise _another_name("an array")
        outside = set(map(id, modified))
        owners: dict[int, Key] = {}
        pairs: set[tuple[Key, Key | Handle]] = set()
        for key, arrays in self._end.items():
            if key not in self._inside:
                continue
            for array in arrays:
                is_outside = array.node.serial < self._since
                is_modified = id(array) in outside or self._writes(key)
                if is_outside and is_modified and array is not self._start.get(key):
                    pairs.add((key, array))
                other = owners.setdefault(id(array), key)
                if other != key and (self._writes(key) or self._writes(other)):
                    pairs.add((key, other))
        new = pairs - self._pairs
        self._pairs |= new
        return not new

    def written(self, block: TracedBlock) -> list[Handle]:
        """The arrays from before the loop that it may modify because variables refer to them.

        Parameters
        ----------
        block : TracedBlock
            The body.
        """
        arrays = [x for x, node in block.final.items() if node.op is AMBIGUOUS]
        for key in self._inside:
            if self._writes(key):
                arrays += self._starts(key)
                arrays += [x for x in self._end.get(key, ()) if x.node.serial < self._since]
        return list({id(x): x for x in arrays if id(x) not in self._placeholders()}.values())

    def check(self, block: TracedBlock, captured: Sequence[Node]) -> None:
        """Refuse a body that reads arrays which it may modify by other names.

        Parameters
        ----------
        block : TracedBlock
        captured : sequence of Node
            The captured values of the body.

        Raises
        ------
        NotTraceable
        """
        read = set(map(id, captured))
        for array in self.written(block):
            if id(array.node) in read:
                raise _another_name(f"an array {array.node.spec}")

    def _placeholders(self) -> dict[int, Key]:
        return {id(x): key for key, (x, _) in self._inside.items()}

    def _starts(self, key: Key) -> list[Handle]:
        """The arrays from before the loop that may be the value of a variable in some iteration."""
        placeholders, keys, stack = self._placeholders(), {key: None}, [key]
        while stack:
            for array in self._end.get(stack.pop(), ()):
                other = placeholders.get(id(array))
                if other is not None and other not in keys:
                    keys[other] = None
                    stack.append(other)
        return [self._start[k] for k in keys if k in self._start]

    def record(self, results: dict[str, list[Any]], is_empty: Any) -> None:
        """Record, after the loop, with which arrays results share memory.

        Parameters
        ----------
        results : dict
            The numeric leaves of the variables after the loop.
        is_empty : Tensor, bool or None
            Whether the loop has no iterations; None if that is not known.
        """
        placeholders = self._placeholders()
        first: dict[int, Handle] = {}
        unknown: list[tuple[Handle, Handle]] = []
        for (name, number), arrays in self._end.items():
            key, result = (name, number), results[name][number]
            if not isinstance(result, Handle):
                continue
            start = self._start.get(key)
            others: list[Handle] = [] if start is None or is_empty is not None else [start]
            if start is not None and isinstance(is_empty, Handle):
                add_choices(result, [(start, is_empty)])
            last = self._last[key]
            if is_empty is False and id(last) not in placeholders and not choices_of(last):
                # It is the same array in each iteration, or that of another variable.
                is_outside = id(last) in self._outside
                same = last if is_outside else first.setdefault(id(last), result)
                if same is not result:
                    add_choices(result, [(same, True)])
                    continue
            for array in arrays:
                if id(array) in placeholders:
                    others += self._starts(placeholders[id(array)])
                elif id(array) in self._outside:
                    others.append(array)
                    continue
                others.append(first.setdefault(id(array), result))
            unknown += [(result, x) for x in others if x is not result]
        add_unknown(unknown)


def _another_name(name: str) -> NotTraceable:
    return NotTraceable(f"{subject(name)} may be another name of an array that it modifies", True)

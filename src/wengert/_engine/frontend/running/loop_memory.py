"""Which variables of a loop share memory with each other, and with existing arrays.

    for i in range(n):
        if a[i] > 0.0:
            x = x + a[i]   # until then x is the array from before the loop
        x[i] = 0.0

LoopMemory    records this for the iterations of a loop, and for the values after it
Sources       what an array in an iteration may be
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.branch_aliases import (
    ArrayMemory,
    PossibleMemory,
    add_choices,
    add_unknown,
    choices_of,
    forget,
    may_share,
    memories_of,
    set_memories,
    unknown_of,
)
from wengert._engine.core.handle import AMBIGUOUS, Handle, owner_of_memory, wrap
from wengert._engine.core.loop_rows import LoopRow, source_of
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import placeholder

from ..state import NotTraceable, subject
from .block_tracing import TracedBlock
from .shared_memory import Key, ViewPath, arrays_in
from .values import PartitionedValue

_BOOL = Spec((), np.dtype(bool))


class Sources(NamedTuple):
    """What an array in an iteration may be, or be a view of, by id.

    Attributes
    ----------
    direct, earlier : dict
        Arrays that the iteration has made, and that earlier ones have made; those from before the
        loop are in both. For a row of an array, the array.
    """

    direct: dict[int, Handle]
    earlier: dict[int, Handle]

    def all(self) -> dict[int, Handle]:
        """Both."""
        return self.direct | self.earlier


class LoopMemory:
    """Which arrays the variables of a loop share memory with, in its iterations and after it.

    A variable has the memory of the array from before the loop until an iteration binds it to
    another, and may get that of the array of another variable (``u, v = v, u``). For each memory
    the loop carries a boolean. Where the condition is not known, as for a view at an index that
    the iteration computes, reading the other array after a write is an error (branch_aliases.py).
    """

    def __init__(self) -> None:
        self._memories: dict[Key, dict[int, ArrayMemory]] = {}
        self._unknown: dict[Key, dict[int, Handle]] = {}
        self._pairs: dict[tuple[Key, Key], None] = {}
        self._is_first = True
        self._since = 0
        self._old: dict[Key, Handle] = {}
        self._inside: dict[Key, tuple[Handle, Any]] = {}
        self._flags: dict[tuple[Key, int], Node] = {}
        self._last: dict[Key, Handle] = {}
        self._views: dict[Key, ViewPath] = {}
        self._carried: list[tuple[Key, ArrayMemory]] = []

    # ---- an iteration --------------------------------------------------------------------------

    def begin(self, since: int) -> None:
        """Start another attempt to trace the body, and drop the values of the previous one."""
        self.end()
        self._since = since
        self._old, self._inside, self._flags, self._last = {}, {}, {}, {}

    def end(self) -> None:
        """Separate the variables of an iteration, which has been traced, from other arrays."""
        for array, _ in self._inside.values():
            forget(array)

    def enter(
        self, name: str, before: PartitionedValue, during: Sequence[Any], nodes: Sequence[Any]
    ) -> None:
        """Note a variable: its value before the loop, its numbers in a trip and their nodes."""
        for number, (x, y, node) in enumerate(
            zip(before.numeric_leaves, during, nodes, strict=True)
        ):
            if isinstance(y, Handle) and node.spec.shape:
                self._inside[name, number] = y, node
                if isinstance(x, Handle) and not isinstance(x, LoopRow):
                    self._old[name, number] = x

    def relate(self) -> None:
        """Record, in an iteration, which arrays variables may share memory with."""
        for key, old in self._old.items():
            self._add_memories(key, memories_of(old))
            for array in unknown_of(owner_of_memory(old)):
                self._unknown.setdefault(key, {})[id(array)] = array
        if self._is_first:
            self._is_first = False
            self._add_pairs({key: self._identities(old) for key, old in self._old.items()})
        group = object()
        unknown: list[tuple[Handle, Handle]] = []
        for key, (array, _) in self._inside.items():
            memories = []
            for number, memory in self._memories.get(key, {}).items():
                flag = self._flags[key, number] = placeholder(_BOOL)
                memories.append(PossibleMemory(memory, wrap(flag)))
            set_memories(array, memories, group)
            unknown += [(array, other) for other in self._unknown.get(key, {}).values()]
        for one, two in self._pairs:
            if one in self._inside and two in self._inside:
                unknown.append((self._inside[one][0], self._inside[two][0]))
        add_unknown(unknown)

    def leave(self, name: str, after: Any) -> None:
        """Note the value of a variable at the end of the body."""
        for number, x in enumerate(arrays_in(after)):
            if x is not None:
                self._last[name, number] = x
                if x.node.op is AMBIGUOUS:
                    raise _another_name(name)

    def is_known(self, modified: dict[Handle, Node]) -> bool:
        """Whether the body was traced with what its variables share memory with; else it is noted.

        Parameters
        ----------
        modified : dict
            The arrays from outside that the body modifies, and their nodes at its end.
        """
        if any(node.op is AMBIGUOUS for node in modified.values()):
            raise _another_name("an array")
        count = self._count()
        for key, x in self._last.items():
            self._note(key, x)
        self._add_pairs({key: self._identities(x) for key, x in self._last.items()})
        return self._count() == count

    def _count(self) -> int:
        known: list[Sized] = [*self._memories.values(), *self._unknown.values(), self._pairs]
        return sum(map(len, known))

    def _key_of(self, x: Handle) -> Key | None:
        """The variable whose array an iteration starts with is `x`."""
        return next((key for key, (array, _) in self._inside.items() if array is x), None)

    def _add_memories(self, key: Key, memories: Iterable[PossibleMemory]) -> None:
        for memory, _ in memories:
            self._memories.setdefault(key, {})[id(memory)] = memory

    def _note(self, key: Key, x: Handle) -> None:
        """Note what a variable that has a value after an iteration may share memory with."""
        owner = owner_of_memory(x)
        start = self._key_of(owner)
        if x.node.serial < self._since:
            self._add_memories(key, memories_of(x))
        elif x is not owner:
            for other in may_share(owner):
                self._add_unknown(key, other)
        else:
            if start is not None:
                self._memories.setdefault(key, {}).update(self._memories.get(start, {}))
            known = {m for found in self._memories.values() for m in found}
            for choice in choices_of(x):
                array = choice.memory.handle
                if id(choice.memory) in known or self._is_old(choice.memory):
                    self._add_memories(key, [choice])
                elif array is not None and owner_of_memory(array) is not array:
                    for other in may_share(array):  # a view that the iteration has made
                        self._add_unknown(key, other)
            for other in unknown_of(x):
                self._add_unknown(key, other)
            for other in may_share(x):
                if self._key_of(other) is not None:
                    for more in unknown_of(other):
                        self._add_unknown(key, more)

    def _is_old(self, memory: ArrayMemory) -> bool:
        """Whether it is the memory of an array from before the loop."""
        handle = memory.handle
        return handle is not None and handle.node.serial < self._since

    def _add_unknown(self, key: Key, array: Handle) -> None:
        start = self._key_of(array)
        if start is not None:
            more = [m.handle for m in self._memories.get(start, {}).values()]
            more += self._unknown.get(start, {}).values()
        else:
            more = [array]
        for x in more:
            if x is not None and x.node.serial < self._since:
                x = owner_of_memory(x)
                self._unknown.setdefault(key, {})[id(x)] = x

    def _identities(self, x: Handle) -> set[int]:
        """The memories that a value may have, within one iteration."""
        owner = owner_of_memory(x)
        if self._key_of(owner) is not None:
            return {id(owner)}
        return {id(owner), *map(id, may_share(owner)), *[id(m) for m, _ in memories_of(owner)]}

    def _add_pairs(self, identities: dict[Key, set[int]]) -> None:
        """Note pairs of variables that may share memory within one iteration."""
        for (one, a), (two, b) in itertools.combinations(identities.items(), 2):
            if a & b:
                self._pairs[one, two] = None

    # ---- the node ------------------------------------------------------------------------------

    def flags(self, runs_at_least_once: bool) -> list[tuple[Node, Any, Any]]:
        """The booleans that say which memories variables have, to be carried.

        These are a placeholder, the value after an iteration, and that before the loop.
        """
        views = {
            key: ViewPath.of(x, self._since)
            for key, x in self._last.items()
            if owner_of_memory(x) is not x
            and x.node.serial >= self._since
            and not choices_of(owner_of_memory(x))
        }
        self._views = {key: path for key, path in views.items() if path and self._is_known(path)}
        values = {
            (key, number): self._has(self._last[key], memory)
            for key, found in self._memories.items()
            for number, memory in found.items()
            if key in self._last and (key not in self._inside or (key, number) in self._flags)
        }
        is_exchanged = len({number for _, number in values}) < len(values)
        found = []
        self._carried = []
        for (key, number), value in values.items():
            is_used = is_exchanged or self._writes(key)
            if value is False and runs_at_least_once and not is_used:
                continue
            memory = self._memories[key][number]
            start = self._has(self._old[key], memory) if key in self._old else False
            flag = self._flags.get((key, number)) or placeholder(_BOOL)
            found.append((flag, _boolean(value), _boolean(start)))
            self._carried.append((key, memory))
        return found

    def _is_known(self, path: ViewPath) -> bool:
        """Whether the indices of a view do not depend on the iteration."""
        return all(x.serial < self._since for x in path.operands)

    def _has(self, x: Handle, memory: ArrayMemory) -> Any:
        """Whether a value has a memory, as a whole."""
        start = self._key_of(x)
        if start is not None:
            flag = self._flags.get((start, id(memory)))
            return False if flag is None else wrap(flag)
        is_view = owner_of_memory(x) is not x and x.node.serial >= self._since
        return next((c for m, c in memories_of(x) if m is memory and not is_view), False)

    def _writes(self, key: Key) -> bool:
        """Whether the body writes to the array that a variable is at its start."""
        array, node = self._inside.get(key, (None, None))
        return array is not None and array.node is not node

    # ---- where arrays come from ----------------------------------------------------------------

    @property
    def at_end(self) -> Mapping[Key, Handle]:
        """The arrays that variables are at the end of an iteration."""
        return self._last

    def written_at_start(self) -> list[Handle]:
        """What variables are at the end of an iteration if the next one writes to them."""
        return [x for key, x in self._last.items() if self._writes(key)]

    def is_older(self, array: Handle) -> bool:
        """Whether an array is from before the loop."""
        return array.node.serial < self._since

    def is_new(self, array: Handle) -> bool:
        """Whether each iteration makes an array, which is not a view of another."""
        is_view = owner_of_memory(array) is not array
        return not is_view and self._key_of(array) is None and not self.is_older(array)

    def sources(self, array: Handle) -> Sources:
        """What an array in an iteration may be, or be a view of.

        What a variable is at the start of an iteration is what it was at the end of an earlier one,
        or before the loop.
        """
        found = Sources({}, {})
        seen: set[tuple[int, bool]] = set()
        waiting: list[tuple[Handle, bool]] = [(array, True)]
        while waiting:
            x, is_direct = waiting.pop()
            x = owner_of_memory(x)
            if (id(x), is_direct) in seen:
                continue
            seen.add((id(x), is_direct))
            key = self._key_of(x)
            if key is not None:
                starts = [a[key] for a in (self._old, self._last) if key in a]
                starts += self._unknown.get(key, {}).values()
                waiting += [(a, False) for a in starts]
                continue
            more = may_share(x)
            if isinstance(x, LoopRow):
                more.append(source_of(x))
            waiting += [(a, is_direct) for a in more]
            made = source_of(x) if isinstance(x, LoopRow) else x
            for arrays in found if self.is_older(made) else (found[not is_direct],):
                arrays[id(x)] = made
        return found

    def written(self, block: TracedBlock) -> list[Handle]:
        """The arrays from outside that may or may not be modified.

        Parameters
        ----------
        block : TracedBlock
            The body.
        """
        inside = {id(array) for array, _ in self._inside.values()}
        found = [x for x, node in block.final.items() if node.op is AMBIGUOUS]
        return [x for x in found if id(x) not in inside]

    def check(self, block: TracedBlock, captured: Sequence[Node]) -> None:
        """Refuse a body that reads arrays which it may modify by other names.

        Parameters
        ----------
        block : TracedBlock
        captured : sequence of Node
            The values from outside that the body reads.

        Raises
        ------
        NotTraceable
        """
        read = set(map(id, captured))
        for array in self.written(block):
            if id(array.node) in read:
                raise _another_name(f"an array {array.node.spec}")

    def record(self, results: dict[str, list[Any]], is_empty: Any, flags: Sequence[Any]) -> None:
        """Record, after the loop, with which arrays results share memory.

        Parameters
        ----------
        results : dict
            The numbers of the values of the variables after the loop.
        is_empty : Tensor, bool or None
            Whether there is no iteration; None if that is not known.
        flags : sequence of Tensor
            The values of the booleans of `flags`.
        """
        runs = True if is_empty is False else None
        if isinstance(is_empty, Handle):
            runs = lookup("logical_not")(is_empty)
        for (key, memory), flag in zip(self._carried, flags, strict=True):
            result = results[key[0]][key[1]]
            if isinstance(result, Handle):
                set_memories(result, [PossibleMemory(memory, flag)])
        unknown: list[tuple[Handle, Handle]] = []
        for key in self._last:
            result, path = results[key[0]][key[1]], self._views.get(key)
            if path is not None and runs is not None:
                operands = [wrap(x) for x in path.operands]
                if runs is not True:  # the index may be out of bounds
                    operands = [
                        lookup("where")(runs, x, x.node.spec.dtype.type(0)) for x in operands
                    ]
                add_choices(result, [(path.view(operands), runs)])
            else:
                unknown += [(result, other) for other in self._unknown.get(key, {}).values()]
        for one, two in self._pairs:
            if one in self._last and two in self._last:
                pair = results[one[0]][one[1]], results[two[0]][two[1]]
                if self._last[one] is self._last[two] and runs is not None:
                    own = [m for m in memories_of(pair[0]) if m.memory.handle is pair[0]]
                    set_memories(pair[1], [PossibleMemory(m, _all(c, runs)) for m, c in own])
                else:
                    unknown.append(pair)
        add_unknown(unknown)


def _all(a: Any, b: Any) -> Any:
    if a is True:
        return b
    return a if b is True else lookup("logical_and")(a, b)


def _boolean(x: Any) -> Any:
    return np.bool_(x) if type(x) is bool else x


def _another_name(name: str) -> NotTraceable:
    return NotTraceable(f"{subject(name)} may be another name of an array that it modifies", True)

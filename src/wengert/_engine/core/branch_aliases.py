"""Branch aliases: arrays that share the memory of others if a traced condition holds.

    if c:
        b = a
    else:                # b is an array of its own, with the value of one of the branches
        b = 2.0 * a
    b[0] = 5.0           # a[0] is 5.0 too where c holds

Each array has a memory.  The value of a branch has the memories of what the variable was in the
branches, each on a condition, and one of its own.  A write to an array writes to all others with
the same memory, where the conditions hold; where a condition is not known, using the others
afterwards is an error.

add_choices    record that an array has the memory of others on conditions
add_overlapping   record that rows of an array may be the same array
add_unknown    record that arrays may share memory, on conditions that are not known
set_memories   record the memories of an array
forget         separate an array from others
forget_all     separate the arrays of a traced block
choices_of     the memories that an array has on conditions
memories_of    these, and the one that it has otherwise
own_memory     the latter
unnoticed      a context in which writes do not reach other arrays
unknown_of     the arrays with which an array may share memory
may_share      the arrays whose memory an array may have
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from .handle import (
    AMBIGUOUS,
    Handle,
    make_ambiguous,
    owner_of_memory,
    rebind,
    register_aliases,
    wrap,
)
from .loop_rows import LoopRow, source_of
from .op import lookup
from .recording import current_trace


class ArrayMemory:
    """The memory that an array has if it has none of the others.

    Parameters
    ----------
    handle : Handle or None
        Kept alive if it is a view: a write to it writes to its base. None for memory that arrays
        have only on conditions.
    """

    __slots__ = ("__weakref__", "_handle", "_kept", "_members")

    def __init__(self, handle: Handle | None) -> None:
        self._handle = None if handle is None else weakref.ref(handle)
        self._kept = handle if hasattr(handle, "_link") else None
        self._members: list[weakref.ref[Handle]] = []

    @property
    def handle(self) -> Handle | None:
        """The array whose own memory it is; None if nothing refers to it any longer."""
        return None if self._handle is None else self._handle()

    def add(self, handle: Handle) -> None:
        """Note an array that has it on a condition."""
        self._members.append(weakref.ref(handle))

    def remove(self, handle: Handle) -> None:
        """Note that an array does not have it any longer."""
        self._members = [ref for ref in self._members if ref() is not handle]

    def arrays(self) -> Iterator[tuple[Handle, Any]]:
        """The arrays that have it, each with the condition; True if it always does."""
        own = self.handle
        if own is not None:
            yield own, True
        for ref in self._members:
            member = ref()
            if member is not None:
                yield member, _aliases(member).condition(self)


class PossibleMemory(NamedTuple):
    """A memory, and the condition on which an array has it."""

    memory: ArrayMemory
    condition: Any


class _Aliases:
    """The memories of an array, and the arrays with which it may share memory."""

    __slots__ = ("choices", "group", "own", "unknown")

    def __init__(self, handle: Handle) -> None:
        self.own = ArrayMemory(handle)
        self.group: object = None  # of arrays that have a memory one at a time
        self.choices: list[PossibleMemory] = []
        self.unknown: list[weakref.ref[Handle]] = []

    def condition(self, memory: ArrayMemory) -> Any:
        return next(c.condition for c in self.choices if c.memory is memory)


def _aliases(handle: Handle) -> _Aliases:
    found: _Aliases | None = getattr(handle, "_aliases", None)
    if found is None:
        found = handle._aliases = _Aliases(handle)  # type: ignore[attr-defined]
        register_aliases(_written)  # from now on it is called after each write to an array
    return found


def choices_of(handle: Handle) -> Sequence[PossibleMemory]:
    """The memories that an array has on conditions."""
    found: _Aliases | None = getattr(handle, "_aliases", None)
    return () if found is None else found.choices


def unknown_of(handle: Handle) -> list[Handle]:
    """The arrays with which an array may share memory, on conditions that are not known."""
    found: _Aliases | None = getattr(handle, "_aliases", None)
    return [] if found is None else [x for ref in found.unknown if (x := ref()) is not None]


def may_share(handle: Handle) -> list[Handle]:
    """The arrays whose memory an array may have, the owner of its memory among them."""
    owner = owner_of_memory(handle)
    others = [other for memory, _ in choices_of(owner) for other, _ in memory.arrays()]
    others = [owner, *others]
    others += [x for other in others for x in unknown_of(other)]
    return list({id(x): x for x in map(owner_of_memory, others)}.values())


def memories_of(handle: Handle) -> list[PossibleMemory]:
    """The memories of an array: those that it has on conditions, then its own."""
    found = _aliases(handle)
    own: Any = True
    for _, condition in found.choices:
        own = _both(own, lookup("logical_not")(condition))
    return [*found.choices, PossibleMemory(found.own, own)]


def own_memory(handle: Handle) -> ArrayMemory:
    """The memory that an array has if it has none on conditions."""
    return _aliases(handle).own


def add_choices(handle: Handle, others: Sequence[tuple[Handle | ArrayMemory, Any]]) -> None:
    """Record that an array has the memory of others on conditions.

    Parameters
    ----------
    handle : Handle
    others : sequence of (Handle or ArrayMemory, condition)
        An array stands for all memories that it may have. A condition is a traced boolean, or True.
    """
    found: dict[ArrayMemory, Any] = {}
    for other, condition in others:
        if isinstance(other, ArrayMemory):
            memories = [PossibleMemory(other, True)]
        else:
            memories = memories_of(other)
        for memory, inner in memories:
            both = _both(condition, inner)
            found[memory] = _either(found[memory], both) if memory in found else both
    aliases = _aliases(handle)
    _note(handle)
    for memory, condition in found.items():
        memory.add(handle)
        aliases.choices.append(PossibleMemory(memory, condition))


def set_memories(handle: Handle, memories: Sequence[PossibleMemory], group: object = None) -> None:
    """Record that an array has memories on conditions.

    Parameters
    ----------
    handle : Handle
        A new array.
    memories : sequence of PossibleMemory
    group : object, optional
        The same for arrays of which at most one has such a memory at a time.
    """
    aliases = _aliases(handle)
    aliases.group = group
    _note(handle)
    for one in memories:
        one.memory.add(handle)
        aliases.choices.append(one)


def forget(handle: Handle) -> None:
    """Separate an array, which will not be used any longer, from those that share its memory."""
    aliases: _Aliases | None = getattr(handle, "_aliases", None)
    if aliases is None:
        return
    for memory, _ in aliases.choices:
        memory.remove(handle)
    for other in unknown_of(handle):
        others = _aliases(other)
        others.unknown = [ref for ref in others.unknown if ref() is not handle]
    aliases.choices, aliases.unknown = [], []


def _note(handle: Handle) -> None:
    """Note a new array of a block, which is separated from others when the block is left."""
    session = current_trace()
    if session is not None and session.isolated:
        session.aliased.append(weakref.ref(handle))


def forget_all(references: Sequence[weakref.ref[Handle]]) -> None:
    """Separate the arrays of a traced block, of which only the results are used, from others."""
    for reference in references:
        handle = reference()
        if handle is not None:
            forget(handle)


def _in_same_group(a: Handle, b: Handle) -> bool:
    group = _aliases(a).group
    return group is not None and group is _aliases(b).group


def add_unknown(pairs: Sequence[tuple[Handle, Handle]], one_way: bool = False) -> None:
    """Record that arrays may share memory with others, on conditions that are not known.

    With `one_way` only writes to the first of a pair are noticed.
    """
    more = [] if one_way else [(a, c) for a, b in pairs for c in may_share(b)]
    for a, b in [*pairs, *more]:
        for one, other in ((a, b),) if one_way else ((a, b), (b, a)):
            if a is not b and not any(ref() is other for ref in _aliases(one).unknown):
                _aliases(one).unknown.append(weakref.ref(other))


def add_overlapping(handle: Handle) -> None:
    """Record that elements of a list, which are rows of an array, may be the same array."""
    _aliases(handle).unknown.append(weakref.ref(handle))


class _Active(threading.local):
    """The arrays that this thread is writing to because of a write to another."""

    handles: frozenset[int] = frozenset()
    is_noticing = True


_active = _Active()


@contextmanager
def unnoticed() -> Iterator[None]:
    """A context in which writes do not reach other arrays."""
    before, _active.is_noticing = _active.is_noticing, False
    try:
        yield
    finally:
        _active.is_noticing = before


def _written(handle: Handle) -> None:
    """Write to all arrays that share the memory of one, or of its views, on a condition."""
    waiting, before = [handle] if _active.is_noticing else [], _active.handles
    while waiting:
        one = waiting.pop()
        if id(one) not in before and getattr(one, "_aliases", None) is not None:
            _active.handles = before | {id(handle)}  # its value is known
            try:
                _spread(one)
            finally:
                _active.handles = before
        if isinstance(one, LoopRow) and getattr(source_of(one), "_aliases", None) is not None:
            for other in unknown_of(source_of(one)):
                _make_ambiguous(other, one)
        waiting += [v for ref in getattr(one, "_views", None) or () if (v := ref()) is not None]


def _spread(handle: Handle) -> None:
    if handle.node.op is AMBIGUOUS:
        return
    others: dict[int, tuple[Handle, list[Any]]] = {}
    if choices_of(handle) or any(x is not handle for x, _ in _aliases(handle).own.arrays()):
        for memory, condition in memories_of(handle):
            for other, inner in memory.arrays():
                is_active = other is handle or id(other) in _active.handles
                if not is_active and not _in_same_group(other, handle):
                    found = others.setdefault(id(other), (other, []))
                    found[1].append(_both(condition, inner))
    before = _active.handles
    _active.handles = before | {id(handle), *others}
    try:
        for other, conditions in others.values():
            _write(other, handle, conditions)
        # What a variable of a loop may share memory with is also noted for its other memories.
        for one in (handle, *[x for x, _ in others.values() if _aliases(x).group is None]):
            for other in unknown_of(one):
                if other is not handle and id(other) not in before:
                    _make_ambiguous(other, handle)
    finally:
        _active.handles = before


def _make_ambiguous(handle: Handle, written: Handle) -> None:
    """Make it an error to use an array, and those that share its memory on a condition."""
    if handle.node.op is AMBIGUOUS:
        return
    make_ambiguous(owner_of_memory(handle), except_for=written)
    for other, _ in _aliases(handle).own.arrays():  # those with its other memories are noted, too
        if other is not written and id(other) not in _active.handles:
            _make_ambiguous(other, written)


def _write(other: Handle, written: Handle, conditions: Sequence[Any]) -> None:
    """Give an array the value of another if one of some conditions holds."""
    if other.node.op is AMBIGUOUS:
        return
    a, b = other.node.spec, written.node.spec
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        make_ambiguous(owner_of_memory(other), except_for=written)
        return
    condition = conditions[0]
    for more in conditions[1:]:
        condition = _either(condition, more)
    value = wrap(written.node)
    if condition is not True:
        value = lookup("where")(condition, value, wrap(other.node))
    rebind(other, value.node)


def _both(a: Any, b: Any) -> Any:
    if a is True:
        return b
    return a if b is True else lookup("logical_and")(a, b)


def _either(a: Any, b: Any) -> Any:
    return True if a is True or b is True else lookup("logical_or")(a, b)

"""Which arrays the elements of lists share memory with, where a traced loop has appended them.

    for _ in range(n):
        y *= 0.5          # in Python this changes the last element of out, too
        y = y + x
        out.append(y)
    y[0] = 0.0            # and this is the last element

writes_appended   whether an iteration modifies arrays that earlier ones have appended
relate_appended   record, after the loop, what elements share memory with

An array of the last iteration, and a variable that refers to it, have the same memory
(branch_aliases.py).  Of other arrays it is only known that an element may be one of them: using
them after a write to the other is an error.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from wengert._engine.core.branch_aliases import (
    PossibleMemory,
    add_overlapping,
    add_unknown,
    choices_of,
    own_memory,
    set_memories,
)
from wengert._engine.core.handle import Handle, owner_of_memory
from wengert._engine.core.loop_rows import LoopRow

from .list_appends import AppendedArrays
from .loop_memory import LoopMemory, Sources
from .shared_memory import Key


def writes_appended(
    memory: LoopMemory, appended: Iterable[Handle], modified: Iterable[Handle]
) -> bool:
    """Whether an iteration modifies arrays that it, or an earlier one, has appended.

    Parameters
    ----------
    memory : LoopMemory
    appended : iterable of Handle
        The arrays that an iteration appends.
    modified : iterable of Handle
        The arrays from before the loop that it modifies.
    """
    found = _sources(memory, appended)
    if any(id(owner_of_memory(x)) in found.direct for x in modified):
        return True
    return any(_may_be(found, memory.sources(x)) for x in memory.written_at_start())


def relate_appended(
    memory: LoopMemory, appended: Sequence[AppendedArrays], results: dict[str, list[Any]]
) -> None:
    """Record what the elements that a loop has appended share memory with.

    Parameters
    ----------
    memory : LoopMemory
    appended : sequence of AppendedArrays
    results : dict
        The numbers of the values of the variables after the loop.
    """
    if not appended:
        return
    known = _relate_last(memory, appended, results)
    unknown: list[tuple[Handle, Handle]] = []
    sources = [_sources(memory, a.arrays) for a in appended]
    for one, found in zip(appended, sources, strict=True):
        if _may_repeat(memory, found):
            add_overlapping(one.source)
        unknown += [(one.source, x) for x in found.all().values() if memory.is_older(x)]
        for key, x in memory.at_end.items():
            result = results[key[0]][key[1]]
            if key not in known and _may_be(found, memory.sources(x)):
                unknown.append((one.source, result))
    for (one, a), (two, b) in itertools.combinations(zip(appended, sources, strict=True), 2):
        if not a.all().keys().isdisjoint(b.all()):
            unknown += [(one.source, two.source), (two.source, one.source)]
    add_unknown(unknown)


def _sources(memory: LoopMemory, arrays: Iterable[Handle]) -> Sources:
    found = Sources({}, {})
    for array in arrays:
        for one, more in zip(found, memory.sources(array), strict=True):
            one.update(more)
    return found


def _may_be(appended: Sources, end: Sources) -> bool:
    """Whether what a variable is at the end of an iteration has been appended until then."""
    if not appended.direct.keys().isdisjoint(end.direct):
        return True
    return not appended.all().keys().isdisjoint(end.earlier)


def _may_repeat(memory: LoopMemory, appended: Sources) -> bool:
    """Whether iterations may append an array that an earlier one has appended."""
    if not appended.direct.keys().isdisjoint(appended.earlier):
        return True
    kept = [memory.sources(x).earlier for x in memory.at_end.values()]
    return any(not appended.earlier.keys().isdisjoint(arrays) for arrays in kept)


def _relate_last(
    memory: LoopMemory, appended: Sequence[AppendedArrays], results: dict[str, list[Any]]
) -> set[Key]:
    """Give variables the memory of the last elements that they are; these variables."""
    elements: dict[int, list[Any]] = {}
    for arrays, _, last in appended:
        for array, row in zip(arrays, last, strict=False):
            if not isinstance(array, LoopRow) and memory.is_new(array) and not choices_of(array):
                elements.setdefault(id(array), []).append(row)
    known = set()
    for key, x in memory.at_end.items():
        result = results[key[0]][key[1]]
        if id(x) in elements and isinstance(result, Handle):
            elements[id(x)].append(result)
            known.add(key)
    for first, *others in elements.values():
        for other in others:
            set_memories(other, [PossibleMemory(own_memory(first), True)])
    return known

"""Walks: sweeps that share their outer loops.

A sum along rows and what is done with it, softmax, a variance, are several sweeps over the same
rows: each waits for the one before.  Taken row by row they find the row where they left it, in the
nearest cache or in registers; what only they need is never as large as the whole array.

    Sweep      items computed together, in one pass over one space
    Walk       sweeps one after the other, for each row
    walks_of   sweeps put together
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from wengert._engine.backends.llvm.ir.affine import Flat, Index, Length, counters, is_one
from wengert._engine.backends.llvm.lowering.loop_ir import Held, Item, Reduce

_FULL = 4000  # the code of all roots of a sweep: what is cut in two goes through memory between
_LEAF = 20  # the work from which on a rule is a leaf,
_CODE = 100  # which is so much more code than work
_ARRAY = 30  # code for an array that is read: its address is kept throughout
_AHEAD = 24  # so many stages further on is looked for sweeps of the same rows
_SHORT = 8  # rows of fewer elements are better taken side by side


class Access(NamedTuple):
    """A stored item, and where a sweep reads it."""

    item: Item
    index: Index | None  # type: ignore[assignment]  # it hides a method of tuples


class Sweep:
    """Items computed together, in one walk over one space.

    Attributes
    ----------
    space : tuple of Length
    reduced : tuple of int, or None
        The axes that its reductions combine; None if it has none.
    roots : list of Item
    weight : int
    code : int
        What LLVM takes its time by.
    """

    def __init__(self, space: tuple[Length, ...]) -> None:
        self.space = space
        self.reduced: tuple[int, ...] | None = None
        self.roots: list[Item] = []
        self.weight = self.code = 0
        self._known: set[Item] = set()

    def add(self, root: Item, accesses: Sequence[Access]) -> None:
        """Put an item in, which reads these."""
        self.roots.append(root)
        before = len(self._known)
        self._known.update(access.item for access in accesses)
        self.code += _ARRAY * (len(self._known) - before)
        self._known.add(root)
        self.weight += 2 + root.weight
        self.code += 2 + root.weight + _CODE * _leaves(root)
        if isinstance(root.rule, Reduce):
            self.reduced = root.rule.axes

    def takes(self, root: Item) -> bool:
        """Whether an item over its space can join."""
        if self.code + root.weight > _FULL:
            return False
        if not isinstance(root.rule, Reduce) or self.reduced is None:
            return True
        return self.reduced == root.rule.axes

    def __repr__(self) -> str:
        return f"<sweep over {list(self.space)}: {', '.join(map(str, self.roots))}>"


class Walk:
    """Sweeps one after the other, for each row.

    Attributes
    ----------
    sweeps : list of Sweep
    rows : int
        How many leading axes they share; 0 for a sweep alone.
    local : dict from Item to None
        What is kept for one row only.
    """

    def __init__(self, sweeps: list[Sweep], rows: int = 0) -> None:
        self.sweeps, self.rows = sweeps, rows
        self.local: dict[Item, None] = {}

    def __repr__(self) -> str:
        return f"<walk of {self.sweeps}>" if self.rows else repr(self.sweeps[0])


def _leaves(root: Item) -> int:
    """How many leaves the expression of a root has."""
    count, pending, seen = 0, [root], {root}
    while pending:
        item = pending.pop()
        count += item.rule.weight >= _LEAF
        for x in item.operands:
            if not x.is_root and x not in seen:
                seen.add(x)
                pending.append(x)
    return count


def space_of(root: Item) -> tuple[Length, ...]:
    """What is walked over to compute a root."""
    return root.operands[0].shape if isinstance(root.rule, Reduce) else root.shape


def roots_of(stage: Walk | Item) -> list[Item]:
    """What a stage computes."""
    return [r for s in stage.sweeps for r in s.roots] if isinstance(stage, Walk) else [stage]


def walks_of(
    stages: Sequence[Sweep | Item],
    accesses: Callable[[Item], list[Access]],
    position: dict[Item, int],
) -> list[Walk | Item]:
    """The same stages, those that can share their rows put together.

    Parameters
    ----------
    stages : sequence of Sweep or Item
    accesses : callable
        What a root reads.
    position : dict
        For each root the number of its stage.
    """
    found: list[Walk | Item] = []
    gone: set[int] = set()
    for k, stage in enumerate(stages):
        if k in gone:
            continue
        if not isinstance(stage, Sweep):
            found.append(stage)
            continue
        rows = _rows_around(stages, k)
        walk = Walk([stage], rows)
        members = {k}
        if rows:
            for n in range(k + 1, min(k + 1 + _AHEAD, len(stages))):
                other = stages[n]
                if n in gone or not isinstance(other, Sweep):
                    continue
                if _fits(other, stage.space[:rows]) and _waits_for_rows_only(
                    other, accesses, position, members, k, rows
                ):
                    walk.sweeps.append(other)
                    members.add(n)
                    gone.add(n)
        if len(members) == 1:
            walk.rows = 0
        found.append(walk)
    return found


def _rows_of(sweep: Sweep) -> int:
    """How many leading axes its rows have, if what it combines are whole rows; else 0."""
    reduced = sweep.reduced
    if not reduced or is_one(sweep.space[0]):
        return 0
    first = min(reduced)
    if first == 0 or sorted(reduced) != list(range(first, len(sweep.space))):
        return 0
    length: Length = 1
    for n in sweep.space[first:]:
        length = length * n
    return 0 if type(length) is int and length < _SHORT else first


def _rows_around(stages: Sequence[Any], k: int) -> int:
    """The rows of a sweep, or those of a sweep over the same space that follows soon."""
    sweep = stages[k]
    found = _rows_of(sweep)
    if found or len(sweep.space) < 2:
        return found
    for other in stages[k + 1 : k + 1 + _AHEAD]:
        if isinstance(other, Sweep) and other.space == sweep.space:
            found = _rows_of(other)
            if found and _fits(sweep, sweep.space[:found]):
                return found
    return 0


def _fits(sweep: Sweep, rows: tuple[Length, ...]) -> bool:
    if sweep.space[: len(rows)] != rows:
        return False
    return bool(role_of(sweep, len(rows)))


def role_of(sweep: Sweep, rows: int) -> str:
    """What a sweep does with the rows of a walk; the empty word if it cannot be part of it.

    ``each`` does the same with each row; ``all`` combines everything; ``columns`` combines the
    rows with each other, place by place.
    """
    reduced = set(sweep.reduced or ())
    outer = set(range(rows))
    if not reduced & outer:
        return "each"
    monoids = {r.rule.monoid for r in sweep.roots if isinstance(r.rule, Reduce)}
    if reduced == set(range(len(sweep.space))):
        return "all"
    if reduced == outer and not monoids & {"argmax", "argmin"}:
        return "columns"
    return ""


def _waits_for_rows_only(
    sweep: Sweep,
    accesses: Callable[[Item], list[Access]],
    position: dict[Item, int],
    members: set[int],
    start: int,
    rows: int,
) -> bool:
    """Whether all that a sweep needs is there before the walk, or in the same row of it."""
    here = counters(sweep.space)[:rows]
    for root in sweep.roots:
        for access in accesses(root):
            x = access.item
            if isinstance(x.rule, Held) or x in sweep.roots:
                continue
            if position[x] in members:
                index = access.index
                if index is None or isinstance(index, Flat) or index[:rows] != here:
                    return False
                if not isinstance(x.rule, Reduce) and x.shape[:rows] != sweep.space[:rows]:
                    return False
            elif position[x] >= start:
                return False
    return True

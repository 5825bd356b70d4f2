"""Apart: sweeps over one space that have nothing to do with each other.

Whatever can be computed in one pass over a space joins one sweep.  So an optimiser's updates of all
the parameters of one length are one loop, whose text is as long as they are many, though they read
no array together.  As sweeps of their own they are alike, and LLVM compiles one of them.

    parted    stages, such sweeps taken apart
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wengert._engine.backends.llvm.ir.affine import size_of
from wengert._engine.backends.llvm.lowering.loop_ir import Held, Item

from .fusion import Access, Sweep

_ALIKE = 4  # so many that are alike are worth it
_LEAST = 64  # elements: the call of a loop takes as long as some vectors


def parted(
    stages: Sequence[Sweep | Item], accesses: Callable[[Item], list[Access]]
) -> list[Sweep | Item]:
    """The same stages; of sweeps whose parts have nothing in common the parts that are alike.

    Parameters
    ----------
    stages : sequence of Sweep or Item
    accesses : callable
        What a root reads.
    """
    found: list[Sweep | Item] = []
    for stage in stages:
        found += _parts(stage, accesses) if isinstance(stage, Sweep) else [stage]
    return found


def _parts(sweep: Sweep, accesses: Callable[[Item], list[Access]]) -> list[Sweep]:
    size = size_of(sweep.space)
    if len(sweep.roots) < _ALIKE or type(size) is not int or size < _LEAST:
        return [sweep]
    groups: dict[Any, list[list[Item]]] = {}
    for roots in _components(sweep, accesses):
        groups.setdefault(_kind(roots, accesses), []).append(roots)
    made, rest = [], []
    for parts in groups.values():
        if len(parts) >= _ALIKE:
            made += [_sweep(sweep, roots, accesses) for roots in parts]
        else:
            rest += [root for roots in parts for root in roots]
    if not made:
        return [sweep]
    others = [root for root in sweep.roots if root in set(rest)]
    return made + ([_sweep(sweep, others, accesses)] if others else [])


def _sweep(sweep: Sweep, roots: Sequence[Item], accesses: Callable[[Item], list[Access]]) -> Sweep:
    made = Sweep(sweep.space)
    for root in roots:
        made.add(root, accesses(root))
    return made


def _components(sweep: Sweep, accesses: Callable[[Item], list[Access]]) -> list[list[Item]]:
    """The roots that need each other, or read an array that others read, in their order."""
    head: dict[Item, Item] = {}

    def first(item: Item) -> Item:
        while head.setdefault(item, item) is not item:
            head[item] = head[head[item]]
            item = head[item]
        return item

    for root in sweep.roots:
        for access in accesses(root):
            x = access.item
            size = size_of(x.shape)
            if type(size) is not int or size > 1:
                head[first(x)] = first(root)
    found: dict[Item, list[Item]] = {}
    for root in sweep.roots:
        found.setdefault(first(root), []).append(root)
    return list(found.values())


def _kind(roots: Sequence[Item], accesses: Callable[[Item], list[Access]]) -> Any:
    """What parts that are alike have in common."""
    return tuple(
        (type(x.rule), x.weight, x.dtype, tuple([_read(a.item) for a in accesses(x)]))
        for x in roots
    )


def _read(x: Item) -> Any:
    return isinstance(x.rule, Held), x.shape, x.dtype

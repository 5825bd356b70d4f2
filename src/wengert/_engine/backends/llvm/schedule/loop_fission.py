"""Loop fission: loop groups whose parts share no operands are split.

All roots over one space join one loop group.  So an optimizer's updates of all parameters of one
size would be one long loop, although they share no arrays.  As separate loop groups they are
identical, and only one of them is compiled.

    split_loops    the stages, with such loop groups split
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir.affine import size_of
from ..lowering.loop_ir import Expr, Stored
from ..tuning import thresholds
from .fusion import Access, LoopGroup


def split_loops(
    stages: Sequence[LoopGroup | Expr], accesses: Callable[[Expr], list[Access]]
) -> list[LoopGroup | Expr]:
    """The stages, with loop groups split into identical independent parts.

    Parameters
    ----------
    accesses : callable
        Returns the reads of a root.
    """
    found: list[LoopGroup | Expr] = []
    for stage in stages:
        found += _parts(stage, accesses) if isinstance(stage, LoopGroup) else [stage]
    return found


def _parts(group: LoopGroup, accesses: Callable[[Expr], list[Access]]) -> list[LoopGroup]:
    size = size_of(group.space)
    if (
        len(group.roots) < thresholds.fission_loops
        or type(size) is not int
        or size < thresholds.fission_elements
    ):
        return [group]
    groups: dict[Any, list[list[Expr]]] = {}
    for roots in _components(group, accesses):
        groups.setdefault(_kind(roots, accesses), []).append(roots)
    made, rest = [], []
    for parts in groups.values():
        if len(parts) >= thresholds.fission_loops:
            made += [_loop_group(group, roots, accesses) for roots in parts]
        else:
            rest += [root for roots in parts for root in roots]
    if not made:
        return [group]
    others = [root for root in group.roots if root in set(rest)]
    return made + ([_loop_group(group, others, accesses)] if others else [])


def _loop_group(
    group: LoopGroup, roots: Sequence[Expr], accesses: Callable[[Expr], list[Access]]
) -> LoopGroup:
    made = LoopGroup(group.space)
    for root in roots:
        made.add(root, accesses(root))
    return made


def _components(group: LoopGroup, accesses: Callable[[Expr], list[Access]]) -> list[list[Expr]]:
    """Connected components of roots: they depend on each other, or read a common array."""
    parent: dict[Expr, Expr] = {}

    def first(expr: Expr) -> Expr:
        while parent.setdefault(expr, expr) is not expr:
            parent[expr] = parent[parent[expr]]
            expr = parent[expr]
        return expr

    for root in group.roots:
        for access in accesses(root):
            x = access.expr
            size = size_of(x.shape)
            if type(size) is not int or size > 1:
                parent[first(x)] = first(root)
    found: dict[Expr, list[Expr]] = {}
    for root in group.roots:
        found.setdefault(first(root), []).append(root)
    return list(found.values())


def _kind(roots: Sequence[Expr], accesses: Callable[[Expr], list[Access]]) -> Any:
    """A key that identical parts share."""
    return tuple(
        (
            *(type(x.rule), x.weight, x.dtype),
            tuple([(isinstance(y.rule, Stored), y.shape, y.dtype) for y, *_ in accesses(x)]),
        )
        for x in roots
    )

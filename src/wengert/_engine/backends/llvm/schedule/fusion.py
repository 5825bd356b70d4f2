"""Fusion: loop groups that share their outer loops.

A sum along rows and its uses, a softmax, a variance, are several loop groups over the same rows,
each of which depends on the previous one.  Fused along the rows, each finds its row in the L1 cache
or in registers, and intermediate results have the size of one row.

    LoopGroup         expressions computed together, in one pass over one iteration space
    FusedLoops        loop groups that run one after the other for each row
    fused_loops_of    the fused loops of a list of loop groups
    are_apart         whether sums and copies of rows are loops of their own
    split_rows        some of them not fused
    row_spaces        where loops over rows are expected; is_across: what does not fit there
    repeats           whether elements of an operand are used several times

Loop fission: loop groups whose parts share no operands are split.

All roots over one space join one loop group.  So an optimizer's updates of all parameters of one
size would be one long loop, although they share no arrays.  As separate loop groups they are
identical, and only one of them is compiled.

    split_loops    the stages, with such loop groups split
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple

from ..ir.index_analysis import FlatIndex, Index, Length, counters, is_one, size_of
from ..lowering.loop_ir import Expr, Reduce, Stored
from ..lowering.scatter_chains import SliceUpdate
from ..tuning import thresholds

PRODUCTS = ("matmul", "einsum")  # operations that may be products for a batch


class Access(NamedTuple):
    """A stored expression, and the index at which a loop group reads it."""

    expr: Expr
    index: Index | None  # type: ignore[assignment]  # it hides a method of tuples


class LoopGroup:
    """Expressions computed together, in one fused loop over one space.

    Attributes
    ----------
    space : tuple of Length
    reduced : tuple of int, or None
        The axes that its reductions reduce; None if it has none.
    roots : list of Expr
    weight : int
    code : int
        The estimated code size, which determines the compile time.
    """

    def __init__(self, space: tuple[Length, ...]) -> None:
        self.space = space
        self.reduced: tuple[int, ...] | None = None
        self.roots: list[Expr] = []
        self.weight = self.code = 0
        self._known: set[Expr] = set()

    def add(self, root: Expr, accesses: Sequence[Access]) -> None:
        """Add a root with its accesses."""
        self.roots.append(root)
        before = len(self._known)
        self._known.update(access.expr for access in accesses)
        self.code += thresholds.array_access_code * (len(self._known) - before)
        self._known.add(root)
        self.weight += 2 + root.weight
        self.code += 2 + root.weight + thresholds.library_call_code * _leaves(root)
        if isinstance(root.rule, Reduce):
            self.reduced = root.rule.axes

    def takes(self, root: Expr) -> bool:
        """Whether a root over the same space can join."""
        if self.code + root.weight > thresholds.loop_group_code:
            return False
        if not isinstance(root.rule, Reduce) or self.reduced is None:
            return True
        return self.reduced == root.rule.axes

    def __repr__(self) -> str:
        return f"<loop group over {list(self.space)}: {', '.join(map(str, self.roots))}>"


class FusedLoops:
    """Loop groups that run one after the other, for each row.

    Attributes
    ----------
    groups : list of LoopGroup
    rows : int
        The number of leading axes that they share; 0 for a single loop group.
    block : int
        The number of rows that each group computes before the next (schedule/slices.py).
    local : dict from Expr to None
        Results that are stored for the rows of a block only.
    is_apart : bool
        Whether rows are computed in parallel, by a device.
    """

    def __init__(self, groups: list[LoopGroup], rows: int = 0, is_apart: bool = False) -> None:
        self.groups, self.rows, self.block, self.is_apart = groups, rows, 1, is_apart
        self.local: dict[Expr, None] = {}

    def __repr__(self) -> str:
        return f"<fused loop of {self.groups}>" if self.rows else repr(self.groups[0])


def _leaves(root: Expr) -> int:
    """The number of calls of vector functions in a root."""
    count, pending, seen = 0, [root], {root}
    while pending:
        expr = pending.pop()
        count += expr.rule.weight >= thresholds.library_call_work
        for x in expr.operands:
            if not x.is_root and x not in seen:
                seen.add(x)
                pending.append(x)
    return count


def space_of(root: Expr) -> tuple[Length, ...]:
    """The iteration space of a root."""
    return root.operands[0].shape if isinstance(root.rule, Reduce | SliceUpdate) else root.shape


def roots_of(stage: FusedLoops | Expr) -> list[Expr]:
    """The roots of a stage."""
    return [r for s in stage.groups for r in s.roots] if isinstance(stage, FusedLoops) else [stage]


def repeats(x: Expr, expr: Expr) -> bool:
    """Whether elements of an operand are used by several elements of the expression."""
    return sum(not is_one(n) for n in x.shape) < sum(not is_one(n) for n in expr.shape)


def are_apart(root: Expr, group: LoopGroup, accesses: Callable[[Expr], Sequence[Access]]) -> bool:
    """Whether a root does not join a group, of which one sums, because the other copies rows.

    Memory is written fastest row by row, but sums over rows are taken in blocks of rows.
    """
    size = size_of(group.space)
    if type(size) is not int:
        return False
    return any(
        size * x.dtype.itemsize >= thresholds.separate_copy_bytes
        and x.shape == group.space
        and all(repeats(a.expr, x) for a in accesses(x))
        for x in (*group.roots, root)
        if not isinstance(x.rule, Reduce)
    )


def fused_loops_of(
    stages: Sequence[LoopGroup | Expr],
    accesses: Callable[[Expr], list[Access]],
    position: dict[Expr, int],
    is_by_columns: Callable[[LoopGroup], bool],
    segments: Sequence[int],
    apart: bool = False,
) -> list[FusedLoops | Expr]:
    """The stages, with loop groups fused that can share their rows.

    Parameters
    ----------
    accesses : callable
        Returns the reads of a root.
    position : dict
        The number of the stage of each root.
    is_by_columns : callable
        Whether the inner loop of a reduction should be along an axis that it keeps, so that it
        cannot share rows.
    segments : sequence of int
        A number for each stage; those with different numbers are not fused.
    apart : bool
        Whether rows are computed in parallel, so that rows of any length are worth it, and sums
        over rows only if there are many columns.
    """
    found: list[FusedLoops | Expr] = []
    fused_already: set[int] = set()
    for k, stage in enumerate(stages):
        if k in fused_already:
            continue
        if not isinstance(stage, LoopGroup):
            found.append(stage)
            continue
        rows = _rows_around(stages, k, apart)
        if rows and is_by_columns(stage):
            rows = 0
        fused = FusedLoops([stage], rows, apart)
        members = {k}
        if rows:
            for n in range(k + 1, min(k + 1 + thresholds.fusion_lookahead, len(stages))):
                other = stages[n]
                if n in fused_already or not isinstance(other, LoopGroup):
                    continue
                if segments[n] != segments[k]:
                    break
                if is_by_columns(other):
                    continue
                if _fits(other, stage.space[:rows], apart) and _operands_ready(
                    other, accesses, position, members, k, rows
                ):
                    fused.groups.append(other)
                    members.add(n)
                    fused_already.add(n)
        if len(members) == 1:
            fused.rows = 0
        found.append(fused)
    return found


def split_rows(
    stages: Sequence[FusedLoops | Expr], numbers: Container[int]
) -> list[FusedLoops | Expr]:
    """The stages, with some of the loops that are fused along rows as loops of their own."""
    found: list[FusedLoops | Expr] = []
    number = 0
    for stage in stages:
        if isinstance(stage, FusedLoops) and stage.rows:
            if number in numbers:
                found += [FusedLoops([group]) for group in stage.groups]
                stage = found.pop()
            number += 1
        found.append(stage)
    return found


def row_spaces(reachable: Sequence[Expr]) -> set[tuple[Length, ...]]:
    """The spaces of reductions that reduce the last axes, and keep the first ones."""
    found = set()
    for x in reachable:
        if isinstance(x.rule, Reduce) and x.rule.axes and min(x.rule.axes) > 0:
            space = x.operands[0].shape
            if sorted(x.rule.axes) == list(range(min(x.rule.axes), len(space))):
                found.add(space)
    return found


def is_across(root: Expr, group: LoopGroup) -> bool:
    """Whether a root, or a group that it could join, reduces along the first axis."""
    reduced = group.reduced or (root.rule.axes if isinstance(root.rule, Reduce) else ())
    return 0 in reduced


def _rows_of(group: LoopGroup, any_length: bool) -> int:
    """The number of leading axes if it reduces all other axes; else 0."""
    reduced = group.reduced
    if not reduced or is_one(group.space[0]):
        return 0
    first = min(reduced)
    if first == 0 or sorted(reduced) != list(range(first, len(group.space))):
        return 0
    length: Length = 1
    for n in group.space[first:]:
        length = length * n
    is_short = type(length) is int and length < thresholds.fused_row_elements
    return 0 if is_short and not any_length else first


def _rows_around(stages: Sequence[Any], k: int, apart: bool) -> int:
    """The rows of a loop group, or those of a loop group over the same space that follows soon."""
    group = stages[k]
    found = _rows_of(group, apart)
    if found or len(group.space) < 2:
        return found
    for other in stages[k + 1 : k + 1 + thresholds.fusion_lookahead]:
        if isinstance(other, LoopGroup) and other.space == group.space:
            found = _rows_of(other, apart)
            if found and _fits(group, group.space[:found], apart):
                return found
    return 0


def _fits(group: LoopGroup, rows: tuple[Length, ...], apart: bool) -> bool:
    if group.space[: len(rows)] != rows:
        return False
    role = role_of(group, len(rows))
    if not apart:
        return bool(role)
    length = size_of(group.space[len(rows) :])
    is_wide = type(length) is not int or length >= thresholds.inner_loop_elements
    return role == "each" or (role == "columns" and is_wide)


def role_of(group: LoopGroup, rows: int) -> str:
    """The role of a loop group in a fused loop; "" if it cannot be part of it.

    ``each`` computes each row separately; ``all`` reduces all axes; ``columns`` reduces over the
    rows, elementwise.
    """
    if any(isinstance(r.rule, SliceUpdate) for r in group.roots):
        return ""
    reduced = set(group.reduced or ())
    outer = set(range(rows))
    if not reduced & outer:
        return "each"
    monoids = {r.rule.monoid for r in group.roots if isinstance(r.rule, Reduce)}
    if reduced == set(range(len(group.space))):
        return "all"
    if reduced == outer and not monoids & {"argmax", "argmin"}:
        return "columns"
    return ""


def _operands_ready(
    group: LoopGroup,
    accesses: Callable[[Expr], list[Access]],
    position: dict[Expr, int],
    members: set[int],
    start: int,
    rows: int,
) -> bool:
    """Whether all operands of a group are available before the fused loop, or in the same row."""
    here = counters(group.space)[:rows]
    for root in group.roots:
        for access in accesses(root):
            x = access.expr
            if isinstance(x.rule, Stored) or x in group.roots:
                continue
            if position[x] in members:
                index = access.index
                if index is None or isinstance(index, FlatIndex) or index[:rows] != here:
                    return False
                if not isinstance(x.rule, Reduce) and x.shape[:rows] != group.space[:rows]:
                    return False
            elif position[x] >= start:
                return False
    return True


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

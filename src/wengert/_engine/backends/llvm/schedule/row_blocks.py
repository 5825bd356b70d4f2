"""Row blocks: the number of rows that each loop group of a fused loop computes at a time.

A sum over rows, `np.sum(x, axis=0)` or a vector times a matrix, adds each row to a buffer of one
row.  Row by row, the buffer is read and written once for each row.  Taken in blocks, the elements
of a column are added in registers first, and several rows are read from memory at a time.

Sums along rows, a matrix times a vector, are computed for some rows together: the vector is read
once for all of them, and processors read several rows faster than one.

block_of      the rows of a block; 1 if the groups are run row by row
choose_rows   the leading axes over which loop groups alone are iterated
jammed_rows   how many leading axes a loop group alone is iterated over for this
is_jammed     whether the sums of a loop group are computed for some rows together
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.affine import size_of
from ..lowering.loop_ir import Expr, Reduce
from ..tuning import thresholds
from .fusion import FusedLoops, LoopGroup, role_of
from .iteration_space import column_rows, space_for


def choose_rows(stages: Sequence[FusedLoops | Expr]) -> None:
    """Choose the leading axes over which single loop groups are iterated."""
    for fused in stages:
        if isinstance(fused, FusedLoops) and not fused.rows:
            fused.rows = column_rows(fused.groups[0]) or jammed_rows(fused.groups[0])


def block_of(fused: FusedLoops) -> int:
    """The number of rows of a block.

    Only loops that have a sum over rows are blocked, and sums along rows by themselves.  All rows
    of a block, and what is kept of them between groups, have to stay in the cache, since the groups
    follow one another.
    """
    rows, groups = fused.rows, fused.groups
    if not rows or fused.is_apart:
        return 1
    if len(groups) == 1 and role_of(groups[0], rows) == "each":
        return thresholds.row_block
    if all(role_of(group, rows) != "columns" for group in groups):
        return 1
    block = thresholds.row_block
    length = groups[0].space[rows - 1]
    if type(length) is int and length < block:
        return 1
    if len(groups) > 1:
        kept = sum(_row_bytes(x, rows) for x in fused.local)
        if kept * block > thresholds.row_stack_bytes:
            return 1
        group = max(groups, key=lambda group: len(group.space))
        size = size_of(group.space[rows:])
        if type(size) is int:
            itemsize = max(x.dtype.itemsize for x in group.roots)
            block = min(block, thresholds.row_block_bytes // max(size * itemsize, 1))
    return max(block, 1)


def jammed_rows(group: LoopGroup) -> int:
    """1 if the sums of a loop group alone go along the rows of its first axis, cheaply; else 0."""
    length = group.space[0] if len(group.space) == 2 else 1
    if type(length) is int and length < thresholds.row_block:
        return 0
    return int(_is_cheap_sum(group, 1))


def is_jammed(group: LoopGroup, fused: FusedLoops) -> bool:
    """Whether the sums of a loop group are computed for some rows together."""
    return fused.block > 1 and _is_cheap_sum(group, fused.rows)


def _is_cheap_sum(group: LoopGroup, rows: int) -> bool:
    """Whether a loop group sums along rows, in few instructions, in the order of memory."""
    if group.reduced != tuple(range(rows, len(group.space))) or not group.reduced:
        return False
    if any(not isinstance(r.rule, Reduce) or r.rule.monoid != "sum" for r in group.roots):
        return False
    size = size_of(group.space[rows:])
    if type(size) is int and size < thresholds.inner_loop_elements:
        return False
    whole = size_of(group.space)
    if type(whole) is int and whole < thresholds.jammed_elements:
        return False  # four times as much code
    if group.weight > thresholds.jammed_work:
        return False
    return space_for(group, 64).across


def _row_bytes(x: Expr, rows: int) -> int:
    """The size of a row in bytes; above the limit if unknown."""
    size = size_of(x.shape[rows:])
    return size * x.dtype.itemsize if type(size) is int else thresholds.row_stack_bytes + 1

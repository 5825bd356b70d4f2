"""Row blocks: the number of rows that the loop groups of a fused loop take in turn.

A sum over rows, `np.sum(x, axis=0)` or a vector times a matrix, adds each row to a buffer of one
row.  Row by row, the buffer is read and written once for each row.  Taken in blocks, the elements
of a column are added in registers first, and several rows are read from memory at a time.

    block_of    the rows of a block; 1 if each row is done before the next begins
"""

from __future__ import annotations

from ..ir.affine import size_of
from ..lowering.loop_ir import Expr
from ..tuning import thresholds
from .fusion import FusedLoops, role_of


def block_of(fused: FusedLoops) -> int:
    """The number of rows of a block.

    Only loops that have a sum over rows are blocked.  All rows of a block, and what is kept of
    them between groups, have to stay in the cache, since the groups follow one another.
    """
    rows = fused.rows
    if not rows or all(role_of(group, rows) != "columns" for group in fused.groups):
        return 1
    block = thresholds.row_block
    length = fused.groups[0].space[rows - 1]
    if type(length) is int and length < block:
        return 1
    if len(fused.groups) > 1:
        kept = sum(_row_bytes(x, rows) for x in fused.local)
        if kept * block > thresholds.row_stack_bytes:
            return 1
        group = max(fused.groups, key=lambda group: len(group.space))
        size = size_of(group.space[rows:])
        if type(size) is int:
            itemsize = max(x.dtype.itemsize for x in group.roots)
            block = min(block, thresholds.row_block_bytes // max(size * itemsize, 1))
    return max(block, 1)


def _row_bytes(x: Expr, rows: int) -> int:
    """The size of a row; more than fits anywhere where it is not known."""
    size = size_of(x.shape[rows:])
    return size * x.dtype.itemsize if type(size) is int else thresholds.row_stack_bytes + 1

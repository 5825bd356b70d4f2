"""Row blocks: the number of rows that each loop group of a fused loop computes at a time.

A sum over rows, `np.sum(x, axis=0)` or a vector times a matrix, adds each row to a buffer of one
row.  Row by row, the buffer is read and written once for each row.  Taken in blocks, the elements
of a column are added in registers first, and several rows are read from memory at a time.

    block_of    the rows of a block; 1 if the groups are run row by row
"""

from __future__ import annotations

from ..ir.affine import size_of
from ..lowering.loop_ir import Expr
from ..tuning import thresholds
from .fusion import FusedLoops, role_of


def block_of(fused: FusedLoops) -> int:
    """The number of rows of a block.

    Only loops with a sum over rows are blocked.  All rows of a block, and the results passed
    between groups, must stay in the cache, since the groups run one after the other.
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
    """The size of a row in bytes; above the limit if unknown."""
    size = size_of(x.shape[rows:])
    return size * x.dtype.itemsize if type(size) is int else thresholds.row_stack_bytes + 1

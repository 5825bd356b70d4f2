"""Upper bounds of lengths that differ between the steps of a loop.

The slice ``A[i, :j]`` is at most as long as the axis, so that memory for it can be reserved once.

    largest_sizes    an upper bound for each such length of a body
    largest_shape    an upper bound of a shape

Row blocks: the number of rows that each loop group of a fused loop computes at a time.

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

from collections.abc import Mapping, Sequence

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.node_properties import sizes_of
from wengert._engine.core.symbolic.dim import LOCAL, Dim, Length, is_open
from wengert._engine.ops.indexing.template import IndexSlot

from ..ir.index_analysis import size_of
from ..lowering.loop_ir import Expr, Reduce
from ..tuning import thresholds
from .fusion import FusedLoops, LoopGroup, role_of
from .iteration_space import column_rows, space_for


def largest_sizes(body: BaseGraph) -> dict[str, Length]:
    """For each length that its slices have, an upper bound of the size with its name."""
    found: dict[str, Length] = {}
    for node in body.nodes:
        if not any(n.startswith(LOCAL) for n in sizes_of(node.params.get("index"))):
            continue
        whole = node.params.get("shape") or node.inputs[0].spec.shape
        for part, length in zip(_parts(node.params["index"], len(whole)), whole, strict=False):
            if isinstance(part, slice) and not is_open(length):
                name = _name(part)
                if name is not None:
                    found.setdefault(name, length + 1)
    return found


def _parts(template: object, rank: int) -> list[object]:
    """The parts of an index for the axes of the array."""
    parts = list(template) if isinstance(template, tuple) else [template]
    parts = [p for p in parts if p is not None]
    if Ellipsis in [p for p in parts if not isinstance(p, IndexSlot | slice)]:
        k = parts.index(Ellipsis)
        parts[k : k + 1] = [slice(None)] * (rank - len(parts) + 1)
    return parts


def _name(part: slice) -> str | None:
    """The name of the size that is one more than the length of a slice."""
    if not is_open(part.stop) or part.step not in (None, 1):
        return None
    count = part.stop - (0 if part.start is None else part.start)
    names = [n for n in getattr(count, "names", ()) if n.startswith(LOCAL)]
    size = Dim({((names[0], 1),): 1}) if len(names) == 1 else None
    return names[0] if size is not None and count == size - 1 else None


def largest_shape(
    shape: Sequence[Length], sizes: Mapping[str, Length]
) -> tuple[Length, ...] | None:
    """An upper bound of a shape; None if there is none."""
    found = [_largest(n, sizes) for n in shape]
    return None if None in found else tuple(n for n in found if n is not None)


def _largest(length: Length, sizes: Mapping[str, Length]) -> Length | None:
    if not isinstance(length, Dim) or not is_open(length):
        return length
    total: Length = 0
    for product, factor in length.terms.items():
        names = [a for a, _ in product if isinstance(a, str) and a.startswith(LOCAL)]
        if not names:
            total = total + Dim({product: factor}) if product else total + factor
        elif len(product) != 1 or product[0][1] != 1:
            return None
        elif factor < 0:
            total = total + factor  # a size is at least one
        elif names[0] in sizes:
            total = total + sizes[names[0]] * factor
        else:
            return None
    return None if is_open(total) else total


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

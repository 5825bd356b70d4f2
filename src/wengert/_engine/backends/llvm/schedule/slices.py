"""Slices in loops: written in place, bounds of their lengths; blocks of rows.

    InPlaceWrites    the writes that can be in place

`A[1:-1] = f(B)` in the body of a loop is a loop over the slice that writes into A, if nothing that
is computed later needs the elements of A from before, and the new elements depend on elements of A
at their own places only.  Otherwise it is a selection for each element of a new array: A and that
array then alternate from step to step.  The results of a loop are written to in the same way
outside of loops, `y[0] = v` after a loop that made y, unless y is needed from before.

What is computed from the new elements later (the rewriter puts them in the place of `A[1:-1]`)
reads them in A, so they are not stored twice.

    largest_sizes    an upper bound for each length that differs between the steps of a loop
    largest_shape    an upper bound of a shape

The slice ``A[i, :j]`` is at most as long as the axis, so that memory for it can be reserved once.

    block_of      the rows of a block; 1 if the groups are run row by row
    choose_rows   the leading axes over which loop groups alone are iterated
    jammed_rows   how many leading axes a loop group alone is iterated over for this
    is_jammed     whether the sums of a loop group are computed for some rows together

A sum over rows, `np.sum(x, axis=0)` or a vector times a matrix, adds each row to a buffer of one
row.  Row by row, the buffer is read and written once for each row.  Taken in blocks, the elements
of a column are added in registers first, and several rows are read from memory at a time.  Sums
along rows, a matrix times a vector, are computed for some rows together: the vector is read once
for all of them, and processors read several rows faster than one.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.node_properties import sizes_of
from wengert._engine.core.symbolic.dim import LOCAL, Dim, Length, is_open
from wengert._engine.ops.indexing.template import IndexSlot

from ..ir.index_analysis import Index, counters, size_of
from ..lowering.loop_ir import CallResult, Expr, OpaqueCall, Reduce, Stored, View
from ..lowering.scatter_chains import SliceSelection, write_in_place
from ..tuning import thresholds
from .fusion import FusedLoops, LoopGroup, role_of
from .iteration_space import column_rows, space_for
from .stage_order import sorted_after

Updates = Sequence[tuple[int, int]]


class InPlaceWrites:
    """The writes of slices, all of which can be written over the array before at once.

    Parameters
    ----------
    inputs, outputs : sequence of Expr
        Of the body of a loop.
    exprs : sequence of Expr
        All that the outputs depend on, operands first.
    updates : sequence of (int, int)
        Inputs, and the results that may be written over them.
    after_loops : bool
        Whether the results of loops may be written over, outside of loops.

    Attributes
    ----------
    writes : dict of Expr
    """

    def __init__(
        self,
        inputs: Sequence[Expr],
        outputs: Sequence[Expr],
        exprs: Sequence[Expr],
        updates: Updates,
        after_loops: bool = False,
    ) -> None:
        self._exprs = exprs
        self._users: dict[Expr, list[Expr]] = {}
        self.writes: dict[Expr, None] = {}
        chains = [_chain(inputs[given], outputs[k]) for given, k in updates]
        chains = [chain for chain in chains if chain]
        if after_loops:
            chains += _after_loops(exprs, set(outputs))
        self._for_calls: set[Expr] = set()  # what calls need in memory
        for x in exprs if chains else ():
            for y in x.operands:
                self._users.setdefault(y, []).append(x)
            if isinstance(x.rule, OpaqueCall):
                self._for_calls.update(y for y in x.operands if not isinstance(y.rule, View))
        while chains:
            self.writes = dict.fromkeys(x for chain in chains for x in chain)
            self._written = self._read_back()
            self._ordered = self._in_order()
            if len(self._ordered) < len(exprs):  # they would depend on each other
                self._written = {}
                self._ordered = self._in_order()
            refused = self._needed_later()
            left = [
                chain
                for chain in chains
                if refused.isdisjoint(chain) and all(map(self._reads_own_places, chain))
            ]
            if len(left) == len(chains):
                return
            chains = left
        self.writes = {}

    def _read_back(self) -> dict[Expr, Expr]:
        """For new elements that are used beside their write, that write."""
        found: dict[Expr, Expr] = {}
        for write in self.writes:
            new = _new(write)
            if new.rule.is_stored or new.dtype != write.dtype or new in found:
                continue
            users = [x for x in self._users.get(new, ()) if x is not write]
            if users and _ancestors(write).isdisjoint(users):
                found[new] = write
        return found

    def _operands(self, x: Expr) -> list[Expr]:
        if x in self.writes:
            return [_new(x), x.operands[1]]
        return [self._written.get(y, y) for y in x.operands]

    def _in_order(self) -> list[Expr]:
        """All expressions, operands first; fewer if they depend on each other."""
        exprs = dict.fromkeys([*self._exprs, *map(_new, self.writes)])
        found = sorted_after(list(exprs), {x: set(self._operands(x)) for x in exprs})
        return found if len(found) == len(exprs) else []

    def _is_stored(self, x: Expr) -> bool:
        return x.rule.is_stored or x in self.writes or x in self._for_calls

    # ---- whether a write can be in place ---------------------------------------------------------

    def _needed_later(self) -> set[Expr]:
        """The writes over arrays that are read after them, element by element.

        The bits of an integer are the writes: those that an expression comes after, and those over
        arrays that its elements are computed from.
        """
        bits = {write: 1 << k for k, write in enumerate(self.writes)}
        over: dict[Expr, int] = {}
        for write, bit in bits.items():
            before = write.operands[1]
            over[before] = over.get(before, 0) | bit
        after: dict[Expr, int] = {}
        reads: dict[Expr, int] = {}
        found = 0
        for x in self._ordered:
            own = bits.get(x, 0)
            after[x], reads[x] = own, 0
            for y in self._operands(x):
                after[x] |= after.get(y, 0)
                reads[x] |= over.get(y, 0) | (0 if self._is_stored(y) else reads.get(y, 0))
            found |= after[x] & reads[x] & ~own
        return {write for write, bit in bits.items() if bit & found}

    def _reads_own_places(self, write: Expr) -> bool:
        """Whether new elements depend on those elements of an array only which they replace."""
        rule: Any = write.rule
        array = write.operands[1]
        start: Index = counters(rule.new.shape)
        here: Index = rule.place(start)
        if rule.new is array:
            return start == here
        pending: list[tuple[Expr, Index]] = [(rule.new, start)]
        seen: set[Any] = set()
        while pending:
            expr, index = pending.pop()
            if self._is_stored(expr) or (expr in self._written and expr is not rule.new):
                continue
            for read in expr.reads(index):
                if read.operand is array and read.index != here:
                    return False
                if read.index is None:  # at an index that is computed
                    if not self._is_stored(read.operand):
                        return False
                    continue
                if (read.operand, read.index) not in seen:
                    seen.add((read.operand, read.index))
                    pending.append((read.operand, read.index))
        return True

    # ---- the change ------------------------------------------------------------------------------

    def apply(self) -> None:
        """Write them in place."""
        reading = {}
        for new, write in self._written.items():
            view = View("getitem", write.rule.place)  # type: ignore[attr-defined]
            reading[new] = Expr(view, (write,), new.shape, new.dtype, new.node)
        for x in self._exprs:
            if x not in self.writes:
                x.operands = tuple([reading.get(y, y) for y in x.operands])
        for write in self.writes:
            write_in_place(write)
        exprs = dict.fromkeys([*self._ordered, *reading.values()])
        ordered = sorted_after(list(exprs), {x: set(x.operands) for x in exprs})
        for x, number in zip(ordered, sorted(x.number for x in exprs), strict=True):
            x.number = number


def _new(write: Expr) -> Expr:
    """The new elements of a write, in the shape of its slice."""
    new: Expr = write.rule.new  # type: ignore[attr-defined]
    return new


def _chain(given: Expr, result: Expr) -> list[Expr]:
    """The writes between an input and a result, the last first; none if there are others."""
    if _is_in_registers(given):
        return []
    found, first = _writes_down_from(result)
    is_same = first is given and isinstance(given.rule, Stored) and given.rule.strides is None
    return found if is_same else []


def _after_loops(exprs: Sequence[Expr], outputs: Container[Expr]) -> list[list[Expr]]:
    """The chains of writes to results of loops that nothing else keeps, the last write first."""
    found: list[list[Expr]] = []
    inner: set[Expr] = set()
    for x in reversed(exprs):
        if x in inner or x in outputs or not isinstance(x.rule, SliceSelection):
            continue
        chain, first = _writes_down_from(x)
        inner.update(chain)
        if (
            isinstance(first.rule, CallResult)
            and first.operands[0].node.op.kind == "control"
            and not _is_in_registers(first)
            and not any(y in outputs for y in (first, *chain))
        ):
            found.append(chain)
    return found


def _writes_down_from(result: Expr) -> tuple[list[Expr], Expr]:
    """The writes that give a result, the last first, and the array that they begin with."""
    found = []
    while isinstance(result.rule, SliceSelection):
        found.append(result)
        result = result.operands[1]
    return found, result


def _is_in_registers(x: Expr) -> bool:
    size = size_of(x.shape)
    return type(size) is int and size <= thresholds.unrolled_elements


def _ancestors(x: Expr) -> set[Expr]:
    """All that an expression depends on."""
    found: set[Expr] = set()
    pending = [x]
    while pending:
        for y in pending.pop().operands:
            if y not in found:
                found.add(y)
                pending.append(y)
    return found


# ---- bounds of lengths, and blocks of rows -------------------------------------------------------


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

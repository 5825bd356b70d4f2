"""Batch loops: stages that share a batch axis run for one item of the batch after the other.

    y = x - mu[:, None]                              for k in range(len(L)):
    w = np.einsum("kij,knj->kni", L, y)                  y = x - mu[k]
    out = np.sum(w**2, axis=2)                           w = y @ L[k].T
                                                         out[k] = np.sum(w**2, axis=1)

Each stage alone writes or reads arrays of all items, which no near cache keeps; an item does.  An
array that nothing outside of the loop reads has the memory of one item (codegen/batch_loops.py).

A loop consists of a batched product of matrices, and of stages that make its operands or read its
result row by row, if no other stage has to run between them.  A cheap array that several loops read
is computed again in each instead of being stored.

    batched       the stages in an order in which those of each loop follow one another
    BatchedStages that order
    BatchLoop     a loop in the final schedule
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from ..ir.index_analysis import offset_of
from ..kernels import is_served
from ..lowering.loop_ir import CallResult, Expr, Reduce, Stored, memory_strides, strided_view
from ..lowering.scatter_chains import SliceUpdate
from ..tuning import thresholds
from .fusion import PRODUCTS, Access, FusedLoops, LoopGroup

_LINK_BYTES = 1 << 14  # of an array by which a stage joins a loop
_MOST_STAGES = 1000  # of a program whose stages are reordered
_MOST_PRODUCTS = 64

Unit = list[int]  # the stages of a loop, or a single stage


class BatchLoop(NamedTuple):
    """A loop over the items of a batch.

    start, stop : the range of its stages in the schedule.
    length : the number of items.
    repeated : stages of other loops that it runs, too, before its own.
    flops : of the products of one item.
    """

    start: int
    stop: int
    length: int
    repeated: tuple[FusedLoops, ...]
    flops: int


class ChosenLoop(NamedTuple):
    """A loop before loop groups are fused: its stages, its length, and stages to be repeated."""

    stages: list[LoopGroup | Expr]
    length: int
    repeated: tuple[FusedLoops, ...]
    flops: int

    def placed(self, position: Mapping[Expr, int]) -> BatchLoop:
        """The loop in a schedule, given the stage of each root."""
        roots = [r for x in self.stages for r in (x.roots if isinstance(x, LoopGroup) else [x])]
        places = [position[r] for r in roots]
        return BatchLoop(min(places), max(places) + 1, *self[1:])


class BatchedStages(NamedTuple):
    """Stages in an order in which those of each loop follow one another.

    segments : for each stage a number; loop groups with different numbers are not fused.
    """

    stages: list[LoopGroup | Expr]
    segments: list[int]
    loops: list[ChosenLoop]


def batched(
    stages: list[LoopGroup | Expr],
    accesses: Callable[[Expr], list[Access]],
    reachable: Sequence[Expr],
    outputs: Sequence[Expr],
) -> BatchedStages:
    """The stages of a schedule with its batch loops.

    Parameters
    ----------
    stages : list
        In an order in which they can run.
    accesses : callable
        The reads of a root.
    reachable, outputs : sequence of Expr
        All expressions, and those of results.
    """
    unchanged = BatchedStages(stages, [0] * len(stages), [])
    if len(stages) > _MOST_STAGES:
        return unchanged
    products = {k: made for k, x in enumerate(stages) if (made := _batched_product(x)) is not None}
    if not 0 < len(products) <= _MOST_PRODUCTS or not all(map(_is_native, stages)):
        return unchanged
    return _BatchLoopSearch(stages, accesses, reachable, outputs, products).result()


def _is_native(stage: LoopGroup | Expr) -> bool:
    """Whether the order of a stage and others does not matter, except for what they read."""
    if isinstance(stage, LoopGroup):
        return not any([isinstance(r.rule, SliceUpdate) for r in stage.roots])
    kind = stage.node.op.kind
    return kind != "collective" and (kind == "control" or is_served(stage.node))


class _BatchedProduct(NamedTuple):
    """A batched product: the number of items, the flops of one, the batch axis of each operand."""

    length: int
    flops: int
    axes: tuple[int, ...]


def _batched_product(stage: LoopGroup | Expr) -> _BatchedProduct | None:
    """The batch of a product of two matrices; None if it is none, or its sizes are not known."""
    if isinstance(stage, LoopGroup) or stage.node.op.name not in PRODUCTS:
        return None
    node = stage.node
    if len(node.inputs) != 2 or len(stage.operands) != 2 or stage.rule.options:  # type: ignore[attr-defined]
        return None
    shapes = [x.shape for x in stage.operands]
    *words, result = node.op.subscripts(*map(len, shapes), **node.params)
    if not result or any([len({*w}) < len(w) for w in words]):
        return None
    lengths: dict[str, int] = {}
    for word, shape in zip(words, shapes, strict=True):
        for letter, n in zip(word, shape, strict=True):
            if type(n) is not int or n == 0:
                return None
            lengths[letter] = max(n, lengths.get(letter, 1))
    batch = result[0]
    length = lengths[batch]
    if length < thresholds.batch_loop_items or not all([batch in w for w in words]):
        return None
    axes = tuple([w.index(batch) for w in words])
    if any([shape[k] != length for shape, k in zip(shapes, axes, strict=True)]):
        return None
    return _BatchedProduct(length, 2 * prod(lengths.values()) // length, axes)


class _RowRead(NamedTuple):
    """A read of a stored array: whether item k of the stage reads row k of it only."""

    expr: Expr
    by_rows: bool


class _BatchLoopSearch:
    """Finds the loops among stages."""

    def __init__(
        self,
        stages: list[LoopGroup | Expr],
        accesses: Callable[[Expr], list[Access]],
        reachable: Sequence[Expr],
        outputs: Sequence[Expr],
        products: dict[int, _BatchedProduct],
    ) -> None:
        self._stages, self._accesses, self._products = stages, accesses, products
        self._outputs = set(outputs)
        results: dict[Expr, list[Expr]] = {}
        for x in reachable:
            if isinstance(x.rule, CallResult):
                results.setdefault(x.operands[0], []).append(x)
        self._made: list[list[Expr]] = [
            x.roots if isinstance(x, LoopGroup) else results.get(x, []) for x in stages
        ]
        self._maker = {x: k for k, made in enumerate(self._made) for x in made}
        self._reads: list[list[_RowRead]] = [self._reads_of(k) for k in range(len(stages))]
        self._readers: dict[Expr, list[int]] = {}
        for k, reads in enumerate(self._reads):
            for x in dict.fromkeys([r.expr for r in reads]):
                self._readers.setdefault(x, []).append(k)
        self._units: list[Unit] = [[k] for k in range(len(stages))]

    def result(self) -> BatchedStages:
        """The stages with the loops that are worth it."""
        loops: list[tuple[Unit, int, int]] = []
        taken: set[int] = set()
        for k, product in self._products.items():
            if k in taken or product.flops >= thresholds.blas_parallel_flops:
                continue
            members = self._grown(k, product.length, taken)
            if members is None:
                continue
            taken |= members
            unit = sorted(members)
            flops = sum([self._products[m].flops for m in unit if m in self._products])
            loops.append((unit, product.length, flops))
            self._merge(unit)
        if not loops:
            return BatchedStages(self._stages, [0] * len(self._stages), [])
        order: list[LoopGroup | Expr] = []
        segments: list[int] = []
        segment = 0
        for unit in self._units:
            if len(unit) > 1:
                segment += 1
            order += [self._stages[k] for k in unit]
            segments += [segment] * len(unit)
            if len(unit) > 1:
                segment += 1
        repeated = self._repeated([unit for unit, _, _ in loops])
        chosen = [
            ChosenLoop([self._stages[k] for k in unit], length, tuple(map(_alone, again)), flops)
            for (unit, length, flops), again in zip(loops, repeated, strict=True)
        ]
        return BatchedStages(order, segments, chosen)

    # ---- what stages read and make ---------------------------------------------------------------

    def _reads_of(self, k: int) -> list[_RowRead]:
        stage = self._stages[k]
        found: list[_RowRead] = []
        if isinstance(stage, LoopGroup):
            for root in stage.roots:
                for access in self._accesses(root):
                    found.append(_RowRead(access.expr, _is_by_rows(access, stage.space)))
            return found
        axes = self._products[k].axes if k in self._products else (None,) * len(stage.operands)
        for x, axis in zip(stage.operands, axes, strict=True):
            view = strided_view(x)
            if view is None:
                owner = x
                while not owner.is_root:
                    owner = owner.operands[0]
                found.append(_RowRead(owner, False))
                continue
            base, offset, strides = view
            by_rows = axis is not None and _stays_in_rows(base, offset, strides, x.shape, axis)
            found.append(_RowRead(base, by_rows))
        return found

    def _is_eligible(self, k: int, length: int) -> bool:
        """Whether a stage computes item k of all its results in step k of its outermost loop."""
        stage = self._stages[k]
        if isinstance(stage, Expr):
            return k in self._products and self._products[k].length == length
        space = stage.space
        return (
            all([type(n) is int for n in space])
            and len(space) > 0
            and space[0] == length
            and 0 not in (stage.reduced or ())
            and all([r.shape[:1] == (length,) for r in stage.roots])
        )

    # ---- a loop ----------------------------------------------------------------------------------

    def _grown(self, start: int, length: int, taken: set[int]) -> set[int] | None:
        """The stages of a loop with a product; None if it is not worth it."""
        members = {start}
        before, after = self._reach()
        tried: set[int] = set()
        while True:
            near = self._near(members) - members - taken - tried
            added = False
            for k in sorted(near):
                if not self._is_eligible(k, length) or not self._fits(members | {k}):
                    tried.add(k)
                    continue
                if self._is_convex(members | {k}, before, after):
                    members.add(k)
                    added = True
            if not added:
                break
        return members if self._is_worth(members, length) else None

    def _near(self, members: set[int]) -> set[int]:
        """The stages that make what a loop reads, or read what it makes, if that is large."""
        found: set[int] = set()
        for k in members:
            for read in self._reads[k]:
                maker = self._maker.get(read.expr)
                if maker is not None and _bytes(read.expr) >= _LINK_BYTES:
                    found.add(maker)
            for x in self._made[k]:
                if _bytes(x) >= _LINK_BYTES:
                    found.update(self._readers.get(x, ()))
        return found

    def _fits(self, members: set[int]) -> bool:
        """Whether all that stages read of each other is of the same item."""
        return all(
            [
                read.by_rows or self._maker.get(read.expr) not in members
                for k in members
                for read in self._reads[k]
            ]
        )

    def _reach(self) -> tuple[list[int], list[int]]:
        """Of each stage, as bits, those that it depends on and those that depend on it."""
        count = len(self._stages)
        before, after = [0] * count, [0] * count
        for unit in self._units:
            bits = sum([1 << k for k in unit])
            whole = bits
            for k in unit:
                for read in self._reads[k]:
                    maker = self._maker.get(read.expr)
                    if maker is not None and not bits >> maker & 1:
                        whole |= before[maker]
            for k in unit:
                before[k] = whole
        for k in range(count):
            rest = before[k]
            while rest:
                low = rest & -rest
                after[low.bit_length() - 1] |= 1 << k
                rest ^= low
        return before, after

    def _is_convex(self, members: set[int], before: list[int], after: list[int]) -> bool:
        """Whether no other stage has to run between stages of a loop."""
        own = earlier = later = 0
        for k in members:
            own |= 1 << k
            earlier |= before[k]
            later |= after[k]
        return not earlier & later & ~own

    def _is_worth(self, members: set[int], length: int) -> bool:
        """Whether the arrays of the batch leave a near cache, and those of an item do not."""
        inside: dict[Expr, None] = {}
        rows: dict[Expr, None] = {}
        for k in members:
            for read in self._reads[k]:
                if self._maker.get(read.expr) in members:
                    inside[read.expr] = None
                if read.by_rows:
                    rows[read.expr] = None
            rows.update(dict.fromkeys(self._made[k]))
        flops = min([self._products[k].flops for k in members if k in self._products])
        return (
            sum(map(_bytes, inside)) >= thresholds.batch_loop_bytes
            and sum(map(_bytes, rows)) // length <= thresholds.batch_item_bytes
            and flops >= thresholds.batch_item_flops
        )

    def _merge(self, unit: Unit) -> None:
        """Let the stages of a loop follow one another."""
        _, after = self._reach()
        own, later = set(unit), 0
        for k in unit:
            later |= after[k]
        last = max([i for i, u in enumerate(self._units) if own & {*u}])
        first = [
            u for u in self._units[:last] if not own & {*u} and not any([later >> k & 1 for k in u])
        ]
        rest = [u for u in self._units if u not in first and not own & {*u}]
        self._units = [*first, unit, *rest]

    # ---- what is computed again ------------------------------------------------------------------

    def _repeated(self, loops: list[Unit]) -> list[list[LoopGroup]]:
        """For each loop the stages of others that it runs again."""
        loop_of = {k: n for n, unit in enumerate(loops) for k in unit}
        found: list[list[LoopGroup]] = [[] for _ in loops]
        for k, home in loop_of.items():
            stage = self._stages[k]
            if not isinstance(stage, LoopGroup) or not self._is_cheap(k, loop_of):
                continue
            (x,) = stage.roots
            readers = self._readers.get(x, [])
            others = {loop_of.get(m, -1) for m in readers} - {home}
            by_rows = [r.by_rows for m in readers for r in self._reads[m] if r.expr is x]
            length = stage.space[0]
            if -1 in others or not all(by_rows):
                continue
            if all([self._is_eligible(loops[n][0], length) for n in others]):
                for n in others:
                    found[n].append(stage)
        return found

    def _is_cheap(self, k: int, loop_of: dict[int, int]) -> bool:
        """Whether computing an array again is cheaper than writing and reading it."""
        stage = self._stages[k]
        assert isinstance(stage, LoopGroup)
        if len(stage.roots) != 1 or isinstance(stage.roots[0].rule, Reduce):
            return False
        (x,) = stage.roots
        return (
            x not in self._outputs
            and x.weight <= thresholds.selected_work
            and _bytes(x) >= thresholds.batch_loop_bytes // 2
            and all([self._maker.get(r.expr, -1) not in loop_of for r in self._reads[k]])
        )


def _alone(group: LoopGroup) -> FusedLoops:
    return FusedLoops([group])


def _is_by_rows(access: Access, space: tuple[Any, ...]) -> bool:
    """Whether step k of the outermost loop reads row k only."""
    x = access.expr
    if access.index is None or not all([type(n) is int for n in (*space, *x.shape)]):
        return False
    form = offset_of(access.index, memory_strides(x))
    factors = [form.factor(k) for k in range(len(space))]
    return _stays_in_rows(x, form.offset, factors, space, 0)


def _stays_in_rows(
    x: Expr, offset: Any, factors: Sequence[Any], lengths: Sequence[Any], axis: int
) -> bool:
    """Whether `offset + sum(factor * counter)` is in row k of an array for counter k of an axis."""
    if not x.shape or not lengths:
        return False
    if not all([type(n) is int for n in (offset, *factors, *lengths, *x.shape)]):
        return False
    if isinstance(x.rule, Stored) and x.rule.strides is not None:
        return False
    row = prod(x.shape[1:])
    low = high = offset
    for k, (factor, n) in enumerate(zip(factors, lengths, strict=True)):
        if k != axis:
            low += min(0, factor * (n - 1))
            high += max(0, factor * (n - 1))
    is_row = x.shape[0] == lengths[axis] and factors[axis] == row
    return bool(is_row and low >= 0 and high < row)


def _bytes(x: Expr) -> int:
    size = prod(x.shape)
    return size * x.dtype.itemsize if type(size) is int else 0

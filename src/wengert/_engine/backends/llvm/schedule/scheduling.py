"""Scheduling: which expressions share a loop, which are stored, and the order of the stages.

    LoopGroup     expressions computed together, in one pass over one iteration space
    FusedLoops    loop groups that share their outer loops (schedule/fusion.py)
    Stage         an opaque call, or a fused loop
    Schedule      the stages of a graph in order, and the stored expressions

A pointwise expression is inlined, unless it is worth storing: it is used twice and expensive, or
something needs it in memory.  Then it is a *root*, as reductions are.  Roots over the same space
join one loop group if each needs the elements of the others at its own index only; an expression
used only within its loop group is never written to memory.
"""

from __future__ import annotations

import bisect
import weakref
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.lazy_import import LazyModule

from ..ir.index_analysis import FlatIndex, Index, counters, is_one
from ..kernels import KERNELS, is_served
from ..lowering import lowered
from ..lowering.loop_ir import (
    CallResult,
    Expr,
    Map,
    OpaqueCall,
    Read,
    Reduce,
    ScalarConstant,
    SelectExpr,
    Stored,
    View,
    strided_view,
)
from ..lowering.registry import specs_of
from ..lowering.scatter_chains import SliceUpdate, reads_elsewhere
from ..tuning import thresholds
from . import fusion
from .fusion import (
    PRODUCTS,
    Access,
    FusedLoops,
    LoopGroup,
    fused_loops_of,
    roots_of,
    space_of,
    split_loops,
)
from .iteration_space import is_by_columns
from .slices import InPlaceWrites, Updates, block_of, choose_rows
from .stage_order import chained, computed_apart, in_order, overlapped, read_early
from .unstored_results import consumers_of, fold, reachable_from, recomputed, result_of

if TYPE_CHECKING:
    from . import batch_loops
    from .batch_loops import ChosenLoop
else:  # not needed for programs without batches of products
    batch_loops = LazyModule("wengert._engine.backends.llvm.schedule.batch_loops")


class Schedule:
    """The stages of a graph.

    Parameters
    ----------
    updates : sequence of (int, int)
        Of the body of a loop: inputs, and the results that may be written over them.
    separate : bool
        Whether each loop group is a fused loop of its own, and each call one operation: a device
        runs the elements of a group in parallel.
    by_rows : bool
        With `separate`, whether loop groups are fused that compute each row by itself, so that a
        device runs rows in parallel.
    few_rows : container of int
        Of the fused loops that follow from this, the numbers of those that are not fused.
    opaque : container of str
        Operations that are computed as a whole, though they have elements.

    Attributes
    ----------
    inputs : list of Expr
        The graph's inputs and variables, in order.
    outputs : list of Expr
        The expression that is stored as each output and update.
    stages : list of FusedLoops or Expr
        An expression is an opaque call.
    stored : list of Expr
        The expressions stored between stages, including outputs, in the order of the stages.
    batch_loops : list of BatchLoop
    exprs : dict from Node to Expr or tuple of Expr
    in_place : set of Expr
        The slices of carried arrays, and of results of loops, that are to be written in place.
    """

    def __init__(
        self,
        graph: BaseGraph,
        layouts: str = "",
        updates: Updates = (),
        separate: bool = False,
        opaque: Container[str] = (),
        by_rows: bool = False,
        few_rows: Container[int] = (),
    ) -> None:
        self._graph = weakref.ref(graph)  # a program does not outlive its graph
        lowering = lowered(graph, layouts, opaque)
        self.exprs = lowering.exprs
        self.inputs = [lowering.held[n] for n in (*graph.inputs, *graph.variables)]
        self.outputs: list[Expr] = []
        taken: set[Expr] = set()
        for node in (*graph.outputs, *graph.updates.values()):
            exprs = self.exprs[node]
            several = isinstance(exprs, tuple)
            for x, spec in zip(exprs if several else [exprs], specs_of(node), strict=True):
                self.outputs.append(result_of(x, spec, taken))
        results = [*self.outputs]
        for effect in [self.exprs[n] for n in graph.effects]:
            results += effect if isinstance(effect, tuple) else [effect]
        results += lowering.waits
        self.reachable = reachable_from(results)
        is_body = isinstance(graph, Body)
        written = InPlaceWrites(self.inputs, self.outputs, self.reachable, updates, not is_body)
        self.in_place = set(written.writes)
        if self.in_place:
            written.apply()
            self.reachable = reachable_from(results)
        if not separate and fold(self.reachable, consumers_of(self.reachable, results)):
            self.reachable = reachable_from(results)
        self._consumers = consumers_of(self.reachable)
        self._shared: set[Expr] = set()  # roots only because they are used more than once
        self._choose_roots()
        for x in computed_apart(self.reachable):
            self._make_root(x)
        self._recompute()
        self.reachable = overlapped(self.reachable)
        if is_body:  # a loop writes over the arrays of the step before
            chained(self.reachable)
            for x in read_early(self.reachable):
                self._make_root(x)
        if is_body or self.in_place:
            self.reachable = in_order(self.reachable)
        self._stages: list[LoopGroup | Expr] = []
        self._row_spaces = fusion.row_spaces(self.reachable) if by_rows else set()
        self._position: dict[Expr, int] = {}
        self._by_space: dict[Any, list[int]] = {}
        self._accesses: dict[Expr, list[Access]] = {}
        for expr in [x for x in self.reachable if x.is_root and not isinstance(x.rule, Stored)]:
            self._place(expr)
        self._stages = split_loops(self._stages, self.accesses)
        self.batch_loops: list[batch_loops.BatchLoop] = []
        if separate:
            self._keep_apart(by_rows, few_rows)
        else:
            self._fuse(graph, is_body)

    def _fuse(self, graph: BaseGraph, is_body: bool) -> None:
        """Fuse loop groups along rows and batches."""
        reads = self.accesses
        segments: list[int] = [0] * len(self._stages)
        loops: list[ChosenLoop] = []
        calls = [x.node for x in self._stages if isinstance(x, Expr) and x.node.op.name in PRODUCTS]
        if any([n.spec.ndim > 2 for n in calls]) and not (is_body or graph.effects):
            self._stages, segments, loops = batch_loops.batched(
                self._stages, reads, self.reachable, self.outputs
            )
        self._number([x.roots if isinstance(x, LoopGroup) else [x] for x in self._stages])
        self.stages = fused_loops_of(self._stages, reads, self._position, is_by_columns, segments)
        again = [fused for loop in loops for fused in loop.repeated]
        choose_rows([*self.stages, *again])
        self._number([roots_of(stage) for stage in self.stages])
        self.stored = self._found_stored(again)
        self.batch_loops = [loop.placed(self._position) for loop in loops]

    def _keep_apart(self, by_rows: bool, few_rows: Container[int]) -> None:
        """Fuse only loop groups that compute each row by itself, or none."""
        self.stages = [FusedLoops([x]) if isinstance(x, LoopGroup) else x for x in self._stages]
        if by_rows:
            self._number([roots_of(stage) for stage in self.stages])
            segments = [0] * len(self._stages)
            self.stages = fused_loops_of(
                self._stages, self.accesses, self._position, is_by_columns, segments, apart=True
            )
            if few_rows:
                self.stages = fusion.split_rows(self.stages, few_rows)
        self._number([roots_of(stage) for stage in self.stages])
        self.stored = self._found_stored(())

    @property
    def graph(self) -> BaseGraph:
        """The graph."""
        found = self._graph()
        assert found is not None, "the graph of this schedule no longer exists"
        return found

    # ---- roots ---------------------------------------------------------------------------------

    def _choose_roots(self) -> None:
        outputs = set(self.outputs)
        for expr in self.reachable:
            rule = expr.rule
            if isinstance(rule, OpaqueCall):
                strided = is_strided(expr)
                for x in expr.operands:
                    if not is_in_memory(x) and not (strided and strided_view(x)):
                        x.is_root = x.is_flat = True
                        self._shared.discard(x)
            if isinstance(rule, Map):
                for x in expr.operands:
                    if x.weight > thresholds.inline_work and fusion.repeats(x, expr):
                        self._make_root(x)
            if isinstance(rule, SliceUpdate):
                v, x = expr.operands
                self._make_root(x)
                if reads_elsewhere(expr, accesses_of(expr), x):
                    self._make_root(v)
            if isinstance(rule, SelectExpr):  # each element evaluates every operand
                costly = [x for x in expr.operands if x.weight > thresholds.selected_work]
                for x in costly if len(costly) > 1 else ():
                    self._make_root(x)
            weight = rule.weight
            for x in expr.operands:
                if not x.is_root:
                    weight += x.weight
            expr.weight = weight
            is_shared = self._consumers.get(expr, 0) > 1 and weight > thresholds.inline_work
            if expr in outputs or weight > thresholds.expression_work:
                self._make_root(expr)
            elif is_shared and not expr.is_root:
                self._make_root(expr)
                self._shared.add(expr)
            expr.is_flat = expr.is_root or rule.takes_flat(expr)
            for read in _unbounded_reads(expr):
                x = read.operand
                if read.index is None or (isinstance(read.index, FlatIndex) and not x.is_flat):
                    self._make_root(x)

    def _make_root(self, expr: Expr) -> None:
        if isinstance(expr.rule, ScalarConstant) and not expr.shape:
            return
        expr.is_root = expr.is_flat = True
        self._shared.discard(expr)

    def _recompute(self) -> None:
        """Compute some expressions where they are used, instead of storing them."""
        if not self._shared:
            return
        for expr, work in recomputed(self._shared, self.reachable, accesses_of).items():
            if work:
                expr.weight = work
            else:
                expr.is_root = False
                expr.is_flat = expr.rule.takes_flat(expr)

    # ---- stages --------------------------------------------------------------------------------

    def _place(self, root: Expr) -> None:
        """Add a root to an existing loop group, or as a new stage at the end."""
        if isinstance(root.rule, CallResult):
            self._position[root] = self._position[root.operands[0]]
            return
        if isinstance(root.rule, OpaqueCall):
            self._position[root] = len(self._stages)
            self._stages.append(root)
            return
        if isinstance(root.rule, SliceUpdate):  # behind all that reads what it overwrites
            alone = LoopGroup(space_of(root))
            alone.add(root, self.accesses(root))
            self._position[root] = len(self._stages)
            self._stages.append(alone)
            return
        space = space_of(root)
        accesses = self.accesses(root)
        here = counters(space)
        first = 0
        for access in accesses:
            x = access.expr
            if isinstance(x.rule, Stored):
                continue
            position = self._position[x]
            shared = isinstance(self._stages[position], LoopGroup) and not isinstance(
                x.rule, Reduce
            )
            if not shared or access.index != here or x.shape != space:
                position += 1
            first = max(first, position)
        places = self._by_space.setdefault(space, [])
        for k in range(
            max(bisect.bisect_left(places, first), len(places) - thresholds.fusion_candidates),
            len(places),
        ):
            group = self._stages[places[k]]
            assert isinstance(group, LoopGroup)
            is_alike = isinstance(root.rule, Reduce) == (group.reduced is not None)
            apart = not is_alike and (
                fusion.are_apart(root, group, self.accesses)
                or (space in self._row_spaces and fusion.is_across(root, group))
            )
            if not apart and group.takes(root):
                group.add(root, accesses)
                self._position[root] = places[k]
                return
        group = LoopGroup(space)
        group.add(root, accesses)
        self._position[root] = len(self._stages)
        places.append(len(self._stages))
        self._stages.append(group)

    def _number(self, stages: Sequence[Sequence[Expr]]) -> None:
        """Record the stage of every root."""
        for k, roots in enumerate(stages):
            for expr in roots:
                self._position[expr] = k
        for expr in self.reachable:
            if isinstance(expr.rule, CallResult):
                self._position[expr] = self._position[expr.operands[0]]

    def accesses(self, root: Expr) -> list[Access]:
        """The reads of a root from memory, or from other roots."""
        found = self._accesses.get(root)
        if found is None:
            found = self._accesses[root] = accesses_of(root)
        return found

    def position_of(self, expr: Expr) -> int:
        """The stage that writes an expression."""
        whole = expr.operands[0] if isinstance(expr.rule, CallResult) else expr
        return self._position[whole]

    def _found_stored(self, repeated: Sequence[FusedLoops]) -> list[Expr]:
        """The roots that are read from memory."""
        needed: dict[Expr, None] = dict.fromkeys(
            x for x in self.outputs if not isinstance(x.rule, Stored)
        )
        for stage in (*self.stages, *repeated):
            if isinstance(stage, FusedLoops):
                self._add_needed(stage, needed)
                continue
            strided = is_strided(stage)
            for x in stage.operands:
                view = strided_view(x) if strided else None
                needed[owner_of(x) if view is None else view[0]] = None
        for expr in self.reachable:
            if isinstance(expr.rule, CallResult):
                needed[expr] = None
        return sorted(
            (x for x in needed if x.is_root and not isinstance(x.rule, Stored)),
            key=lambda x: (self._position[x], x.number),
        )

    def _add_needed(self, fused: FusedLoops, needed: dict[Expr, None]) -> None:
        """Add the expressions that a fused loop reads from memory; others stay local."""
        made: set[Expr] = set()
        numbers: dict[Expr, None] = {}
        for group in fused.groups:
            own = {r for r in group.roots if not isinstance(r.rule, Reduce)}
            here = counters(group.space)
            for root in group.roots:
                for access in self.accesses(root):
                    x = access.expr
                    if x in made:
                        one = is_one_place(access.index, fused.rows)
                        one = one and _is_one_in_each_row(x, fused.rows)
                        (numbers if one else fused.local)[x] = None
                    elif x not in own or access.index != here:
                        needed[x] = None
            made.update(group.roots)
        fused.block = block_of(fused)
        if fused.block > 1:  # a register has the number of one row
            fused.local.update(numbers)


def is_one_place(index: Index | None, rows: int) -> bool:
    """Whether an index is one position in each row: such a value stays in a register."""
    return (
        isinstance(index, tuple)
        and not isinstance(index, FlatIndex)
        and all(c < rows for form in index for c, _ in form.terms)
    )


def _is_one_in_each_row(x: Expr, rows: int) -> bool:
    """Whether an expression is a reduction with one result in each row."""
    return isinstance(x.rule, Reduce) and all(map(is_one, x.shape[rows:]))


def is_in_memory(expr: Expr) -> bool:
    """Whether an expression is in memory in C order, as calls require."""
    if isinstance(expr.rule, View) and expr.rule.keeps_order:
        return is_in_memory(expr.operands[0])
    return expr.is_root


def is_strided(step: Expr) -> bool:
    """Whether a call accepts operands with any strides."""
    return is_served(step.node) and KERNELS[step.node.op.name].strided


def owner_of(expr: Expr) -> Expr:
    """The expression whose memory a reshaped expression shares."""
    while not expr.is_root:
        expr = expr.operands[0]
    return expr


def accesses_of(root: Expr) -> list[Access]:
    """The accesses of a root to stored expressions, through inlined ones."""
    found: dict[Access, None] = {}
    start = counters(space_of(root))
    first = root.operands[0] if isinstance(root.rule, Reduce | SliceUpdate) else root
    if isinstance(root.rule, SliceUpdate):
        found[Access(root.operands[1], None)] = None
    if first.is_root and first is not root:
        return [*found, Access(first, start)]
    seen: set[Any] = set()
    pending: list[tuple[Expr, Index]] = [(first, start)]
    while pending:
        expr, index = pending.pop()
        if not expr.shape and type(expr.rule) is Map:  # numbers: most of a long program
            for x in expr.operands:
                if x.is_root:
                    found[Access(x, ())] = None
                elif (x, ()) not in seen:
                    seen.add((x, ()))
                    pending.append((x, ()))
            continue
        for read in expr.reads(index):
            x = read.operand
            if x.is_root or read.index is None:
                found[Access(x, read.index)] = None
            elif (x, read.index) not in seen:
                seen.add((x, read.index))
                pending.append((x, read.index))
    return list(found)


def _unbounded_reads(expr: Expr) -> Sequence[Read]:
    if isinstance(expr.rule, Reduce | SliceUpdate) or type(expr.rule) is Map:  # are known
        return ()
    return expr.reads(counters(expr.shape))

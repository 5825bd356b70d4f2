"""Attribution of the time of a step to lines of the user's code.

A loop nest computes several of the user's lines together, element by element, so timers cannot
separate them.  Its time is divided by estimated work: the measured cost of each operation relative
to an addition, and the cost of each element that is read or written, by the level of the memory
hierarchy.

    StepCost         the cost of a step: operations, work by line, bytes, arrays left in memory
    step_cost_of     the cost of stages that form one step
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wengert._engine.core.op import REGISTRY
from wengert._engine.core.spec import Spec, shown
from wengert._engine.core.symbolic.dim import names_in, valued
from wengert._engine.ops.cost_model import bytes_of, flops_of
from wengert._engine.profiling.record import LineShare, LiveArray

from ..codegen.straightline import BranchBlocks
from ..ir.index_analysis import size_of
from ..lowering.loop_ir import Expr, Map, Reduce, Stored, View
from ..lowering.registry import origin_of, specs_of
from ..schedule.fusion import FusedLoops, roots_of, space_of
from ..schedule.scheduling import Schedule, owner_of

Sizes = Mapping[str, int]

# The time to read or write an element, relative to an addition (`Op.cost.work`), for data of up to
# so many bytes, which decide in which cache it is.
_MEMORY = ((1 << 15, 1.0), (1 << 20, 3.0), (1 << 25, 8.0))
_MAIN_MEMORY_COST = 25.0


def number_of(length: Any, sizes: Sizes) -> int:
    """A length as a number; sizes known only at run time count as 1."""
    unknown = dict.fromkeys(names_in((length,)) - set(sizes), 1)
    return int(valued(length, {**sizes, **unknown}))


class StepCost:
    """The cost of a step.

    Attributes
    ----------
    work : dict
        The work of each line of the user's code, with its level and scope.
    flops : float or None
    read, written : int
        Bytes.
    kept : list of LiveArray
    """

    def __init__(self, plan: Schedule, sizes: Sizes) -> None:
        self.plan, self._sizes = plan, sizes
        self.work: dict[tuple[str, int, str], float] = {}
        self.flops: float | None = 0.0
        self.read = self.written = 0
        self.kept: list[LiveArray] = []
        self._each = 1.0
        self._serials: dict[str, int] = {}
        self._stored = set(plan.stored)
        self._results = set(plan.outputs)

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations, each once, in the order of the program."""
        return tuple(sorted(self._serials, key=self._serials.__getitem__))

    def parts(self) -> tuple[LineShare, ...]:
        """The shares of the user's lines, which add up to 1, the largest first."""
        whole = sum(self.work.values())
        if not whole:
            return tuple(LineShare(*key, 1.0 / len(self.work)) for key in self.work)
        found = sorted(self.work.items(), key=lambda expr: -expr[1])
        return tuple(LineShare(*key, work / whole) for key, work in found if work)

    def add(self, stage: FusedLoops | Expr) -> None:
        """Add a stage of the schedule."""
        if isinstance(stage, FusedLoops):
            self._add_fused_loops(self.plan, stage)
        else:
            self._add_step(stage)

    def add_branches(self, branches: BranchBlocks) -> None:
        """Add a conditional that is compiled inline; its branches count as equally frequent."""
        for plan in branches.plans:
            for stage in plan.stages:
                if isinstance(stage, FusedLoops):
                    self._add_fused_loops(plan, stage, 1.0 / len(branches.plans))
                else:
                    self.add_branches(branches.inner[stage])

    def keep(self, exprs: Sequence[Expr]) -> None:
        """Add arrays that are left in memory."""
        for x in exprs:
            node = None if x.node is None else _graph_node(x.node)
            size = self._bytes(x)
            name = str(x.rule) if node is None else node.op.name
            title = f"{name} {shown(Spec(x.shape, x.dtype))}"
            self.kept.append(LiveArray(title, size, _where(node), x in self._results))

    # ---- loop nests ----------------------------------------------------------------------------

    def _add_fused_loops(self, plan: Schedule, fused: FusedLoops, frequency: float = 1.0) -> None:
        own = set(roots_of(fused))
        accessed = [a.expr for root in roots_of(fused) for a in plan.accesses(root)]
        read = sum(self._bytes(x) for x in dict.fromkeys(accessed) if x not in own)
        written = sum(self._bytes(x) for x in own if x in self._stored and x not in fused.local)
        self.read, self.written = self.read + read, self.written + written
        self._each = next((w for most, w in _MEMORY if read + written <= most), _MAIN_MEMORY_COST)
        for group in fused.groups:
            seen: set[Expr] = set()
            for root in group.roots:
                self._add_root(root, own, seen, frequency)

    def _add_root(self, root: Expr, own: set[Expr], seen: set[Expr], frequency: float) -> None:
        count = number_of(size_of(space_of(root)), self._sizes)
        pending = [(root, root)]
        while pending:
            x, user = pending.pop()
            if x in seen:
                continue
            seen.add(x)
            here = count if x is root else min(count, number_of(size_of(x.shape), self._sizes))
            new = [y for y in x.operands if y.is_root and y not in own and y not in seen]
            seen.update(new)
            moved = sum(min(here, number_of(size_of(y.shape), self._sizes)) for y in new)
            if x is root and x in self._stored:
                moved += number_of(size_of(x.shape), self._sizes)
            user = x if x.node is not None and _graph_node(x.node).where else user
            self._add_expr(user, (_work_of(x) * here + self._each * moved) * frequency)
            if isinstance(x.rule, Map | Reduce) and self.flops is not None:
                self.flops += here * frequency
            pending += [(y, user) for y in x.operands if not y.is_root]

    def _add_expr(self, x: Expr, work: float) -> None:
        if x.node is None:
            return
        node = _graph_node(x.node)
        if not isinstance(x.rule, View | Stored) and not node.is_leaf:
            self._add_operation(node)
        if work or not isinstance(x.rule, View):
            self._charge(node, work)

    def _add_operation(self, node: Any) -> None:
        name = node.op.name
        self._serials[name] = min(node.serial, self._serials.get(name, node.serial))

    def _charge(self, node: Any, work: float) -> None:
        key = _where(node), node.level, node.scope
        self.work[key] = self.work.get(key, 0.0) + work

    def _bytes(self, x: Expr) -> int:
        return number_of(size_of(x.shape) * x.dtype.itemsize, self._sizes)

    # ---- kernels, host callbacks, loops --------------------------------------------------------

    def _add_step(self, step: Expr) -> None:
        node = step.node
        line = _graph_node(node)
        self._add_operation(line)
        self._charge(line, 1.0)
        found = flops_of(node, [a.spec for a in node.inputs], node.spec)
        if found is not None and not isinstance(found, float):
            found = float(number_of(found, self._sizes))
        self.flops = None if found is None or self.flops is None else self.flops + found
        owners = dict.fromkeys(owner_of(x) for x in step.operands)
        self.read += sum(self._bytes(x) for x in owners)
        self.written += sum(number_of(bytes_of(s), self._sizes) for s in specs_of(node))


def _work_of(x: Expr) -> float:
    op = REGISTRY.get(x.rule.name) if isinstance(x.rule, Map) else None
    return x.rule.weight if op is None or op.cost is None else op.cost.work


def _graph_node(node: Any) -> Any:
    """The graph node that a node belongs to; for fused writes, the last of them."""
    return origin_of(getattr(node, "last", node))


def _where(node: Any) -> str:
    return "" if node is None else node.where or ""


def step_cost_of(
    plan: Schedule,
    stages: Sequence[FusedLoops | Expr],
    sizes: Sizes,
    choices: Mapping[Expr, BranchBlocks] | None = None,
) -> StepCost:
    """The cost of stages of a schedule that form one step.

    Parameters
    ----------
    sizes : mapping
        The values of the symbolic sizes.
    choices : mapping, optional
        The branches of conditionals that are compiled inline.
    """
    made = StepCost(plan, sizes)
    for stage in stages:
        branches = None if choices is None or isinstance(stage, FusedLoops) else choices.get(stage)
        if branches is None:
            made.add(stage)
        else:
            made.add_branches(branches)
    return made

"""A summary of a program: its loop nests, kernel calls, host callbacks and buffers.

Stage      one of them: its iteration space, the arrays it reads and writes, its cost
Summary    all of them; printed as a table
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wengert._engine.core.node_properties import short
from wengert._engine.core.spec import Spec, shown
from wengert._engine.ops.cost_model import flops_of

from ..ir.index_analysis import Length, size_of
from ..kernels import is_served
from ..lowering.loop_ir import Expr, Map, Reduce, Stored
from ..lowering.registry import origin_of
from ..program import Program
from ..schedule.fusion import FusedLoops, role_of, roots_of, space_of
from ..schedule.scheduling import Schedule, owner_of

if TYPE_CHECKING:
    from ..schedule.fusion import LoopGroup


@dataclass(frozen=True)
class Stage:
    """One loop nest, kernel call or host callback.

    Attributes
    ----------
    kind : str
        ``nest``, ``call``, ``host callback``, ``loop`` or ``branch``.
    title : str
        The iteration space of a nest, or the operation.
    passes : tuple of str
        The passes of a nest over each row.
    reads, gives : tuple of str
        Arrays in memory.
    flops, bytes : Length or None
        Floating-point operations, and bytes read and written; None if unknown.
    function : str
        Its name in the module: equal nests share a function.
    where : str
        The user's line, for calls and host callbacks.
    """

    kind: str
    title: str
    passes: tuple[str, ...]
    reads: tuple[str, ...]
    gives: tuple[str, ...]
    flops: Any
    bytes: Length
    function: str
    where: str

    def __str__(self) -> str:
        lines = [f"{self.kind} {self.title}"]
        lines += [f"    {text}" for text in self.passes]
        if self.reads:
            lines.append(f"    reads {', '.join(self.reads)}")
        lines.append(f"    gives {', '.join(self.gives)}")
        cost = "" if self.flops is None else f"{self.flops} flops, "
        lines.append(f"    {cost}{self.bytes} bytes{self.where}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Summary:
    """The stages of a program, with totals.

    Attributes
    ----------
    stages : tuple of Stage
    buffers : tuple of str
        Arrays stored between stages, other than results.
    workspace : Length
        The bytes of that memory; free memory is reused.
    functions : int
        The number of different loop nests.
    """

    stages: tuple[Stage, ...]
    buffers: tuple[str, ...]
    workspace: Length
    functions: int

    @property
    def nests(self) -> tuple[Stage, ...]:
        """The loop nests."""
        return tuple(s for s in self.stages if s.kind == "nest")

    @property
    def calls(self) -> tuple[Stage, ...]:
        """The calls of libraries and of native kernels."""
        return tuple(s for s in self.stages if s.kind == "call")

    @property
    def loops(self) -> tuple[Stage, ...]:
        """The loops and conditionals of the graph."""
        return tuple(s for s in self.stages if s.kind in ("loop", "branch"))

    @property
    def host_callbacks(self) -> tuple[Stage, ...]:
        """The calls back into Python."""
        return tuple(s for s in self.stages if s.kind == "host callback")

    @property
    def flops(self) -> Any:
        """Floating-point operations, where known."""
        return sum(s.flops for s in self.stages if s.flops is not None)

    @property
    def bytes(self) -> Length:
        """Bytes read and written."""
        return sum(s.bytes for s in self.stages)

    def __str__(self) -> str:
        counts = ", ".join(
            f"{n} {noun if n == 1 else noun + 's'}"
            for n, noun in (
                (len(self.nests), "nest"),
                (len(self.calls), "call"),
                (len(self.host_callbacks), "host callback"),
                (len(self.buffers), "buffer"),
            )
        )
        head = f"{counts} in {self.workspace} bytes; {self.flops} flops, {self.bytes} bytes"
        kept = [f"buffers {', '.join(self.buffers)}"] if self.buffers else []
        return "\n".join([head, *map(str, self.stages), *kept])


def summary_of(program: Program) -> Summary:
    """The summary of a program."""
    plan = program.plan
    names = _names(plan)
    functions = iter([name for _, name in program.nests])
    stages = tuple(
        _nest(plan, stage, names, next(functions))
        if isinstance(stage, FusedLoops)
        else _step(program, stage, names)
        for stage in plan.stages
    )
    for loop in program.batch_loops:
        note = f", one of {loop.length} items at a time"
        changed = [replace(s, title=s.title + note) for s in stages[loop.start : loop.stop]]
        stages = (*stages[: loop.start], *changed, *stages[loop.stop :])
    results = {*plan.inputs, *plan.outputs}
    buffers = tuple(_shown(x, names) for x in plan.stored if x not in results)
    return Summary(stages, buffers, program.workspace, len({name for _, name in program.nests}))


def _names(plan: Schedule) -> dict[Expr, str]:
    """The names of expressions: those of inputs, and of graph nodes."""
    names: dict[Expr, str] = {}
    positions = {node: k for k, node in enumerate(plan.graph.nodes)}
    for expr in plan.reachable:
        node = None if expr.node is None else origin_of(expr.node)
        if node is not None and node in positions:
            name = f"%{positions[node]}"
            names[expr] = f"{node.name} {name}" if node.name else name
    return names


def _shown(expr: Expr, names: dict[Expr, str]) -> str:
    spec = shown(Spec(expr.shape, expr.dtype))
    return f"{names[expr]} {spec}" if expr in names else f"{expr.rule} {spec}"


def _nest(plan: Schedule, fused: FusedLoops, names: dict[Expr, str], function: str) -> Stage:
    own_roots = set(roots_of(fused))
    read: dict[Expr, None] = {}
    for root in own_roots:
        for access in plan.accesses(root):
            if access.expr not in own_roots:
                read[access.expr] = None
    stored = set(plan.stored)
    written = [r for r in roots_of(fused) if r in stored]
    first = fused.groups[0].space
    title = f"over [{','.join(map(str, first))}]"
    if fused.rows:
        rows = ",".join(map(str, first[: fused.rows]))
        title = f"over the rows of [{rows}], {len(fused.groups)} passes each"
    passes = tuple(
        ", ".join(f"{r.rule} {names.get(r, '')}".rstrip() for r in group.roots)
        + _combined(fused, group)
        for group in fused.groups
    )
    flops: Any = sum(
        _weight(r) * size_of(space_of(r)) for group in fused.groups for r in group.roots
    )
    moved = sum(size_of(x.shape) * x.dtype.itemsize for x in (*read, *written))
    return Stage(
        "nest",
        f"{title} ({function})",
        passes,
        tuple(_shown(x, names) for x in sorted(read, key=lambda x: x.number)),
        tuple(_shown(x, names) for x in written),
        flops,
        moved,
        function,
        "",
    )


def _combined(fused: FusedLoops, group: LoopGroup) -> str:
    if not fused.rows or group.reduced is None:
        return ""
    return {"all": " of all rows", "columns": " over the rows"}.get(role_of(group, fused.rows), "")


def _weight(root: Expr) -> int:
    """The operations for one element, counting each function as one."""
    total = 1 if isinstance(root.rule, Map | Reduce) else 0
    pending = [x for x in root.operands if not x.is_root]
    while pending:
        x = pending.pop()
        total += isinstance(x.rule, Map)
        pending += [y for y in x.operands if not y.is_root]
    return total


def _step(program: Program, step: Expr, names: dict[Expr, str]) -> Stage:
    node = step.node
    operands = [a.spec for a in node.inputs]
    results = node.spec if isinstance(node.spec, tuple) else (node.spec,)
    moved: Length = sum(s.size * s.dtype.itemsize for s in (*operands, *results))
    owners = [owner_of(x) for x in step.operands]
    constants = [x for x in owners if isinstance(x.rule, Stored) and x.rule.array is not None]
    reads = tuple(_shown(x, names) for x in dict.fromkeys(owners) if x not in constants)
    kind = "call" if is_served(node) else "host callback"
    if node.op.kind == "control":
        kind = "loop" if "body" in node.params else "branch"
    return Stage(
        kind,
        f"{node.op.name}",
        (),
        reads,
        (f"%{program.graph.index(getattr(node, 'last', origin_of(node)))} {shown(node.spec)}",),
        flops_of(node, operands, node.spec),
        moved,
        node.op.name,
        f"   # {short(node.where)}" if node.where else "",
    )

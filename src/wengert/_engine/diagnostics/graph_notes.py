"""Notes on the nodes of a graph for `wengert.explain`.

loop       the number of steps, the cost of each, the size of the carry and of stacked results
opaque     a call that is not analyzed: LAPACK, a user's operation
broadcast  operands of different shapes
widened    a result of higher precision than one of its operands, and which operand causes it
cast       operands of different dtypes
stopped    no derivative: a comparison, a cast to integers, stop_gradient
guarded    a strong zero, because a slope may be infinite
unused     an input that the outputs do not depend on, or not differentiably
held       a large constant that is part of the graph
shape      a shape that was inferred from examples, or a condition on sizes

`wengert.explain` adds slow parts (slow_gradients.py), and the effects of simplifying.

Loop costs: what the loops of a function take in memory, and in time without compilation.

residuals      the rows that loops store for their backward passes
loop_costs     notes for `wengert.explain`
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from wengert._engine.control_flow.checkpoint_schedule import recomputed, stored_by_count
from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import bodies_of
from wengert._engine.core.node import ConstantLeaf, LeafOp, Node
from wengert._engine.core.op_facts import LOOPS, REPLAY
from wengert._engine.core.spec import Spec, shown
from wengert._engine.ops.cost_model import bytes_of, flops_of_body, steps_of

from .disconnected import reason_of_stop
from .findings import Finding, called, named
from .recorded_pass import ancestors

LARGE_CONSTANT = 1 << 20  # bytes from which a constant gets a note


def notes_on(graph: BaseGraph) -> list[Finding]:
    """All notes on a graph, in the order of its nodes."""
    notes: list[Finding] = []
    for node in graph.nodes:
        for check in CHECKS:
            notes += check(node, graph)
    return [*notes, *_inputs(graph), *_sizes(graph)]


def _note(kind: str, message: str, node: Node) -> Finding:
    return Finding(kind, message, node, node.where)


def _opaque(node: Node, graph: BaseGraph) -> Iterator[Finding]:
    op: Any = node.op
    if op.kind != "opaque":
        return
    whose = "a library" if getattr(op, "trusted", False) else "the user"
    yield _note(
        "opaque",
        f"{named(node)} is one call of code of {whose}: it is not analyzed, fused or simplified; "
        "its derivative is its own rule",
        node,
    )


def _loop(node: Node, graph: BaseGraph) -> Iterator[Finding]:
    params = node.params
    if node.op.control_flow not in LOOPS:
        return
    body = params["body"]
    steps, carried = steps_of(node), params["carried"]
    fixed = len(body.inputs) - carried - params.get("stacked", 0)
    carry = sum(bytes_of(n.spec) for n in body.inputs[fixed : fixed + carried])
    rows = sum(bytes_of(n.spec) for n in body.outputs[carried:])
    total = "" if steps is None else f" ({steps * rows} in all)"
    stacked = f", and stacks {rows} bytes{total}" if rows else ""
    number = "the number of steps depends on values" if steps is None else f"{steps} steps"
    count = sum(not n.is_leaf for n in body.nodes)
    yield _note(
        "loop",
        f"{node.op.name} ({body.name}): {number}; each computes {count} operations, "
        f"{flops_of_body(body)} of floating point, carries {carry} bytes{stacked}",
        node,
    )


def _replay(node: Node, graph: BaseGraph) -> Iterator[Finding]:
    if node.op.control_flow != REPLAY:
        return
    params = node.params
    slots, block = params["slots"], params["block"]
    recomputes = f"each of up to {slots * block} steps once"
    if isinstance(length := params["length"], int):
        total = recomputed(length, slots, block, stored_by_count(length, slots, block))
        recomputes = f"{total} steps, {total / max(length, 1):.3g} for each of {length}"
    yield _note(
        "checkpoints",
        f"replay ({params['step'].name}): the backward pass of a loop that stores {slots} carries "
        f"and the residuals of {block} steps at a time; it recomputes {recomputes}",
        node,
    )


def _operands(node: Node) -> list[tuple[Node, Spec]]:
    """The operands other than conditions and indices."""
    inputs = [a for a in node.inputs if a not in node.inputs[node.op.selectors]]
    return [(a, a.spec) for a in inputs if isinstance(a.spec, Spec)]


def _combines(node: Node) -> bool:
    return node.op.kind in ("elementwise", "contraction") and node.level == 0


def _broadcast(node: Node, graph: BaseGraph) -> Iterator[Finding]:
    if not _combines(node) or node.op.kind != "elementwise":
        return
    shapes = {spec.shape for _, spec in _operands(node) if spec.shape != ()}
    if len(shapes) > 1:
        operands = " and ".join(shown(spec) for _, spec in _operands(node))
        message = f"{node.op.name}: operands {operands} are broadcast to {shown(node.spec)}"
        yield _note("broadcast", message, node)


def _cast(node: Node, graph: BaseGraph) -> Iterator[Finding]:
    if not _combines(node) or not isinstance(node.spec, Spec) or node.spec.dtype.kind not in "fc":
        return
    out = node.spec.dtype
    pairs = [(a, s) for a, s in _operands(node) if not s.weak]
    narrow = [a for a, s in pairs if s.dtype.kind in "fc" and s.dtype.itemsize < out.itemsize]
    wide = [a for a, s in pairs if s.dtype == out]
    if narrow and narrow[0].spec.dtype.kind == out.kind:
        because = f"operand {_named(wide[0], graph)}" if wide else "the operation itself"
        message = (
            f"{node.op.name}: {narrow[0].spec.dtype} became {out} because of {because}. Cast that, "
            f"or pass it as {narrow[0].spec.dtype}, to keep the precision"
        )
        yield _note("widened", message, node)
    elif len({s.dtype for _, s in pairs} | {out}) > 1:
        operands = " and ".join(shown(s) for _, s in pairs)
        yield _note("cast", f"{node.op.name}: operands {operands} are cast to {out}", node)


def _named(node: Node, graph: BaseGraph) -> str:
    kind = "constant " if isinstance(node, ConstantLeaf) else ""
    return f"%{graph.index(node)}, {kind}{node.name or node.op.name} {shown(node.spec)}"


def _stopped(node: Node, graph: BaseGraph) -> Iterator[Finding]:
    if type(node) is Node or node.level or isinstance(node, ConstantLeaf):
        return
    if any(type(a) is Node for a in node.args) and not _only_selects(node, graph):
        _, reason = reason_of_stop(node)
        yield _note("stopped", reason, node)


def _only_selects(node: Node, graph: BaseGraph) -> bool:
    """Whether a node is used only as a condition or an index, where no derivative is expected."""
    users = [graph[k] for k in graph.consumers(graph.index(node))]
    for user in users:
        selectors = user.inputs[user.op.selectors]
        if selectors and user.inputs.count(node) > selectors.count(node):
            return False
        if not selectors and not (_is_logic(user) and _only_selects(user, graph)):
            return False
    return bool(users)


def _is_logic(node: Node) -> bool:
    return type(node) is not Node and node.op.name.startswith(("logical_", "bitwise_", "invert"))


def _guarded(node: Node, graph: BaseGraph) -> Iterator[Finding]:
    if node.op.name not in ("strong_zero", "strong_einsum"):
        return
    slopes = [n for n in graph.nodes if n.level < node.level and n.where == node.where]
    names = dict.fromkeys(n.op.name for n in slopes if _is_singular(n))
    whose = f"the slope of {' and '.join(names)}" if names else "a slope here"
    yield _note(
        "guarded",
        f"{whose} can be infinite where the cotangent is exactly 0 because something was not "
        "selected: their product is defined as 0, not NaN (docs/conventions.md, 4)",
        node,
    )


def _is_singular(node: Node) -> bool:
    return bool(node.op.differentiation.is_singular(node))


def _held(node: Node, graph: BaseGraph) -> Iterator[Finding]:
    if isinstance(node, ConstantLeaf) and not node.args and node.value is not None:
        size = bytes_of(node.spec)
        if isinstance(size, int) and size >= LARGE_CONSTANT:
            users = [graph[k] for k in graph.consumers(graph.index(node))]
            where = next((n.where for n in users if n.where), None)
            message = (
                f"a constant {shown(node.spec)} of {size >> 20} MiB is part of the graph. Make it "
                "an argument, or a variable, to store it separately"
            )
            yield Finding("held", message, node, where)


def _probed(node: Node, graph: BaseGraph) -> Iterator[Finding]:
    if node.info is not None and node.info.probed:
        message = (
            f"the shape of {named(node)} was inferred from examples, and is checked at each run"
        )
        yield _note("shape", message, node)


CHECKS: Sequence[Callable[[Node, BaseGraph], Iterator[Finding]]] = (
    _loop,
    _replay,
    _opaque,
    _broadcast,
    _cast,
    _stopped,
    _guarded,
    _held,
    _probed,
)


def _inputs(graph: BaseGraph) -> Iterator[Finding]:
    """Inputs that the outputs do not depend on, or not differentiably."""
    reached = set(ancestors([*graph.outputs, *graph.updates.values(), *graph.effects]))
    smooth = set(ancestors(graph.outputs, smooth=True))
    for node in graph.inputs:
        if type(node) is not Node:
            continue
        name = called("input", node)
        if node not in reached:
            yield Finding("unused", f"no output depends on {name}", node, None)
        elif node not in smooth:
            message = f"outputs depend on {name}, but no derivative leads back to it"
            yield Finding("unused", message, node, None)


def _sizes(graph: BaseGraph) -> Iterator[Finding]:
    for needs in graph.requirements:
        sign = "=" if needs.equal else ">="
        message = f"a call is an error unless {needs.length} {sign} 0: {needs.reason}"
        yield Finding("shape", message, None, None)


# An eager operation of a few numbers with its share of the bookkeeping, and a compiled one, both
# on the slow side of what `make bench` measures.
_EAGER_SECONDS, _COMPILED_SECONDS = 1e-5, 4e-9
_LEAST_SECONDS = 1.0  # of eager time from which there is a note


def residuals(graph: BaseGraph) -> list[Node]:
    """The rows that loops of a graph store for their backward passes.

    Those of inner loops are parts of the rows of the outer loop.
    """
    loops = {n for n in graph.nodes if _is_loop(n)}
    read = {a for n in loops if n.level for a in n.inputs}
    found = []
    for node in graph.nodes:
        if node.op is PART and node in read and node.inputs[0] in loops:
            loop = node.inputs[0]
            if node.params["index"] >= loop.params["carried"] and node.spec.shape:
                found.append(node)
    return found


def loop_costs(graph: BaseGraph, is_compiled: bool) -> Iterator[Finding]:
    """Notes on the loops of a graph.

    Parameters
    ----------
    graph : Graph
    is_compiled : bool
        Whether the user's function is compiled.
    """
    rows = residuals(graph)
    if rows:
        total: Any = sum(bytes_of(n.spec) for n in rows)
        kept = ", ".join(shown(n.spec) for n in rows)
        yield Finding(
            "residuals",
            f"the backward passes of loops store {total} bytes: {kept}. wengert.scan and "
            "fori_loop with memory= store less, and compute more",
            rows[0],
            rows[0].inputs[0].where,
        )
    count = _operations(graph.nodes, 1)
    if not is_compiled and count * _EAGER_SECONDS >= _LEAST_SECONDS:
        largest = max(graph.nodes, key=lambda n: _operations([n], 1))
        yield Finding(
            "eager",
            f"{count} operations run one after the other, about {count * _EAGER_SECONDS:.2g} "
            f"seconds without wengert.jit, and {count * _COMPILED_SECONDS:.2g} seconds with it",
            largest,
            largest.where,
        )


def _is_loop(node: Node) -> bool:
    return not isinstance(node.op, LeafOp) and node.op.control_flow in LOOPS


def _operations(nodes: Any, times: int) -> int:
    """How many operations run, those of loops with a known number of steps in each."""
    count = 0
    for node in nodes:
        if isinstance(node.op, LeafOp) or node.op.aliasing.transparent:
            continue
        count += times
        steps = steps_of(node) if _is_loop(node) else 1
        if node.params and isinstance(steps, int):
            for body in bodies_of(node):
                count += _operations(body.nodes, times * steps)
    return count

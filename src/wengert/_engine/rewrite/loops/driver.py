"""Loop passes: rewriting of loops and branches as a whole.

    checkpointed  a loop and the same loop with checkpoints (loops/merge_checkpointed_loops.py)
    inlined       loops of at most one step, branches with known conditions (loops/unroll.py)
    trimmed       unused carries, outputs and inputs are removed (loops/loop_dce.py)
    factored      a loop-invariant matrix is factorized once (loops/hoist_factorizations.py)
    hoisted       loop-invariant nodes are computed before the loop
    sunk          a sum of products is one product after the loop (loops/sink_accumulations.py)
    fused         loops that do the same work become one (loops/loop_fusion.py)
    transposed    matrices are transposed before the loop, if products need it
                  (loops/hoist_transposes.py)

Bodies are graphs like any other, and are simplified by the same passes (loops/nested_graphs.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wengert._engine.control_flow.closure_conversion import hoisted
from wengert._engine.core.graph import AnyGraph
from wengert._engine.core.node import Node
from wengert._engine.core.op_facts import BRANCH, LOOP, LOOPS
from wengert._engine.core.subgraph import Body
from wengert._engine.core.symbolic.dim import is_open
from wengert._engine.core.tracing import placeholder

from ..driver import Applied
from .hoist_factorizations import NAME as FACTORED
from .hoist_factorizations import factored
from .hoist_transposes import with_hoisted_transposes
from .loop_dce import Need, narrowed, trimmed, used
from .loop_fusion import with_fused_loops
from .loop_view import LoopView, Rewiring, inlined, like, parts_of
from .merge_checkpointed_loops import without_repeated_loops
from .sink_accumulations import with_sunk_sums
from .unroll import unrolled

if TYPE_CHECKING:
    from wengert._engine.core.types import Size


def rewritten(graph: AnyGraph) -> tuple[AnyGraph, tuple[Applied, ...]]:
    """A graph with simplified loops, and the rewrites that were applied."""
    if not any(n.op.control_flow in (*LOOPS, BRANCH) for n in graph.nodes):
        return graph, ()
    graph, first = without_repeated_loops(graph)
    graph, applied = _each(graph)
    graph, later = with_sunk_sums(graph)
    graph, more = with_fused_loops(graph)
    graph, last = with_hoisted_transposes(graph)
    return graph, (*first, *applied, *later, *more, *last)


def _each(graph: AnyGraph) -> tuple[AnyGraph, list[Applied]]:
    """Rewrite each loop and conditional separately."""
    needs = used(graph)
    new, applied = Rewiring(), []
    for node in graph.nodes:
        if node not in needs:
            new.follow(node)
            continue
        done, parts = _one(node, tuple(new.now(node.inputs)), needs[node])
        if not done:
            new.follow(node)
            continue
        new.replace(node, parts)
        made = next((x.args[0] for x in parts.values() if x.op.name == "part"), None)
        made = made if isinstance(made, Node) else next(iter(parts.values()), node)
        applied += [Applied(name, node, made) for name in done]
    return (new.graph(graph), applied) if applied else (graph, [])


def _one(node: Node, operands: tuple[Node, ...], need: Need) -> tuple[list[str], dict[int, Node]]:
    """The names of the rewrites of one loop or conditional, and its new results."""
    parts = unrolled(node, operands, need)
    if parts is not None:
        return ["inlined"], parts
    is_loop = node.op.control_flow == LOOP
    found = (trimmed if is_loop else narrowed)(node, operands, need)
    done: list[str] = []
    if found is not None:
        done, parts = list(found.done), found.results
        node, operands = found.node, found.node.inputs
    if is_loop and (with_hoisted := _hoisted(node, operands)) is not None:
        words, moved = with_hoisted
        done += words
        if parts is None:
            return done, parts_of(moved, need.results)
        for k, x in parts.items():
            if x.op.name == "part" and x.args[0] is node:
                parts[k] = parts_of(moved, [x.params["index"]])[x.params["index"]]
    return done, parts or {}


def _hoisted(node: Node, operands: tuple[Node, ...]) -> tuple[list[str], Node] | None:
    """The loop without loop-invariant nodes, and the names of the rewrites.

    None if there are none.
    """
    first = LoopView(node)
    runs = not first.is_while and not first.count and _is_nonempty(first.length)
    split = factored(first.body, first.fixed, runs)
    body, before = hoisted(split or first.body, first.fixed, runs)
    if before is None:
        return None
    words = [FACTORED] * (split is not None) + ["hoisted"]
    loop = LoopView(like(node, operands, node.params))
    count = len(loop.count)
    given = operands[count:]
    consts, carry = given[: loop.fixed], given[loop.fixed : loop.fixed + loop.carried]
    ready = inlined(before, consts, type(node) is Node)
    condition = loop.condition
    if condition is not None:
        places = [placeholder(n.spec, n.name, type(n) is Node) for n in before.outputs]
        inner = condition.inputs
        inputs = [*inner[: loop.fixed], *places, *inner[loop.fixed :]]
        condition = Body(*condition.outputs, inputs=inputs, name=condition.name)
    rows = given[loop.fixed + loop.carried :]
    return words, loop.with_body(body, condition, [*consts, *ready], carry, rows)


def _is_nonempty(length: Size) -> bool:
    """Whether a loop of this length has at least one step."""
    return isinstance(length, int) and not is_open(length) and length > 0

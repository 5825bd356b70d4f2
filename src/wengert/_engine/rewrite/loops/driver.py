"""Loop passes: rewriting of loops and branches as a whole, in this order.

    merged      a loop and the same loop with checkpoints become one (removed_loops.py)
    inlined     loops of at most one step, branches with known conditions (removed_loops.py)
    trimmed     unused carries, outputs and inputs are removed (loop_dce.py)
    factored    loop-invariant matrices are factorized before the loop (hoisting.py)
    hoisted     loop-invariant nodes are computed before the loop
    sunk        a sum of products becomes one product after the loop (sink_accumulations.py)
    started     a sum starts at what is added to it (start_sums.py)
    fused       loops that compute the same values become one (loop_fusion.py)
    transposed  matrices are transposed before the loop if products need it (hoisting.py)

Bodies are graphs like any other, and are simplified by the same passes (loop_passes.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wengert._engine.control_flow.closure_conversion import hoisted
from wengert._engine.core.graph import AnyGraph
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.node import Node
from wengert._engine.core.op_facts import LOOP
from wengert._engine.core.symbolic.dim import is_open
from wengert._engine.core.tracing import placeholder

from ..driver import Applied
from .hoisting import FACTORED, factored, with_hoisted_transposes
from .loop_dce import Need, narrowed, trimmed, used
from .loop_fusion import with_fused_loops
from .loop_view import LoopView, Rewiring, inlined, like, parts_of
from .removed_loops import unrolled, without_repeated_loops
from .sink_accumulations import with_sunk_sums
from .start_sums import with_started_sums

if TYPE_CHECKING:
    from wengert._engine.core.types import Size


def rewritten(graph: AnyGraph) -> tuple[AnyGraph, tuple[Applied, ...]]:
    """A graph with simplified loops, and the rewrites that were applied."""
    graph, merged = without_repeated_loops(graph)
    graph, separate = _rewrite_each(graph)
    graph, sunk = with_sunk_sums(graph)
    graph, started = with_started_sums(graph)
    graph, fused = with_fused_loops(graph)
    graph, transposed = with_hoisted_transposes(graph)
    return graph, (*merged, *separate, *sunk, *started, *fused, *transposed)


def _rewrite_each(graph: AnyGraph) -> tuple[AnyGraph, list[Applied]]:
    """Rewrite each loop and conditional separately."""
    needs = used(graph)
    rewiring, applied = Rewiring(), []
    for node in graph.nodes:
        if node not in needs:
            rewiring.follow(node)
            continue
        names, parts = _rewrite(node, tuple(rewiring.replaced(node.inputs)), needs[node])
        if not names:
            rewiring.follow(node)
            continue
        rewiring.replace(node, parts)
        result = next((x.args[0] for x in parts.values() if x.op.name == "part"), None)
        result = result if isinstance(result, Node) else next(iter(parts.values()), node)
        applied += [Applied(name, node, result) for name in names]
    return (rewiring.graph(graph), applied) if applied else (graph, [])


def _rewrite(
    node: Node, operands: tuple[Node, ...], need: Need
) -> tuple[list[str], dict[int, Node]]:
    """The names of the rewrites of one loop or conditional, and its new results."""
    parts = unrolled(node, operands, need)
    if parts is not None:
        return ["inlined"], parts
    is_loop = node.op.control_flow == LOOP
    trimmed_node = (trimmed if is_loop else narrowed)(node, operands, need)
    names: list[str] = []
    if trimmed_node is not None:
        names, parts = list(trimmed_node.rewrites), trimmed_node.results
        node, operands = trimmed_node.node, trimmed_node.node.inputs
    if is_loop and (with_hoisted := _hoisted(node, operands)) is not None:
        hoisting_names, hoisted_loop = with_hoisted
        names += hoisting_names
        if parts is None:
            return names, parts_of(hoisted_loop, need.results)
        for k, x in parts.items():
            if x.op.name == "part" and x.args[0] is node:
                parts[k] = parts_of(hoisted_loop, [x.params["index"]])[x.params["index"]]
    return names, parts or {}


def _hoisted(node: Node, operands: tuple[Node, ...]) -> tuple[list[str], Node] | None:
    """The loop without loop-invariant nodes, and the names of the rewrites.

    None if there are none.
    """
    original = LoopView(node)
    has_steps = not original.is_while and not original.count and _is_nonempty(original.length)
    split = factored(original.body, original.fixed, has_steps)
    body, before = hoisted(split or original.body, original.fixed, has_steps)
    if before is None:
        return None
    names = [FACTORED] * (split is not None) + ["hoisted"]
    loop = LoopView(like(node, operands, node.params))
    count = len(loop.count)
    loop_operands = operands[count:]
    consts, carry = (
        loop_operands[: loop.fixed],
        loop_operands[loop.fixed : loop.fixed + loop.carried],
    )
    hoisted_values = inlined(before, consts, type(node) is Node)
    condition = loop.condition
    if condition is not None:
        placeholders = [placeholder(n.spec, n.name, type(n) is Node) for n in before.outputs]
        condition_inputs = condition.inputs
        inputs = [*condition_inputs[: loop.fixed], *placeholders, *condition_inputs[loop.fixed :]]
        condition = Body(*condition.outputs, inputs=inputs, name=condition.name)
    rows = loop_operands[loop.fixed + loop.carried :]
    return names, loop.with_body(body, condition, [*consts, *hoisted_values], carry, rows)


def _is_nonempty(length: Size) -> bool:
    """Whether a loop of this length has at least one step."""
    return isinstance(length, int) and not is_open(length) and length > 0

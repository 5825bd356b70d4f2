"""Loops that are removed: inlined, or merged with the loop that stores their checkpoints.

Inlining: loops of at most one step, and branches with known conditions.

The nodes of their bodies become nodes of the surrounding graph, where all other rules apply.

    unrolled    the results of such a loop or conditional as nodes

Merging checkpointed loops: one loop stores the checkpoints and computes the results.

The pullback of a loop with limited memory runs the loop once more, to store checkpoints.  If the
results of the original loop are used too, the two loops are merged; if not, stacked outputs are
removed from the loop that stores checkpoints.

    without_repeated_loops    a graph in which each of these loops runs once

Loop passes: rewriting of loops and branches as a whole, in this order.

    merged      a loop and the same loop with checkpoints become one
    inlined     loops of at most one step, branches with known conditions
    trimmed     unused carries, outputs and inputs are removed (loop_dce.py)
    factored    loop-invariant matrices are factorized before the loop (code_motion.py)
    hoisted     loop-invariant nodes are computed before the loop
    sunk        a sum of products becomes one product after the loop (code_motion.py)
    started     a sum starts at what is added to it (start_sums.py)
    fused       loops that compute the same values become one (loop_fusion.py)
    transposed  matrices are transposed before the loop if products need it (code_motion.py)

Bodies are graphs like any other, and are simplified by the same passes (loop_passes.py).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from wengert._engine.control_flow.checkpointed_loop import plain
from wengert._engine.control_flow.closure_conversion import hoisted
from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import AnyGraph
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.node import CONSTANT, ConstantLeaf, Node
from wengert._engine.core.node_properties import frozen
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import CHECKPOINTED, LOOP, LOOPS
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import is_open
from wengert._engine.core.tracing import part_of, placeholder
from wengert._engine.rewrite.driver import Applied

from .code_motion import FACTORED, factored, with_hoisted_transposes, with_sunk_sums
from .loop_dce import Need, narrowed, trimmed, used
from .loop_fusion import with_fused_loops
from .loop_view import LoopView, Rewiring, inlined, like, parts_of
from .start_sums import with_started_sums

if TYPE_CHECKING:
    from wengert._engine.core.types import Size


def unrolled(node: Node, operands: Sequence[Node], need: Need) -> dict[int, Node] | None:
    """The needed results of an inlined loop or conditional; None if it cannot be inlined."""
    if node.op.control_flow == LOOP:
        return _of_short_loop(node, operands, need) if node.op.name == "scan" else None
    which = operands[0]
    if which.op is not CONSTANT or not isinstance(which, ConstantLeaf) or "names" in node.params:
        return None
    branches = node.params["branches"]
    branch = branches[min(max(int(which.value), 0), len(branches) - 1)]
    outs = inlined(branch, operands[1:], type(node) is Node)
    return {k: outs[k] for k in need.results}


def _of_short_loop(node: Node, operands: Sequence[Node], need: Need) -> dict[int, Node] | None:
    loop = LoopView(node)
    length = loop.length
    if loop.count:
        count = operands[0]
        if count.op is not CONSTANT or not isinstance(count, ConstantLeaf):
            return None
        length = max(int(count.value), 0) if length is None else None
    if length not in (0, 1) or not isinstance(length, int):
        return None
    values = operands[len(loop.count) :]
    carry = values[loop.fixed : loop.fixed + loop.carried]
    if length == 0:
        empty = {k: _empty(loop, k) for k in need.results if k >= loop.carried}
        return {k: empty[k] if k in empty else carry[k] for k in need.results}
    rows = [_first(x) for x in values[loop.fixed + loop.carried :]]
    initial = values[: loop.fixed + loop.carried]
    outs = inlined(loop.body, [*initial, *rows], type(node) is Node)
    return {k: _as_row(outs[k], node) if k >= loop.carried else outs[k] for k in need.results}


def _first(x: Node) -> Node:
    """The only row of an operand."""
    shape = x.spec.shape[1:]
    info = x.provenance(Spec(shape, x.spec.dtype))
    return type(x)(lookup("getitem"), (x,), {"index": 0}, None, info)


def _as_row(x: Node, near: Node) -> Node:
    """A value as an array of one row."""
    shape = (1, *x.spec.shape)
    info = near.provenance(Spec(shape, x.spec.dtype))
    return type(x)(lookup("reshape"), (x,), {"shape": shape}, None, info)


def _empty(loop: LoopView, k: int) -> Node:
    """An array of length 0, as result k."""
    spec = loop.node.spec[k]
    zero = np.zeros((), spec.dtype).item()
    params = {"shape": spec.shape, "value": zero, "dtype": spec.dtype}
    return ConstantLeaf(lookup("full"), (), params, None, loop.node.provenance(spec))


_MEMORY_PARAMS = ("slots", "bytes")


def without_repeated_loops(graph: AnyGraph) -> tuple[AnyGraph, list[Applied]]:
    """The graph without repeated loops, and the rewrites."""
    used = _used(graph)
    checkpointed = {_key(n): n for n in used if n.op.control_flow == CHECKPOINTED}
    if not checkpointed:
        return graph, []
    merged_into = {
        n: checkpointed[_key(n)]
        for n in used
        if n.op.control_flow == LOOP and _key(n) in checkpointed
    }
    rewiring, applied = Rewiring(), []
    nodes: dict[Node, Node] = {}
    for node in graph.nodes:
        target = merged_into.get(node, node)
        if target not in checkpointed.values():
            rewiring.follow(node)
        elif target in merged_into.values():
            if target not in nodes:
                nodes[target] = like(target, tuple(rewiring.replaced(node.inputs)), target.params)
            rewiring.replace(node, _parts(nodes[target], {k: k for k in used[node]}))
            if node is not target:
                applied.append(Applied("checkpointed loops merged", node, nodes[target]))
        elif (
            results := _without_rows(node, tuple(rewiring.replaced(node.inputs)), used[node])
        ) is not None:
            rewiring.replace(node, results)
            applied.append(
                Applied("unused output removed", node, next(iter(results.values())).args[0])
            )
        else:
            rewiring.follow(node)
    return (rewiring.graph(graph), applied) if applied else (graph, [])


def _used(graph: AnyGraph) -> dict[Node, set[int]]:
    """The used results of each loop; without loops whose results are used as a tuple."""
    results: dict[Node, set[int]] = {n: set() for n in graph.nodes if n.op.control_flow in LOOPS}
    used_as_tuple = {*graph.outputs, *graph.updates, *graph.updates.values(), *graph.effects}
    for node in graph.nodes:
        if node.op is PART and node.args[0] in results:
            results[node.args[0]].add(node.params["index"])
        else:
            used_as_tuple.update(node.inputs)
    return {n: used for n, used in results.items() if n not in used_as_tuple}


def _key(node: Node) -> Hashable:
    """A key of a loop, which is the same with and without checkpoints."""
    is_checkpointed = node.op.control_flow == CHECKPOINTED
    params = plain(node.params) if is_checkpointed else node.params
    params = {k: x for k, x in params.items() if is_checkpointed or k not in _MEMORY_PARAMS}
    name = node.params["loop"] if is_checkpointed else node.op.name
    return name, type(node), node.inputs, frozen(params)


def _parts(node: Node, positions: Mapping[int, int]) -> dict[int, Node]:
    return {k: part_of(node, position) for k, position in positions.items()}


def _without_rows(
    node: Node, operands: tuple[Node, ...], used: Collection[int]
) -> dict[int, Node] | None:
    """The results of a checkpointed loop without stacked outputs; None if these are used."""
    params = node.params
    body: Body = params["body"]
    carried = params["carried"]
    first = carried + (params["loop"] == "while")
    stop = first + len(body.outputs) - carried
    if stop == first or any(first <= k < stop for k in used):
        return None
    without_ys = Body(*body.outputs[:carried], inputs=body.inputs, name=body.name)
    new = like(node, operands, {**params, "body": without_ys})
    return _parts(new, {k: k if k < first else first for k in used})


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

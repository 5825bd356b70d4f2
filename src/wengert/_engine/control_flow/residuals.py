"""Residuals: the values that a forward loop stores for the backward pass.

The nodes of a step's pullback that depend on no cotangent can be computed in either pass.  The
cheapest set of values from which the others can be recomputed is stored: a minimum cut, in which
the cost of a value is its size in bytes, and expensive operations are not recomputed.  For a step
of arithmetic this is the carry alone; for a step with a matrix product and tanh, the result of
tanh.

If a carried value can be restored in the backward pass (restoration.py), its cost is the size of
its undo log instead, and all its versions are available.

    split      the two parts of a pullback

Minimum cuts: the cheapest set of edges whose removal separates a source from a sink.

By maximum flow: while there is a path with remaining capacity, flow is added along the shortest
one; then the saturated edges that leave the nodes reachable from the source are the cut.  It is
implemented here because importing SciPy's implementation takes longer than tracing a loop and its
derivative.

    reached     the nodes on the side of the source
    UNLIMITED   the capacity of an edge that is never cut

J. Edmonds and R. M. Karp, *Theoretical improvements in algorithmic efficiency for network flow
problems* (1972).

Inner loops whose number of steps depends on an outer counter: residuals in buffers.

The residuals of such a loop have a length that differs between the steps of the outer loop, which
therefore cannot stack them.  If the range of the counter bounds the number of steps, the loop
carries buffers of that length instead, and writes one row per step.

    ranges_of             the ranges of a loop's induction variables
    set_ranges            stores ranges of placeholders, while a derivative is traced
    most_steps            an upper bound of the number of steps
    buffered              a forward body that carries its residuals in buffers
    from_buffers          the backward body that reads them
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Collection, Container, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_copies import inline_graph, rebuilt
from wengert._engine.core.graph_nodes import ancestors
from wengert._engine.core.handle import wrap
from wengert._engine.core.node import CONSTANT, LeafOp, Node, constant
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import tracing_body
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import is_open, valued
from wengert._engine.core.tracing import SIZE, placeholder

from .checkpoint_schedule import Typical
from .restoration import BackwardBody, Chain, Undo

_LARGEST_COST = 1 << 40  # of one value; below UNLIMITED, so that it can be stored


class SplitPullback(NamedTuple):
    """The part of a pullback that the backward pass computes, and the residuals that it reads.

    residuals : the nodes of the forward part to store.
    placeholders : of the residuals, in the backward part.
    results : the cotangents, in terms of residuals, inputs and seeds.
    read : the nodes of the backward part, with the inputs that it reads.
    chains : the carried values that it restores.
    ends : placeholders for the restored values after the step.
    starts : the restored values before the step.
    """

    residuals: list[Node]
    placeholders: list[Node]
    results: list[Node]
    read: set[Node]
    chains: list[Chain]
    ends: list[Node]
    starts: list[Node]


def split(
    results: Sequence[Node],
    backward_only: Collection[Node],
    carry: Collection[Node],
    chains: Sequence[Chain] = (),
) -> SplitPullback:
    """Split a pullback in two.

    Parameters
    ----------
    results : sequence of Node
    backward_only : collection of Node
        The placeholders that are known in the backward pass only.
    carry : collection of Node
        The carried inputs, which the backward pass does not know unless they are stored or
        restored.
    chains : sequence of Chain
        The carried values that can be restored.
    """
    nodes = ancestors(results)
    backward_nodes = set(backward_only)
    for node in nodes:
        if not backward_nodes.isdisjoint(node.inputs):
            backward_nodes.add(node)
    frontier = {
        a
        for n in nodes
        if n in backward_nodes
        for a in n.inputs
        if a not in backward_nodes and not _is_free(a)
    }
    frontier.update(n for n in results if n not in backward_nodes and not _is_free(n))
    chains = [
        c
        for c in chains
        if _cost_with_restoring([c], nodes, backward_nodes, frontier, carry)[0] < UNLIMITED
    ]
    cost, residuals, undo = _cost_with_restoring(chains, nodes, backward_nodes, frontier, carry)
    for chain in sorted(chains, key=lambda c: -_cost(c.versions[0].spec)):
        # Do not restore a value if that saves no memory.
        fewer = [c for c in chains if c is not chain]
        without_chain = _cost_with_restoring(fewer, nodes, backward_nodes, frontier, carry)
        if without_chain[0] <= cost:
            chains, (cost, residuals, undo) = fewer, without_chain
    placeholders = [placeholder(n.spec, n.name, type(n) is Node) for n in residuals]
    replacements = dict(zip(residuals, placeholders, strict=True))
    backward_part = None if undo is None else undo.built(results, dict(replacements))
    if backward_part is None:
        if undo is not None:
            return split(results, backward_only, carry)
        copies = rebuilt(nodes, replacements)
        backward_part = [copies[n] for n in results], [], []
    backward_results, ends, starts = backward_part
    needed = set(ancestors([*backward_results, *starts]))
    used_residuals = [k for k, p in enumerate(placeholders) if p in needed]
    return SplitPullback(
        residuals=[residuals[k] for k in used_residuals],
        placeholders=[placeholders[k] for k in used_residuals],
        results=backward_results,
        read=needed,
        chains=list(chains),
        ends=ends,
        starts=starts,
    )


def _cost_with_restoring(
    chains: Sequence[Chain],
    nodes: Sequence[Node],
    backward_nodes: set[Node],
    frontier: set[Node],
    carry: Collection[Node],
) -> tuple[int, list[Node], Undo | None]:
    """What to store if some carried values are restored: the cost, the values and the undo steps.

    The cost is UNLIMITED if these cannot be restored together.
    """
    if not chains:
        forward_nodes = [n for n in nodes if n not in backward_nodes]
        residuals = _cheapest(forward_nodes, frontier, set(carry), {}, set())
        return sum([_cost(n.spec) for n in residuals]), residuals, None
    undo = Undo(chains, nodes, backward_nodes)
    stored = undo.stored(_is_stored) if undo.possible else None
    if stored is None or any([_is_open(n.spec) for n in stored]):
        return UNLIMITED, [], undo
    frontier = frontier | {n for n, _ in undo.needs if not _is_free(n)}
    frontier = {n for n in frontier if n not in undo.free}
    logs = list(dict.fromkeys(undo.logs.values()))
    forward_nodes = ancestors([*frontier])
    residuals = _cheapest(forward_nodes, frontier, set(carry) - set(undo.free), undo.free, stored)
    residuals = [*residuals, *logs]
    return sum([_cost(n.spec) for n in residuals]), residuals, undo


def _is_free(node: Node) -> bool:
    """Whether a node costs nothing in either pass: a constant, a size, a node without operands."""
    return (
        node.op is CONSTANT
        or node.op is SIZE
        or (not node.args and not isinstance(node.op, LeafOp))
    )


def _cheapest(
    nodes: Sequence[Node],
    frontier: set[Node],
    carry: set[Node],
    free: Container[Node],
    stored: set[Node],
) -> list[Node]:
    """The values to store so that the second part can be computed.

    Parameters
    ----------
    nodes : sequence of Node
        Operands first.
    frontier : set of Node
        The values that the second part needs.
    carry, stored : set of Node
        The values that cannot be computed in the backward pass.
    free : container of Node
        The values that are available there.
    """
    needed = set(frontier)
    for node in reversed(nodes):
        if node in needed:
            needed.update(node.inputs)
    candidates = [n for n in nodes if n in needed and n not in free and not _is_free(n)]
    positions = {n: k for k, n in enumerate(candidates)}
    source, sink = 2 * len(candidates), 2 * len(candidates) + 1
    edges: list[tuple[int, int, int]] = []
    for node, k in positions.items():
        edges.append((2 * k, 2 * k + 1, _cost(node.spec)))
        if node in carry or node in stored or _is_stored(node):
            edges.append((source, 2 * k, UNLIMITED))
        edges += [(2 * positions[a] + 1, 2 * k, UNLIMITED) for a in node.inputs if a in positions]
        if node in frontier:
            edges.append((2 * k + 1, sink, UNLIMITED))
    source_side = reached(edges, source, sink)
    return [
        n for n, k in positions.items() if 2 * k in source_side and 2 * k + 1 not in source_side
    ]


def _cost(spec: tuple[Spec, ...] | Spec) -> int:
    """The cost of storing a value: its size in bytes, plus a constant."""
    if type(spec) is not Spec or _is_open(spec):
        return UNLIMITED
    size = 1
    for n in spec.shape:
        size *= max(int(valued(n, Typical())), 1)
    return min(size * spec.dtype.itemsize + 4, _LARGEST_COST)


def _is_open(spec: Any) -> bool:
    """Whether a length may differ between steps, so that values cannot be stacked."""
    specs = spec if type(spec) is tuple else (spec,)
    return any(is_open(n) for s in specs for n in s.shape)


def _is_stored(node: Node) -> bool:
    """Whether a node is never recomputed, because storing it is cheaper."""
    return not isinstance(node.op, LeafOp) and _is_expensive(node)


def _is_expensive(node: Node) -> bool:
    """Whether storing a node is cheaper than recomputing it."""
    op: Any = node.op
    if op is PART or _is_open(node.spec):
        return False
    if op.kind == "elementwise":
        return op.cost is None or not op.cost.is_recomputed
    return op.kind not in ("view", "indexing", "creation") and not op.aliasing.view


UNLIMITED = 1 << 60


def reached(edges: Iterable[tuple[int, int, int]], source: int, sink: int) -> set[int]:
    """The nodes that are reachable from the source in the residual graph of a maximum flow.

    Parameters
    ----------
    edges : iterable of (node, node, capacity)
    source, sink : int

    Raises
    ------
    ValueError
        There is no cut: a path consists of unlimited edges only.
    """
    residual: dict[int, dict[int, int]] = {source: {}, sink: {}}
    for a, b, capacity in edges:
        forward, backward = residual.setdefault(a, {}), residual.setdefault(b, {})
        forward[b] = min(UNLIMITED, forward.get(b, 0) + capacity)
        backward.setdefault(a, 0)
    while True:
        predecessors = _shortest_paths(residual, source, sink)
        if sink not in predecessors:
            return set(predecessors)
        path = [sink]
        while path[-1] != source:
            path.append(predecessors[path[-1]])
        pairs = list(zip(path[1:], path, strict=False))
        flow = min(residual[a][b] for a, b in pairs)
        if flow >= UNLIMITED:
            raise ValueError("a path from the source to the sink cannot be cut")
        for a, b in pairs:
            if residual[a][b] < UNLIMITED:
                residual[a][b] -= flow
            residual[b][a] = min(UNLIMITED, residual[b][a] + flow)


def _shortest_paths(residual: dict[int, dict[int, int]], source: int, sink: int) -> dict[int, int]:
    """The predecessor of each reachable node on a shortest path."""
    predecessors = {source: source}
    frontier = [source]
    while frontier and sink not in predecessors:
        next_frontier = []
        for a in frontier:
            for b, capacity in residual[a].items():
                if capacity > 0 and b not in predecessors:
                    predecessors[b] = a
                    next_frontier.append(b)
        frontier = next_frontier
    return predecessors


Range = tuple[int, int]

_MAX_BUFFER_LENGTH = 1 << 16  # steps
_STEP_NUMBER = Spec((), np.dtype(np.int64))
_ranges: weakref.WeakKeyDictionary[Node, Range] = weakref.WeakKeyDictionary()


def ranges_of(body: Body, args: Sequence[Any], fixed: int, carried: int, max_steps: Any) -> Any:
    """(input, minimum, maximum) of each induction variable, if an inner loop needs them."""
    if type(max_steps) is not int or not any([_is_counted(n) for n in body.nodes]):
        return ()
    ranges = []
    for k in range(fixed, fixed + carried):
        next_value, start = body.outputs[k - fixed], body.inputs[k]
        if (
            next_value.op is not lookup("add")
            or start.spec.shape
            or start.spec.dtype.kind not in "iu"
        ):
            continue
        a, b = next_value.inputs
        step, current = (b, a) if a is start else (a, b)
        initial = _range(args[k])
        if current is start and step.op is CONSTANT and initial is not None:
            total = int(step.value) * max(max_steps - 1, 0)
            ranges.append((k, initial[0] + min(total, 0), initial[1] + max(total, 0)))
    return tuple(ranges)


def _is_counted(node: Node) -> bool:
    return node.op is lookup("scan") and bool(node.params["counted"])


def set_ranges(inputs: Sequence[Node], ranges: Sequence[tuple[int, int, int]]) -> None:
    """Store the ranges of placeholders."""
    for k, minimum, maximum in ranges:
        _ranges[inputs[k]] = minimum, maximum


def most_steps(count: Any) -> int | None:
    """An upper bound of the number of steps; None if unknown or too large for buffers."""
    bounds = _range(count)
    return None if bounds is None or bounds[1] > _MAX_BUFFER_LENGTH else max(bounds[1], 1)


def _range(x: Any) -> Range | None:
    """The range of an integer that is computed from constants and placeholders; None if unknown."""
    node = x if isinstance(x, Node) else constant(x)
    if node in _ranges:
        return _ranges[node]
    if node.op is CONSTANT:
        return (int(node.value),) * 2 if np.ndim(node.value) == 0 else None
    op: Any = node.op
    if isinstance(op, LeafOp) or not _is_integer(node):
        return None
    if op.aliasing.transparent or op in (lookup("cast"), lookup("discretise")):
        return _range(node.inputs[0]) if _is_integer(node.inputs[0]) else None
    ranges = [_range(a) for a in node.inputs]
    if len(ranges) != 2 or None in ranges:
        return None
    (a, b), (c, d) = ranges  # type: ignore[misc]
    rules = {
        lookup("add"): (a + c, b + d),
        lookup("subtract"): (a - d, b - c),
        lookup("maximum"): (max(a, c), max(b, d)),
        lookup("minimum"): (min(a, c), min(b, d)),
    }
    return rules.get(op)


def _is_integer(node: Node) -> bool:
    return type(node.spec) is Spec and node.spec.dtype.kind in "iu" and not node.spec.shape


@functools.lru_cache(maxsize=512)
def buffered(
    forward: Body, carried: int, stacked: int, residual_count: int, max_steps: int
) -> Body:
    """The body without ys, which also carries the step number and buffers for its residuals."""
    with tracing_body():
        inputs = [placeholder(n.spec, n.name, type(n) is Node) for n in forward.inputs]
        number = placeholder(_STEP_NUMBER)
        specs = [n.spec for n in forward.outputs[len(forward.outputs) - residual_count :]]
        buffers = [placeholder(Spec((max_steps, *s.shape), s.dtype)) for s in specs]
        outs = inline_graph(forward, [wrap(n) for n in inputs])
        written = []
        for buffer, row in zip(buffers, outs[len(outs) - residual_count :], strict=True):
            index = wrap(buffer)[wrap(number)].node.params["index"]
            written.append(lookup("setitem")(wrap(buffer), row, wrap(number), index=index))
        results = [*outs[:carried], wrap(number) + 1, *written]
    first_stacked = len(inputs) - stacked
    return Body(
        *results,
        inputs=[*inputs[:first_stacked], number, *buffers, *inputs[first_stacked:]],
        name=forward.name,
    )


@functools.lru_cache(maxsize=512)
def from_buffers(
    backward: Body, residual_inputs: range, carried: range, max_steps: int
) -> BackwardBody:
    """The backward body that reads residuals from buffers, which follow the consts.

    Parameters
    ----------
    residual_inputs, carried : range
        Its inputs that are residuals, and those that are carried.
    """
    with tracing_body():
        inputs = [placeholder(n.spec, n.name, type(n) is Node) for n in backward.inputs]
        number = placeholder(_STEP_NUMBER)
        buffer_inputs = [
            placeholder(
                Spec((max_steps, *backward.inputs[k].spec.shape), backward.inputs[k].spec.dtype)
            )
            for k in residual_inputs
        ]
        row = wrap(number) + (-1)
        operands = [wrap(n) for n in inputs]
        for k, buffer in zip(residual_inputs, buffer_inputs, strict=True):
            operands[k] = wrap(buffer)[row]
        outs = inline_graph(backward, operands)
        results = [*outs[: len(carried)], row, *outs[len(carried) :]]
    rows = [n for k, n in enumerate(inputs) if k >= carried.stop and k not in residual_inputs]
    consts = inputs[: carried.start]
    reader = BackwardBody(
        *results,
        inputs=[*consts, *buffer_inputs, *inputs[carried.start : carried.stop], number, *rows],
        name=backward.name,
    )
    reader.restores = getattr(backward, "restores", range(0))
    return reader

"""Residuals: the values that a forward loop stores for the backward pass.

The nodes of a step's pullback that need no cotangent can be computed in either pass.  The cheapest
set of values from which the others can be recomputed is stored: a minimum cut, in which a value
costs its bytes, and expensive operations are not recomputed.  For a step of arithmetic this is the
carry alone; for a step with a matrix product and tanh, the result of tanh.

A carried value that can be restored in the backward pass (restoration.py) costs what its undo log
costs instead; all its versions are then available.

    split      the two parts of a pullback
    ancestors  the nodes that some nodes depend on
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Sequence
from typing import Any, NamedTuple

from wengert._engine.core.copy_graph import rebuilt
from wengert._engine.core.dispatch import PART
from wengert._engine.core.node import CONSTANT, LeafOp, Node
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import is_open, valued
from wengert._engine.core.tracing import SIZE, placeholder

from .min_cut import UNLIMITED, reached
from .restoration import Chain, Undo

_TYPICAL = 64  # assumed for a symbolic length
_LARGEST_COST = 1 << 40  # a cost


class SplitPullback(NamedTuple):
    """The second part of a pullback, and the residuals that it reads.

    kept : the residuals, nodes of the first part.
    places : their placeholders in the second.
    results : the results in terms of these, of inputs and cotangents.
    read : the inputs that it also reads.
    chains : the carried values that it restores.
    ends : the placeholders of these after the step.
    starts : these before the step.
    """

    kept: list[Node]
    places: list[Node]
    results: list[Node]
    read: set[Node]
    chains: list[Chain]
    ends: list[Node]
    starts: list[Node]


def split(
    results: Sequence[Node],
    late: Collection[Node],
    carry: Collection[Node],
    chains: Sequence[Chain] = (),
) -> SplitPullback:
    """Split a pullback in two.

    Parameters
    ----------
    results : sequence of Node
    late : collection of Node
        The placeholders that are known in the backward pass only.
    carry : collection of Node
        Those that are not available then, unless they are stored.
    chains : sequence of Chain
        Those that can be restored.
    """
    nodes = ancestors(results)
    after = set(late)
    for node in nodes:
        if not after.isdisjoint(node.inputs):
            after.add(node)
    border = {
        a for n in nodes if n in after for a in n.inputs if a not in after and not _is_free(a)
    }
    border.update(n for n in results if n not in after and not _is_free(n))
    chains = [c for c in chains if _restoring([c], nodes, after, border, carry)[0] < UNLIMITED]
    cost, kept, undo = _restoring(chains, nodes, after, border, carry)
    for chain in sorted(chains, key=lambda c: -_cost(c.versions[0].spec)):
        # Restoring a value that nothing needs costs time.
        fewer = [c for c in chains if c is not chain]
        found = _restoring(fewer, nodes, after, border, carry)
        if found[0] <= cost:
            chains, (cost, kept, undo) = fewer, found
    places = [placeholder(n.spec, n.name, type(n) is Node) for n in kept]
    place = dict(zip(kept, places, strict=True))
    built = None if undo is None else undo.built(results, dict(place))
    if built is None:
        if undo is not None:
            return split(results, late, carry)
        new = rebuilt(nodes, place)
        built = [new[n] for n in results], [], []
    made, ends, starts = built
    needed = set(ancestors([*made, *starts]))
    used = [k for k, p in enumerate(places) if p in needed]
    return SplitPullback(
        kept=[kept[k] for k in used],
        places=[places[k] for k in used],
        results=made,
        read=needed,
        chains=list(chains),
        ends=ends,
        starts=starts,
    )


def _restoring(
    chains: Sequence[Chain],
    nodes: Sequence[Node],
    after: set[Node],
    border: set[Node],
    carry: Collection[Node],
) -> tuple[int, list[Node], Undo | None]:
    """The cost of storing what is needed if some carried values are restored, and these values."""
    if not chains:
        early = [n for n in nodes if n not in after]
        kept = _cheapest(early, border, set(carry), {}, set())
        return sum([_cost(n.spec) for n in kept]), kept, None
    undo = Undo(chains, nodes, after)
    stored = undo.stored(_is_stored) if undo.possible else None
    if stored is None or any([_is_open(n.spec) for n in stored]):
        return UNLIMITED, [], undo
    border = border | {n for n, _ in undo.needs if not _is_free(n)}
    border = {n for n in border if n not in undo.free}
    logs = list(dict.fromkeys(undo.logs.values()))
    early = ancestors([*border])
    kept = _cheapest(early, border, set(carry) - set(undo.free), undo.free, stored)
    kept = [*kept, *logs]
    return sum([_cost(n.spec) for n in kept]), kept, undo


def ancestors(results: Iterable[Node]) -> list[Node]:
    """The nodes that some nodes depend on, and these, operands first."""
    seen: set[Node] = set()
    stack = list(results)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += node.inputs
    return sorted(seen, key=lambda n: n.serial)


def _is_free(node: Node) -> bool:
    """Whether a node costs nothing in either pass: a constant, a size, an array of one number."""
    return (
        node.op is CONSTANT
        or node.op is SIZE
        or (not node.args and not isinstance(node.op, LeafOp))
    )


def _cheapest(
    nodes: Sequence[Node],
    border: set[Node],
    carry: set[Node],
    free: Container[Node],
    stored: set[Node],
) -> list[Node]:
    """The values to store so that the second part can be computed.

    Parameters
    ----------
    nodes : sequence of Node
        Operands first.
    border : set of Node
        The values that the second part needs.
    carry, stored : set of Node
        The values that cannot be computed in the backward pass.
    free : container of Node
        The values available there.
    """
    needed = set(border)
    for node in reversed(nodes):
        if node in needed:
            needed.update(node.inputs)
    inside = [n for n in nodes if n in needed and n not in free and not _is_free(n)]
    place = {n: k for k, n in enumerate(inside)}
    source, sink = 2 * len(inside), 2 * len(inside) + 1
    edges: list[tuple[int, int, int]] = []
    for node, k in place.items():
        edges.append((2 * k, 2 * k + 1, _cost(node.spec)))
        if node in carry or node in stored or _is_stored(node):
            edges.append((source, 2 * k, UNLIMITED))
        edges += [(2 * place[a] + 1, 2 * k, UNLIMITED) for a in node.inputs if a in place]
        if node in border:
            edges.append((2 * k + 1, sink, UNLIMITED))
    near = reached(edges, source, sink)
    return [n for n, k in place.items() if 2 * k in near and 2 * k + 1 not in near]


def _cost(spec: tuple[Spec, ...] | Spec) -> int:
    """The cost of storing a value: its bytes, and a constant per value."""
    if type(spec) is not Spec or _is_open(spec):
        return UNLIMITED
    size = 1
    for n in spec.shape:
        size *= max(int(valued(n, _Typical())), 1)
    return min(size * spec.dtype.itemsize + 4, _LARGEST_COST)


class _Typical(dict[str, int]):
    """An estimate for each symbolic size."""

    def __missing__(self, name: str) -> int:
        return _TYPICAL


def _is_open(spec: Any) -> bool:
    """Whether a length differs between steps, so that values cannot be stacked."""
    specs = spec if type(spec) is tuple else (spec,)
    return any(is_open(n) for s in specs for n in s.shape)


def _is_stored(node: Node) -> bool:
    """Whether a node is not recomputed."""
    return not isinstance(node.op, LeafOp) and _is_dear(node)


def _is_dear(node: Node) -> bool:
    """Whether storing a node is cheaper than recomputing it."""
    op: Any = node.op
    if op is PART or _is_open(node.spec):
        return False
    if op.kind == "elementwise":
        return op.cost is None or not op.cost.is_recomputed
    return op.kind not in ("view", "indexing", "creation") and not op.aliasing.view

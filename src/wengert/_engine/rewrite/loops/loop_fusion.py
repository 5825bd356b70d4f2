"""Loop fusion: loops over the same operands that compute the same values become one.

A derivative produces several loops over the same operands: the original one, one that also stores
residuals for the backward pass, one that also carries tangents.  Which carried values are equal in
all steps is found by partition refinement: values with equal initial values are assumed to be
equal, and classes are split by their updates until they are stable (as in the minimization of
automata: Hopcroft, 1971).  A loop is merged into another one that carries all its carried values.

    with_fused_loops    a graph with fused loops
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import AnyGraph, BaseGraph
from wengert._engine.core.graph_classes import Body, bodies_of
from wengert._engine.core.graph_copies import with_args
from wengert._engine.core.graph_fingerprint import canonical, leaf_key
from wengert._engine.core.node import LeafOp, Node
from wengert._engine.core.node_properties import frozen, substituted
from wengert._engine.core.op_facts import BRANCH, LOOP
from wengert._engine.core.symbolic.dim import names_in
from wengert._engine.core.tracing import part_of, placeholder

from ..driver import Applied
from .loop_dce import key_of_result
from .loop_view import LoopView, Rewiring

if TYPE_CHECKING:
    from wengert._engine.core.types import Size

# The key of a node, and by position: the nodes that its key depends on, and its operands.
Row = tuple[Any, tuple[int, ...], tuple[int, ...]]


def with_fused_loops(graph: AnyGraph) -> tuple[AnyGraph, list[Applied]]:
    """The graph with fused loops, and the rewrites."""
    loops = [_Member(n) for n in graph.nodes if n.op.control_flow == LOOP]
    if not loops:
        return graph, []
    groups: dict[Hashable, list[_Member]] = {}
    for member in loops:
        groups.setdefault(member.key(), []).append(member)
    order = _LoopOrder(graph, [member.loop.node for member in loops])
    lengths = _Lengths(graph)
    clusters: list[list[_Member]] = []
    for group in groups.values():
        _refine(group)
        clusters += _clusters(group, order, lengths)
    clusters = [c for c in clusters if len(c) > 1 or c[0].repeats()]
    return _with_clusters(graph, clusters, lengths.new) if clusters else (graph, [])


# ---- value numbering ---------------------------------------------------------------------------


class _Member:
    """A loop, and the value numbers of the nodes of its body; nodes with equal numbers are equal.

    Attributes
    ----------
    classes : list of int
        The classes of the carried values; those of one class are assumed to be equal.
    numbers : list of int
        The numbers of the body's nodes: its inputs, then the others in order.
    condition_numbers : list of int
        The numbers of the nodes of the condition.
    condition_output : int or None
        The number of the result of the condition.
    """

    def __init__(self, node: Node) -> None:
        self.loop = loop = LoopView(node)
        self.inner, self.encoded, self.output_positions = _encoded(loop.body)
        inputs, first = loop.body.inputs, loop.fixed
        kinds = [(type(n), n.spec) for n in inputs]
        self.consts = [("const", x, *kinds[k]) for k, x in enumerate(loop.consts)]
        self.starts = [(x, *kinds[first + k]) for k, x in enumerate(loop.carry)]
        stop = first + loop.carried
        self.stacks = [("row", x, *kinds[stop + k]) for k, x in enumerate(loop.rows)]
        self.classes: list[int] = []
        self.numbers: list[int] = []
        self.condition_numbers: list[int] = []
        self.condition_output: int | None = None

    def key(self) -> Hashable:
        """The key that loops must share to be fused."""
        loop, params = self.loop, self.loop.params
        length = None if loop.count or loop.is_while else loop.length
        count = loop.count, length, *[params.get(k) for k in ("limit", "reverse", "slots")]
        return loop.node.op, type(loop.node), count

    def number(self, table: dict[Hashable, int]) -> None:
        """Assign value numbers to the nodes; `table` has a number for each key."""
        inputs = [key for keys in self.input_keys() for key in keys]
        self.numbers = _numbers(self.encoded, inputs, table)
        if self.loop.condition is not None:
            _, encoded, output_positions = _encoded(self.loop.condition)
            self.condition_numbers = _numbers(encoded, inputs, table)
            self.condition_output = self.condition_numbers[output_positions[0]]

    def input_keys(self) -> tuple[list[Hashable], list[Hashable], list[Hashable]]:
        """Keys of the consts, the carry and the rows: their operands, or classes of the carry."""
        return [*self.consts], [("carry", k) for k in self.classes], [*self.stacks]

    @property
    def outputs(self) -> list[int]:
        """The value numbers of the body's outputs."""
        return [self.numbers[k] for k in self.output_positions]

    def repeats(self) -> bool:
        """Whether the loop carries, stacks or reads a value twice."""
        ys = self.outputs[self.loop.carried :]
        return any(len(set(x)) < len(x) for x in (self.consts, self.classes, self.stacks, ys))


_Encoded = tuple[list[Row], list[int]]
_ENCODED: weakref.WeakKeyDictionary[Body, _Encoded] = weakref.WeakKeyDictionary()


def _encoded(body: Body) -> tuple[list[Node], list[Row], list[int]]:
    """The inner nodes of a body, their keys, and the positions of its outputs."""
    inputs = set(body.inputs)
    inner = [n for n in body.nodes if n not in inputs]
    known = _ENCODED.get(body)
    if known is None:
        encoded, number = canonical(body, _encode)
        rows = [(key, tuple([number[a] for a in reads]), of) for (key, reads), of in encoded]
        known = _ENCODED[body] = rows, [number[n] for n in body.outputs]
    return inner, *known


def _encode(node: Node) -> tuple[Any, Sequence[Node]]:
    """The key of a node: its operation, and the nodes that it depends on."""
    if node.op is PART and node.inputs[0].op.control_flow in (LOOP, BRANCH):
        # A key that does not depend on other results of an inner loop.
        key, reads = key_of_result(node.inputs[0], node.params["index"])
        return (node.op, type(node), key), reads
    return _key(node), node.inputs


def _key(node: Node) -> Any:
    op: Any = node.op
    if isinstance(op, LeafOp):
        return op, leaf_key(node)
    return op, node if op.effects.side_effect else (type(node), frozen(node.params), node.spec)


def _numbers(
    encoded: Sequence[Row], inputs: Sequence[Hashable], table: dict[Hashable, int]
) -> list[int]:
    numbers = [table.setdefault(x, len(table)) for x in inputs]
    for key, operands, _ in encoded:
        operand_numbers = [numbers[k] for k in operands]
        if len(operand_numbers) == 2 and key[0].commutative:
            operand_numbers.sort()
        numbers.append(table.setdefault((key, *operand_numbers), len(table)))
    return numbers


def _refine(group: Sequence[_Member]) -> None:
    """Find the carried values that are equal, in all loops of a group."""
    classes: dict[Hashable, int] = {}
    for member in group:
        member.classes = [classes.setdefault(start, len(classes)) for start in member.starts]
    while True:
        table: dict[Hashable, int] = {}
        for member in group:
            member.number(table)
        refined: dict[Hashable, int] = {}
        finer = []
        for member in group:
            ends = member.outputs[: member.loop.carried]
            pairs = zip(member.classes, ends, strict=True)
            finer.append([refined.setdefault(pair, len(refined)) for pair in pairs])
        if len(refined) == len(classes):
            return  # the same classes by other numbers
        classes = refined
        for member, own in zip(group, finer, strict=True):
            member.classes = own


# ---- clusters of loops -------------------------------------------------------------------------


class _LoopOrder:
    """Which loops of a graph must end before others start, as bit masks."""

    def __init__(self, graph: BaseGraph, loops: Sequence[Node]) -> None:
        self._bit = {n: 1 << k for k, n in enumerate(loops)}
        mask: dict[Node, int] = {}
        for node in graph.nodes:
            dependencies = 0
            for a in node.inputs:
                dependencies |= mask[a] | self._bit.get(a, 0)
            mask[node] = dependencies
        self._mask = {n: mask[n] for n in loops}

    def may_join(self, a: Node, b: Node) -> bool:
        """Whether neither depends on the other."""
        return not (self._mask[a] & self._bit[b] or self._mask[b] & self._bit[a])

    def join(self, a: Node, b: Node) -> None:
        """Treat two loops as one with the dependencies and the dependents of both."""
        bits, prerequisites = self._bit[a] | self._bit[b], self._mask[a] | self._mask[b]
        for node, mask in self._mask.items():
            if mask & bits:
                self._mask[node] = mask | bits | prerequisites
        self._mask[a] = self._mask[b] = prerequisites
        for node, bit in self._bit.items():
            if bit & bits:
                self._bit[node], self._mask[node] = bits, prerequisites


class _Lengths:
    """The symbolic lengths that are known after loops; fused loops have the same.

    Attributes
    ----------
    new : dict
        The lengths that replace symbolic lengths, by name.
    """

    def __init__(self, graph: BaseGraph) -> None:
        self.new: dict[str, Any] = {}
        self._fixed: set[str] = set()  # sizes of operands of bodies, which cannot be renamed
        for node in graph.nodes:
            for body in bodies_of(node):
                self._fixed |= names_in([d for n in body.inputs for d in n.spec.shape])

    def can_be_equal(self, a: Any, b: Any) -> bool:
        """Whether two lengths can be made equal."""
        return a is None or b is None or a == b or self._fixed.isdisjoint((*a.names, *b.names))

    def make_equal(self, a: Size | None, b: Any) -> None:
        """Replace the symbolic sizes of `b`, so that it equals `a`."""
        if a is not None and b is not None and a != b:
            length = substituted(a, self.new)
            for name in b.names - length.names:
                self.new[name] = length
            self.new = {name: substituted(x, self.new) for name, x in self.new.items()}


def _clusters(
    group: Sequence[_Member], order: _LoopOrder, lengths: _Lengths
) -> Iterator[list[_Member]]:
    """The loops of a group to be fused, the one with the largest carry first."""
    clusters: list[list[_Member]] = []
    for member in sorted(group, key=lambda m: (-len(set(m.classes)), -len(m.encoded))):
        loop = member.loop
        for cluster in clusters:
            first = cluster[0].loop
            length = next((m.loop.length for m in cluster if m.loop.length is not None), None)
            if (
                _is_contained(member, cluster[0])
                and order.may_join(loop.node, first.node)
                and lengths.can_be_equal(length, loop.length)
            ):
                order.join(loop.node, first.node)
                lengths.make_equal(length, loop.length)
                cluster.append(member)
                break
        else:
            clusters.append([member])
    yield from clusters


def _is_contained(member: _Member, leader: _Member) -> bool:
    if member.condition_output != leader.condition_output:
        return False
    if member.classes:
        return set(member.classes) <= set(leader.classes)
    return bool(member.stacks) and set(member.stacks) <= set(leader.stacks)


# ---- the fused loop ----------------------------------------------------------------------------


def _with_clusters(
    graph: AnyGraph, clusters: Sequence[Sequence[_Member]], lengths: dict[str, Any]
) -> tuple[AnyGraph, list[Applied]]:
    cluster_of: dict[Node, Sequence[_Member]] = {
        m.loop.node: cluster for cluster in clusters for m in cluster
    }
    applied: list[Applied] = []
    rewiring = Rewiring(lengths)
    for node in _in_order(graph, cluster_of):
        if node in rewiring.parts:
            continue
        if node not in cluster_of:
            rewiring.follow(node)
            continue
        cluster = cluster_of[node]
        fused, results = _FusedLoop(cluster, rewiring).build()
        for member, parts in zip(cluster, results, strict=True):
            rewiring.replace(member.loop.node, parts)
            name = "fused loops" if len(cluster) > 1 else "duplicates in a loop merged"
            applied.append(Applied(name, member.loop.node, fused))
    return rewiring.graph(graph), applied


def _in_order(graph: BaseGraph, cluster_of: dict[Node, Sequence[_Member]]) -> list[Node]:
    """The nodes in an order in which all operands of each cluster precede its loops."""
    ordered: dict[Node, None] = {}
    for root in graph.nodes:
        stack = [root]
        while stack:
            node = stack[-1]
            cluster = cluster_of.get(node, ())
            operands = (
                node.inputs if not cluster else [a for m in cluster for a in m.loop.node.inputs]
            )
            pending = [a for a in operands if a not in ordered]
            if pending and node not in ordered:
                stack += pending
            else:
                ordered[stack.pop()] = None
    return list(ordered)


class _FusedLoop:
    """One loop that computes the results of several."""

    def __init__(self, cluster: Sequence[_Member], new: Rewiring) -> None:
        self.cluster, self.new = cluster, new
        self.node_of: dict[int, Node] = {}  # by value number
        self.inputs: dict[Hashable, Node] = {}
        self.operands: dict[Hashable, Node] = {}

    def build(self) -> tuple[Node, list[dict[int, Node]]]:
        """The node of the fused loop, and the results of each original loop."""
        consts, carry, rows = self._inputs()
        next_values: dict[int, int] = {}
        ys: dict[int, None] = {}
        for member in self.cluster:
            self._write(member)
            carried = member.loop.carried
            for c, number in zip(member.classes, member.outputs[:carried], strict=True):
                next_values.setdefault(c, number)
            ys.update(dict.fromkeys(member.outputs[carried:]))
        inputs = list(self.inputs.values())
        first = self.cluster[0].loop
        body = Body(
            *[self.node_of[next_values[k[1]]] for k in carry],
            *[self.node_of[n] for n in ys],
            inputs=inputs,
            name=first.body.name,
        )
        condition = None
        if self.cluster[0].condition_output is not None and first.condition is not None:
            condition_result = self.node_of[self.cluster[0].condition_output]
            condition = Body(condition_result, inputs=inputs, name=first.condition.name)
        length = next((m.loop.length for m in self.cluster if m.loop.length is not None), None)
        node = first.with_body(
            body,
            condition,
            self._given(consts),
            self._given(carry),
            self._given(rows),
            length=substituted(length, self.new.lengths),
        )
        return node, [self._results(m, node, list(carry), list(ys)) for m in self.cluster]

    def _inputs(self) -> tuple[list[Any], list[Any], list[Any]]:
        """The keys of the distinct consts, carried values and rows of the loops."""
        groups: tuple[dict[Any, Node], ...] = ({}, {}, {})
        for member in self.cluster:
            keys_by_group = member.input_keys()
            operands = (member.loop.consts, member.loop.carry, member.loop.rows)
            inner = iter(member.loop.body.inputs)
            for group, keys, values in zip(groups, keys_by_group, operands, strict=True):
                for key, x in zip(keys, values, strict=True):
                    node = next(inner)
                    if key not in group:
                        group[key] = placeholder(node.spec, node.name, type(node) is Node)
                        self.operands[key] = self.new.replacements.get(x, x)
        for group in groups:
            self.inputs.update(group)
        consts, carry, rows = map(list, groups)
        return consts, carry, rows

    def _given(self, keys: Sequence[Any]) -> list[Node]:
        return [self.operands[k] for k in keys]

    def _write(self, member: _Member) -> None:
        """Add the nodes of one loop, except for those equal to nodes of another."""
        loop = member.loop
        names = [key for keys in member.input_keys() for key in keys]
        for number, name in zip(member.numbers, names, strict=False):
            self.node_of.setdefault(number, self.inputs[name])
        self._add(member.inner, member.encoded, member.numbers, len(names))
        if loop.condition is not None:
            inner, encoded, _ = _encoded(loop.condition)
            self._add(inner, encoded, member.condition_numbers, len(names))

    def _add(
        self, inner: Sequence[Node], encoded: list[Any], numbers: Sequence[int], first: int
    ) -> None:
        for node, (_, _, operands), number in zip(inner, encoded, numbers[first:], strict=True):
            if number not in self.node_of:
                args = tuple([self.node_of[numbers[k]] for k in operands])
                self.node_of[number] = with_args(node, args) if args else node

    def _results(
        self, member: _Member, node: Node, carry: list[Any], ys: list[int]
    ) -> dict[int, Node]:
        loop, results = member.loop, {}
        for k in range(len(loop.node.spec)):
            number = loop.of_body(k)
            if number is None:
                results[k] = part_of(node, len(carry))
            elif number < loop.carried:
                results[k] = part_of(node, carry.index(("carry", member.classes[number])))
            else:
                position = len(carry) + loop.is_while + ys.index(member.outputs[number])
                results[k] = part_of(node, position)
        return results

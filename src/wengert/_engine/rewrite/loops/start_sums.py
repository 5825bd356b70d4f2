"""Sums that start at a value: `x + loop(0)`, where the loop adds to a carried value, is `loop(x)`.

The cotangent of an operand that all steps use is such a sum.  It starts at zero in each backward
loop; where it is added to another cotangent, as that of an outer loop, the sum starts there: no
array of zeros is made, and the array is not read and written again after the loop.  A number that
is added, such as the cotangent 1.0 of a sum of all elements, fills the array instead of the zeros.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import AnyGraph
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.handle import value_of, wrap
from wengert._engine.core.node import CONSTANT, ConstantLeaf, LeafOp, Node
from wengert._engine.core.node_properties import frozen
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import BRANCH, LOOP
from wengert._engine.core.symbolic.dim import is_open

from ..driver import Applied
from .loop_dce import key_of_result, used
from .loop_view import LoopView, Rewiring, like, parts_of

NAME = "sum started at a value"


class StartedSum(NamedTuple):
    """A sum of a result of a loop and a value.

    total : the sum
    result : the result of the loop, perhaps with additions to elements after the loop
    start : the value
    """

    total: Node
    result: Node
    start: Node


def with_started_sums(graph: AnyGraph) -> tuple[AnyGraph, list[Applied]]:
    """A graph with values added to sums of loops before the loops, and the rewrites."""
    loops = _sums_of(graph)
    if not loops:
        return graph, []
    needs = used(graph)
    new, applied = Rewiring(), []
    totals = {x.total: x for sums in loops.values() for x in sums.values()}
    for node in graph.nodes:
        if node in loops and node in needs:
            operands = new.replaced(node.inputs)
            view = LoopView(node)
            first = len(view.count) + view.fixed
            for k, x in loops[node].items():
                operands[first + k] = new.replaced([x.start])[0]
            loop = like(node, tuple(operands), node.params)
            masked = [first + k for k, x in loops[node].items() if _is_linear(x)]
            if masked and loop.info is not None:
                loop.info.linear = (*loop.info.linear, *masked)
            new.replace(node, parts_of(loop, needs[node].results))
            applied.append(Applied(NAME, node, loop))
        elif node in totals:
            new.replacements[node] = new.replaced([totals[node].result])[0]
        else:
            new.follow(node)
    return new.graph(graph), applied


def _sums_of(graph: AnyGraph) -> dict[Node, dict[int, StartedSum]]:
    """The sums of results of loops and values that are known before the loop, by result."""
    found: dict[Node, dict[int, StartedSum]] = {}
    if not any(n.op.name == "scan" for n in graph.nodes):
        return found
    position = {n: k for k, n in enumerate(graph.nodes)}
    uses: dict[Node, int] = {}
    for n in (*[a for node in graph.nodes for a in node.inputs], *graph.outputs):
        uses[n] = uses.get(n, 0) + 1
    for node in graph.nodes:
        if node.op.name != "add" or len(node.inputs) != 2:
            continue
        for added, start in (node.inputs, node.inputs[::-1]):
            result = _without_additions(added, uses)
            if result is None or result.op is not PART or result.inputs[0].op.name != "scan":
                continue
            loop, k = result.inputs[0], result.params["index"]
            filled = _filled(start, node)
            if (
                k not in found.get(loop, ())
                and filled.spec == result.spec == node.spec
                and (filled is not start or position[start] < position[loop])
                and _starts_at_zero(loop, k)
                and _takes(loop, k, filled)
            ):
                found.setdefault(loop, {})[k] = StartedSum(node, added, filled)
                break
    return found


def _without_additions(added: Node, uses: Mapping[Node, int]) -> Node | None:
    """An array before additions to its elements; None if it is used otherwise as well."""
    while added.op.name == "setitem":
        array, value, *places = added.args
        if uses[added] != 1 or not isinstance(value, Node) or value.op.name != "add":
            return None
        reads = [x for x in value.inputs if x.op.name == "getitem" and x.args[0] is array]
        if len(reads) != 1 or any(uses[x] != 1 for x in (value, *reads)) or uses[array] != 2:
            return None
        (read,) = reads
        same = frozen(read.params["index"]) == frozen(added.params["index"])
        if not same or list(read.args[1:]) != places or value.spec != read.spec:
            return None
        added = array
        uses = {**uses, added: 1}  # by the addition, as a whole
    return added if uses[added] == 1 else None


def _filled(start: Node, total: Node) -> Node:
    """A known number as an array of the shape of the sum; any other value unchanged."""
    spec = total.spec
    if (
        start.op is not CONSTANT
        or start.spec.shape
        or not spec.shape
        or start.spec.dtype != spec.dtype
    ):
        return start
    if any(is_open(n) for n in spec.shape):
        return start
    value = np.asarray(value_of(wrap(start))).item()
    params = {"shape": spec.shape, "value": value, "dtype": spec.dtype}
    return ConstantLeaf(lookup("full"), (), params, None, total.provenance(spec))


def _starts_at_zero(node: Node, k: int) -> bool:
    """Whether result k of a loop is a sum that starts at zero."""
    loop = LoopView(node)
    if k >= loop.carried:
        return False
    return _is_zero(loop.carry[k]) and is_sum(loop.body, loop.fixed + k, k)


def _is_zero(x: Node) -> bool:
    if x.op is CONSTANT:
        return not np.any(value_of(wrap(x)))
    return x.op.name == "full" and bool(x.params["value"] == 0)


def _is_linear(x: StartedSum) -> bool:
    """Whether the sum is recorded as one that is linear in the value, a cotangent."""
    info = x.total.info
    return info is not None and (x.total.args.index(x.result) ^ 1) in info.linear


def _takes(node: Node, k: int, start: Node) -> bool:
    """Whether the derivative with respect to a value passes through a loop that starts at it."""
    loop = LoopView(node)
    return type(start) is not Node or type(node) is type(loop.body.inputs[loop.fixed + k]) is Node


@functools.lru_cache(maxsize=512)
def is_sum(body: Body, given: int, output: int) -> bool:
    """Whether an output of a body is an input plus something that does not depend on it.

    No other output may depend on the input.
    """
    start, end = body.inputs[given], body.outputs[output]
    depends = {start}
    for node in body.nodes:
        if not depends.isdisjoint(_operands(node)):
            depends.add(node)
    chain: set[Node] = {start}
    node = end
    while node is not start:
        before = _before(node, depends)
        if before is None:
            return False
        chain.update(before)
        node = before[-1]
        if node is not start:
            chain.add(node)
    chain.add(end)
    others = [x for k, x in enumerate(body.outputs) if k != output]
    if not chain.isdisjoint(others):
        return False
    return all(
        n in chain or chain.isdisjoint(n.inputs) or _is_other_result(n, chain) for n in body.nodes
    )


def _operands(node: Node) -> Sequence[Node]:
    """What a node is computed from; of a loop or branch what this result depends on."""
    if node.op is PART and node.inputs[0].op.control_flow in (LOOP, BRANCH):
        return key_of_result(node.inputs[0], node.params["index"])[1]
    return node.inputs


def _is_other_result(node: Node, chain: set[Node]) -> bool:
    """Whether a node is a result of an inner loop, which does not depend on the sum in it."""
    return node.op is PART and node.inputs[0] in chain


def _before(node: Node, depends: set[Node]) -> Sequence[Node] | None:
    """The nodes by which something is added, the last of which is what it is added to."""
    if node not in depends or isinstance(node.op, LeafOp):
        return None
    if node.op is PART:
        return _of_inner(node, depends)
    if node.op.name in ("add", "subtract"):
        return _term(node, depends)
    if node.op.name == "scatter_add":
        before, *others = node.inputs
        return (before,) if depends.isdisjoint(others) else None
    if node.op.name != "setitem":
        return None
    before, value, *places = node.args
    if not isinstance(value, Node) or not depends.isdisjoint(places):
        return None
    read = _term(value, depends)
    if read is None:
        return None
    element = read[-1]
    same = (
        element.op.name == "getitem"
        and element.args[0] is before
        and list(element.args[1:]) == places
        and frozen(element.params["index"]) == frozen(node.params["index"])
    )
    return (value, element, before) if same else None


def _term(node: Node, depends: set[Node]) -> Sequence[Node] | None:
    """The operand of a sum or difference that depends on the start, if it is added once."""
    if node.op.name not in ("add", "subtract"):
        return None
    a, b = node.inputs
    one = a if b not in depends else b if node.op.name == "add" and a not in depends else None
    return None if one is None or one.spec != node.spec else (one,)


def _of_inner(node: Node, depends: set[Node]) -> Sequence[Node] | None:
    """An inner loop or conditional, and its operand that it adds to."""
    inner, k = node.inputs[0], node.params["index"]
    places = [j for j, a in enumerate(inner.inputs) if a in depends]
    if len(places) != 1:
        return None
    (place,) = places
    if inner.op.control_flow == BRANCH:
        bodies, given = inner.params["branches"], place - 1
    elif inner.op.name == "scan":
        loop: Any = LoopView(inner)
        bodies, given = (loop.body,), place - len(loop.count)
        if given != loop.fixed + k:
            return None
    else:
        return None
    if (
        given < 0
        or not all(is_sum(b, given, k) for b in bodies)
        or inner.inputs[place].spec != node.spec
    ):
        return None
    return inner, inner.inputs[place]

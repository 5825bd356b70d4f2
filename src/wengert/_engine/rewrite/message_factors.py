"""Factors from messages, after the sums that they multiply.

The cotangent of a sum over processes is a number that arrives in a message, and multiplies every
element of the backward pass.  Sums are linear, so it may multiply their results instead:

    sum(t * p * x)   as   t * sum(p * x)

Then the loops of the forward and the backward pass do not wait for the message, and can be one loop
over the data.  As in rules/contractions.py, intermediate results are rounded differently.

    with_late_factors    a graph in which numbers from messages multiply sums, not their terms
"""

from __future__ import annotations

from typing import NamedTuple

from wengert._engine.core.copy_graph import rebuilt, with_args
from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import AnyGraph
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec

_SUMS = frozenset(("sum", "sum_to", "einsum", "matmul"))
_LINEAR = frozenset(("negative", "reshape", "transpose", "expand_dims", "squeeze", *_SUMS))


class _Scaled(NamedTuple):
    """A value that is a number from a message times another value."""

    factor: Node
    value: Node


def with_late_factors(graph: AnyGraph) -> AnyGraph:
    """The graph in which numbers from messages multiply sums instead of their terms."""
    if not any([n.op.kind == "collective" for n in graph.nodes]):
        return graph
    scaled: dict[Node, _Scaled] = {}

    def change(node: Node, args: tuple[Node, ...]) -> Node | None:
        if not args or type(node.spec) is not Spec or node.spec.dtype.kind != "f":
            return None
        same = all([a is b for a, b in zip(args, node.inputs, strict=True)])
        current = node if same else with_args(node, args)
        found = _scaled(current, args, scaled)
        if found is None:
            return current
        if node.op.name in _SUMS:
            both = (found.factor, found.value)
            current = Node(lookup("multiply"), both, {}, None, node.info)
        scaled[current] = found
        return current

    nodes = rebuilt(graph.nodes, None, change)
    if not any([s.value.op.name in _SUMS for s in scaled.values()]):
        return graph
    return graph.with_nodes({old: new for old, new in nodes.items() if old is not new})


def _scaled(node: Node, args: tuple[Node, ...], scaled: dict[Node, _Scaled]) -> _Scaled | None:
    """The factor and the other value of a node; None if it has no factor from a message."""
    dtype = node.spec.dtype
    if any([type(a.spec) is not Spec or a.spec.dtype != dtype for a in args]):
        return None
    name, inner = node.op.name, [scaled.get(a) for a in args]
    if name == "multiply":
        for k in (0, 1):
            if _is_number_of_message(args[k]) and args[1 - k].spec.shape == node.spec.shape != ():
                return _Scaled(args[k], args[1 - k])
    elif name in ("add", "subtract"):
        a, b = inner
        if a is None or b is None or a.factor is not b.factor:
            return None
        return _Scaled(a.factor, Node(node.op, (a.value, b.value), node.params, None, node.info))
    elif name not in _LINEAR or node.params.get("dtype") is not None:
        return None
    for k, part in enumerate(inner):
        if part is not None:
            rest = tuple([part.value if i == k else a for i, a in enumerate(args)])
            value = Node(node.op, rest, node.params, None, node.info)
            return _Scaled(part.factor, value)
    return None


def _is_number_of_message(node: Node) -> bool:
    """Whether a node is a number that a collective operation returned."""
    if node.op.name == "tied" and node.inputs:
        node = node.inputs[0]
    return (
        type(node.spec) is Spec
        and node.spec.shape == ()
        and node.op is PART
        and node.params["index"] == 0
        and node.inputs[0].op.kind == "collective"
    )

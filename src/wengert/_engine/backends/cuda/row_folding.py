"""Bodies of loops where a condition of their rows has one value: what is left of them.

Batching keeps the values of a row that has ended by selections (control_flow/batching.py), and the
derivative of a selection is zero where it selects the other operand. With the condition replaced by
a number, such steps become the identity.

    merged    nodes, with one in the place of equal ones
    folded    a body where a node has one value for all rows
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_copies import rebuilt, with_args
from wengert._engine.core.graph_fingerprint import OpenNames, leaf_key, node_key
from wengert._engine.core.node import CONSTANT, LeafOp, Node
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import tracing_body
from wengert._engine.core.spec import bare
from wengert._engine.core.thread_state import call_ignoring_errors
from wengert._engine.core.tracing import record


def merged(nodes: Iterable[Node], known: Mapping[Node, Node]) -> dict[Node, Node]:
    """Nodes, with one in the place of equal ones."""
    names, seen = OpenNames(), dict[Any, Node]()

    def change(node: Node, args: tuple[Any, ...]) -> Node:
        if isinstance(node.op, LeafOp):
            return seen.setdefault(leaf_key(node), node)
        numbers: Any = [id(a) for a in args]
        key = node_key(node, names), tuple(sorted(numbers) if node.op.commutative else numbers)
        is_same = all(a is b for a, b in zip(args, node.inputs, strict=True))
        return seen.setdefault(key, node if is_same else with_args(node, args))

    return rebuilt(nodes, known, change)


def folded(body: Body, active: Node, value: bool) -> Body:
    """The body where a node has one value for all rows."""
    with tracing_body():
        new = rebuilt(body.nodes, None, _Folding(active, value).change)
    return Body(*[new[n] for n in body.outputs], inputs=body.inputs, name=body.name)


class _Folding:
    """The nodes that follow from a node with one value for all rows."""

    def __init__(self, active: Node, value: bool) -> None:
        self.active, self.value = active, value
        self.known: dict[Any, Any] = {}  # nodes whose elements are one number
        self.vanishing: set[Any] = set()  # nodes whose elements are zero, or NaN of zero times inf

    def change(self, node: Node, args: tuple[Any, ...]) -> Node | None:
        """The replacement of a node, given those of its operands."""
        if node is self.active:
            return self._filled(node, np.bool_(self.value))
        if node.op is CONSTANT and np.ndim(node.value) == 0:
            self.known[node] = node.value
        values = [self.known.get(a) for a in args]
        if not args or all(v is None for v in values):
            return self._vanishing(node, args) if args else None
        if all(v is not None for v in values):
            made = self._computed(node, values)
            if made is not None:
                return made
        if _selects_zeros(node, values) or self._is_strong_zero(node, args, values):
            return self._filled(node, node.spec.dtype.type(0))
        chosen = _chosen(node, args, values)
        if chosen is None:
            return self._vanishing(node, args)
        if chosen in self.known:
            return self._filled(node, np.asarray(self.known[chosen], node.spec.dtype)[()])
        return chosen if bare(chosen.spec) == bare(node.spec) else None

    def _computed(self, node: Node, values: list[Any]) -> Node | None:
        """The number that a function of numbers is."""
        op: Any = node.op
        if op.kind == "elementwise" and type(node.spec) is not tuple:
            made = call_ignoring_errors(op.run, *values, **node.params)
            return self._filled(node, np.asarray(made, node.spec.dtype)[()])
        is_same = (op.aliasing.view or op is lookup("cast")) and op is not lookup("imag")
        if op.kind == "view" and len(values) == 1 and (is_same or _is_zero(values[0])):
            return self._filled(node, np.asarray(values[0], node.spec.dtype)[()])
        return None

    def _filled(self, node: Node, value: Any) -> Node:
        options = {"shape": node.spec.shape, "value": value.item(), "dtype": node.spec.dtype}
        made: Node = record(lookup("full"), [], options).node
        self.known[made] = value
        return made

    # ---- products with zero --------------------------------------------------------------------

    def _vanishing(self, node: Node, args: tuple[Any, ...]) -> Node | None:
        """The node with new operands, if it is a product with zero, or a view of one."""
        zero = [a in self.vanishing or _is_zero(self.known.get(a)) for a in args]
        op: Any = node.op
        if not (
            (getattr(op, "multilinear", False) and any(zero))
            or (op is lookup("divide") and zero[0])
            or (op is lookup("strong_zero") and zero[1])
            or ((getattr(op, "kind", "") == "view" or op in _sums()) and all(zero))
        ):
            return None
        made = with_args(node, args)
        self.vanishing.add(made)
        return made

    def _is_strong_zero(self, node: Node, args: tuple[Any, ...], values: list[Any]) -> bool:
        """Whether a node is zero because zero times infinity is zero there."""
        op: Any = node.op
        if type(node.spec) is tuple or not _is_zero(values[0]):
            return False
        if op is lookup("strong_zero"):
            return args[1] in self.vanishing
        return bool(getattr(op, "has_strong_zeros", False))


def _sums() -> list[Any]:
    return [lookup(name) for name in ("add", "subtract", "negative", "sum", "sum_to")]


def _is_zero(value: Any) -> bool:
    return value is not None and np.ndim(value) == 0 and not value


def _selects_zeros(node: Node, values: list[Any]) -> bool:
    """Whether a node selects elements of zeros, or adds zeros up."""
    op: Any = node.op
    if type(node.spec) is tuple or node.spec.dtype.kind not in "fc":
        return False
    if op in (lookup("sum"), lookup("sum_to")):
        return _is_zero(values[0])
    if op.kind not in ("view", "indexing"):
        return False
    positions = range(len(values))[op.selectors]
    return all(k in positions or _is_zero(v) for k, v in enumerate(values))


# What an operation with a number as operand is: the other operand for one, the number for another.
_NEUTRAL = {
    "logical_and": (1, 0),
    "logical_or": (0, 1),
    "bitwise_and": (None, 0),
    "add": (0, None),
    "multiply": (1, None),
}


def _chosen(node: Node, args: tuple[Any, ...], values: list[Any]) -> Node | None:
    """The operand that the result is, if some operands are numbers."""
    if node.op is lookup("where"):
        if values[0] is None:  # the same number for either
            return _node(args[1]) if values[1] is not None and values[1] == values[2] else None
        return _node(args[1 if values[0] else 2])
    if node.op is lookup("subtract") and _is_zero(values[1]):
        return _node(args[0])
    neutral = _NEUTRAL.get(node.op.name)
    if neutral is None or type(node.spec) is tuple:
        return None
    if node.spec.dtype.kind not in "bi" and node.op is not lookup("add"):
        return None
    for k, value in enumerate(values):
        if value is not None and neutral[0] is not None and value == neutral[0]:
            return _node(args[1 - k])
        if value is not None and value == neutral[1]:
            return _node(args[k])
    return None


def _node(x: Any) -> Node | None:
    return x if isinstance(x, Node) else None

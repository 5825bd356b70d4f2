"""Conditions of loops by rows: a loop whose rows end at different steps.

Batching makes one loop of them, which runs until no row goes on, and in which a row that has ended
keeps its values (control_flow/batching.py). A thread ends its row at once. This is valid if the
step changes nothing where the row's condition is false, which is verified by putting this into the
body: then each carried result folds to the operand.

    row_bodies    the body and the condition of one row
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from wengert._engine.core.alpha_equivalence import OpenNames
from wengert._engine.core.copy_graph import rebuilt, with_args
from wengert._engine.core.errors_ignored import call_ignoring_errors
from wengert._engine.core.graph_fingerprint import leaf_key, node_key
from wengert._engine.core.node import CONSTANT, LeafOp, Node
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import tracing_body
from wengert._engine.core.spec import bare
from wengert._engine.core.subgraph import Body
from wengert._engine.core.tracing import record

from ..llvm.ir.affine import Length


def row_bodies(params: Mapping[str, Any], rows: Length) -> tuple[Body, Body | None] | None:
    """The body and the condition (None of a loop of known length); None if rows end together."""
    body, condition, carried = params["body"], params.get("condition"), params["carried"]
    if condition is None:
        return body, None
    (goes_on,) = condition.outputs
    if goes_on.op is lookup("any") and goes_on.inputs[0].spec.shape == (rows,):
        return _masked(body, condition, carried)
    return Body(*body.outputs[:carried], inputs=body.inputs, name=body.name), condition


@functools.lru_cache(maxsize=256)
def _masked(body: Body, condition: Body, carried: int) -> tuple[Body, Body] | None:
    """The body of a row that goes on, and its condition; None if others change as well."""
    known = dict(zip(condition.inputs, body.inputs, strict=True))
    goes_on = condition.outputs[0].inputs[0]
    merged = _merged([*body.nodes, *condition.nodes], known)
    active = merged[goes_on]
    if active.op is CONSTANT or active in body.inputs:
        return None
    both = Body(*[merged[n] for n in body.outputs[:carried]], inputs=body.inputs, name=body.name)
    first = len(body.inputs) - carried
    if _folded(both, active, False).outputs != body.inputs[first:]:
        return None
    step = _folded(both, active, True)
    return step, Body(goes_on, inputs=condition.inputs, name=condition.name)


def _merged(nodes: Iterable[Node], known: Mapping[Node, Node]) -> dict[Node, Node]:
    """Nodes, with one in the place of equal ones."""
    names, seen = OpenNames(), dict[Any, Node]()

    def change(node: Node, args: tuple[Any, ...]) -> Node:
        if isinstance(node.op, LeafOp):
            return seen.setdefault(leaf_key(node), node)
        numbers: Any = [id(a) for a in args]
        key = node_key(node, names), tuple(sorted(numbers) if node.op.commutative else numbers)
        return seen.setdefault(key, with_args(node, args))

    return rebuilt(nodes, known, change)


# ---- folding -------------------------------------------------------------------------------------


def _folded(body: Body, active: Node, value: bool) -> Body:
    """The body where a node has one value for all rows."""
    with tracing_body():
        new = rebuilt(body.nodes, None, _Folding(active, value).change)
    return Body(*[new[n] for n in body.outputs], inputs=body.inputs, name=body.name)


class _Folding:
    """The nodes that follow from a node with one value for all rows."""

    def __init__(self, active: Node, value: bool) -> None:
        self.active, self.value = active, value
        self.known: dict[Any, Any] = {}  # nodes whose elements are one number

    def change(self, node: Node, args: tuple[Any, ...]) -> Node | None:
        """The replacement of a node, given those of its operands."""
        if node is self.active:
            return self._filled(node, np.bool_(self.value))
        if node.op is CONSTANT and np.ndim(node.value) == 0:
            self.known[node] = node.value
        values = [self.known.get(a) for a in args]
        if not args or all(v is None for v in values):
            return None
        if all(v is not None for v in values):
            return self._computed(node, values)
        chosen = _chosen(node, args, values)
        return chosen if chosen is not None and bare(chosen.spec) == bare(node.spec) else None

    def _computed(self, node: Node, values: list[Any]) -> Node | None:
        """The number that a function of numbers is."""
        op: Any = node.op
        if op.kind == "elementwise" and type(node.spec) is not tuple:
            made = call_ignoring_errors(op.run, *values, **node.params)
            return self._filled(node, np.asarray(made, node.spec.dtype)[()])
        if op.kind == "view" and len(values) == 1:  # the same elements
            return self._filled(node, np.asarray(values[0], node.spec.dtype)[()])
        return None

    def _filled(self, node: Node, value: Any) -> Node:
        options = {"shape": node.spec.shape, "value": value.item(), "dtype": node.spec.dtype}
        made: Node = record(lookup("full"), [], options).node
        self.known[made] = value
        return made


# What an operation with a number as operand is: the other operand for one, the number for another.
_NEUTRAL = {
    "logical_and": (1, 0),
    "logical_or": (0, 1),
    "add": (0, None),
    "multiply": (1, None),
}


def _chosen(node: Node, args: tuple[Any, ...], values: list[Any]) -> Node | None:
    """The operand that the result is, if some operands are numbers."""
    if node.op is lookup("where"):
        return None if values[0] is None else _node(args[1 if values[0] else 2])
    neutral = _NEUTRAL.get(node.op.name)
    if neutral is None or node.spec.dtype.kind not in "bi":
        return None
    for k, value in enumerate(values):
        if value is not None and value == neutral[0]:
            return _node(args[1 - k])
        if value is not None and value == neutral[1]:
            return _node(args[k])
    return None


def _node(x: Any) -> Node | None:
    return x if isinstance(x, Node) else None

"""Non-finite gradients: y is finite and its gradient is not, and which node made it so.

From a bad element of the gradient the search goes towards y along edges with bad contributions; the
causes are the edges of nodes whose cotangent is finite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wengert._engine.core.dispatch import TupleCotangent
from wengert._engine.core.node import Node

from .backward_trace import Backward, Edge, magnitude
from .dependency_trace import plain
from .describe import named
from .findings import Finding
from .nonfinite_values import Index, bad_index, first_nonfinite, operands_at, origin
from .recorded_pass import given_by

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand


def culprits(back: Backward, target: Node, symptom: str) -> list[Finding]:
    """The nodes that turned a finite cotangent into one that is not, nearest to y first."""
    found: dict[Edge, None] = {}
    mixed: Edge | None = None
    seen = {target}
    stack = [target]
    while stack:
        for edge in back.into.get(stack.pop(), ()):
            if np.isfinite(edge.passed):
                continue
            arrived = magnitude(back.cotangents[edge.node])
            if np.isfinite(arrived):
                found[edge] = None
                continue
            if np.isnan(edge.given) and not np.isnan(arrived):
                mixed = edge
            if edge.node not in seen:
                seen.add(edge.node)
                stack.append(edge.node)
    edges = sorted(found, key=lambda e: -e.node.serial)
    return [_spoken(e, back, mixed, symptom) for e in edges]


def _spoken(edge: Edge, back: Backward, mixed: Edge | None, symptom: str) -> Finding:
    node = edge.node
    t = back.cotangents[node]
    with np.errstate(all="ignore"):
        given = given_by(node, t, back.ctx)[edge.position]
    index = None if isinstance(given, TupleCotangent) else bad_index(given)
    forward = _bad_operand(node, index, symptom)
    if forward is not None:
        return forward
    at_element = f" (element {index})" if index else ""
    bad = "not finite" if index is None else str(np.asarray(given)[index])
    operands = operands_at(node, index)
    if _is_singular(edge, t, back):
        kind = "singular"
        what = f"the slope of {node.op.name} at {operands} is {bad}{at_element}"
        advice = node.op.remedy.advice("singular")
    else:
        kind = "overflow"
        what = (
            f"the slope of {node.op.name} at {operands}, times its cotangent "
            f"({magnitude(t):.3g}), is too large for {node.spec.dtype}{at_element}"
        )
        advice = node.op.remedy.advice("overflow")
    message = f"{what}. {advice}"
    if mixed is not None and mixed.node is not node:
        message += f". It was multiplied by a slope of 0 in {named(mixed.node)} (0 * inf is NaN)"
        message += f" at {mixed.node.where}" if mixed.node.where else ""
    return Finding(kind, message, node, node.where, symptom)


def _bad_operand(node: Node, index: Index | None, symptom: str) -> Finding | None:
    """An operand that is not finite at the element, so that the cause is in the forward pass."""
    for a in node.args:
        value = plain(a)
        if isinstance(value, tuple) or not isinstance(a, Node) or not a.args:
            continue
        own = bad_index(value)
        if own is not None and (index is None or _meets(node, value, index)):
            return first_nonfinite(*origin(a), symptom)
    return None


def _meets(node: Node, value: Array, index: Index) -> bool:
    if node.op.kind != "elementwise":
        return True
    array = np.asarray(value)
    tail = index[len(index) - array.ndim :]
    own = tuple(0 if n == 1 else i for i, n in zip(tail, array.shape, strict=True))
    return not np.isfinite(array[own])


def _is_singular(edge: Edge, t: Array | tuple[Operand, ...], back: Backward) -> bool:
    """Whether the contribution is not finite even for a very small cotangent."""
    if isinstance(t, tuple | dict):
        return True
    size = magnitude(t)
    tiny = np.finfo(np.asarray(t).dtype).tiny ** 0.5
    small = t if size == 0 else np.asarray(t / size * tiny).astype(np.asarray(t).dtype)[()]
    with np.errstate(all="ignore"):
        return not np.isfinite(magnitude(given_by(edge.node, small, back.ctx)[edge.position]))

"""Nonfinite gradients: y is finite and its gradient is not, and which node is the cause.

From the gradient the search goes towards y along edges whose contributions are not finite; the
causes are the edges of nodes whose cotangent is finite.

    nonfinite_edges    a finding for each cause
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
from .nonfinite_values import Index, first_nonfinite, nonfinite_index, operands_at, origin
from .recorded_pass import contributions

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand


def nonfinite_edges(back: Backward, target: Node, symptom: str) -> list[Finding]:
    """The nodes that turned a finite cotangent into a nonfinite one, nearest to y first."""
    causes: dict[Edge, None] = {}
    mixed: Edge | None = None
    seen = {target}
    stack = [target]
    while stack:
        for edge in back.edges.get(stack.pop(), ()):
            if np.isfinite(edge.projected):
                continue
            cotangent = magnitude(back.cotangents[edge.node])
            if np.isfinite(cotangent):
                causes[edge] = None
                continue
            if np.isnan(edge.raw) and not np.isnan(cotangent):
                mixed = edge
            if edge.node not in seen:
                seen.add(edge.node)
                stack.append(edge.node)
    edges = sorted(causes, key=lambda e: -e.node.serial)
    return [_finding(e, back, mixed, symptom) for e in edges]


def _finding(edge: Edge, back: Backward, mixed: Edge | None, symptom: str) -> Finding:
    node = edge.node
    t = back.cotangents[node]
    with np.errstate(all="ignore"):
        bar = contributions(node, t, back.ctx)[edge.position]
    index = None if isinstance(bar, TupleCotangent) else nonfinite_index(bar)
    operand = _nonfinite_operand(node, index, symptom)
    if operand is not None:
        return operand
    at_element = f" (element {index})" if index else ""
    value = "not finite" if index is None else str(np.asarray(bar)[index])
    operands = operands_at(node, index)
    if _is_singular(edge, t, back):
        kind = "singular"
        what = f"the slope of {node.op.name} at {operands} is {value}{at_element}"
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


def _nonfinite_operand(node: Node, index: Index | None, symptom: str) -> Finding | None:
    """The finding for an operand that is not finite at the element: a cause in the forward pass."""
    for a in node.args:
        value = plain(a)
        if isinstance(value, tuple) or not isinstance(a, Node) or not a.args:
            continue
        operand_index = nonfinite_index(value)
        if operand_index is not None and (index is None or _is_nonfinite_at(node, value, index)):
            return first_nonfinite(*origin(a), symptom)
    return None


def _is_nonfinite_at(node: Node, value: Array, index: Index) -> bool:
    """Whether the element of an operand for that element of the result is not finite."""
    if node.op.kind != "elementwise":
        return True
    array = np.asarray(value)
    tail = index[len(index) - array.ndim :]
    operand_index = tuple(0 if n == 1 else i for i, n in zip(tail, array.shape, strict=True))
    return not np.isfinite(array[operand_index])


def _is_singular(edge: Edge, t: Array | tuple[Operand, ...], back: Backward) -> bool:
    """Whether the contribution is not finite even for a very small cotangent."""
    if isinstance(t, tuple | dict):
        return True
    size = magnitude(t)
    tiny = np.finfo(np.asarray(t).dtype).tiny ** 0.5
    small = t if size == 0 else np.asarray(t / size * tiny).astype(np.asarray(t).dtype)[()]
    with np.errstate(all="ignore"):
        return not np.isfinite(magnitude(contributions(edge.node, small, back.ctx)[edge.position]))

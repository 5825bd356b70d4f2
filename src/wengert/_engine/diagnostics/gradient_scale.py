"""Gradient scale: a gradient that is very large or very small, and where it became so.

The path with the largest contributions is followed from x to y; the factors that multiply the
cotangent along it are combined per line of the user's program.
"""

from __future__ import annotations

from math import exp, log, log10

from wengert._engine.core.node import Node

from .backward_trace import Backward, Edge, magnitude
from .findings import Finding, named

# A gradient is reported if its largest element, for a seed of 1, is outside of this range.
HUGE_GRADIENT = 1e8
TINY_GRADIENT = 1e-12
CANCELLED = 1e-9  # contributions whose sum is below this fraction of the largest cancel


def out_of_scale(back: Backward, target: Node) -> list[Finding]:
    """Where a gradient grew above `HUGE_GRADIENT` or shrank below `TINY_GRADIENT`."""
    size = magnitude(back.cotangents[target])
    if size == 0 or TINY_GRADIENT <= size <= HUGE_GRADIENT:
        return []
    path = _path(back, target)
    cancelled = None if size > HUGE_GRADIENT else _cancelled(back, path, target)
    if cancelled is not None:
        return [cancelled]
    symptom, kind = ("huge", "growth") if size > HUGE_GRADIENT else ("tiny", "decay")
    nodes: dict[str, list[tuple[Edge, float]]] = {}
    for edge, factor in _factors(back, path):
        nodes.setdefault(edge.node.where or edge.node.op.name, []).append((edge, factor))
    sign = 1 if size > HUGE_GRADIENT else -1
    total = {line: sign * sum(f for _, f in pairs) for line, pairs in nodes.items()}
    if not total:
        return []
    line = max(total, key=lambda p: total[p])
    edges = [e for e, _ in nodes[line]]
    worst = max(nodes[line], key=lambda pair: sign * pair[1])
    node = worst[0].node
    verb = "grows" if sign > 0 else "shrinks"
    message = (
        f"the gradient is {size:.3g} for a seed of 1. Between y and x it {verb} by a factor of "
        f"{_power(total[line])} at this line"
    )
    if len(edges) > 1:
        message += f" in {len(edges)} operations, {_power(abs(worst[1]))} at most in one"
    message += f": {named(node)}. "
    message += (
        "Rescale, clip or normalize there, or shorten the chain"
        if sign > 0
        else "Rescale there, avoid the flat part of the function, or compute with logarithms"
    )
    return [Finding(kind, message, node, node.where, symptom)]


def _path(back: Backward, target: Node) -> list[Edge]:
    """The path from a target to an output along the largest contributions."""
    path: list[Edge] = []
    node = target
    while back.edges.get(node):
        edge = max(back.edges[node], key=lambda e: e.projected)
        path.append(edge)
        node = edge.node
    return path


def _factors(back: Backward, path: list[Edge]) -> list[tuple[Edge, float]]:
    """The logarithm of the factor of the cotangent at each edge."""
    factors = []
    for edge in path:
        cotangent = magnitude(back.cotangents[edge.node])
        if cotangent > 0 and edge.projected > 0:
            factors.append((edge, log(edge.projected) - log(cotangent)))
    return factors


def _cancelled(back: Backward, path: list[Edge], target: Node) -> Finding | None:
    """A tiny sum of contributions that are not tiny."""
    for node in dict.fromkeys([target, *(e.operand for e in path)]):
        edges = back.edges.get(node, [])
        largest = max((max(e.raw, e.projected) for e in edges), default=0.0)
        if largest and magnitude(back.cotangents[node]) < CANCELLED * largest:
            last = max((e.node for e in edges), key=lambda n: n.serial)
            message = (
                f"contributions of up to {largest:.3g} to {named(node)} cancel, and the remainder "
                "is rounding error: the exact derivative is probably zero"
            )
            return Finding("cancelled", message, last, last.where, "tiny")
    return None


def _power(x: float) -> str:
    return f"{exp(x):.3g}" if abs(x) < 600 else f"1e{x * log10(exp(1)):.0f}"

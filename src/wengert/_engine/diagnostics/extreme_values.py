"""Extreme values: NaN and infinities, and gradients that are very large or very small.

Nonfinite values: where a NaN or an infinity first appeared in the forward pass.

From a nonfinite element of the result the search goes back: through an elementwise operation to the
elements of the operands at the same index, without those that `np.where` did not select; through
other operations to any operand that is not finite.  It ends at a node whose operands are finite.

Nonfinite gradients: y is finite and its gradient is not, and which node is the cause.

From the gradient the search goes towards y along edges whose contributions are not finite; the
causes are the edges of nodes whose cotangent is finite.

    nonfinite_edges    a finding for each cause

Gradient scale: a gradient that is very large or very small, and where it became so.

The path with the largest contributions is followed from x to y; the factors that multiply the
cotangent along it are combined per line of the user's program.
"""

from __future__ import annotations

from math import exp, log, log10
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.core.dispatch import TupleCotangent
from wengert._engine.core.node import ConstantLeaf, Node

from .findings import Finding, called, named
from .recorded_pass import Backward, Edge, contributions, magnitude, plain

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand

Index = tuple[int, ...]

_ARITHMETIC = ("elementwise", "reduction", "contraction", "view")


class NonfiniteElement(NamedTuple):
    """A nonfinite element of the value of a node, or of a plain operand of it.

    node : the node.
    operand : the position of the plain operand, or None for the value of the node.
    at : the index of the element; None if it is not known.
    """

    node: Node
    operand: int | None
    at: Index | None


def nonfinite_index(value: Any) -> Index | None:
    """The index of the first NaN, or else of the first infinity; None if all are finite."""
    if value is None or isinstance(value, tuple):
        return None
    array = np.asarray(value)
    if array.dtype.kind not in "fc" or array.size == 0:
        return None
    for test in (np.isnan, np.isinf):
        mask = test(array)
        if mask.any():
            return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), array.shape))
    return None


def origin(
    node: Node, index: Index | None = None
) -> tuple[NonfiniteElement, NonfiniteElement | None]:
    """The origin of the nonfinite element of a node, and where an infinity became NaN."""
    index = index if index is not None else nonfinite_index(node.value)
    current = NonfiniteElement(node, None, index)
    became_nan = None
    while True:
        previous = _previous(current)
        if previous is None:
            return current, became_nan
        if became_nan is None and is_nan(_element(current)) and not is_nan(_element(previous)):
            became_nan = current
        current = previous
        if current.operand is not None:
            return current, became_nan


def _previous(current: NonfiniteElement) -> NonfiniteElement | None:
    """A nonfinite operand that an element was computed from; NaN is preferred to infinity."""
    node = current.node
    if node.op.aliasing.transparent:
        return None
    elements = []
    for i, a in enumerate(node.args):
        if node.op.name == "where" and not _was_selected(node, i, current.at):
            continue
        value = plain(a)
        index = _index_in(node, value, current.at)
        if index is None:
            continue
        is_leaf = not isinstance(a, Node) or (isinstance(a, ConstantLeaf) and not a.args)
        elements.append(
            NonfiniteElement(node, i, index) if is_leaf else NonfiniteElement(a, None, index)
        )
    elements.sort(key=lambda e: not is_nan(_element(e)))
    return elements[0] if elements else None


def _was_selected(node: Node, position: int, index: Index | None) -> bool:
    if position == 0 or index is None:
        return position != 0
    condition = plain(node.args[0])
    return bool(np.broadcast_to(condition, node.spec.shape)[index]) == (position == 1)


def _index_in(node: Node, value: Operand, index: Index | None) -> Index | None:
    """The nonfinite element of an operand; for an elementwise operation, at the same index only."""
    if isinstance(value, tuple):
        return next((k for k in map(nonfinite_index, value) if k is not None), None)
    if node.op.kind != "elementwise" or index is None:
        return nonfinite_index(value)
    same = at_index(value, index)
    return same if same is not None and not np.isfinite(np.asarray(value)[same]) else None


def at_index(value: Operand, index: Index) -> Index | None:
    """The index into an operand for an element of the broadcast result."""
    array = np.asarray(value)
    if array.dtype.kind not in "fc" or array.ndim > len(index):
        return None
    tail = index[len(index) - array.ndim :]
    operand_index = tuple(0 if n == 1 else i for i, n in zip(tail, array.shape, strict=True))
    is_valid = all(i < n for i, n in zip(operand_index, array.shape, strict=True))
    return operand_index if is_valid else None


def _element(x: NonfiniteElement) -> Any:
    value = x.node.value if x.operand is None else plain(x.node.args[x.operand])
    if x.at is None or isinstance(value, tuple):
        return None
    return np.asarray(value)[x.at]


def is_nan(x: Operand) -> bool:
    """Whether a number is NaN."""
    return x is not None and bool(np.isnan(x))


# ---- messages ----------------------------------------------------------------------------------


def first_nonfinite(
    source: NonfiniteElement, became_nan: NonfiniteElement | None, symptom: str
) -> Finding:
    """The finding for the origin of a nonfinite element."""
    node, element = source.node, _element(source)
    at_element = f" (element {source.at})" if source.at else ""
    if source.operand is not None or not node.args or node.op.aliasing.transparent:
        return _leaf_finding(source, became_nan, symptom)
    operands = operands_at(node, source.at)
    has_overflowed = overflows(node, element)
    kind = "overflow" if has_overflowed else "operation"
    advice = node.op.remedy.advice("overflow" if has_overflowed else "outside")
    why = f"too large for {node.spec.dtype}" if has_overflowed else "not a finite number"
    message = f"{node.op.name} of {operands} is {element}{at_element}, {why}. {advice}"
    if has_overflowed and node.spec.dtype.itemsize < 8:
        message += "; float64 has a larger range"
    if became_nan is not None:
        message += f". It became NaN in {named(became_nan.node)}{_location(became_nan.node)}"
    return Finding(kind, message, node, node.where, symptom)


def _leaf_finding(
    source: NonfiniteElement, became_nan: NonfiniteElement | None, symptom: str
) -> Finding:
    """The finding for a nonfinite element of an input or of a constant."""
    node, element = source.node, _element(source)
    is_input = source.operand is None and type(node) is Node
    at_element = f" (element {source.at})" if source.at else ""
    # An infinite constant is not a problem itself; the operation that makes NaN from it is.
    if became_nan is not None and not is_input:
        where = f" (element {became_nan.at})" if became_nan.at else ""
        operands = operands_at(became_nan.node, became_nan.at)
        message = (
            f"{became_nan.node.op.name} of {operands} is nan{where}. The infinity is a constant "
            f"operand of {named(node)}{_location(node)}"
        )
        return Finding("operation", message, became_nan.node, became_nan.node.where, symptom)
    if is_input:
        what = called("the input", node)
    else:
        what = f"a constant operand of {named(node)}"
    message = f"{what} is {element}{at_element}. Check where it comes from"
    return Finding("input" if is_input else "constant", message, node, node.where, symptom)


def _location(node: Node) -> str:
    return f" at {node.where}" if node.where else ""


def operands_at(node: Node, index: Index | None) -> str:
    """The operands of a node at an element, as text."""
    texts = []
    for a in node.args:
        value = plain(a)
        operand_index = None
        if index is not None and node.op.kind == "elementwise":
            operand_index = at_index(value, index)
        if operand_index is not None:
            texts.append(f"{np.asarray(value)[operand_index]:.6g}")
        elif isinstance(value, np.ndarray | np.generic):
            texts.append(f"{value.dtype}[{','.join(map(str, value.shape))}]")
        else:
            texts.append(str(value)[:20])
    return " and ".join(texts)


def overflows(node: Node, element: Operand) -> bool:
    """Whether an infinite value is an overflow, not a pole."""
    if element is None or not np.isinf(element):
        return False
    op = node.op
    if op.kind not in _ARITHMETIC and op.remedy.overflow is None:
        return False
    if callable(op.differentiation.singular):  # a quotient or a power: a pole is at a zero operand
        value = plain(node.args[-1 if op.name == "divide" else 0])
        return bool(np.all(np.asarray(value) != 0))
    return not op.differentiation.singular


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

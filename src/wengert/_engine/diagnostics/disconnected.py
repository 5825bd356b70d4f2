"""Disconnected: y does not depend differentiably on x, and where the connection is lost.

The graph also contains nodes without derivative (comparisons, casts to integers) and, while it is
recorded for diagnosis, the effects of `no_grad`, `detach` and conversions to plain numbers.  The
search goes back from y through nodes that depend on x without derivative, and reports those with a
differentiable operand.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

import numpy as np

from wengert._engine.core.node import RELEASED, ConstantLeaf, Node, is_variable
from wengert._engine.core.spec import shown

from .findings import Finding, called, named
from .recorded_pass import ancestors, dependent, plain

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand

Reads = Sequence[tuple[Node, str, str]]

STOPS = {
    "stop_gradient": (
        "detached",
        "stop_gradient or detach() is between x and y: its derivative is defined to be zero. "
        "Remove it if that is not intended",
    ),
    "discretise": (
        "discrete",
        "a cast to integers or booleans has no derivative. Stay in floating point, "
        "or use a smooth approximation",
    ),
}
_STEP_FUNCTIONS = frozenset("floor ceil trunc rint round sign floor_divide spacing".split())
_INDEX_FUNCTIONS = frozenset(
    "argmax argmin argsort argpartition lexsort searchsorted nonzero".split()
)
_NO_GRAD = (
    "it was computed under no_grad, so it is a constant. Move it out of the block, or put "
    "enable_grad around it"
)


def disconnected(
    outputs: Sequence[Node], target: Node, reads: Reads, visited: Container[Node]
) -> list[Finding]:
    """Why some outputs do not depend differentiably on a target.

    Parameters
    ----------
    outputs, target
    reads : sequence
        Values that were converted to plain numbers while the graph was recorded.
    visited : container of Node
        The nodes that a backward pass has visited.
    """
    nodes = ancestors(outputs)
    released = [n for n in nodes if n.op is RELEASED]
    if released:
        return [_released(n) for n in released]
    reached = dependent(nodes, [target]) & set(nodes)
    if target in nodes:
        smooth = dependent(nodes, [target], smooth=True)
        findings = [_stop(n) for n in _last_stops(outputs, reached, smooth)]
        # After the last differentiable node, an operand may have no derivative.
        return findings or [
            _without_derivative(n, smooth)
            for n in nodes
            if n in visited and any(a in smooth and a not in visited for a in n.args_as_nodes())
        ]
    findings = _through_numbers(target, reads) or _rewritten(target, nodes)
    return findings or [*_copies(target, nodes), _unused(outputs, target, nodes)]


def _last_stops(outputs: Sequence[Node], reached: set[Node], smooth: set[Node]) -> list[Node]:
    """The last nodes before y without derivative, except conditions."""
    stops = []
    stack = [n for n in dict.fromkeys(outputs) if n in reached and n not in smooth]
    seen = set(stack)
    while stack:
        node = stack.pop()
        operands = [a for a in node.args if isinstance(a, Node) and a in reached]
        if any(a in smooth for a in operands):
            stops.append(node)
        for a in operands:
            if a not in smooth and a not in seen:
                seen.add(a)
                stack.append(a)
    return sorted(stops, key=lambda n: -n.serial)


def _released(node: Node) -> Finding:
    return Finding(
        "released",
        f"the graph of {shown(node.spec)} was freed by backward(retain_graph=False). Leave "
        "retain_graph at its default to differentiate more than once",
        node,
        node.where,
        "disconnected",
    )


def _stop(node: Node) -> Finding:
    """A node that depends on x and has no derivative."""
    kind, reason = reason_of_stop(node)
    return Finding(kind, reason, node, node.where, "disconnected")


def reason_of_stop(node: Node) -> tuple[str, str]:
    """Why a node has no derivative: the kind of the finding, and a sentence."""
    name = node.op.name
    if not node.op.discrete:
        return "no_grad", f"{named(node)}: {_NO_GRAD}"
    if name in STOPS:
        return STOPS[name]
    if name in _STEP_FUNCTIONS:
        return "discrete", f"{name} is a step function: its derivative is zero wherever it exists"
    if name in _INDEX_FUNCTIONS:
        return "discrete", (
            f"{name} returns indices, which are piecewise constant. Use the values at them, "
            "x[index], or a soft maximum"
        )
    return "discrete", (
        f"{name} gives {shown(node.spec)}, which is piecewise constant: its derivative is zero. "
        "Choose values with np.where(condition, x, y) instead of computing with the condition, or "
        "use a smooth function such as a sigmoid"
    )


def _without_derivative(node: Node, smooth: set[Node]) -> Finding:
    positions = [i for i, a in enumerate(node.args) if isinstance(a, Node) and a in smooth]
    selectors = range(len(node.args))[node.op.selectors]
    is_condition = node.op.kind == "elementwise" and all(i in selectors for i in positions)
    what = "the condition" if is_condition else "an operand"
    return Finding(
        "condition",
        f"it is used by {named(node)} only as {what} that has no derivative",
        node,
        node.where,
        "disconnected",
    )


def _through_numbers(target: Node, reads: Reads) -> list[Finding]:
    """Values of x, or of nodes that depend on it, that were converted to plain numbers."""
    nodes = [node for node, _, _ in reads]
    from_target = dependent(ancestors([*nodes, target]), [target])
    findings = []
    for node, what, where in reads:
        if node not in from_target:
            continue
        kind = "branch" if what == "a branch" else "converted"
        if kind == "branch":
            message = (
                f"the program branched on {named(node)}, which depends on it. The branch that was "
                "taken is differentiated; the condition itself has no derivative"
            )
        else:
            message = (
                f"{what} of {named(node)} converted it to a plain number, which is not connected "
                "to the graph. Compute with the tensor itself"
            )
        findings.append(Finding(kind, message, node, where or None, "disconnected"))
    findings.sort(key=lambda f: f.kind == "branch")
    return findings


def _rewritten(target: Node, nodes: Sequence[Node]) -> list[Finding]:
    """Whether x was modified after y had been computed from it."""
    known = set(nodes)
    node = target
    while node.op.name == "setitem" and isinstance(node.args[0], Node):
        last, node = node, node.args[0]
        if node in known:
            message = (
                "x was modified in place after y had been computed from it, so x is now a later "
                "node of the graph. Take the derivative first, or modify a copy"
            )
            return [Finding("rewritten", message, last, last.where, "disconnected")]
    shared = [n for n in ancestors([target]) if n in known and type(n) is Node and n is not target]
    if not shared:
        return []
    message = (
        f"{named(target)} and y were both computed from {named(shared[-1])}, but y not from x. "
        "If the name was assigned to a new tensor (x = x * 2), keep the old tensor and pass that"
    )
    return [Finding("rewritten", message, target, target.where, "disconnected")]


def _copies(target: Node, nodes: Sequence[Node]) -> list[Finding]:
    """Operands between x and y that are not x but have its values."""
    value = target.value
    if target.is_outdated or value is None or isinstance(value, tuple) or np.size(value) == 0:
        return []
    findings = []
    for node in nodes:
        for a in () if node.op.aliasing.transparent else node.args:
            if isinstance(a, Node) and (a.is_outdated or (a.args and type(a) is not ConstantLeaf)):
                continue
            other = plain(a)
            if not _equal(other, value):
                continue
            shared = np.may_share_memory(other, value) and isinstance(other, np.ndarray)
            what = "an array that shares its memory" if shared else "an equal copy of it"
            role = "another leaf" if type(a) is Node else "a constant"
            findings.append(
                Finding(
                    "detached" if shared else "copy",
                    f"{named(node)} uses {what} as {role} instead of the tensor, because of "
                    "detach(), numpy(), .data or a copy. Compute with the tensor itself",
                    node,
                    node.where,
                    "disconnected",
                )
            )
    return sorted(findings, key=lambda f: f.kind == "copy")[:1]


def _equal(other: Operand, value: Array) -> bool:
    if not isinstance(other, np.ndarray | np.generic | float | complex):
        return False
    if np.shape(other) != np.shape(value) or np.asarray(other).dtype.kind not in "fc":
        return False
    # Single numbers, and arrays of one repeated number such as zeros, may be equal by chance.
    array = np.asarray(value)
    if array.size < 2 and other is not value:
        return False
    return bool(np.array_equal(other, array)) and bool(np.any(array != array.flat[0]))


def _unused(outputs: Sequence[Node], target: Node, nodes: Sequence[Node]) -> Finding:
    leaves = [
        n
        for n in nodes
        if n.op.aliasing.transparent or (not n.args and not isinstance(n, ConstantLeaf))
    ]
    if leaves:
        names = ", ".join(_leaf(n) for n in leaves[:6])
        more = f" and {len(leaves) - 6} more" if len(leaves) > 6 else ""
        known = f"y depends on: {names}{more}."
    else:
        known = (
            "y depends on no variable: it was computed from plain numbers, under no_grad, or "
            "from values that were converted to plain numbers."
        )
    return Finding(
        "unused",
        f"{shown(target.spec)} does not appear in the graph of y. {known}",
        target,
        next((n.where for n in outputs if n.where), None),
        "disconnected",
    )


def _leaf(node: Node) -> str:
    kind = "parameter" if is_variable(node) else "variable"
    return called(kind, node)

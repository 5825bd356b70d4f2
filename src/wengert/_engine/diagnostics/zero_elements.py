"""Zero elements: why one element of a gradient is zero, and where its effect on y is lost.

The unit tangent of this element is propagated forward.  The causes are nodes whose tangent is zero
although that of an operand is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff.tape import tape_between
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext

from .backward_trace import Edge, magnitude
from .describe import named
from .findings import Finding
from .recorded_pass import tangent_of, tangents
from .zero_gradients import cause

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


def unused_elements(outputs: Sequence[Node], target: Node, index: Any) -> list[Finding]:
    """Where the influence of an element of a target on y ends, nearest to y first.

    Parameters
    ----------
    outputs, target
        The nodes of y, and of x.
    index : index
        Of the element.
    """
    live = [n for n in outputs if type(n) is Node]
    tape = tape_between(live, {target})
    unit = np.zeros(target.spec.shape, target.spec.dtype)
    unit[index] = 1
    with np.errstate(all="ignore"):
        dots = tangents(tape, {target: unit[()]})
        return _from(live, target, dots)


def _from(outputs: Sequence[Node], target: Node, dots: dict[Node, Any]) -> list[Finding]:
    findings: list[Finding] = []
    stack = [n for n in outputs if n in dots and _size(dots[n]) == 0]
    if not stack:
        last = max(outputs, key=lambda n: n.serial)
        message = "its changes of the elements of y add up to exactly zero"
        return [Finding("cancelled", message, last, last.where, "zero")]
    seen = set(stack)
    while stack:
        node = stack.pop()
        nonzero = [i for i, a in enumerate(node.args) if type(a) is Node and _size(dots.get(a)) > 0]
        findings += _stops(node, nonzero, dots)
        for a in node.args_as_nodes():
            if a in dots and a not in seen and _size(dots[a]) == 0 and a is not target:
                seen.add(a)
                stack.append(a)
    return sorted(findings, key=lambda f: -(f.node.serial if f.node else 0))


def _size(dot: Any) -> float:
    return 0.0 if dot is None else magnitude(dot)


def _stops(node: Node, nonzero: Sequence[int], dots: dict[Node, Any]) -> list[Finding]:
    """Why the tangent of a node is zero although those of some operands are not."""
    findings = []
    for i in nonzero:
        single = [dots[a] if k == i else None for k, a in enumerate(node.args)]
        if _size(tangent_of(node, single)) > 0:
            message = (
                f"it is used several times in {named(node)}, and the contributions cancel exactly"
            )
            return [Finding("cancelled", message, node, node.where, "zero")]
        single[i] = _weighted(single[i])
        if _size(tangent_of(node, single)) > 0:
            message = f"{named(node)} sums its changes, and the sum is exactly zero"
            return [Finding("cancelled", message, node, node.where, "zero")]
        kind, message = _reason(node, i, dots[node.args[i]])
        findings.append(Finding(kind, message, node, node.where, "zero"))
    return findings


def _weighted(dot: Any) -> Any:
    """A tangent with the same nonzero elements whose sum is not zero."""
    if isinstance(dot, tuple):
        return tuple(None if d is None else _weighted(d) for d in dot)
    array = np.asarray(dot)
    return (np.abs(array) * (1.0 + np.arange(array.size).reshape(array.shape))).astype(array.dtype)


def _reason(node: Node, position: int, dot: Array) -> tuple[str, str]:
    kind = node.op.kind
    if kind in ("view", "indexing") and node.op.name != "setitem":
        return "unchosen", f"{named(node)} does not select it: only other elements are used"
    if node.op.name in ("max", "min"):
        return "unchosen", f"{node.op.name} selected another element"
    size = magnitude(dot)
    if size < 1e-3 and not isinstance(dot, tuple):
        larger = [
            np.asarray(dot / size)[()] if k == position else None for k in range(len(node.args))
        ]
        if _size(tangent_of(node, larger)) > 0:
            return "vanished", (
                f"the tangent before {named(node)} is at most {size:.3g}, and its product with the "
                "slope there underflows in this precision"
            )
    shape = node.spec.shape if not isinstance(node.spec, tuple) else ()
    t = np.ones(shape)
    if kind == "elementwise" and not isinstance(dot, tuple):
        t = np.broadcast_to(np.asarray(dot) != 0, shape).astype(float)
    edge = Edge(node, position, node.args[position], 0.0, 0.0)
    return cause(edge, t, RuleContext())

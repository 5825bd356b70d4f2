"""Zero elements: one element of a gradient is zero, and where its effect on y is lost.

A tangent that is one at this element and zero elsewhere is pushed forward; a line whose operands
still have a tangent that is not zero, and whose own is, is where the element was lost.
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
    """Where, from y backwards, an element of a target stops to count.

    Parameters
    ----------
    outputs, target
        The lines of y, and of x.
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
    found: list[Finding] = []
    stack = [n for n in outputs if n in dots and _size(dots[n]) == 0]
    if not stack:
        last = max(outputs, key=lambda n: n.serial)
        message = "it changes elements of y by amounts that add up to exactly zero"
        return [Finding("cancelled", message, last, last.where, "zero")]
    seen = set(stack)
    while stack:
        line = stack.pop()
        alive = [i for i, a in enumerate(line.args) if type(a) is Node and _size(dots.get(a)) > 0]
        found += _stops(line, alive, dots)
        for a in line.args_as_nodes():
            if a in dots and a not in seen and _size(dots[a]) == 0 and a is not target:
                seen.add(a)
                stack.append(a)
    return sorted(found, key=lambda f: -(f.node.serial if f.node else 0))


def _size(dot: Any) -> float:
    return 0.0 if dot is None else magnitude(dot)


def _stops(line: Node, alive: Sequence[int], dots: dict[Node, Any]) -> list[Finding]:
    """Why a line whose operands have tangents has none."""
    found = []
    for i in alive:
        only = [dots[a] if k == i else None for k, a in enumerate(line.args)]
        if _size(tangent_of(line, only)) > 0:
            message = f"in {named(line)} it comes in several times, and the ways cancel exactly"
            return [Finding("cancelled", message, line, line.where, "zero")]
        only[i] = _weighted(only[i])
        if _size(tangent_of(line, only)) > 0:
            message = f"{named(line)} adds up what it changes, and the sum is exactly zero"
            return [Finding("cancelled", message, line, line.where, "zero")]
        kind, message = _reason(line, i, dots[line.args[i]])
        found.append(Finding(kind, message, line, line.where, "zero"))
    return found


def _weighted(dot: Any) -> Any:
    """The same elements changed by other amounts, so that their sum is no longer zero."""
    if isinstance(dot, tuple):
        return tuple(None if d is None else _weighted(d) for d in dot)
    array = np.asarray(dot)
    return (np.abs(array) * (1.0 + np.arange(array.size).reshape(array.shape))).astype(array.dtype)


def _reason(line: Node, position: int, dot: Array) -> tuple[str, str]:
    kind = line.op.kind
    if kind in ("view", "indexing") and line.op.name != "setitem":
        return "unchosen", f"{named(line)} leaves it out: only other elements go on"
    if line.op.name in ("max", "min"):
        return "unchosen", f"{line.op.name} chose another element"
    size = magnitude(dot)
    if size < 1e-3 and not isinstance(dot, tuple):
        larger = [
            np.asarray(dot / size)[()] if k == position else None for k in range(len(line.args))
        ]
        if _size(tangent_of(line, larger)) > 0:
            return "vanished", (
                f"what it changes before {named(line)} is at most {size:.3g} of it, and times the "
                "slope there that is smaller than any number of this precision"
            )
    shape = line.spec.shape if not isinstance(line.spec, tuple) else ()
    t = np.ones(shape)
    if kind == "elementwise" and not isinstance(dot, tuple):
        t = np.broadcast_to(np.asarray(dot) != 0, shape).astype(float)
    edge = Edge(line, position, line.args[position], 0.0, 0.0)
    return cause(edge, t, RuleContext())

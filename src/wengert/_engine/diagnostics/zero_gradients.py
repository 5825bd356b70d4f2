"""Zero gradients: the gradient is exactly zero, and where the cotangent became zero.

A cotangent vanishes on an edge: the cotangent of a node is not zero, and its contribution to an
operand is exactly zero.  The cause is derived from the operation and the values.

Zero elements: why one element of a gradient is zero, and where its effect on y is lost.

The unit tangent of this element is propagated forward.  The causes are nodes whose tangent is zero
although that of an operand is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff.tape import tape_between
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext
from wengert._engine.core.op_facts import AT_ORIGIN, SATURATES, SELECTS, UNDERFLOW

from .extreme_values import first_nonfinite, origin
from .findings import Finding, named
from .recorded_pass import Backward, Edge, contributions, magnitude, plain, tangent_of, tangents

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand

Cause = tuple[str, str]  # kind and message


def vanished_cotangents(back: Backward, target: Node) -> list[Finding]:
    """Where the cotangent became zero between y and a target, nearest to y first.

    The search starts at the target and goes through nodes whose cotangents are zero, up to the
    edges at which a cotangent vanished.  Branches that were not taken are skipped: the nodes that
    they share with the branch taken have cotangents that are not zero.
    """
    findings: list[Finding] = []
    seen = {target}
    stack = [target]
    while stack:
        node = stack.pop()
        edges = back.edges.get(node, [])
        nonzero = [e for e in edges if magnitude(back.cotangents[e.node]) > 0]
        findings += [_vanished(e, back) for e in nonzero if e.projected == 0]
        contributing = [e for e in nonzero if e.projected > 0]
        if node in back.before_hooks and magnitude(back.before_hooks[node]) > 0:
            message = f"a hook on {named(node)} returned a gradient of zeros"
            findings.append(Finding("hook", message, node, node.where, "zero"))
        elif len(contributing) > 1:
            findings.append(_cancelled(node, contributing))
        for e in edges:
            if e.node not in seen and magnitude(back.cotangents[e.node]) == 0:
                seen.add(e.node)
                stack.append(e.node)
    return sorted(findings, key=lambda f: -(f.node.serial if f.node else 0))


def _cancelled(node: Node, edges: list[Edge]) -> Finding:
    operations = ", ".join(dict.fromkeys(e.node.op.name for e in edges))
    message = (
        f"{len(edges)} contributions to {named(node)} (from {operations}), none of them zero, "
        "add up to exactly zero: y does not change with it to first order"
    )
    last = max((e.node for e in edges), key=lambda n: n.serial)
    return Finding("cancelled", message, node, last.where or node.where, "zero")


def _vanished(edge: Edge, back: Backward) -> Finding:
    node = edge.node
    if edge.raw > 0:
        kind, message = (
            "cancelled",
            f"{named(node)} broadcasts its operand {edge.position}, and the contributions of "
            "the copies add up to exactly zero",
        )
    else:
        t = back.cotangents[node]
        overflowed = _overflowed(edge, t)
        if overflowed is not None:
            return overflowed
        kind, message = cause(edge, t, back.ctx)
    return Finding(kind, message, node, node.where, "zero")


def _overflowed(edge: Edge, t: Any) -> Finding | None:
    """The finding for an infinite operand, at which the operation is flat."""
    node = edge.node
    if node.op.kind != "elementwise" or isinstance(t, tuple):
        return None
    for a in node.args_as_nodes():
        values = _where_nonzero(a.value, t)
        if not np.size(values) or not np.all(np.isinf(values)):
            continue
        first = first_nonfinite(*origin(a), "zero")
        if first.kind == "overflow":
            at = f" at {node.where}" if node.where else ""
            message = f"{first.message}. So {named(node)} is flat{at}"
            return Finding("overflow", message, first.node, first.where, "zero")
    return None


def cause(edge: Edge, t: Any, ctx: RuleContext) -> Cause:
    """Why the contribution at an edge is zero, for the cotangent `t` of the node."""
    name = edge.node.op.name
    spec = edge.operand.spec
    if not isinstance(spec, tuple) and spec.size == 0:
        return "unchosen", f"{name}: its operand has no elements, because none were selected"
    rule = _CAUSES.get(name)
    if rule is not None:
        specific = rule(edge, t)
        if specific is not None:
            return specific
    if edge.node.op.differentiation.masks:
        return "unchosen", f"{name} selected its other operand{_count(edge, t)}"
    if edge.node.op.zero_slope == SELECTS:
        return (
            "unchosen",
            f"the elements of {named(edge.node)} that are used afterwards do not come from its "
            f"operand {edge.position}",
        )
    if _vanishes(edge, t, ctx):
        return (
            "vanished",
            f"the cotangent of {named(edge.node)} is at most {magnitude(t):.3g}, and its "
            "product with the slope there underflows in this precision: the derivatives along the "
            f"path multiply to zero. Compute with logarithms, or normalize{_wider(edge)}",
        )
    return _slope(edge, t)


def _slope(edge: Edge, t: Any) -> Cause:
    """The cause if the slope of the operation is exactly zero at this point."""
    node, name = edge.node, edge.node.op.name
    values = operand_where(edge, t)
    span = _span(values)
    flat = node.op.zero_slope
    if flat == UNDERFLOW or (flat == SATURATES and _is_far(values)):
        kind = "underflow" if flat == UNDERFLOW else "saturated"
        return (
            kind,
            f"{name} at {span} is flat in floating point: its slope there is smaller than the "
            f"smallest number of the dtype{_wider(edge)}. Rescale its operand, or work with "
            "logarithms (logaddexp, logsumexp, log1p)",
        )
    kinks = getattr(node.op, "kinks", ())
    at_kink = bool(kinks) and values is not None and bool(np.isin(values, kinks).all())
    at_zero = values is not None and not np.any(values)
    if at_kink or (flat == AT_ORIGIN and (at_zero or name == "std")):
        point = "equal numbers" if name == "std" else span
        return (
            "kink",
            f"{name} has a kink at {point}, and its derivative there is 0 by convention "
            "(docs/conventions.md, 1)",
        )
    factors = [a for i, a in enumerate(node.args) if i != edge.position]
    zeros = [a for a in factors if not np.any(plain(a))]
    if zeros or node.op.kind == "contraction" or name == "prod":
        which = "one of the other operands" if len(factors) > 1 else "the other operand"
        if name == "prod":
            which = "another factor of each product"
        since = _since(zeros[0]) if zeros else ""
        return "multiplied", f"{named(node)}: {which} is exactly zero{since}"
    return (
        "flat",
        f"the slope of {name} at {span} is exactly 0: a stationary point, not an error of the "
        "derivative. Start from another point if that is not intended",
    )


# ---- causes of single operations ---------------------------------------------------------------


def _where(edge: Edge, t: Array) -> Cause | None:
    side = "false" if edge.position == 1 else "true"
    return (
        "masked",
        f"the condition of where is {side}{_count(edge, t)}, so operand {edge.position} was not "
        "selected there",
    )


def _relu(edge: Edge, t: Array) -> Cause | None:
    return (
        "saturated",
        f"relu: its operand is not positive{_count(edge, t)} ({_span(operand_where(edge, t))}), so "
        "its derivative is 0. Change the initial values, or use leaky_relu, elu or softplus",
    )


def _clip(edge: Edge, t: Array) -> Cause | None:
    if edge.position:
        return "unchosen", f"clip did not reach this bound{_count(edge, t)}"
    return (
        "saturated",
        f"clip: its operand is outside the bounds{_count(edge, t)} "
        f"({_span(operand_where(edge, t))}), where the result is constant",
    )


def _multiply(edge: Edge, t: Array) -> Cause | None:
    if len(edge.node.args) != 2:
        return None
    other = edge.node.args[1 - edge.position]
    if np.any(_where_nonzero(plain(other), t)):
        return None
    return (
        "multiplied",
        f"{edge.node.op.name}: the other operand is exactly zero{_count(edge, t)}, and so is "
        f"its product with the cotangent{_since(other)}",
    )


def _since(zero: Any) -> str:
    """Where a value became zero, if an operation computed it from nonzero values."""
    origin_node = None
    while isinstance(zero, Node) and zero.args and not zero.op.aliasing.transparent:
        if np.any(plain(zero)):
            break
        origin_node = zero
        operands = [a for a in zero.args if isinstance(a, Node) and not isinstance(a.value, tuple)]
        zero = next((a for a in operands if not np.any(plain(a))), None)
    if origin_node is None:
        return ""
    where = f" at {origin_node.where}" if origin_node.where else ""
    return f". It became zero in {named(origin_node)}{where}"


def _divide(edge: Edge, t: Any) -> Cause | None:
    numerator = _where_nonzero(plain(edge.node.args[0]), t)
    if edge.position == 1 and not np.any(numerator):
        return "multiplied", f"divide: the numerator is exactly zero{_count(edge, t)}"
    denominator = _where_nonzero(plain(edge.node.args[1]), t)
    if not np.all(np.isinf(denominator)):
        return None
    return "multiplied", f"divide: the denominator is infinite{_count(edge, t)}"


def _setitem(edge: Edge, t: Array) -> Cause | None:
    if edge.position == 0:
        return (
            "overwritten",
            "an assignment x[index] = value replaced every element that is used afterwards, so the "
            "previous elements have no effect",
        )
    return (
        "overwritten",
        "the elements that this assignment wrote are not used afterwards, or were overwritten",
    )


def _power(edge: Edge, t: Array) -> Cause | None:
    if edge.position == 0:
        exponent = _where_nonzero(plain(edge.node.args[1]), t)
        if not np.any(exponent):
            return "flat", "power: the exponent is 0, and x**0 is 1 for every x"
    return None


_CAUSES: dict[str, Callable[[Edge, Any], Cause | None]] = {
    "where": _where,
    "relu": _relu,
    "clip": _clip,
    "multiply": _multiply,
    "divide": _divide,
    "setitem": _setitem,
    "power": _power,
    "float_power": _power,
}

# ---- values ------------------------------------------------------------------------------------


def _where_nonzero(value: Operand, t: Array) -> Any:
    """The elements of an operand where the cotangent is not zero."""
    if isinstance(t, tuple) or np.size(t) == 0:
        return np.asarray(value)
    nonzero = np.asarray(t) != 0
    try:
        return np.broadcast_to(value, nonzero.shape)[nonzero]
    except ValueError:
        return np.asarray(value)


def operand_where(edge: Edge, t: Any) -> Any:
    """The values of the operand where the cotangent is not zero; all of them if it is unknown.

    None for an operand with several values.
    """
    value = edge.operand.value
    if isinstance(value, tuple):
        return None
    if edge.node.op.kind != "elementwise":
        return np.asarray(value)
    return _where_nonzero(value, t)


def _span(values: Array) -> str:
    if values is None or np.size(values) == 0:
        return "this point"
    if np.asarray(values).dtype.kind == "c":
        return f"numbers of magnitude up to {np.max(np.abs(values)):.4g}"
    low, high = np.min(values), np.max(values)
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def _count(edge: Edge, t: Array) -> str:
    total = int(np.size(t))
    if total == 1 or isinstance(t, tuple):
        return ""
    nonzero = int(np.count_nonzero(t))
    if nonzero == total:
        return f" for all {total} elements"
    return f" for all {nonzero} elements with a nonzero cotangent"


def _is_far(values: Array) -> bool:
    return values is not None and bool(np.size(values)) and bool(np.all(np.abs(values) > 2))


def _vanishes(edge: Edge, t: Any, ctx: RuleContext) -> bool:
    """Whether the contribution would not be zero for a larger cotangent."""
    size = magnitude(t)
    if isinstance(t, tuple) or not 0 < size < 1e-3:
        return False
    with np.errstate(all="ignore"):
        larger = np.asarray(t / np.asarray(t).dtype.type(size))[()]
        return magnitude(contributions(edge.node, larger, ctx)[edge.position]) > 0


def _wider(edge: Edge) -> str:
    spec = edge.operand.spec
    narrow = not isinstance(spec, tuple) and spec.dtype in (np.float32, np.float16, np.complex64)
    return f" ({spec.dtype} has a small range: use float64)" if narrow else ""


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

"""Linearity: whether a user's rule is linear, checked before it is transposed.

If an operation has a rule for one mode only, the other mode is its transpose: the rule is recorded
on variables at zero (probes) and differentiated.  The derivative of a linear rule does not depend
on the probes.  If it does (a cotangent that is clipped, squared, divided by its norm), there is no
transpose, and the result would be the derivative of the rule at zero.

    check_linear    reject a rule whose derivative depends on the probes
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from wengert._engine.core.handle import Handle
from wengert._engine.core.message_order import is_token
from wengert._engine.core.node import Node
from wengert._engine.core.subgraph import Body
from wengert.errors import RuleError, at


def check_linear(node: Node, cotangents: Iterable[Any], probes: Sequence[Node]) -> None:
    """Refuse a rule that is not linear.

    Parameters
    ----------
    node : Node
        The node whose rule it is.
    cotangents : iterable
        The cotangents that were pulled back through the rule.
    probes : sequence of Node
        The variables that the rule was recorded on.

    Raises
    ------
    RuleError
        A cotangent depends on a probe.
    """
    targets = set(probes)
    oldest = min((p.serial for p in probes), default=0)
    stack = [x.node for x in cotangents if isinstance(x, Handle)]
    seen = set(stack)
    while stack:
        current = stack.pop()
        if current in targets:
            raise RuleError(
                f"{_name(node)} has a rule for one mode, and the other mode was needed. That would "
                "be the transpose of the rule, but this rule is not linear in its tangents or "
                "cotangents, so it has no transpose. Define a rule for the other mode too, or a "
                f"rule for tangents (wengert.custom_jvp) that is linear in them{at(node.where)}."
            )
        for a in _used(current):
            if a.serial >= oldest and a not in seen:
                seen.add(a)
                stack.append(a)


def _used(node: Node) -> list[Node]:
    """The operands of a node; for a loop only those that its body uses."""
    args = node.args
    if is_token(node.spec):  # the order of messages, not a value
        return []
    body = node.params.get("body")
    if isinstance(body, Body) and len(body.inputs) <= len(args):
        first = len(args) - len(body.inputs)
        used = {a for n in body.nodes for a in n.inputs} | set(body.outputs)
        condition = node.params.get("condition")
        if isinstance(condition, Body):
            used.update(
                carry
                for carry, n in zip(body.inputs, condition.inputs, strict=False)
                if condition.consumers(condition.index(n)) or n in condition.outputs
            )
        inner = [a for a, n in zip(args[first:], body.inputs, strict=True) if n in used]
        args = (*args[:first], *inner)
    return [a for a in args if isinstance(a, Node)]


def _name(node: Node) -> str:
    rule = node.params.get("rule")
    return str(getattr(rule, "name", None) or getattr(node.op, "name", "an operation"))

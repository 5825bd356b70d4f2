"""Cost model: the cost of a node, from its operation and the specs of its operands.

The counts are estimates of the usual kind: one floating-point operation for each element of an
elementwise node, two for each product of a contraction, the textbook terms of highest order for
factorizations of matrices.  Moving or looking up elements counts none.  Unknown counts (of users'
operations) are None, and reported as such.

    flops_of        floating-point operations of a node; flops_of_body of a step of a loop
    steps_of        the number of steps of a loop
    bytes_of        the memory of a value
    shares_memory   whether the value of a node takes none of its own

With symbolic sizes a count is an expression in them; that of a factorization is then not known.  A
loop of known length counts all its steps, and a conditional the most expensive of its branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from wengert._engine.core.node import LeafOp, Node
from wengert._engine.core.op_facts import REPLAY
from wengert._engine.core.subgraph import Body, bodies_of
from wengert._engine.core.symbolic.dim import is_open

from . import flops

STILL = frozenset({"view", "indexing", "creation"})


def flops_of(node: Node, operands: Sequence[Any], spec: Any) -> Any:
    """The number of floating-point operations of a node.

    Parameters
    ----------
    node : Node
    operands : sequence of Spec
        Specs of the operands, with names or with numbers for sizes.
    spec : Spec, or tuple of Spec
        Of the result.

    Returns
    -------
    number, Dim or None
        None if it cannot be known.
    """
    op = node.op
    if node.params and bodies_of(node):
        return _of_all_steps(node)
    if isinstance(op, LeafOp) or op.effects.side_effect:
        return 0
    if op.cost is not None and op.cost.flops is not None:
        return op.cost.flops(node, operands, spec)
    if op.kind in STILL:
        return 0
    if op.kind == "reduction":
        return flops.pass_over_operand(node, operands, spec)
    if op.kind == "elementwise":
        return spec.size
    return _contraction(node, operands) if op.kind == "contraction" else None


def flops_of_body(body: Body) -> Any:
    """The sum over the nodes of a body, as far as known."""
    total: Any = 0
    for node in body.nodes:
        found = flops_of(node, [a.spec for a in node.inputs], node.spec)
        total += round(found) if isinstance(found, float) else found or 0
    return total


def steps_of(node: Node) -> Any:
    """The number of steps of a loop: a number, an expression in sizes; None if it is a value."""
    length = node.params.get("length")
    is_while = node.op.name == "while" or node.params.get("loop") == "while"
    return None if is_while or is_open(length) else length


def _of_all_steps(node: Node) -> Any:
    bodies = bodies_of(node)
    if "branches" in node.params:
        costs = [flops_of_body(b) for b in bodies]
        known = all(isinstance(c, int) for c in costs)
        return max(costs) if known else sum(costs)
    steps = steps_of(node)
    return (
        None
        if steps is None or node.op.control_flow == REPLAY
        else steps * flops_of_body(bodies[0])
    )


def _contraction(node: Node, operands: Sequence[Any]) -> Any:
    op: Any = node.op
    *words, _ = op.letters(*[s.ndim for s in operands], **node.params)
    lengths: dict[str, Any] = {}
    for word, s in zip(words, operands, strict=True):
        for letter, n in zip(word, s.shape, strict=True):
            if lengths.get(letter, 1) == 1:  # an axis of length one is broadcast
                lengths[letter] = n
    # More than two operands are multiplied in pairs, in an order found later: an upper bound.
    return max(1, 2 * (len(words) - 1)) * prod(lengths.values())


def bytes_of(spec: Any) -> Any:
    """The memory of a value, or of all outputs together."""
    if type(spec) is tuple:
        return sum(map(bytes_of, spec))
    return 0 if spec is None else spec.size * spec.dtype.itemsize


def shares_memory(node: Node) -> bool:
    """Whether the value of a node takes no memory of its own: a view, a part, an identity.

    An estimate: a reshape may have to copy.
    """
    aliasing = node.op.aliasing
    return bool(aliasing.view or aliasing.uniform)

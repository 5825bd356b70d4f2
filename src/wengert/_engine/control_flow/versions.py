"""Versions of an array: values of which each is the one before with some elements written.

before           the version that a node is made from
updated_input    the input of a body of which a result is a later version
"""

from __future__ import annotations

from wengert._engine.core.dispatch import PART
from wengert._engine.core.node import LeafOp, Node
from wengert._engine.core.subgraph import Body


def before(node: Node) -> Node | None:
    """The version of which a node is one with some elements written; None if there is none."""
    made, output = node, 0
    if node.op is PART:
        made, output = node.inputs[0], node.params["index"]
    if isinstance(made.op, LeafOp):
        return None
    place = made.op.updated_operand(made, output)
    if place is None:
        return None
    found = made.args[place]
    return found if isinstance(found, Node) and found.spec == node.spec else None


def updated_input(body: Body, output: int) -> int | None:
    """The number of the input of a body of which an output is a later version."""
    node: Node | None = body.outputs[output]
    while node is not None and node not in body.inputs:
        node = before(node)
    return None if node is None or node is body.outputs[output] else body.inputs.index(node)

"""Versions of an array: each is its predecessor with some elements written.

before           the predecessor of a version
updated_input    the input of a body that an output is a later version of
updated_in_all   the same of several branches
"""

from __future__ import annotations

from collections.abc import Sequence

from wengert._engine.core.dispatch import PART
from wengert._engine.core.node import LeafOp, Node
from wengert._engine.core.subgraph import Body


def before(node: Node) -> Node | None:
    """The array that a node is equal to except for some written elements; None if there is none."""
    writer, output = node, 0
    if node.op is PART:
        writer, output = node.inputs[0], node.params["index"]
    if isinstance(writer.op, LeafOp):
        return None
    position = writer.op.updated_operand(writer, output)
    if position is None:
        return None
    previous = writer.args[position]
    return previous if isinstance(previous, Node) and previous.spec == node.spec else None


def updated_input(body: Body, output: int) -> int | None:
    """The position of the input that an output is a later version of; None if there is none."""
    node: Node | None = body.outputs[output]
    while node is not None and node not in body.inputs:
        node = before(node)
    return None if node is None or node is body.outputs[output] else body.inputs.index(node)


def updated_in_all(branches: Sequence[Body], output: int) -> int | None:
    """The input that an output is a later version of in some branches, and the same in the others.

    None if there is none.
    """
    places = {updated_input(b, output) for b in branches if b.outputs[output] not in b.inputs}
    if len(places) != 1:
        return None
    (place,) = places
    if place is None:
        return None
    is_same = all(
        b.outputs[output] is b.inputs[place] for b in branches if b.outputs[output] in b.inputs
    )
    return place if is_same else None

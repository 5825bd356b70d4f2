"""Descriptions of nodes in messages.

named    a node by its operation, its name and its spec: ``matmul h float64[8,4]``
called   the same with another word for the operation: ``input x float64[3]``
"""

from __future__ import annotations

from wengert._engine.core.node import Node
from wengert._engine.core.spec import shown


def named(node: Node) -> str:
    """A node in a message: its operation, its name if it has one, and its spec."""
    return called(node.op.name, node)


def called(word: str, node: Node) -> str:
    """A node in a message, with a word such as input or parameter instead of its operation."""
    return f"{word} {node.name} {shown(node.spec)}" if node.name else f"{word} {shown(node.spec)}"

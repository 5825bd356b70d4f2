"""Loop rows: tensors that are rows of the array of values that a loop appended to a list.

A list may have many of them, of which few are used individually.

LoopRowTensor    creates its node when it is first used (core/loop_rows.py)
"""

from __future__ import annotations

from wengert._engine.core.loop_rows import LoopRow, node_of, register_row, set_node
from wengert._engine.core.node import Node

from .tensor import Tensor


@register_row
class LoopRowTensor(LoopRow, Tensor):
    """A tensor that is a row of an array."""

    __slots__ = ("_block", "_index", "_made")

    @property
    def node(self) -> Node:
        """The node of the row."""
        return node_of(self)

    @node.setter
    def node(self, node: Node) -> None:
        set_node(self, node)

"""RewriteContext: what rules ask of the pass that applies them, and write nodes with.

The pass (driver.py) is one; rules, conditions and the rules for properties of values know this
interface only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from wengert._engine.core.node import Node
from wengert._engine.core.op import Op


class RewriteContext(Protocol):
    """Specs, numbers and properties of nodes, and new nodes."""

    def spec(self, node: Node) -> Any:
        """The spec of a node."""

    def number(self, node: Node) -> Any:
        """The number that a node is everywhere, or None."""

    def number_key(self, node: Node) -> str | None:
        """The same as a key of patterns."""

    def has(self, node: Node, *facts: str) -> bool:
        """Whether all of these properties are known of a node's values."""

    def constant(self, value: Any) -> Node:
        """A node that holds a value."""

    def filled(self, value: Any, like: Node) -> Node:
        """A number in the shape and dtype of a node."""

    def new_node(self, op: Op, operands: Sequence[Any], params: dict[str, Any], like: Node) -> Node:
        """A new node in its simplest form, with the user's line of another."""

    def built(self, tree: Any, found: Any, like: Node) -> Node:
        """The nodes of a pattern."""

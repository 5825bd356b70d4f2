"""RewriteContext: the interface through which rules inspect and create nodes.

The driver (driver.py) implements it; rules, their conditions and the rules for properties of values
use nothing else of the driver.
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
        """The number that all elements of a node equal, or None."""

    def number_key(self, node: Node) -> str | None:
        """That number as a key of patterns (pattern.py), or None."""

    def has(self, node: Node, *facts: str) -> bool:
        """Whether a node is known to have all of these properties."""

    def constant(self, value: Any) -> Node:
        """A node that holds a value."""

    def filled(self, value: Any, like: Node) -> Node:
        """An array of one number with the shape and dtype of a node."""

    def new_node(self, op: Op, operands: Sequence[Any], params: dict[str, Any], like: Node) -> Node:
        """A new node in its simplest form, with the user's line of another."""

    def built(self, tree: Any, bindings: Any, like: Node) -> Node:
        """The nodes of a pattern with bound wildcards and parameters."""

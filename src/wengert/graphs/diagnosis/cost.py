"""Cost: floating-point operations and bytes of one line, as far as its spec tells.

An estimate for reading, also where sizes have names (then an expression in them): one operation for
each element of an elementwise line or of what is reduced, two for each product of a contraction.
None for what is not looked into (LAPACK, a user's operation).
"""

from __future__ import annotations

from typing import Any

from ...core.node import Node

FREE = frozenset("view indexing creation effect".split())


def operations(node: Node) -> Any:
    """How many floating-point operations: a number, an expression in sizes, or None."""
    op: Any = node.op
    kind = getattr(op, "kind", "")
    if not node.args or kind in FREE or op.name in ("stop_gradient", "part"):
        return 0
    specs = [a.spec for a in node.inputs]
    if kind == "elementwise":
        return node.spec.size
    if kind == "reduction":
        return specs[0].size
    if kind != "contraction":
        return None
    *words, _ = op.letters(*[s.ndim for s in specs], **node.params)
    lengths: dict[str, Any] = {}
    for word, spec in zip(words, specs, strict=True):
        for letter, n in zip(word, spec.shape, strict=True):
            if letter not in lengths or lengths[letter] == 1:
                lengths[letter] = n
    total: Any = 2 * max(1, len(words) - 1)
    for n in lengths.values():
        total = total * n
    return total


def size_in_bytes(spec: Any) -> Any:
    """How many bytes a value takes: a number, or an expression in sizes."""
    if isinstance(spec, tuple):
        return sum(size_in_bytes(s) for s in spec)
    return 0 if spec is None else spec.size * spec.dtype.itemsize


def is_view(node: Node) -> bool:
    """Whether the value may share memory with an operand, and takes none of its own."""
    return bool(getattr(node.op, "view", False)) or node.op.name in ("broadcast_to", "part")

"""Derivatives that are made later: of loops with further results, and of exported functions.

    set_variant      store the variant of a loop
    with_variants    outputs, computed from variants instead of the original loops
    from_variants    the same for all nodes of a graph
    LATE             full names of modules that register derivatives, set by wengert/__init__.py;
                     they are imported when a derivative of an unknown name is asked for
    PATTERNS         the full name of the module with `pattern_of`, set by wengert/__init__.py
    patterns         that module, imported at first use

The reverse derivative of a loop makes the loop again, with the residuals that it stores as further
results.  Where the loop must not run twice, because it exchanges messages or is in the body of
another loop, its results are taken from the second one, its variant.  So are those of a branch that
exchanges messages, and returns what its derivative has received.

Patterns of the matrices of linear functions, which a higher layer finds (`wengert.sparse`).
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from .dispatch import PART, part
from .graph_copies import with_replaced
from .graph_nodes import ancestors
from .node import Node

_variants: weakref.WeakKeyDictionary[Node, Node] = weakref.WeakKeyDictionary()


def set_variant(loop: Node, variant: Node) -> None:
    """Store the variant of a loop, whose first results are those of the loop."""
    _variants[loop] = variant


def from_variants(outputs: Iterable[Node]) -> dict[Node, Node]:
    """The new node of each node that changes, computed from variants that are in the graph too."""
    if not _variants:
        return {}
    outputs = list(outputs)
    nodes = set(ancestors(outputs))
    variants = {n: v for n in nodes if n in _variants and (v := _last(n, nodes)) is not n}
    if not variants:
        return {}
    new: dict[Node, Node] = {}
    stack = outputs
    while stack:
        node = stack[-1]
        is_result = node.op is PART and node.inputs[0] in variants
        operands: Sequence[Node] = [variants[node.inputs[0]]] if is_result else node.inputs
        pending = [a for a in operands if a not in new]
        if node in new or pending:
            stack.pop() if node in new else stack.extend(pending)
            continue
        if is_result:
            new[node] = part(new[operands[0]], node.params["index"])
        else:
            new[node] = with_replaced(node, new)
        if node in variants.values() and new[node] is not node:
            _variants[node] = new[node]
    return {old: node for old, node in new.items() if old is not node}


def with_variants(outputs: Iterable[Node]) -> list[Node]:
    """The same outputs, computed from variants."""
    outputs = list(outputs)
    new = from_variants(outputs)
    return [new.get(n, n) for n in outputs]


def _last(loop: Node, nodes: set[Node]) -> Node:
    """The variant of the variants of a loop that is in a graph; the loop if there is none."""
    last = node = loop
    while node in _variants:
        node = _variants[node]
        if node in nodes:
            last = node
    return last


LATE: list[str] = []

PATTERNS: list[str] = []


@functools.cache
def patterns() -> Any:
    """The module."""
    return import_module(PATTERNS[0])

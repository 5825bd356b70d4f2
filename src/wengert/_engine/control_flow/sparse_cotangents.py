"""Sparse cotangents: sums with cotangents that are zero but for few elements, as writes.

The cotangent of x[i] is zero but at i.  Adding it to a sum is a write to one element, which a loop
does in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert._engine.core.copy_graph import rebuilt
from wengert._engine.core.handle import wrap
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.ops.indexing.template import IndexSlot


def added_in_place(results: Sequence[Node], nodes: Sequence[Node]) -> list[Node]:
    """The same results, with writes instead of sums with arrays of zeros.

    The terms of a sum of sparse cotangents are written to a total one by one, so that the cost is
    proportional to the number of their elements.
    """
    add = lookup("add")
    sums: dict[Node, tuple[Node, ...]] = {}  # of sparse cotangents, in new nodes

    def sparse(node: Node) -> tuple[Node, ...]:
        return (node,) if _is_sparse(node) else sums.get(node, ())

    def change(node: Node, args: tuple[Node, ...]) -> Node | None:
        if node.op is not add:
            return None
        for total, part in (args[::-1], args) if sparse(args[0]) else (args, args[::-1]):
            parts = sparse(part)
            if not parts or total.spec != node.spec:
                continue
            made = total
            for one in parts:
                made = _written(made, one)
            if sparse(total):
                sums[made] = (*sparse(total), *parts)
            return made
        return None

    new = rebuilt(nodes, None, change)
    return [new.get(n, n) for n in results]


def _is_sparse(node: Node) -> bool:
    return node.op is lookup("scatter") and _is_alone(node)


def _written(total: Node, part: Node) -> Node:
    """total + part, by reading and writing the elements where `part` is not zero."""
    t, *operands = part.args
    index = part.params["index"]
    places = [wrap(x) if isinstance(x, Node) else x for x in operands]
    now = lookup("getitem")(wrap(total), *places, index=index)
    made: Any = lookup("setitem")(wrap(total), now + wrap(t), *places, index=index)
    return made.node  # type: ignore[no-any-return]


def _is_alone(part: Node) -> bool:
    """Whether no element is written twice: indices are slices, or single numbers."""
    template = part.params["index"]
    parts = template if isinstance(template, tuple) else (template,)
    holes = [p.k for p in parts if isinstance(p, IndexSlot)]
    operands = part.inputs[1:]
    return len(holes) == len(operands) and all(
        x.spec.shape == () and x.spec.dtype.kind in "iu" for x in operands
    )

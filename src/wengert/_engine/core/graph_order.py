"""The order of the nodes of a graph.

topological               operands first, in order of creation
ancestors                 in order of creation, constants too
with_effects_in_order     side effects in program order
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from operator import attrgetter

from wengert.errors import CycleError

from .node import CONSTANT, ConstantLeaf, Node

_serial = attrgetter("serial")


def topological(outputs: Iterable[Node]) -> list[Node]:
    """The nodes that outputs depend on, in order of creation; constants before their first use.

    Raises
    ------
    CycleError
        A node uses one that was made later.
    """
    seen = set(outputs)
    stack = list(seen)
    while stack:
        node = stack.pop()
        serial = node.serial
        for a in node.inputs:
            # The node of a constant may have just been created, by `inputs`.
            if a.serial >= serial and not (a.op is CONSTANT and isinstance(a, ConstantLeaf)):
                raise CycleError(
                    f"{node!r} uses {a!r}, which was created later or is itself: the graph has a "
                    "cycle. A node may only use earlier nodes."
                )
            if a not in seen:
                seen.add(a)
                stack.append(a)
    ordered: dict[Node, None] = {}
    for node in sorted(seen, key=_serial):
        if node.op is CONSTANT and isinstance(node, ConstantLeaf):
            continue
        for a in node.inputs:
            if a.op is CONSTANT:
                ordered[a] = None
        ordered[node] = None
    unused = sorted((n for n in seen if n not in ordered), key=_serial)
    ordered.update(dict.fromkeys(unused))
    return list(ordered)


def ancestors(nodes: Iterable[Node]) -> list[Node]:
    """Some nodes and all nodes that they depend on, in order of creation.

    Operands come first, except constants whose nodes were made after their use (`Node.inputs`).
    """
    seen: set[Node] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += node.inputs
    return sorted(seen, key=_serial)


def with_effects_in_order(nodes: list[Node], effects: Sequence[Node]) -> list[Node]:
    """The nodes in an order in which side effects come as listed.

    The order of serial numbers may differ: a node that a transformation makes has a larger one than
    nodes that come after it in the program.
    """
    if len(effects) < 2:
        return nodes
    index = {n: i for i, n in enumerate(nodes)}
    indices = [index[n] for n in effects]
    if all(i <= j for i, j in itertools.pairwise(indices)):
        return nodes
    ordered: dict[Node, None] = {}
    for effect in effects:
        before, stack = {effect}, [effect]
        while stack:
            new = [a for a in stack.pop().inputs if a not in before and a not in ordered]
            before.update(new)
            stack += new
        ordered.update(dict.fromkeys(sorted(before, key=index.__getitem__)))
    ordered.update(dict.fromkeys(nodes))
    return list(ordered)

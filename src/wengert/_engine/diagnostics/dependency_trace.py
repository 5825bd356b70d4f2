"""Dependency trace: the nodes that a value depends on, differentiably or not.

`plain` is the current value of an operand: a large array that was modified after it was recorded is
not an error here, because the user is looking for the cause of a problem.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from wengert._engine.core.node import Node, Watched

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand

_serial = attrgetter("serial")


def ancestors(outputs: Iterable[Node], smooth: bool = False) -> list[Node]:
    """All nodes that some nodes depend on, in order of creation.

    Parameters
    ----------
    outputs : iterable of Node
    smooth : bool
        Whether to follow only operands that have a derivative.
    """
    seen = {n for n in outputs if not smooth or type(n) is Node}
    stack = list(seen)
    while stack:
        for a in stack.pop().args:
            if isinstance(a, Node) and a not in seen and (not smooth or type(a) is Node):
                seen.add(a)
                stack.append(a)
    return sorted(seen, key=_serial)


def dependent(nodes: Iterable[Node], sources: Iterable[Node], smooth: bool = False) -> set[Node]:
    """The nodes that depend on a source, the sources included; `nodes` is in order of creation.

    Parameters
    ----------
    smooth : bool
        Whether to follow only operands that have a derivative.
    """
    reached = set(sources)
    for node in nodes:
        if node in reached or (smooth and type(node) is not Node):
            continue
        if any(isinstance(a, Node) and a in reached for a in node.args):
            reached.add(node)
    return reached


def plain(operand: Operand | Node) -> Any:
    """The value of an operand, which is a node or a value."""
    if isinstance(operand, Watched):
        return operand.array
    return operand.value if isinstance(operand, Node) else operand

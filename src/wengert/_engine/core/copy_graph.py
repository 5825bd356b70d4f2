"""Copying graphs with changes.

rebuilt        new nodes wherever an operand has changed, the old ones elsewhere
settled        a finished trace as a graph: without aliases of nodes, and with copies of constants
valueless      a node without its recorded value
check_general  reject a node that may be valid for its recorded value only
is_older       whether a node existed before a trace began
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from wengert.errors import GraphError, at

from .graph import AnyGraph
from .node import CONSTANT, INPUT, NO_PARAMS, ConstantLeaf, LeafOp, Node, Watched, constant
from .node_info import NodeInfo
from .op import Op

CAPTURED = LeafOp("captured")  # an outer node; gradients still flow to it


def rebuilt(
    nodes: Iterable[Node],
    new: Mapping[Node, Node] | None = None,
    change: Callable[[Node, tuple[Any, ...]], Node | None] | None = None,
) -> dict[Node, Node]:
    """The replacement of each node of a graph.

    Parameters
    ----------
    nodes : iterable of Node
        In an order in which they can be computed.
    new : mapping from Node to Node, optional
        Replacements of some nodes.
    change : callable, optional
        ``change(node, args)``, with the new operands, returns a replacement, or None to keep the
        node.

    Returns
    -------
    dict
        Unchanged nodes map to themselves.
    """
    replacement: dict[Node, Node] = dict(new or {})
    for node in nodes:
        if node in replacement:
            continue
        old = node.inputs
        args = tuple([replacement.get(a, a) for a in old]) if old else old
        changed = change(node, args) if change is not None else None
        if changed is None:
            changed = node
            for a, b in zip(args, old, strict=True):
                if a is not b:
                    changed = with_args(node, args)
                    break
        replacement[node] = changed
    return replacement


def with_replaced(node: Node, replacement: Mapping[Node, Node]) -> Node:
    """A node with replacements of its operands; itself if there are none."""
    old = node.inputs
    for a in old:
        if replacement.get(a, a) is not a:
            return with_args(node, tuple([replacement.get(a, a) for a in old]))
    return node


def with_args(node: Node, args: tuple[Any, ...]) -> Node:
    """A node of the same operation on other operands."""
    return type(node)(node.op, args, node.params, _value(node), _info(node))


def _value(node: Node) -> Any:
    return None if node.args else node.value


def _info(node: Node) -> NodeInfo | None:
    if node.is_traced:
        return node.info
    return node.info_with(spec=node.spec)


def settled(graph: AnyGraph, since: int = 0) -> AnyGraph:
    """The graph of a finished trace, without aliases of nodes, and with copies of constants.

    Parameters
    ----------
    since : int
        The serial number at which the trace began; older recorded nodes are captured.
    """

    def change(node: Node, args: tuple[Any, ...]) -> Node | None:
        if isinstance(node.op, Op) and node.op.aliasing.transparent and node.serial >= since:
            source = args[0]
            return source if isinstance(source, Node) else constant(source)
        if isinstance(node, Watched):
            return constant(np.array(node.value))
        return valueless(node, args)

    captured = {n: _captured(n) for n in graph.nodes if is_older(n, since)}
    if captured:
        graph = graph.with_nodes(captured)
        graph = graph.with_nodes(rebuilt(graph.nodes, captured))
    new = rebuilt(graph.nodes, change=change)
    return graph.with_nodes({old: copy for old, copy in new.items() if old is not copy})


def valueless(node: Node, args: tuple[Any, ...]) -> Node | None:
    """A copy of a node without its recorded value, so that it is recomputed when the graph runs.

    None for a node without a recorded value.
    """
    if not _has_value(node):
        return None
    check_general(node)
    return with_args(node, args)


def check_general(node: Node) -> None:
    """Refuse a node that was recorded with values, if it may be valid for these values only.

    Operations on variables outside of a trace run immediately. A mask or an order computed from
    their values is a constant operand, and would be wrong when the variable has another value.

    Raises
    ------
    GraphError
        An operand is an array of booleans, or of integers that may be indices.
    """
    if not _has_value(node):
        return
    for a in node.inputs:
        value = a.value if a.op is CONSTANT and isinstance(a, ConstantLeaf) else None
        if not isinstance(value, np.ndarray) or not value.ndim:
            continue
        kinds = "b" if node.op.kind == "elementwise" else "biu"
        if value.dtype.kind in kinds:
            raise GraphError(
                f"{node.op.name} was recorded with the current value of a variable; its operand "
                f"{a.spec}, a mask or indices, may be valid for that value only. Write that part "
                f"of the graph in a function and trace it (wengert.trace){at(node.where)}."
            )


def _has_value(node: Node) -> bool:
    """Whether it is an operation on variables that ran when it was recorded."""
    return bool(node.args) and not node.is_traced and not isinstance(node, ConstantLeaf)


def is_older(node: Node, since: int) -> bool:
    """Whether a node with a history existed before a trace began.

    Nodes of variables and sizes are evaluated when the graph runs, and not captured.
    """
    if node.serial >= since or isinstance(node, ConstantLeaf):
        return False
    return bool(node.args) or (node.op is INPUT and node.is_traced)


def _captured(node: Node) -> Node:
    return type(node)(CAPTURED, (), NO_PARAMS, node.value, NodeInfo(node.spec, source=node))

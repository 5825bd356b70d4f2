"""Graphs copied with changes, and recorded again on other operands.

Copying graphs with changes.

rebuilt        new nodes wherever an operand has changed, the old ones elsewhere
settled        a finished trace as a graph: without aliases of nodes, and with copies of constants
valueless      a node without its recorded value
check_general  reject a node that may be valid for its recorded value only
is_older       whether a node existed before a trace began

Replay: the nodes of a graph recorded again on other tensors (inlining).

Calling a graph with tensors does this, so that graphs can be used in functions and in other graphs,
and can be differentiated.

    inline_graph     record all nodes again
    record_again     record one node again
    with_placeholders   the graph with placeholders for inputs that have a value
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.errors import GraphError, ShapeError, at, user_line

from .dispatch import apply
from .graph import AnyGraph, BaseGraph
from .graph_fingerprint import is_stopped
from .handle import Handle, describe, is_traced, rebind, shape_of, wrap
from .node import (
    CONSTANT,
    INPUT,
    NO_PARAMS,
    ConstantLeaf,
    LeafOp,
    Node,
    Watched,
    constant,
    owner_of,
)
from .node_properties import NodeInfo, sizes_of, substituted
from .op import Op
from .recording import current_trace, no_grad
from .spec import Spec
from .symbolic.constraints import solve
from .symbolic.dim import Dim, is_open, open_length
from .tracing import derivation, placeholder, record, scope_here, size_value

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand

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


Instead = Callable[[Node, Sequence[Any], dict[str, Any]], Any]


def inline_graph(
    graph: BaseGraph,
    values: Sequence[Any],
    instead: Instead | None = None,
    highest: int | None = None,
) -> list[Any]:
    """Record the nodes again with tensors substituted for the inputs.

    Parameters
    ----------
    graph : Graph
    values : sequence
        For each input a tensor, an array or a number.
    instead : callable, optional
        ``instead(node, args, params)`` returns the result of a node, or None for the default.
    highest : int, optional
        The maximal level of the new nodes; by default they keep their levels.

    Returns
    -------
    list
        One tensor, or plain value, for each output. Variables are updated as in a run.

    Raises
    ------
    ShapeError
        The shapes differ from those that the graph was traced for.
    """
    sizes = _sizes(graph, values)
    known = current_trace() is None and not any(map(is_traced, values))
    results: dict[Node, Any] = dict(zip(graph.inputs, values, strict=True))
    scope = scope_here()
    with derivation(0) as current:
        for node in graph.nodes:
            if node in results:
                continue
            if isinstance(node.op, LeafOp):
                results[node] = _leaf(node, sizes)
                continue
            current.enter(node)
            current.enter_scope(*scope)
            current.level = node.level if highest is None else min(node.level, highest)
            if not known and is_open(node.params.get("length")):
                for name in node.params["length"].names:  # the new loop has its own length
                    sizes.setdefault(name, open_length())
            params = substituted(node.params, sizes) if sizes else node.params
            args = [results[a] if isinstance(a, Node) else a for a in node.args]
            current.stays_linear(node, args)
            out = None if instead is None else instead(node, args, params)
            results[node] = record_again(node, args, params, known) if out is None else out
    for variable, new in graph.updates.items():
        owner = owner_of(variable)
        with no_grad():
            rebind(owner, _node(results[new]))
    return [results[n] for n in graph.outputs]


def record_again(node: Node, args: Sequence[Any], params: dict[str, Any], known: bool) -> Any:
    """Record one node on other operands.

    Parameters
    ----------
    known : bool
        Whether values are known, so that an operation without operands can run.
    """
    op: Any = node.op
    if not args:
        return op.run(**params) if known else record(op, args, params)
    if not known and params and not _has_handle(args) and sizes_of(params):
        return record(op, args, params)  # a slice of a constant, of a length that is not known
    if is_stopped(node):
        with no_grad():
            return _apply(node, op, args, params)
    return _apply(node, op, args, params)


def _apply(node: Node, op: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
    spec = node.spec
    weak = type(spec) is Spec and spec.weak and (op.casts or all(map(_is_weak, args)))
    if op.effects.side_effect or not weak:
        return op(*args, **params)
    run = _as_number(op.run)  # the operands were Python numbers, so the result is one
    return apply(op, args, params, run) if _has_handle(args) else run(*args, **params)


def _as_number(run: Callable[..., Any]) -> Callable[..., Any]:
    def call(*xs: Any, **params: Any) -> Any:
        out = run(*xs, **params)
        return out.item() if isinstance(out, np.generic | np.ndarray) and out.ndim == 0 else out

    return call


def _is_weak(x: Operand) -> bool:
    spec = describe(x)
    return type(spec) is Spec and spec.weak


def _has_handle(args: Sequence[Any]) -> bool:
    return any(isinstance(a, Handle) for a in args)


def _leaf(node: Node, sizes: Mapping[str, Any]) -> Any:
    if "size" in node.params:
        size = substituted(node.params["size"], sizes)
        return size_value(size) if isinstance(size, Dim) else size
    if node.op is CONSTANT and isinstance(node, ConstantLeaf):
        return node.value  # not a handle: rules of operations expect plain constants
    owner = owner_of(node)
    if owner is not None:  # a variable: its current value
        return wrap(owner.node)
    captured = None if node.info is None else node.info.source
    return wrap(node if captured is None else captured)


def _node(x: Array) -> Node:
    return x.node if isinstance(x, Handle) else constant(np.array(x))


def _sizes(graph: BaseGraph, values: Sequence[Any]) -> dict[str, Any]:
    """The symbolic sizes, from the shapes of the arguments."""
    pairs: list[tuple[Any, Any, str]] = []
    for node, value in zip(graph.inputs, values, strict=True):
        expected, actual = node.spec.shape, shape_of(value)
        what = node.name or "an input"
        if len(expected) != len(actual):
            raise ShapeError(
                f"{what} has {len(actual)} axes, but the graph was built for {node.spec}"
                f"{at(user_line())}."
            )
        both = enumerate(zip(expected, actual, strict=True))
        pairs += [(n, m, f"axis {k} of {what}") for k, (n, m) in both]
    if not any(isinstance(n, Dim) for n, _, _ in pairs):
        _check(pairs)
        return {}
    return solve(pairs)


def _check(pairs: Sequence[tuple[Any, Any, str]]) -> None:
    for expected, actual, where in pairs:
        if expected != actual:
            raise ShapeError(
                f"{where} has length {actual}, but the graph was built for {expected}. Trace again "
                f"for this shape, or name the lengths that vary{at(user_line())}."
            )


def with_placeholders(graph: AnyGraph) -> AnyGraph:
    """The graph with placeholders for inputs that are computed or have a value."""
    placeholders = {
        n: placeholder(n.spec, n.name) for n in graph.inputs if not (n.op is INPUT and n.is_traced)
    }
    return graph.with_nodes(rebuilt(graph.nodes, placeholders)) if placeholders else graph

"""Graph fingerprints: whether two nodes, or two graphs, are equal, also up to names of lengths.

    an input        by its position, between graphs; by identity, between nodes of one graph
    a variable      if it belongs to the same tensor
    a constant      if dtype, shape and bytes are the same (so NaN equals NaN, and 0.0 is not -0.0)
    equals          whether two nodes or two graphs are equal
    canonical       the nodes of a graph by number: the key of each, and its operands
    node_key        the key of a node without its operands
    leaf_key        the key of a node without operands
    key_of_value    the key of a constant
    is_stopped      whether the gradient is stopped at a differentiable node
    OpenNames       the replacements of open names
    counted         the k-th open length of a graph; inner: of the loops inside a body
    named_in        the names of lengths in parameters

Nodes are equal if operation, parameters and operands are; operands of a commutative operation in
either order.  A node without operands is equal to another

Each node gets a number, and equal nodes get the same one, in one pass over the graph, without
recursion.  No algebra is used: x + y equals y + x, but x + x is not 2 * x (see rewrite/ for that).

`canonical` is the common form of a graph for its encoders: the keys of loop bodies
(graph_classes.py), of loops that are fused (rewrite/loops/loop_fusion.py) and of cached programs
(backends/llvm/program_fingerprint.py) differ in how they encode one node.

Lengths that are known only when a loop has ended ("open" lengths) get new names in each trace.
When graphs are compared or stored, these names are replaced by numbers, in order of occurrence.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from wengert.errors import ArgumentError, at, user_line

from .graph import BaseGraph
from .handle import Handle
from .node import CONSTANT, INPUT, LeafOp, Node, is_variable, owner_of
from .node_properties import frozen, sizes_of, substituted
from .spec import WEAK, Spec, at_sizes
from .symbolic.dim import OPEN, Dim


def counted(k: int) -> Dim:
    """The k-th open length of a graph, or of a file."""
    return Dim({((f"{OPEN}f{k}", 1),): 1})


def inner(k: int) -> Dim:
    """The k-th open length of the loops inside a body."""
    return Dim({((f"{OPEN}own{k}", 1),): 1})


class OpenNames:
    """The replacements of open names.

    Parameters
    ----------
    make : callable
        ``make(k)`` returns the replacement of the k-th name that occurs.
    known : iterable of str
        Names that are not replaced.

    Attributes
    ----------
    of : dict
        The replacement of each name so far.
    """

    def __init__(self, make: Callable[[int], Any] = counted, known: Iterable[str] = ()) -> None:
        self._make = make
        self.of: dict[str, Any] = {name: Dim({((name, 1),): 1}) for name in known}

    def _number(self, names: frozenset[str]) -> bool:
        """Define replacements of the open names among these; whether there are any."""
        open_names = sorted((n for n in names if n.startswith(OPEN)), key=_by_length)
        for name in open_names:
            if name not in self.of:
                self.of[name] = self._make(len(self.of))
        return bool(open_names)

    def spec(self, spec: Any) -> Any:
        """A spec, or a tuple of specs, with replaced names."""
        for s in spec if type(spec) is tuple else (spec,):
            is_symbolic = type(s) is Spec and any(type(n) is Dim for n in s.shape)
            if is_symbolic and self._number(sizes_of(s.shape)):
                return self._renamed(spec)
        return spec

    def _renamed(self, spec: tuple[Spec, ...] | Spec) -> Any:
        if type(spec) is tuple:
            for s in spec:
                self._number(sizes_of(s.shape))
        return at_sizes(spec, self.of)

    def params(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters of a node with replaced names."""
        if params and self._number(named_in(params)):
            renamed: dict[str, Any] = substituted(params, self.of)
            return renamed
        return params


def named_in(x: Any) -> frozenset[str]:
    """The names of lengths in parameters, including those that bodies capture."""
    if type(x) is dict:
        return frozenset().union(*map(named_in, x.values()))
    if type(x) is tuple:
        return frozenset().union(*map(named_in, x))
    captured: frozenset[str] | None = getattr(x, "open_names", None)
    return sizes_of(x) if captured is None else captured


def _by_length(name: str) -> tuple[int, str]:
    """The sort key of numbered names: steps.9 comes before steps.10."""
    return len(name), name


Row = TypeVar("Row")


def equals(a: Any, b: Any) -> bool:
    """Whether two nodes, or two graphs, are equal.

    Parameters
    ----------
    a, b : Graph, Node or Tensor
        Two graphs, whose inputs are matched by position; or two nodes, which are the same only if
        they come from the same inputs.

    Returns
    -------
    bool

    Raises
    ------
    ArgumentError
        One is a graph and the other is not, or one is neither.

    Notes
    -----
    Names, source lines, scopes and levels are ignored, and so are the containers of a graph's
    arguments and results. Operations with a side effect are equal to themselves only.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert._engine.core.graph_fingerprint import equals
    >>> f = wg.trace(lambda x, y: np.sum(x * y, axis=0))(np.ones((2, 3)), np.ones(3))
    >>> g = wg.trace(lambda x, y: np.sum(y * x, axis=0))(np.ones((2, 3)), np.ones(3))
    >>> h = wg.trace(lambda x, y: np.sum(y * x, axis=1))(np.ones((2, 3)), np.ones(3))
    >>> equals(f, g), equals(f, h)
    (True, False)
    """
    numbers = _Numbers()
    if isinstance(a, BaseGraph) and isinstance(b, BaseGraph):
        return _interface(numbers, a) == _interface(numbers, b)
    first, second = _as_node(a), _as_node(b)
    number = numbers.of(_ancestors((first, second)), {}, OpenNames())
    return number[first] == number[second]


def _as_node(x: Any) -> Node:
    if isinstance(x, Handle):
        x = x.node
    if not isinstance(x, Node):
        raise ArgumentError(
            f"equals compares two graphs or two nodes, but was given a {type(x).__name__}. "
            f"Give the graph of a function (wengert.trace), or a tensor{at(user_line())}."
        )
    return x


def _interface(numbers: _Numbers, graph: BaseGraph) -> tuple[Any, ...]:
    """The inputs, outputs, updates and effects of a graph, as numbers."""
    names = OpenNames()
    keys = {n: ("input", i, names.spec(n.spec)) for i, n in enumerate(graph.inputs)}
    number = numbers.of(graph.nodes, keys, names)
    return (
        len(graph.inputs),
        [number[n] for n in graph.inputs],
        [number[n] for n in graph.outputs],
        {number[k]: number[v] for k, v in graph.updates.items()},
        [number[n] for n in graph.effects],
    )


def _ancestors(roots: Iterable[Node]) -> list[Node]:
    """Some nodes and all nodes that they depend on, operands first."""
    order: list[Node] = []
    done: set[Node] = set()
    stack = [(n, False) for n in roots]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif node not in done:
            done.add(node)
            stack.append((node, True))
            stack += [(a, False) for a in node.inputs if a not in done]
    return order


class _Numbers:
    """Numbers of nodes; equal nodes have the same one."""

    def __init__(self) -> None:
        self._table: dict[Hashable, int] = {}
        # Variables are identified by the id of their tensor, which must not be reused.
        self._kept_alive: list[Any] = []

    def of(
        self, nodes: Iterable[Node], inputs: Mapping[Node, Hashable], names: OpenNames
    ) -> dict[Node, int]:
        """The numbers of nodes, given in an order in which they can be computed."""
        number: dict[Node, int] = {}
        table = self._table
        for node in nodes:
            op = node.op
            if node in inputs:
                key: Hashable = inputs[node]
            elif isinstance(op, LeafOp):
                key = self._leaf(node)
            elif op.effects.side_effect:
                key = node
            else:
                operands = [number[a] for a in node.inputs]
                if op.commutative:
                    operands.sort()
                key = (*node_key(node, names), *operands)
            number[node] = table.setdefault(key, len(table))
        return number

    def _leaf(self, node: Node) -> Hashable:
        if is_variable(node):
            owner = owner_of(node)
            self._kept_alive.append(owner)
            return node if owner is None else ("variable", id(owner))
        if node.info is not None and node.info.source is not None:
            return ("captured", node.info.source)
        return leaf_key(node)


def canonical(
    graph: BaseGraph, encode: Callable[[Node], Row]
) -> tuple[list[tuple[Row, tuple[int, ...]]], dict[Node, int]]:
    """The nodes of a graph by number: its inputs, then the others in their order.

    Parameters
    ----------
    graph : Graph
    encode : callable
        Returns the key of a node without its operands.

    Returns
    -------
    rows : list of (object, tuple of int)
        The key of each node that is not an input, and the numbers of its operands.
    number : dict from Node to int
    """
    number = {node: k for k, node in enumerate(graph.inputs)}
    rows = []
    for node in graph.nodes:
        if node not in number:
            number[node] = len(number)
            rows.append((encode(node), tuple([number[a] for a in node.inputs])))
    return rows, number


def node_key(node: Node, names: OpenNames) -> tuple[Hashable, ...]:
    """The key of a node without its operands: operation, parameters and spec."""
    params = frozen(names.params(node.params)) if node.params else None
    return node.op, params, names.spec(node.spec), is_stopped(node)


def leaf_key(node: Node) -> Hashable:
    """The key of a node without operands: its value, its size, or itself."""
    if node.op is CONSTANT:
        key = key_of_value(node.value)
        return node if key is None else (CONSTANT, key)
    return (node.op, frozen(node.params)) if node.params and node.op is not INPUT else node


def key_of_value(value: Any) -> Hashable:
    """The key of a constant, equal for equal constants; None if not comparable."""
    kind = type(value)
    if kind is float or kind is int or kind is bool or kind is complex:
        return kind, repr(value)  # repr distinguishes -0.0 from 0.0, and nan equals nan
    if kind in WEAK:
        return WEAK[kind], repr(value.item())
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufc":
        return value.dtype.str, value.shape, value.tobytes()
    return None


def is_stopped(node: Node) -> bool:
    """Whether this node would be differentiable, had it not been recorded under ``no_grad``."""
    if type(node) is Node or isinstance(node.op, LeafOp) or node.op.discrete:
        return False
    return any(type(a) is Node for a in node.args)

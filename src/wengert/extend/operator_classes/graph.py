"""OperatorGraph: a symbolic graph of operators; gradients are new nodes of the same graph.

    graph = OperatorGraph()
    x = graph.input((3,), name="x")
    y = graph.sum(x * x)
    [dy] = graph.gradient(y, [x])                  nodes, which can be differentiated again
    f = graph.function([x], [y, dy])               a function of arrays or tensors
    other = graph.copy()                           calls copy_to of all operators, in order

Shapes, dtypes and node types are inferred when a node is created.  Equal nodes (`equals`: class,
parameters, ancestors) are merged.  Nodes of different graphs cannot be combined.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, describe
from wengert._engine.core.spec import Shape, Spec
from wengert._engine.kinds.opaque import fits
from wengert._engine.ops.casts import astype
from wengert.errors import (
    CycleError,
    DtypeError,
    GraphError,
    MixedGraphError,
    NotDifferentiableError,
    NotScalarError,
    RuleError,
    ShapeError,
    UnconnectedError,
    UnconnectedWarning,
    WengertError,
    at,
    rule_failed,
    user_line,
)

from ..style_adapter import accumulate, is_written_out
from .protocol import NodeType, Operator

# Filled by library.py and as_operation.py, which import this module.
MAKERS: dict[str, Callable[..., Any]] = {}
LINE_OF: list[Callable[[Operator], Any]] = []


def _operator(maker: str, reflected: bool = False) -> Any:
    """A method that creates a node by the graph method of the given name."""

    def build(self: GraphNode, *others: Any) -> Any:
        operands = [self, *others]
        return MAKERS[maker](self.graph, *(reversed(operands) if reflected else operands))

    return build


class GraphNode:
    """A value in a graph, with Python's operators to build expressions.

    Attributes
    ----------
    graph, index : OperatorGraph, int
    operator : Operator
    shape, data_type, node_type, grad_level
        Inferred by the operator when the node was created.
    name : str or None
    """

    __slots__ = (
        "data_type",
        "grad_level",
        "graph",
        "index",
        "name",
        "node_type",
        "operator",
        "shape",
    )
    __array_ufunc__ = None  # array * node calls node.__rmul__
    __add__, __radd__ = _operator("plus"), _operator("plus", reflected=True)
    __sub__, __rsub__ = _operator("sub"), _operator("sub", reflected=True)
    __mul__, __rmul__ = _operator("mul"), _operator("mul", reflected=True)
    __truediv__, __rtruediv__ = _operator("div"), _operator("div", reflected=True)
    __pow__, __rpow__ = _operator("power"), _operator("power", reflected=True)
    __matmul__, __rmatmul__ = _operator("matmul"), _operator("matmul", reflected=True)
    __neg__, __lt__, __gt__ = _operator("neg"), _operator("less"), _operator("greater")
    __invert__, __le__, __ge__ = (
        _operator("logical_not"),
        _operator("less_equal"),
        _operator("greater_equal"),
    )

    def __init__(self, graph: OperatorGraph, index: int, operator: Operator) -> None:
        self.graph = graph
        self.index = index
        self.operator = operator
        self.shape: Shape = tuple(operator.get_shape())
        self.data_type = np.dtype(operator.get_data_type())
        self.node_type = NodeType(operator.get_node_type())
        self.grad_level = operator.get_grad_level()
        self.name: str | None = None

    @property
    def is_differentiable(self) -> bool:
        """Whether it has a gradient: it is inexact and depends on an input differentiably."""
        return self.node_type.is_differentiable and self.data_type.kind in "fc"

    @property
    def parents(self) -> list[GraphNode]:
        """The nodes that affect it differentiably."""
        return self.operator.get_parents()

    @property
    def arguments(self) -> list[GraphNode]:
        """The nodes that affect it, but not differentiably."""
        return self.operator.get_arguments()

    def __repr__(self) -> str:
        operands = " ".join(f"%{a.index}" for a in self.operator.operands())
        params = self.operator.get_params()
        what = " ".join(filter(None, [self.operator.name, operands, str(list(params) or "")]))
        return f"%{self.index} = {what}  {Spec(self.shape, self.data_type)} {self.node_type}"


class OperatorGraph:
    """A graph of operators.

    Every predefined class has a method that creates a node, with its name in snake case:
    ``graph.exp(x)``, ``graph.is_nan(x)``, ``graph.eye(3)``.

    Examples
    --------
    >>> from wengert.extend import OperatorGraph
    >>> graph = OperatorGraph()
    >>> x = graph.input(name="x")
    >>> y = x * x * x
    >>> [slope] = graph.gradient(y, [x])
    >>> [bend] = graph.gradient(slope, [x])
    >>> [float(v) for v in graph.function([x], [y, slope, bend])(2.0)]
    [8.0, 12.0, 12.0]
    >>> y.grad_level, slope.grad_level, bend.grad_level
    (0, 1, 2)
    """

    def __init__(self) -> None:
        self.nodes: list[GraphNode] = []
        self._known: dict[Any, GraphNode] = {}
        self._node_of: dict[int, GraphNode] = {}

    def __getattr__(self, name: str) -> Any:
        if name in MAKERS:
            return lambda *operands, **params: MAKERS[name](self, *operands, **params)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # ---- building ------------------------------------------------------------------------------

    def add(self, operator: Operator) -> GraphNode:
        """The node of an operator: a new one, or an equal one that exists.

        Raises
        ------
        MixedGraphError
            An ancestor belongs to another graph.
        CycleError
            An ancestor is not an earlier node.
        """
        if operator.graph is not self:
            raise MixedGraphError(
                f"{operator.name} was created for another graph. Create it for this one, or copy "
                f"it with copy_to{at(operator.where)}."
            )
        if id(operator) in self._node_of:
            return self._node_of[id(operator)]
        for ancestor in operator.get_ancestors():
            self.as_node(ancestor)
        key = self._key(operator)
        if key in self._known:
            return self._known[key]
        node = GraphNode(self, len(self.nodes), operator)
        self.nodes.append(node)
        self._node_of[id(operator)] = node
        if key is not None:
            self._known[key] = node
        return node

    def _key(self, operator: Operator) -> Any:
        """A key that equal operators have in common; None if an operator only equals itself."""
        operands = [n.index for n in operator.operands()]
        key = (operator.identity(), tuple(sorted(operands) if operator.commutative else operands))
        try:
            hash(key)
        except TypeError:
            return None
        return key

    def as_node(self, x: Any) -> GraphNode:
        """`x` as a node of this graph; a number or array becomes a constant."""
        if not isinstance(x, GraphNode):
            return MAKERS["constant"](self, x)
        if x.graph is not self:
            raise MixedGraphError(
                f"{x!r} belongs to another graph. Build the expression in one graph, or copy that "
                f"graph into this one (copy_to){at(user_line())}."
            )
        return x

    def node_of(self, operator: Operator) -> GraphNode:
        """The node of an operator."""
        return self._node_of[id(operator)]

    def fit(self, node: GraphNode, like: GraphNode, what: str, where: str) -> GraphNode:
        """A gradient in the shape and data type of its value."""
        if not isinstance(node, GraphNode):
            raise RuleError(
                f"{what} returned a {type(node).__name__}, not a node of the graph{at(where)}."
            )
        node = self.as_node(node)
        if node.shape != like.shape:
            if not fits(node.shape, like.shape):
                raise RuleError(
                    f"{what} returned shape {node.shape} for a parent of shape {like.shape}. A "
                    f"gradient must have the shape of its parent{at(where)}."
                )
            node = MAKERS["sum_to"](self, node, like.shape)
        if node.data_type != like.data_type:
            node = MAKERS["cast"](self, node, like.data_type)
        return node

    # ---- differentiation -----------------------------------------------------------------------

    def gradient(
        self, objective: GraphNode, params: Sequence[GraphNode], unconnected: str = "zero"
    ) -> list[GraphNode]:
        """The gradient of a scalar with respect to nodes, as nodes of this graph.

        Parameters
        ----------
        objective : GraphNode
            A real scalar.
        params : sequence of GraphNode
            Floating-point inputs or intermediate nodes.
        unconnected : {"zero", "warn", "raise"}
            What to do if the objective does not depend on a param differentiably.

        Returns
        -------
        list of GraphNode
            Their gradient level is that of the objective plus one.
        """
        objective, params = self.as_node(objective), [self.as_node(p) for p in params]
        self.verify()
        self._check_objective(objective)
        for p in params:
            if not p.is_differentiable:
                raise NotDifferentiableError(
                    f"A gradient with respect to {p!r} does not exist: it is an integer, a boolean "
                    "or a constant, or depends on shapes only. Differentiate with respect to an "
                    f"input or shared variable of floating-point type{at(user_line())}."
                )
        seed = MAKERS["constant"](
            self, np.ones(objective.shape, objective.data_type), objective.grad_level + 1
        )
        steps = [
            (n, [p for p in n.parents if p.is_differentiable])
            for n in self.nodes[: objective.index + 1]
            if n.is_differentiable
        ]
        found = accumulate(steps, objective, seed, params, _contributions)
        for p in params:
            if p not in found:
                _report_unconnected(objective, p, unconnected)
                zero = np.zeros(p.shape, p.data_type)
                found[p] = MAKERS["constant"](self, zero, objective.grad_level + 1)
        return [found[p] for p in params]

    def _check_objective(self, objective: GraphNode) -> None:
        if objective.shape != () or objective.data_type.kind != "f":
            raise NotScalarError(
                f"The gradient of {objective!r} does not exist: it must be a real scalar. Sum it, "
                f"or take its real part{at(user_line())}."
            )

    # ---- checking, copying, running ------------------------------------------------------------

    def verify(self) -> None:
        """Check that all ancestors are earlier nodes of the same graph.

        Raises
        ------
        CycleError, MixedGraphError
        """
        for node in self.nodes:
            for a in node.operator.get_ancestors():
                self.as_node(a)
                if a.index >= node.index:
                    raise CycleError(
                        f"{node!r} uses node %{a.index}, which is not an earlier node: the graph "
                        f"has a cycle. A node may only use earlier nodes{at(node.operator.where)}."
                    )

    def consumers(self, node: GraphNode) -> list[GraphNode]:
        """The nodes that use a node."""
        return [n for n in self.nodes if node in n.operator.get_ancestors()]

    def copy(self, graph: OperatorGraph | None = None) -> dict[GraphNode, GraphNode]:
        """Copy all nodes into a graph, by default a new one; return a map from old to new nodes."""
        target = OperatorGraph() if graph is None else graph
        new: dict[GraphNode, GraphNode] = {}
        for node in self.nodes:
            ancestors = [new[a] for a in node.operator.get_ancestors()]
            new[node] = target.add(node.operator.copy_to(target, ancestors))
            new[node].name = node.name
        return new

    def function(
        self, inputs: Sequence[GraphNode], outputs: GraphNode | Sequence[GraphNode]
    ) -> Callable[..., Any]:
        """A Python function from values of the inputs to values of the outputs.

        Any nodes may be inputs. On tensors every operator becomes a node of the tape, with
        `get_parent_grad` as its rule.
        """
        inputs = [self.as_node(i) for i in inputs]
        wanted = [outputs] if isinstance(outputs, GraphNode) else list(outputs)

        def run(*values: Any) -> Any:
            if len(values) != len(inputs):
                raise GraphError(
                    f"{len(values)} values for {len(inputs)} inputs: "
                    f"{', '.join(map(repr, inputs))}{at(user_line())}."
                )
            results = self.evaluate(wanted, dict(zip(inputs, values, strict=True)))
            return results[0] if isinstance(outputs, GraphNode) else results

        return run

    def evaluate(self, outputs: Sequence[GraphNode], feeds: Mapping[GraphNode, Any]) -> list[Any]:
        """Values of nodes, from the values of others."""
        self.verify()
        known: dict[GraphNode, Any] = {}
        for node, value in feeds.items():
            known[self.as_node(node)] = _checked(node, value)
        needed = set(outputs) - set(known)
        for node in reversed(self.nodes):
            if node in needed and node not in known:
                needed.update(a for a in node.operator.get_ancestors() if a not in known)
        for node in self.nodes:
            if node in needed:
                values = [known[a] for a in node.operator.operands()]
                known[node] = self.run(node.operator, values)
        return [known[n] for n in outputs]

    def run(self, operator: Operator, values: Sequence[Any]) -> Any:
        """An operator on values; on tensors it becomes a node of the tape."""
        handles = any(isinstance(v, Handle) for v in values)
        if handles and not is_written_out(type(operator), values):
            return LINE_OF[0](operator)(*values)
        return operator.compute(*values)

    def __len__(self) -> int:
        return len(self.nodes)

    def __str__(self) -> str:
        return "\n".join(map(repr, self.nodes))


def _contributions(node: GraphNode, t: GraphNode, wanted: list[GraphNode]) -> Any:
    """The gradients that an operator sends to its parents in `generate_gradients`."""
    messages: dict[GraphNode, GraphNode] = {node: t}
    operator = node.operator
    try:
        operator.generate_gradients(messages)
    except WengertError:
        raise
    except Exception as error:
        raise rule_failed(f"get_parent_grad of {operator.name}", error, operator.where) from error
    del messages[node]
    return messages.items()


def _report_unconnected(objective: GraphNode, param: GraphNode, unconnected: str) -> None:
    message = (
        f"{objective!r} does not depend on {param!r} differentiably; the gradient is zero"
        f"{at(user_line())}."
    )
    if unconnected == "raise":
        raise UnconnectedError(message)
    if unconnected == "warn":
        warnings.warn(message, UnconnectedWarning, stacklevel=3)


def _checked(node: GraphNode, value: Any) -> Any:
    spec = describe(value)
    if spec is None or isinstance(spec, tuple) or spec.shape != node.shape:
        raise ShapeError(
            f"{spec or type(value).__name__} was passed for {node!r}. Pass an array of shape "
            f"{node.shape}{at(user_line())}."
        )
    if spec.dtype == node.data_type:
        return value
    if not np.can_cast(spec.dtype, node.data_type, "same_kind"):
        raise DtypeError(
            f"{spec} was passed for {node!r}, to which it cannot be cast safely. Cast it first"
            f"{at(user_line())}."
        )
    if isinstance(value, Handle):
        return astype(value, node.data_type)
    return np.asarray(value, node.data_type)[()]


__all__ = ["MAKERS", "GraphNode", "OperatorGraph"]

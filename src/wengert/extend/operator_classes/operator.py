"""Style 001: a hierarchy of operators on a symbolic graph (Metadiff's graph representation).

    AbstractOperator
    ├── OrphanOperator       no parents
    │   ├── InputOperator      an argument or variable         Input, Shared
    │   └── ConstantOperator   a constant expression           ConstantValue, Eye, Range, Size
    ├── LogicalOperator      booleans, without derivative
    │   ├── LogicalUnary                                       LogicalNot, IsNaN, IsInf
    │   └── LogicalBinary                                      Greater, Equal, ...
    ├── UnaryOperator        one parent                        Exp, Log, Neg, Sum, ...
    ├── BinaryOperator       two parents                       Div, MatMul, Power
    └── NaryOperator         any number of parents             Add, Mul, Function

*Parents* affect the output differentiably, *arguments* do not (a condition, a size); together they
are the *ancestors*.  The shape, data type, node type and gradient level of a node are known when it
is created.  An operator defines

    compute(*values)                        the value, from values of parents and arguments
    get_shape, get_data_type, get_parents, get_arguments
    get_parent_grad(my_grad, index)         the gradient of a parent, as new nodes
    copy_to(graph, ancestors), get_params   a copy on other ancestors; parameters of the operator

The classes in the right column are in library.py, library.py and
shape_operators.py, the graph is in graph.py.  `as_operation(Square)` converts a class of operators
to an operation on tensors (as_operation.py).
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.spec import Shape
from wengert._engine.core.symbolic.constraints import broadcast as broadcast_of
from wengert.errors import NotDifferentiableError, ShapeError, at, user_line

from .graph import GraphNode, OperatorGraph
from .protocol import NodeType, Operator

Messages = dict[GraphNode, GraphNode]

b8 = np.dtype(np.bool_)
u8, u16, u32, u64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
i8, i16, i32, i64 = (np.dtype(f"int{n}") for n in (8, 16, 32, 64))
f16, f32, f64 = (np.dtype(f"float{n}") for n in (16, 32, 64))
c64, c128 = np.dtype(np.complex64), np.dtype(np.complex128)


class AbstractOperator(ABC):
    """Base class of operators, which compute the nodes of a graph.

    Parameters
    ----------
    graph : OperatorGraph
        The graph; ``graph.add(operator)`` creates the node.
    """

    commutative = False

    def __init__(self, graph: OperatorGraph) -> None:
        self.graph = graph
        self.where = user_line()

    # ---- abstract methods ----------------------------------------------------------------------

    @abstractmethod
    def compute(self, *values: Any) -> Any:
        """The value, from the values of parents and arguments, in this order."""

    @abstractmethod
    def copy_to(self, graph: OperatorGraph, ancestors: Sequence[GraphNode]) -> AbstractOperator:
        """A copy of the operator in a graph, on nodes that correspond to `get_ancestors()`."""

    @abstractmethod
    def get_shape(self) -> Shape:
        """The shape of the output."""

    @abstractmethod
    def get_parents(self) -> list[GraphNode]:
        """The nodes that affect the output differentiably."""

    @abstractmethod
    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """The gradient of parent `index`, as nodes built from the gradient of the output."""

    # ---- methods with defaults -----------------------------------------------------------------

    def get_node_type(self) -> NodeType:
        """The node type, inferred from parents and arguments."""
        parents = [p.node_type for p in self.get_parents()]
        if any(t.is_differentiable for t in parents) and self.get_data_type().kind in "fc":
            return NodeType.INPUT_DERIVED
        return self._without_derivative(NodeType.CONSTANT_DERIVED)

    def _without_derivative(self, constant: NodeType) -> NodeType:
        depends = any(a.node_type.depends_on_input for a in self.get_ancestors())
        return NodeType.INPUT_DERIVED_NON_DIFF if depends else constant

    def get_data_type(self) -> np.dtype[Any]:
        """The promoted type of the parents."""
        return np.result_type(*[p.data_type for p in self.get_parents()])

    def get_arguments(self) -> list[GraphNode]:
        """The nodes that affect the output, but not differentiably."""
        return []

    def get_params(self) -> tuple[Any, ...]:
        """Parameters (an axis, an exponent), which are part of the operator's identity."""
        return ()

    def equals(self, other: Operator) -> bool:
        """Symbolic equality: the same class, the same parameters, equal ancestors.

        For a commutative operator the order of parents is ignored.
        """
        pairs: list[tuple[Operator, Operator]] = [(self, other)]
        seen: set[tuple[int, int]] = set()
        while pairs:
            a, b = pairs.pop()
            if a is b or (id(a), id(b)) in seen:
                continue
            seen.add((id(a), id(b)))
            if a.identity() != b.identity():
                return False
            mine, theirs = a.operands(), b.operands()
            if len(mine) != len(theirs):
                return False
            if a.graph is b.graph and a.commutative:
                mine, theirs = sorted(mine, key=_index), sorted(theirs, key=_index)
            if a.graph is not b.graph and a.commutative:
                match = _unordered(mine, theirs)
                if match is None:
                    return False
                theirs = match
            pairs += [(m.operator, t.operator) for m, t in zip(mine, theirs, strict=True)]
        return True

    # ---- common methods ------------------------------------------------------------------------

    def identity(self) -> tuple[Any, ...]:
        """Class and parameters, which distinguish operators on the same ancestors."""
        return type(self), self.get_params()

    def operands(self) -> list[GraphNode]:
        """Parents, then arguments, with repetitions; `compute` gets their values."""
        return [*self.get_parents(), *self.get_arguments()]

    def get_ancestors(self) -> list[GraphNode]:
        """The union of parents and arguments, each once, in order."""
        return list(dict.fromkeys(self.operands()))

    def get_grad_level(self) -> int:
        """The order of the derivative that the node belongs to: the maximum of the ancestors."""
        return max((a.grad_level for a in self.get_ancestors()), default=0)

    def send_grad_message(self, target: GraphNode, message: GraphNode, messages: Messages) -> None:
        """Add a contribution to the gradient of a parent, in its shape and data type."""
        message = self.graph.fit(message, target, f"get_parent_grad of {self.name}", self.where)
        messages[target] = messages[target] + message if target in messages else message

    def generate_gradients(self, messages: Messages) -> None:
        """Send the gradients of all parents, from that of the output in `messages`."""
        my_grad = messages[self.graph.node_of(self)]
        for index, parent in enumerate(self.get_parents()):
            if parent.is_differentiable:
                self.send_grad_message(parent, self.get_parent_grad(my_grad, index), messages)

    @property
    def name(self) -> str:
        """The name of the class."""
        return type(self).__name__

    def no_gradient(self, why: str) -> NotDifferentiableError:
        """The error for an operator that has no gradient."""
        return NotDifferentiableError(
            f"The gradient of {self.name} is needed, but {why}. Do not differentiate through "
            f"it{at(self.where)}."
        )

    def _copied(self, graph: OperatorGraph, **changes: Any) -> Any:
        twin = copy.copy(self)
        twin.graph = graph
        for attribute, new in changes.items():
            setattr(twin, attribute, new)
        return twin

    def _renamed(self, nodes: Sequence[GraphNode], ancestors: Sequence[GraphNode]) -> list[Any]:
        new = dict(zip(self.get_ancestors(), ancestors, strict=True))
        return [new[n] for n in nodes]


def _index(node: GraphNode) -> int:
    return node.index


def _unordered(mine: Sequence[Any], theirs: Sequence[Any]) -> list[Any] | None:
    """`theirs` in the order in which they equal `mine`, or None."""
    rest = list(theirs)
    found = []
    for m in mine:
        match = next((t for t in rest if m.operator.equals(t.operator)), None)
        if match is None:
            return None
        rest.remove(match)
        found.append(match)
    return found


def broadcast(operator: str, *nodes: GraphNode) -> Shape:
    """The common shape of the nodes.

    Raises
    ------
    ShapeError
        The shapes do not broadcast.
    """
    try:
        return broadcast_of(*[n.shape for n in nodes])
    except ValueError:
        shapes = " and ".join(str(n.shape) for n in nodes)
        raise ShapeError(
            f"{operator} of shapes {shapes}: they do not broadcast. Reshape one of "
            f"them{at(user_line())}."
        ) from None


class OrphanOperator(AbstractOperator):
    """An operator without parents.

    Parameters
    ----------
    graph : OperatorGraph
    data_type : dtype
    """

    def __init__(self, graph: OperatorGraph, data_type: Any) -> None:
        super().__init__(graph)
        self.data_type = np.dtype(data_type)

    def get_data_type(self) -> np.dtype[Any]:
        """The given data type."""
        return self.data_type

    def get_parents(self) -> list[GraphNode]:
        """None."""
        return []

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """Raise NotDifferentiableError: there is no parent."""
        raise self.no_gradient("it has no parents")

    def copy_to(self, graph: OperatorGraph, ancestors: Sequence[GraphNode]) -> Any:
        """A copy of the operator."""
        return self._copied(graph)


class InputOperator(OrphanOperator):
    """An argument or variable."""

    def get_node_type(self) -> NodeType:
        """INPUT, or the type without derivative for integers and booleans."""
        return NodeType.INPUT


class ConstantOperator(OrphanOperator):
    """A constant expression, which may depend on inputs through its arguments (a size)."""

    def get_node_type(self) -> NodeType:
        """CONSTANT, or INPUT_DERIVED_NON_DIFF if an argument depends on an input."""
        return self._without_derivative(NodeType.CONSTANT)


class LogicalOperator(AbstractOperator):
    """A boolean, without derivative."""

    def get_node_type(self) -> NodeType:
        """CONSTANT_DERIVED or INPUT_DERIVED_NON_DIFF."""
        return self._without_derivative(NodeType.CONSTANT_DERIVED)

    def get_data_type(self) -> np.dtype[Any]:
        """b8."""
        return b8

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """Raise NotDifferentiableError: a boolean has no derivative."""
        raise self.no_gradient("booleans have no derivative")


class _OfParents(AbstractOperator):
    """Base of operators whose parents and shape are given at construction."""

    def __init__(self, graph: OperatorGraph, parents: Sequence[GraphNode], shape: Shape) -> None:
        super().__init__(graph)
        self.parents = [graph.as_node(p) for p in parents]
        self.shape = tuple(shape)

    def get_shape(self) -> Shape:
        """The given shape."""
        return self.shape

    def get_parents(self) -> list[GraphNode]:
        """The given parents."""
        return list(self.parents)

    def copy_to(self, graph: OperatorGraph, ancestors: Sequence[GraphNode]) -> Any:
        """A copy of the operator on other parents."""
        return self._copied(graph, parents=self._renamed(self.parents, ancestors))


class LogicalUnary(LogicalOperator, _OfParents):
    """A boolean for each element of one parent."""

    def __init__(self, graph: OperatorGraph, parent: GraphNode) -> None:
        parent = graph.as_node(parent)
        _OfParents.__init__(self, graph, [parent], parent.shape)


class LogicalBinary(LogicalOperator, _OfParents):
    """A boolean for each pair of elements of two parents."""

    def __init__(self, graph: OperatorGraph, parent1: GraphNode, parent2: GraphNode) -> None:
        pair = [graph.as_node(parent1), graph.as_node(parent2)]
        _OfParents.__init__(self, graph, pair, broadcast(type(self).__name__, *pair))


class UnaryOperator(_OfParents):
    """An operator of one parent; the shape is that of the parent by default."""

    def __init__(self, graph: OperatorGraph, parent: GraphNode, shape: Shape | None = None) -> None:
        parent = graph.as_node(parent)
        super().__init__(graph, [parent], parent.shape if shape is None else shape)

    @property
    def parent(self) -> GraphNode:
        """The parent."""
        return self.parents[0]


class BinaryOperator(_OfParents):
    """An operator of two parents, with the shape of the result."""

    def __init__(
        self, graph: OperatorGraph, parent1: GraphNode, parent2: GraphNode, shape: Shape
    ) -> None:
        super().__init__(graph, [parent1, parent2], shape)


class NaryOperator(_OfParents):
    """An operator of any number of parents, with the shape of the result."""


__all__ = [
    "AbstractOperator",
    "BinaryOperator",
    "ConstantOperator",
    "InputOperator",
    "LogicalBinary",
    "LogicalOperator",
    "LogicalUnary",
    "NaryOperator",
    "NodeType",
    "OrphanOperator",
    "UnaryOperator",
    "b8",
    "c64",
    "c128",
    "f16",
    "f32",
    "f64",
    "i8",
    "i16",
    "i32",
    "i64",
    "u8",
    "u16",
    "u32",
    "u64",
]

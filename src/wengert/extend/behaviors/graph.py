"""BehaviorGraph: a list of nodes, built once and run again when leaves change.

    graph = BehaviorGraph()
    x = graph.leaf(3.0)
    y = graph.function("exp", x)             explicit operands
    graph.unary(2.0, "mul")                  the running node, the last one, times a new leaf
    graph.forward()                          values, in the order of the list
    graph.backward()                         gradients of the last node
    graph.mut_node_output(x, 4.0)            another value; then forward() and backward() again

The list is in topological order: a node may only use earlier nodes.  Each backward replaces the
gradients of the last; `node.grad()` is the gradient with respect to the value of the node.  A pass
that fails leaves values and gradients unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic

from wengert.errors import CycleError, GraphError, WengertError, at, rule_failed, user_line

from ..style_adapter import accumulate, fitted, forgotten, one_like
from .behavior import (
    LEAF,
    Behavior,
    BehaviorNode,
    Leaf,
    Nodes,
    T,
    behavior_named,
    register_behavior,
)

Operation = Behavior[Any] | str


class Index(int):
    """The index of a node, which distinguishes nodes from values among operands."""

    def __repr__(self) -> str:
        return f"node {int(self)}"


class BehaviorGraph(Generic[T]):
    """A graph of nodes with behaviors, over values of any type.

    Examples
    --------
    ((5 + 10) + 100) * 20 - 10, and its gradient with respect to every leaf:

    >>> from wengert.extend import BehaviorGraph
    >>> graph = BehaviorGraph()
    >>> _ = graph.binary(5.0, 10.0, "add")
    >>> _ = graph.unary(100.0, "add")
    >>> _ = graph.unary(20.0, "mul")
    >>> _ = graph.unary(10.0, "sub")
    >>> graph.forward()
    2290.0
    >>> graph.backward()
    >>> [graph.node(i).grad() for i in graph.variables()]
    [20.0, 20.0, 20.0, 115.0, -1.0]
    """

    def __init__(self) -> None:
        self.nodes = Nodes()
        self.path: list[int] = []
        self._current: int | None = None
        self._fresh = False

    # ---- building ------------------------------------------------------------------------------

    def leaf(self, value: T, is_param: bool = False) -> Index:
        """Append a leaf with a value; it does not become the running node."""
        self._fresh = False
        index = Index(self.nodes.add(LEAF, (), value))
        self.nodes[index].is_param = is_param
        return index

    def function(self, operation: Operation, *operands: Any) -> Index:
        """Append an operation on operands, or on the running node if there are none.

        An operand is the index of a node, or a value, which becomes a leaf. Returns the index of
        the new node, which becomes the running node.
        """
        behavior = self._behavior(operation)
        places = [self._place(x) for x in operands] if operands else [self._running()]
        self._fresh = False
        self._current = self.nodes.add(behavior, places)
        return Index(self._current)

    def binary(self, lhs: Any, rhs: Any, operation: Operation) -> Index:
        """Append an operation on two operands: indices of nodes, or values."""
        return self.function(operation, lhs, rhs)

    def unary(self, rhs: Any, operation: Operation) -> Index:
        """Append an operation on the running node and another operand."""
        return self.function(operation, Index(self._running()), rhs)

    def add_parameter(self, index: int) -> None:
        """Make a leaf a parameter."""
        self._leaf(index, "add_parameter").is_param = True

    def register(self, name: str, behavior: Behavior[Any], replace: bool = False) -> None:
        """Register a behavior, to use it by name."""
        register_behavior(name, behavior, replace)

    def _behavior(self, operation: Operation) -> Behavior[Any]:
        if isinstance(operation, str):
            return behavior_named(operation)
        if isinstance(operation, Behavior):
            return operation
        raise GraphError(
            f"{operation!r} is not a behavior. Pass an instance of Behavior, or the name of a "
            f"registered one{at(user_line())}."
        )

    def _place(self, operand: Any) -> int:
        if not isinstance(operand, Index):
            return self.leaf(operand)
        return self.node(operand).index

    def _running(self) -> int:
        if self._current is None:
            raise GraphError(
                "There is no running node yet. Begin with binary(lhs, rhs, operation), or pass "
                f"operands{at(user_line())}."
            )
        return self._current

    # ---- queries -------------------------------------------------------------------------------

    def node(self, index: int) -> BehaviorNode[T]:
        """The node at an index."""
        if not 0 <= index < len(self.nodes):
            raise GraphError(
                f"Node {int(index)} does not exist: the graph has "
                f"{len(self.nodes)}{at(user_line())}."
            )
        return self.nodes[index]

    def curr_node(self) -> BehaviorNode[T]:
        """The running node: the last operation."""
        return self.nodes[self._running()]

    def variables(self) -> list[Index]:
        """Indices of the leaves."""
        return [Index(n.index) for n in self.nodes if isinstance(n.operation, Leaf)]

    def parameters(self) -> list[Index]:
        """Indices of the leaves that are parameters."""
        return [Index(n.index) for n in self.nodes if n.is_param]

    def operations(self) -> list[Index]:
        """Indices of the nodes that are not leaves."""
        return [Index(n.index) for n in self.nodes if not isinstance(n.operation, Leaf)]

    def __len__(self) -> int:
        return len(self.nodes)

    # ---- changing ------------------------------------------------------------------------------

    def mut_node_output(self, index: int, value: T) -> None:
        """Set the value of a leaf; forward and backward have to be run again."""
        self._leaf(index, "mut_node_output").set_output(value)
        self._fresh = False

    def mut_node_operation(self, index: int, operation: Operation) -> None:
        """Replace the behavior of a node (for example a loss) and keep its operands."""
        node = self.node(index)
        if isinstance(node.operation, Leaf):
            raise GraphError(f"Node {int(index)} is a leaf and has no behavior{at(user_line())}.")
        node.set_operation(self._behavior(operation))
        self._fresh = False

    def mut_node_inputs(self, index: int, inputs: Sequence[int]) -> None:
        """Set the operands of a node, by index.

        Raises
        ------
        CycleError
            An operand is the node itself or a later one.
        """
        node = self.node(index)
        for i in inputs:
            if self.node(i).index >= index:
                raise CycleError(
                    f"Node {int(index)} cannot use node {int(i)}: a node may only use earlier "
                    f"nodes. Add a new node{at(user_line())}."
                )
        for i in dict.fromkeys(node.inputs()):
            self.nodes[i]._upstream.remove(node.index)
        node._inputs = tuple(int(i) for i in inputs)
        for i in dict.fromkeys(node.inputs()):
            self.nodes[i]._upstream.append(node.index)
        self._fresh = False

    def _leaf(self, index: int, what: str) -> BehaviorNode[T]:
        node = self.node(index)
        if not isinstance(node.operation, Leaf):
            raise GraphError(
                f"{what} of node {int(index)}, which is computed by {node.operation.name}. Only "
                f"leaves have a value to set: {self.variables()}{at(user_line())}."
            )
        return node

    # ---- running -------------------------------------------------------------------------------

    def forward(self) -> T:
        """Compute all nodes in order; return the value of the running node."""
        before = [n._value for n in self.nodes]
        path = []
        try:
            for node in self.nodes:
                node._value = node.operation.forward(self.nodes, node.index)
                path.append(node.index)
        except BaseException:
            for node, value in zip(self.nodes, before, strict=True):
                node._value = value
            raise
        self.path, self._fresh = path, True
        return self.nodes[-1 if self._current is None else self._current].output()

    def backward(self, seed: T | None = None, output: int | None = None) -> None:
        """Compute the gradient of a node with respect to all nodes.

        Parameters
        ----------
        seed : T, optional
            Initial gradient of the output; by default 1, if the output is a single number.
        output : int, optional
            The node to differentiate; by default the running node.

        Raises
        ------
        GraphError
            The graph was changed since the last forward.
        RuleError
            A behavior raised, or wrote a contribution that does not match its value.
        """
        if not self._fresh:
            raise GraphError(
                "backward() was called before forward(): the graph is new or was changed, so its "
                f"values are outdated. Call forward() first{at(user_line())}."
            )
        index = self._running() if output is None else self.node(output).index
        value = self.nodes[index].output()
        if seed is None:
            t = one_like(value, f"The output, node {index},")
        else:
            t = fitted(seed, value, "The seed", user_line())
        gradients: dict[int, Any] = {}
        steps = [
            (i, self.nodes[i].inputs()) for i in self.path if not self.nodes[i].operation.discrete
        ]
        complete = accumulate(
            steps, index, t, self.path, lambda i, bar, wanted: self._back(i, bar, wanted, gradients)
        )
        for node in self.nodes:
            node._gradient = complete.get(node.index)

    def _back(self, index: int, t: Any, wanted: list[Any], gradients: dict[int, Any]) -> Any:
        """The contributions of a node to its operands; `gradients` are those already complete."""
        gradients[index] = t
        node = self.nodes[index]
        name = f"The backward of {node.operation.name}"

        def fit(i: int, bar: Any) -> Any:
            if bar is None:
                return None
            return fitted(bar, self.nodes[i].output(), f"{name}, for input {i},", node.where)

        try:
            given = self.nodes.backward_of(index, gradients, fit)
        except WengertError:
            raise
        except Exception as error:
            raise rule_failed(name, error, node.where) from error
        written = {i for i, _ in given}
        for k, i in enumerate(node.inputs()):
            if i in wanted and i not in written:
                raise forgotten(node.operation.name, k, node.where)
        return [(i, bar) for i, bar in given if bar is not None]


ComputationGraph = BehaviorGraph

__all__ = ["BehaviorGraph", "ComputationGraph", "Index"]

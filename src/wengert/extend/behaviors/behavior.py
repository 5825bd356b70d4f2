"""Style 000: a behavior attached to a node of a graph (dendritic's operation extension).

    Behavior[T]      forward(nodes, curr_node_idx) and backward(nodes, curr_node_idx), with the
                     list of all nodes; T is any type of value
    BehaviorNode     a node: inputs() and upstream() are indices, output() and grad() values
    BehaviorGraph    the list of nodes, built once and run many times (graph.py)

A behavior finds its node by the index, its operands by `inputs()`, its consumers by `upstream()`.
In `backward` its own `grad()` is complete: all consumers have contributed.  It writes its own
contributions to its inputs with `add_grad`; the engine accumulates them, so shared nodes and
repeated operands need no special treatment.

    class Multiply(Behavior):
        def forward(self, nodes, curr_node_idx):
            x, y = nodes[curr_node_idx].inputs()
            return nodes[x].output() * nodes[y].output()

        def backward(self, nodes, curr_node_idx):
            x, y = nodes[curr_node_idx].inputs()
            t = nodes[curr_node_idx].grad()
            nodes[x].add_grad(t * nodes[y].output())
            nodes[y].add_grad(t * nodes[x].output())

The same behavior is an operation on tensors: `Multiply()(a, b)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from wengert.errors import (
    GraphError,
    NotDifferentiableError,
    RegistryError,
    RuleError,
    at,
    user_line,
)

from ..style_adapter import MISSING, UserOperation, name_in_module, pull, total

T = TypeVar("T")


class Behavior(ABC, Generic[T]):
    """The operation of a node: its value, and its contributions to gradients.

    Attributes
    ----------
    discrete : bool
        The derivative is zero (an argmax, a comparison), so there is no backward.
    name : str
        Name in messages and in the registry; by default that of the class.
    """

    discrete = False
    _operation: BehaviorOperation | None = None

    @property
    def name(self) -> str:
        """The module and name of the class."""
        return name_in_module(type(self))

    @abstractmethod
    def forward(self, nodes: Sequence[BehaviorNode[T]], curr_node_idx: int) -> T:
        """The value of the node at `curr_node_idx`, from the values of its inputs."""

    def backward(self, nodes: Sequence[BehaviorNode[T]], curr_node_idx: int) -> None:
        """Write the contribution of this node to the gradient of each input.

        A behavior without it can be evaluated, but not differentiated.
        """
        raise NotDifferentiableError(
            f"The derivative of {self.name} is needed, but it has no backward method. Define one, "
            "or set discrete = True if the derivative is zero"
            f"{at(nodes[curr_node_idx].where or user_line())}."
        )

    def __call__(self, *operands: Any) -> Any:
        """Apply the behavior to tensors, arrays and numbers."""
        return self.as_operation()(*operands)

    def as_operation(self) -> UserOperation:
        """The behavior as an operation on tensors, created once.

        The behavior is called with a small graph: its operands at 0, 1, ..., its own node, and a
        consumer from which its gradient comes.
        """
        operation = self._operation
        if operation is None or operation.behavior is not self:  # a copy has the other's
            operation = self._operation = BehaviorOperation(self)
        return operation

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_operation"}


class BehaviorOperation(UserOperation):
    """A behavior as an operation on tensors."""

    def __init__(self, behavior: Behavior[Any]) -> None:
        self.behavior = behavior
        rule = None if type(behavior).backward is Behavior.backward else self._contributions
        super().__init__(self._value, behavior.name, vjp=rule, discrete=behavior.discrete)
        self.__doc__ = type(behavior).__doc__

    def _value(self, *operands: Any) -> Any:
        return self.behavior.forward(neighborhood(self.behavior, operands), len(operands))

    def _contributions(self, t: Any, out: Any, *operands: Any) -> tuple[Any, ...]:
        n = len(operands)
        nodes = neighborhood(self.behavior, operands, out)
        given = nodes.backward_of(n, {n: t, n + 1: t}, _unchanged)
        found: list[Any] = [MISSING] * n
        for i in dict.fromkeys(i for i, _ in given):
            found[i] = total(bar for k, bar in given if k == i)
        return tuple(found)


def _unchanged(index: int, bar: Any) -> Any:
    return bar


class _BackwardState:
    """State of a backward pass in progress, shared by the nodes of a list."""

    __slots__ = ("contributions", "current", "fit", "gradients")

    def __init__(self) -> None:
        self.current: int | None = None
        self.gradients: dict[int, Any] = {}
        self.contributions: list[tuple[int, Any]] = []
        self.fit: Callable[[int, Any], Any] = _unchanged


class BehaviorNode(Generic[T]):
    """A node of a graph; other nodes are referred to by index.

    Attributes
    ----------
    index : int
        Position in the list.
    operation : Behavior
        The behavior that computes the value.
    is_param : bool
        Whether it is a trainable parameter.
    where : str
        The user's line that created it.
    """

    __slots__ = (
        "_gradient",
        "_inputs",
        "_state",
        "_upstream",
        "_value",
        "index",
        "is_param",
        "operation",
        "where",
    )

    def __init__(
        self,
        state: _BackwardState,
        index: int,
        operation: Behavior[T],
        inputs: Sequence[int],
        where: str,
    ) -> None:
        self._state = state
        self._inputs = tuple(inputs)
        self._upstream: list[int] = []
        self._value: Any = None
        self._gradient: Any = None
        self.index = index
        self.operation = operation
        self.is_param = False
        self.where = where

    def inputs(self) -> tuple[int, ...]:
        """Indices of the operands, in order."""
        return self._inputs

    def upstream(self) -> tuple[int, ...]:
        """Indices of the consumers, from which gradients come."""
        return tuple(self._upstream)

    def output(self) -> T:
        """The value."""
        return self._value

    def grad(self) -> T | None:
        """The gradient of the output with respect to this value; None if there is none.

        Raises
        ------
        GraphError
            The gradient is read in a `backward` before it is complete.
        """
        state = self._state
        if state.current is None:
            return self._gradient
        if self.index < state.current:
            raise GraphError(
                f"The gradient of node {self.index} is not complete during the backward of node "
                f"{state.current}. Write only the contribution of this node, with add_grad; the "
                f"engine accumulates contributions{at(user_line())}."
            )
        return state.gradients.get(self.index)

    def add_grad(self, contribution: T | None) -> None:
        """In `backward`: add the contribution of the current node; None if there is none.

        Raises
        ------
        RuleError
            This node is not an input of the current one, or the contribution does not match it.
        GraphError
            No backward pass is in progress.
        """
        state = self._state
        if state.current is None:
            raise GraphError(
                f"add_grad of node {self.index} outside a backward pass. Call it in "
                f"Behavior.backward; to set a gradient use set_grad_output{at(user_line())}."
            )
        state.contributions.append((self.index, state.fit(self.index, contribution)))

    def set_output(self, value: T) -> None:
        """Replace the value; `BehaviorGraph.mut_node_output` also requires a new forward."""
        self._value = value

    def set_grad_output(self, gradient: T) -> None:
        """Set the gradient; in a `backward` the same as `add_grad`, which does not overwrite."""
        if self._state.current is None:
            self._gradient = gradient
        else:
            self.add_grad(gradient)

    def set_operation(self, operation: Behavior[T]) -> None:
        """Replace the behavior; `BehaviorGraph.mut_node_operation` also requires a new forward."""
        self.operation = operation

    def __repr__(self) -> str:
        operands = ", ".join(map(str, self._inputs))
        what = f"{type(self.operation).__name__}({operands})"
        return f"<node {self.index}: {what} = {self._value!r}>"


class Nodes(list[BehaviorNode[Any]]):
    """The list of nodes that is passed to behaviors."""

    def __init__(self) -> None:
        super().__init__()
        self.state = _BackwardState()

    def add(self, operation: Behavior[Any], inputs: Sequence[int], value: Any = None) -> int:
        """Append a node; return its index."""
        index = len(self)
        node = BehaviorNode(self.state, index, operation, inputs, user_line())
        node._value = value
        for i in dict.fromkeys(inputs):
            self[i]._upstream.append(index)
        self.append(node)
        return index

    def backward_of(
        self, index: int, gradients: dict[int, Any], fit: Callable[[int, Any], Any]
    ) -> list[tuple[int, Any]]:
        """The contributions of the node to its inputs, as (index, contribution)."""
        state, node = self.state, self[index]
        state.current, state.gradients, state.contributions = index, gradients, []
        state.fit = fit
        try:
            node.operation.backward(self, index)
            return _check_inputs(node, state.contributions)
        finally:
            state.current, state.gradients, state.contributions = None, {}, []
            state.fit = _unchanged


def _check_inputs(node: BehaviorNode[Any], given: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
    for i, _ in given:
        if i not in node._inputs:
            raise RuleError(
                f"The backward of {node.operation.name} at node {node.index} wrote a gradient to "
                f"node {i}, which is not one of its inputs. These are "
                f"{', '.join(map(str, node._inputs)) or 'none'}{at(node.where)}."
            )
    return given


class Leaf(Behavior[Any]):
    """The behavior of a leaf, whose value is set."""

    def forward(self, nodes: Sequence[BehaviorNode[Any]], curr_node_idx: int) -> Any:
        """The current value."""
        return nodes[curr_node_idx].output()

    def backward(self, nodes: Sequence[BehaviorNode[Any]], curr_node_idx: int) -> None:
        """Do nothing: a leaf has no inputs."""


LEAF = Leaf()


def neighborhood(behavior: Behavior[Any], operands: Sequence[Any], out: Any = None) -> Nodes:
    """A graph of one behavior: operands, its node, and a consumer."""
    nodes = Nodes()
    places = [nodes.add(LEAF, (), x) for x in operands]
    nodes.add(behavior, places, out)
    nodes.add(LEAF, (len(operands),), out)
    return nodes


class FromFunction(Behavior[Any]):
    """A differentiable function of arrays as a behavior.

    Parameters
    ----------
    function : callable
        A differentiable function of arrays or tensors, for example an operation of another style.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    @property
    def name(self) -> str:
        """The name of the function."""
        return getattr(self.function, "name", None) or name_in_module(self.function)

    def forward(self, nodes: Sequence[BehaviorNode[Any]], curr_node_idx: int) -> Any:
        """The function of the inputs."""
        return self.function(*[nodes[i].output() for i in nodes[curr_node_idx].inputs()])

    def backward(self, nodes: Sequence[BehaviorNode[Any]], curr_node_idx: int) -> None:
        """The contributions from the vjp of the function."""
        node = nodes[curr_node_idx]
        values = [nodes[i].output() for i in node.inputs()]
        for i, bar in zip(node.inputs(), pull(self.function, values, node.grad()), strict=True):
            nodes[i].add_grad(bar)


# ---- behaviors by name -------------------------------------------------------------------------

BEHAVIORS: dict[str, Behavior[Any]] = {}


def register_behavior(name: str, behavior: Behavior[Any], replace: bool = False) -> Behavior[Any]:
    """Register a behavior under a name, so that graphs with it can be saved and loaded.

    Raises
    ------
    RegistryError
        Another behavior has this name, and `replace` is False.
    """
    if BEHAVIORS.get(name, behavior) is not behavior and not replace:
        raise RegistryError(
            f"A behavior named {name!r} is already registered. Use another name, or pass "
            "replace=True."
        )
    BEHAVIORS[name] = behavior
    return behavior


def behavior_named(name: str) -> Behavior[Any]:
    """The behavior registered under a name.

    Raises
    ------
    RegistryError
        No behavior is registered under this name.
    """
    try:
        return BEHAVIORS[name]
    except KeyError:
        raise RegistryError(
            f"No behavior named {name!r} is registered; known are "
            f"{', '.join(sorted(BEHAVIORS))}. Register it with register_behavior."
        ) from None


def name_of_behavior(behavior: Behavior[Any]) -> str | None:
    """The name under which a behavior is registered, or None."""
    return next((name for name, b in BEHAVIORS.items() if b is behavior), None)


__all__ = [
    "BEHAVIORS",
    "Behavior",
    "BehaviorNode",
    "FromFunction",
    "Leaf",
    "behavior_named",
    "name_of_behavior",
    "register_behavior",
]

"""Style 000: a behavior attached to a node of a graph (dendritic's operation extension).

    Behavior[T]      forward(nodes, curr_node_idx) and backward(nodes, curr_node_idx), over the
                     whole list of nodes; T is any type of value
    BehaviorNode     one node: inputs() and upstream() are indices, output() and grad() values
    BehaviorGraph    the list of nodes, built once and run many times (graph.py)

A behavior finds itself by its index, its operands by `inputs()`, its consumers by `upstream()`.
In `backward` its own `grad()` is complete: every consumer has contributed.  It writes to its
inputs what it contributes itself, with `add_grad`; the engine adds contributions up, so shared
nodes, repeated operands and diamonds need no thought.

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
    """What a node computes, and how it passes its gradient back.

    Attributes
    ----------
    discrete : bool
        The derivative is known to be zero (an argmax, a comparison): nothing is passed back.
    name : str
        How messages and the registry call it; by default the name of the class.
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
        """Write to each input what this node contributes to its gradient.

        A behavior that does not override this works forward, and is refused in a derivative.
        """
        raise NotDifferentiableError(
            f"The derivative of {self.name} was needed, but it has no backward method. Write one, "
            "or set discrete = True if its derivative is known to be zero"
            f"{at(nodes[curr_node_idx].where or user_line())}."
        )

    def __call__(self, *operands: Any) -> Any:
        """The behavior as an operation: on tensors, arrays and numbers."""
        return self.as_operation()(*operands)

    def as_operation(self) -> UserOperation:
        """The behavior as an operation; always the same one for the same behavior.

        It sees a graph of its own: the operands at 0, 1, ..., itself, and one consumer that
        carries its gradient.
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


class _Turn:
    """State of a pass in progress, shared by the nodes of one list."""

    __slots__ = ("contributions", "current", "fit", "gradients")

    def __init__(self) -> None:
        self.current: int | None = None
        self.gradients: dict[int, Any] = {}
        self.contributions: list[tuple[int, Any]] = []
        self.fit: Callable[[int, Any], Any] = _unchanged


class BehaviorNode(Generic[T]):
    """One node of a graph; others are named by their index.

    Attributes
    ----------
    index : int
        Its place in the list.
    operation : Behavior
        What it computes.
    is_param : bool
        Whether it is a parameter, to be trained.
    where : str
        The user's line that made it.
    """

    __slots__ = (
        "_gradient",
        "_inputs",
        "_turn",
        "_upstream",
        "_value",
        "index",
        "is_param",
        "operation",
        "where",
    )

    def __init__(
        self, turn: _Turn, index: int, operation: Behavior[T], inputs: Sequence[int], where: str
    ) -> None:
        self._turn = turn
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
        """Indices of the consumers: where gradients come from."""
        return tuple(self._upstream)

    def output(self) -> T:
        """The value."""
        return self._value

    def grad(self) -> T | None:
        """The complete gradient of the graph's output by this value; None if there is none.

        Raises
        ------
        GraphError
            Asked in a `backward` for a gradient that is not complete yet.
        """
        turn = self._turn
        if turn.current is None:
            return self._gradient
        if self.index < turn.current:
            raise GraphError(
                f"The gradient of node {self.index} is not complete while node {turn.current} "
                "passes its own back. Write only what this node contributes (add_grad); the "
                f"engine adds it to what others contribute{at(user_line())}."
            )
        return turn.gradients.get(self.index)

    def add_grad(self, contribution: T | None) -> None:
        """In `backward`: what the current node contributes here; None says that it is nothing.

        Raises
        ------
        RuleError
            This node is not an input of the current one, or the contribution does not fit it.
        GraphError
            No backward pass is in progress.
        """
        turn = self._turn
        if turn.current is None:
            raise GraphError(
                f"add_grad of node {self.index} outside of a backward pass. Contributions are made "
                f"in Behavior.backward; to set a gradient use set_grad_output{at(user_line())}."
            )
        turn.contributions.append((self.index, turn.fit(self.index, contribution)))

    def set_output(self, value: T) -> None:
        """Replace the value; `BehaviorGraph.mut_node_output` also asks for a new forward."""
        self._value = value

    def set_grad_output(self, gradient: T) -> None:
        """Set the gradient; in a `backward` this is `add_grad`, and never overwrites."""
        if self._turn.current is None:
            self._gradient = gradient
        else:
            self.add_grad(gradient)

    def set_operation(self, operation: Behavior[T]) -> None:
        """Replace the behavior; `BehaviorGraph.mut_node_operation` also asks for a new forward."""
        self.operation = operation

    def __repr__(self) -> str:
        operands = ", ".join(map(str, self._inputs))
        what = f"{type(self.operation).__name__}({operands})"
        return f"<node {self.index}: {what} = {self._value!r}>"


class Nodes(list[BehaviorNode[Any]]):
    """The list that behaviors see: nodes by index."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = _Turn()

    def add(self, operation: Behavior[Any], inputs: Sequence[int], value: Any = None) -> int:
        """Append a node; return its index."""
        index = len(self)
        node = BehaviorNode(self.turn, index, operation, inputs, user_line())
        node._value = value
        for i in dict.fromkeys(inputs):
            self[i]._upstream.append(index)
        self.append(node)
        return index

    def backward_of(
        self, index: int, gradients: dict[int, Any], fit: Callable[[int, Any], Any]
    ) -> list[tuple[int, Any]]:
        """What the node contributes to each of its inputs, as (index, contribution)."""
        turn, node = self.turn, self[index]
        turn.current, turn.gradients, turn.contributions = index, gradients, []
        turn.fit = fit
        try:
            node.operation.backward(self, index)
            return _owned(node, turn.contributions)
        finally:
            turn.current, turn.gradients, turn.contributions = None, {}, []
            turn.fit = _unchanged


def _owned(node: BehaviorNode[Any], given: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
    for i, _ in given:
        if i not in node._inputs:
            raise RuleError(
                f"The backward of {node.operation.name} at node {node.index} wrote a gradient to "
                f"node {i}, which is not an input of it. Its inputs are "
                f"{', '.join(map(str, node._inputs)) or 'none'}{at(node.where)}."
            )
    return given


class Leaf(Behavior[Any]):
    """A value given from outside."""

    def forward(self, nodes: Sequence[BehaviorNode[Any]], curr_node_idx: int) -> Any:
        """The value that is there."""
        return nodes[curr_node_idx].output()

    def backward(self, nodes: Sequence[BehaviorNode[Any]], curr_node_idx: int) -> None:
        """Nothing: a leaf has no inputs."""


LEAF = Leaf()


def neighborhood(behavior: Behavior[Any], operands: Sequence[Any], out: Any = None) -> Nodes:
    """A graph around one behavior: operands, itself, one consumer that passes its value on."""
    nodes = Nodes()
    places = [nodes.add(LEAF, (), x) for x in operands]
    nodes.add(behavior, places, out)
    nodes.add(LEAF, (len(operands),), out)
    return nodes


class FromFunction(Behavior[Any]):
    """Any differentiable function of arrays as a behavior, for example of another style.

    Parameters
    ----------
    function : callable
        Of arrays or tensors, and differentiable.
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
        """The function's own reverse derivative."""
        node = nodes[curr_node_idx]
        values = [nodes[i].output() for i in node.inputs()]
        for i, bar in zip(node.inputs(), pull(self.function, values, node.grad()), strict=True):
            nodes[i].add_grad(bar)


# ---- behaviors by name -------------------------------------------------------------------------

BEHAVIORS: dict[str, Behavior[Any]] = {}


def register_behavior(name: str, behavior: Behavior[Any], replace: bool = False) -> Behavior[Any]:
    """Enter a behavior under a name, so that a graph can be saved and loaded.

    Raises
    ------
    RegistryError
        The name is taken by another behavior, and `replace` is False.
    """
    if BEHAVIORS.get(name, behavior) is not behavior and not replace:
        raise RegistryError(
            f"A behavior named {name!r} is already registered. Choose another name, or pass "
            "replace=True."
        )
    BEHAVIORS[name] = behavior
    return behavior


def behavior_named(name: str) -> Behavior[Any]:
    """The behavior registered under a name.

    Raises
    ------
    RegistryError
        There is none.
    """
    try:
        return BEHAVIORS[name]
    except KeyError:
        raise RegistryError(
            f"No behavior named {name!r} is registered. Register it with register_behavior; known "
            f"are {', '.join(sorted(BEHAVIORS))}."
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

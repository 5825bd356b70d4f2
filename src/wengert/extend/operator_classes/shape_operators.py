"""Shape operators, selection, and Call for any differentiable function.

Reshape Broadcast SumTo Sum Transpose Cast     one parent, with parameters
Select                                         selection by a condition, which is an argument
MakeConstant                                   the parent becomes an argument: no gradient
Call                                           an operation of another style, or of NumPy
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.op import Op, lookup
from wengert._engine.core.spec import Shape, Spec, example_of, spec_of
from wengert._engine.kinds.reduction import axes_of, kept_shape
from wengert._engine.ops.casts import astype

from ..style_adapter import pull
from .graph import GraphNode, OperatorGraph
from .library import maker
from .operator import BinaryOperator, NaryOperator, UnaryOperator, broadcast


def _shaped(name: str, made_by: str, function: Any, gradient: Any, doc: str) -> type:
    """A class of operators of one parent, with the shape of the result as a parameter."""

    def __init__(self: Any, graph: OperatorGraph, parent: Any, shape: Shape) -> None:
        UnaryOperator.__init__(self, graph, parent, tuple(shape))

    def get_parent_grad(self: Any, my_grad: GraphNode, index: int) -> GraphNode:
        return gradient(self.graph, my_grad, self.parent.shape)

    body = {
        "__doc__": doc,
        "__module__": __name__,
        "__init__": __init__,
        "elementary": True,
        "compute": lambda self, x: function(x, self.shape),
        "get_params": lambda self: (self.shape,),
        "get_parent_grad": get_parent_grad,
    }
    return maker(made_by)(type(name, (UnaryOperator,), body))


Reshape = _shaped(
    "Reshape",
    "reshape",
    np.reshape,
    lambda graph, t, shape: graph.reshape(t, shape),
    "Reshape.",
)
Broadcast = _shaped(
    "Broadcast",
    "broadcast",
    np.broadcast_to,
    lambda graph, t, shape: t,  # send_grad_message sums it
    "Broadcast to a shape.",
)
SumTo = _shaped(
    "SumTo",
    "sum_to",
    lambda x, shape: lookup("sum_to")(x, shape=shape),  # type: ignore[operator]
    lambda graph, t, shape: graph.broadcast(t, shape),
    "Sum over the axes that broadcasting repeats: the transpose of Broadcast.",
)


@maker("sum")
class Sum(UnaryOperator):
    """The sum over given axes, by default all."""

    elementary = True

    def __init__(self, graph: OperatorGraph, parent: Any, axis: Any = None) -> None:
        parent = graph.as_node(parent)
        self.axis = axis
        self.kept = kept_shape(parent.shape, axis)
        gone = axes_of(axis, len(parent.shape))
        shape = tuple(n for i, n in enumerate(parent.shape) if i not in gone)
        super().__init__(graph, parent, shape)

    def compute(self, x: Any) -> Any:
        """The sum."""
        return np.sum(x, axis=self.axis)

    def get_params(self) -> tuple[Any, ...]:
        """The axes."""
        return (self.axis,)

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """The gradient, broadcast along the summed axes."""
        return self.graph.broadcast(self.graph.reshape(my_grad, self.kept), self.parent.shape)


@maker("transpose")
class Transpose(UnaryOperator):
    """The last two axes swapped."""

    elementary = True

    def __init__(self, graph: OperatorGraph, parent: Any) -> None:
        parent = graph.as_node(parent)
        *batch, rows, columns = parent.shape
        super().__init__(graph, parent, (*batch, columns, rows))

    def compute(self, x: Any) -> Any:
        """Exchanged."""
        return np.swapaxes(x, -1, -2)

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """The gradient, transposed."""
        return self.graph.transpose(my_grad)


@maker("cast")
class Cast(UnaryOperator):
    """A cast to another data type; casts to integers have no derivative."""

    elementary = True

    def __init__(self, graph: OperatorGraph, parent: Any, data_type: Any) -> None:
        super().__init__(graph, parent)
        self.data_type = np.dtype(data_type)

    def get_data_type(self) -> np.dtype[Any]:
        """The given data type."""
        return self.data_type

    def compute(self, x: Any) -> Any:
        """The cast value."""
        return astype(x, self.data_type)

    def get_params(self) -> tuple[Any, ...]:
        """The data type."""
        return (str(self.data_type),)

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """The gradient; send_grad_message casts it back."""
        return my_grad


@maker("select")
class Select(BinaryOperator):
    """x where a condition is true, else y; the condition is an argument."""

    elementary = True

    def __init__(self, graph: OperatorGraph, condition: Any, x: Any, y: Any) -> None:
        nodes = [graph.as_node(n) for n in (condition, x, y)]
        self.condition = nodes[0]
        super().__init__(graph, nodes[1], nodes[2], broadcast(self.name, *nodes))

    def get_arguments(self) -> list[GraphNode]:
        """The condition."""
        return [self.condition]

    def copy_to(self, graph: OperatorGraph, ancestors: Sequence[GraphNode]) -> Any:
        """A copy of the operator on other nodes."""
        x, y, condition = self._renamed(self.operands(), ancestors)
        return self._copied(graph, parents=[x, y], condition=condition)

    def compute(self, x: Any, y: Any, condition: Any) -> Any:
        """The selected elements."""
        return astype(np.where(condition, x, y)[()], self.get_data_type())

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """The gradient where the parent was selected, else 0, without multiplication."""
        pair = (my_grad, 0.0) if index == 0 else (0.0, my_grad)
        return self.graph.select(self.condition, *pair)


@maker("make_constant")
class MakeConstant(UnaryOperator):
    """The same value without gradient: the parent becomes an argument."""

    def get_parents(self) -> list[GraphNode]:
        """None."""
        return []

    def get_arguments(self) -> list[GraphNode]:
        """The node."""
        return list(self.parents)

    def get_data_type(self) -> np.dtype[Any]:
        """The data type of the node."""
        return self.parent.data_type

    def compute(self, x: Any) -> Any:
        """The value."""
        return x

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """Raise NotDifferentiableError."""
        raise self.no_gradient("it stops gradients")


# ---- any differentiable function ----------------------------------------------------------------


@maker("call")
class Call(NaryOperator):
    """A differentiable function of nodes: an operation of another style, or of NumPy.

    Its gradient is a Call of the vjp of the function, so it has derivatives of every order.
    """

    def __init__(self, graph: OperatorGraph, function: Callable[..., Any], *parents: Any) -> None:
        nodes = [graph.as_node(p) for p in parents]
        self.function = function
        self.spec = _spec_of_result(function, nodes)
        super().__init__(graph, nodes, self.spec.shape)

    def get_data_type(self) -> np.dtype[Any]:
        """The data type of the result for operands of these types."""
        return self.spec.dtype

    def get_params(self) -> tuple[Any, ...]:
        """The function."""
        return (self.function,)

    def compute(self, *values: Any) -> Any:
        """The function."""
        return self.function(*values)

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """A Call of the vjp of the function."""
        return self.graph.call(_Pulled(self.function, index), my_grad, *self.parents)


class _Pulled:
    """The vjp of a function with respect to one operand: ``(t, *operands) -> contribution``."""

    def __init__(self, function: Callable[..., Any], index: int) -> None:
        self.function, self.index = function, index

    def __call__(self, t: Any, *operands: Any) -> Any:
        return pull(self.function, operands, t)[self.index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Pulled) and (other.function, other.index) == (
            self.function,
            self.index,
        )

    def __hash__(self) -> int:
        return hash((self.function, self.index))


def _spec_of_result(function: Any, nodes: Sequence[GraphNode]) -> Spec:
    specs = [Spec(n.shape, n.data_type) for n in nodes]
    if isinstance(function, Op):
        return function.infer(specs, {})
    if isinstance(function, _Pulled):
        return specs[1 + function.index]
    with np.errstate(all="ignore"):
        return spec_of(function(*[example_of(s) for s in specs]))


__all__ = "Broadcast Call Cast MakeConstant Reshape Select Sum SumTo Transpose".split()

"""Operators with a gradient, each stated as nodes of the same graph.

    any number of parents    Add Mul, and Call: any differentiable function
    two parents              Sub Div Power MatMul
    one parent               Neg Exp Log Log1p Tanh Sin Cos Abs
    shapes and choices       Sum SumTo Broadcast Reshape Transpose Cast Select MakeConstant

A `get_parent_grad` need not undo broadcasting: `send_grad_message` does it for all.  Conventions
at kinks and poles are those of docs/conventions.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.op import Op, lookup
from ..core.spec import Shape, Spec, example_of, spec_of
from ..errors import ShapeError, at, user_line
from ..kinds.reduction import axes_of, kept_shape
from .adapter import pull
from .operator_graph import GraphNode, OperatorGraph
from .operator_library import ConstantValue, maker
from .operators import BinaryOperator, NaryOperator, UnaryOperator, broadcast


class _Elementwise(NaryOperator):
    """What operators of elements share: operands as nodes, the common shape."""

    def __init__(self, graph: OperatorGraph, *parents: Any) -> None:
        nodes = [graph.as_node(p) for p in parents]
        super().__init__(graph, nodes, broadcast(self.name, *nodes))

    @property
    def node(self) -> GraphNode:
        """The node that this operator made."""
        return self.graph.node_of(self)


@maker("add")
class Add(_Elementwise):
    """The sum of all parents."""

    commutative = True

    def compute(self, *values: Any) -> Any:
        """The sum."""
        total = values[0]
        for v in values[1:]:
            total = np.add(total, v)
        return total

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """The gradient itself."""
        return my_grad


@maker("mul")
class Mul(_Elementwise):
    """The product of all parents."""

    commutative = True

    def compute(self, *values: Any) -> Any:
        """The product."""
        product = values[0]
        for v in values[1:]:
            product = np.multiply(product, v)
        return product

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """The gradient times all other parents."""
        others = [p for i, p in enumerate(self.parents) if i != index]
        return self.graph.mul(my_grad, *others)


class _Pair(BinaryOperator):
    """What binary operators of elements share."""

    def __init__(self, graph: OperatorGraph, x: Any, y: Any) -> None:
        x, y = graph.as_node(x), graph.as_node(y)
        super().__init__(graph, x, y, broadcast(self.name, x, y))


@maker("sub")
class Sub(_Pair):
    """x - y."""

    def compute(self, x: Any, y: Any) -> Any:
        """The difference."""
        return np.subtract(x, y)

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """Plus to x, minus to y."""
        return my_grad if index == 0 else -my_grad


@maker("div")
class Div(_Pair):
    """x / y."""

    def get_data_type(self) -> np.dtype[Any]:
        """Floating, also for whole numbers."""
        return np.true_divide(*[np.ones((), p.data_type) for p in self.parents]).dtype

    def compute(self, x: Any, y: Any) -> Any:
        """The quotient."""
        return np.divide(x, y)

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """1 / y, and -x / y**2 as -(x / y) / y."""
        x, y = self.parents
        return my_grad / y if index == 0 else -(my_grad * (self.graph.node_of(self) / y))


@maker("power")
class Power(_Pair):
    """x ** y; derivative by x is 0 where y is 0, by y is 0 where x is 0."""

    def compute(self, x: Any, y: Any) -> Any:
        """The power."""
        return np.power(x, y)

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """y x**(y - 1), and x**y log x; a constant exponent is never asked for its logarithm."""
        x, y = self.parents
        graph = self.graph
        if index == 0:
            if isinstance(y.operator, ConstantValue) and np.all(y.operator.value != 0):
                return my_grad * (y * x ** (y - 1))
            at_zero = graph.equal(y, 0)
            safe = graph.select(at_zero, 1, y)
            return graph.select(at_zero, 0.0, my_grad * (y * x ** (safe - 1)))
        at_zero = graph.equal(x, 0)
        log = graph.log(graph.select(at_zero, 1.0, x))
        return graph.select(at_zero, 0.0, my_grad * (graph.node_of(self) * log))


@maker("matmul")
class MatMul(BinaryOperator):
    """The product of matrices, or of stacks of matrices."""

    def __init__(self, graph: OperatorGraph, x: Any, y: Any) -> None:
        x, y = graph.as_node(x), graph.as_node(y)
        if len(x.shape) < 2 or len(y.shape) < 2 or x.shape[-1] != y.shape[-2]:
            raise ShapeError(
                f"MatMul of shapes {x.shape} and {y.shape}: the last axis of the first and the last "
                "but one of the second must be equal, and both operands matrices. Transpose or "
                f"reshape one{at(user_line())}."
            )
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        super().__init__(graph, x, y, (*batch, x.shape[-2], y.shape[-1]))

    def compute(self, x: Any, y: Any) -> Any:
        """The product."""
        return np.matmul(x, y)

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """The gradient times the other parent's transpose."""
        x, y = self.parents
        graph = self.graph
        return my_grad @ graph.transpose(y) if index == 0 else graph.transpose(x) @ my_grad


# ---- one parent ---------------------------------------------------------------------------------


def _unary(name: str, function: Any, grad: Callable[..., GraphNode], doc: str) -> type:
    """A class of operators of one parent: a NumPy function, and its gradient in nodes."""

    def get_data_type(self: Any) -> np.dtype[Any]:
        return function(np.ones((), self.parent.data_type)).dtype

    def compute(self: Any, x: Any) -> Any:
        return function(x)

    def get_parent_grad(self: Any, my_grad: GraphNode, index: int) -> GraphNode:
        return grad(self.graph, my_grad, self.graph.node_of(self), self.parent)

    body = {
        "__doc__": doc,
        "__module__": __name__,
        "get_data_type": get_data_type,
        "compute": compute,
        "get_parent_grad": get_parent_grad,
    }
    return maker(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())(
        type(name, (UnaryOperator,), body)
    )


Neg = _unary("Neg", np.negative, lambda graph, t, out, x: -t, "-x.")
Exp = _unary("Exp", np.exp, lambda graph, t, out, x: t * out, "e to the x.")
Log = _unary("Log", np.log, lambda graph, t, out, x: t / x, "The natural logarithm.")
Log1p = _unary("Log1p", np.log1p, lambda graph, t, out, x: t / (1.0 + x), "log(1 + x).")
Tanh = _unary("Tanh", np.tanh, lambda graph, t, out, x: t * (1.0 - out * out), "tanh x.")
Sin = _unary("Sin", np.sin, lambda graph, t, out, x: t * graph.cos(x), "sin x.")
Cos = _unary("Cos", np.cos, lambda graph, t, out, x: -(t * graph.sin(x)), "cos x.")
Abs = _unary(
    "Abs",
    np.abs,
    lambda graph, t, out, x: graph.select(x > 0, t, graph.select(x < 0, -t, 0.0)),
    "|x|; derivative 0 at 0.",
)


# ---- shapes and choices -------------------------------------------------------------------------


class _Shaped(UnaryOperator):
    """An operator of one parent, with a shape that is a parameter."""

    def __init__(self, graph: OperatorGraph, parent: Any, shape: Shape) -> None:
        super().__init__(graph, parent, tuple(shape))

    def get_params(self) -> tuple[Any, ...]:
        """The shape."""
        return (self.shape,)


@maker("reshape")
class Reshape(_Shaped):
    """The same elements in another shape."""

    def compute(self, x: Any) -> Any:
        """Another shape."""
        return np.reshape(x, self.shape)

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """Back to the parent's shape."""
        return self.graph.reshape(my_grad, self.parent.shape)


@maker("broadcast")
class Broadcast(_Shaped):
    """Repeated along axes of length one."""

    def compute(self, x: Any) -> Any:
        """Repeated."""
        return np.broadcast_to(x, self.shape)

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """The gradient; it is summed where it is sent."""
        return my_grad


@maker("sum_to")
class SumTo(_Shaped):
    """Summed over axes that broadcasting would have repeated."""

    def compute(self, x: Any) -> Any:
        """Summed."""
        return lookup("sum_to").run(x, shape=self.shape)

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """Repeated."""
        return self.graph.broadcast(my_grad, self.parent.shape)


@maker("sum")
class Sum(UnaryOperator):
    """The sum over some axes, or all."""

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
        """Repeated along the axes summed over."""
        return self.graph.broadcast(self.graph.reshape(my_grad, self.kept), self.parent.shape)


@maker("transpose")
class Transpose(UnaryOperator):
    """The last two axes exchanged."""

    def __init__(self, graph: OperatorGraph, parent: Any) -> None:
        parent = graph.as_node(parent)
        *batch, rows, columns = parent.shape
        super().__init__(graph, parent, (*batch, columns, rows))

    def compute(self, x: Any) -> Any:
        """Exchanged."""
        return np.swapaxes(x, -1, -2)

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """Exchanged again."""
        return self.graph.transpose(my_grad)


@maker("cast")
class Cast(UnaryOperator):
    """Another data type; to whole numbers it has no derivative."""

    def __init__(self, graph: OperatorGraph, parent: Any, data_type: Any) -> None:
        super().__init__(graph, parent)
        self.data_type = np.dtype(data_type)

    def get_data_type(self) -> np.dtype[Any]:
        """The one given."""
        return self.data_type

    def compute(self, x: Any) -> Any:
        """The same values."""
        return np.asarray(x).astype(self.data_type)[()]

    def get_params(self) -> tuple[Any, ...]:
        """The data type."""
        return (str(self.data_type),)

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """The gradient; it is cast back where it is sent."""
        return my_grad


@maker("select")
class Select(BinaryOperator):
    """x where a condition holds, else y; the condition is an argument."""

    def __init__(self, graph: OperatorGraph, condition: Any, x: Any, y: Any) -> None:
        nodes = [graph.as_node(n) for n in (condition, x, y)]
        self.condition = nodes[0]
        super().__init__(graph, nodes[1], nodes[2], broadcast(self.name, *nodes))

    def get_arguments(self) -> list[GraphNode]:
        """The condition."""
        return [self.condition]

    def copy_to(self, graph: OperatorGraph, ancestors: Sequence[GraphNode]) -> Any:
        """The same choice among other nodes."""
        x, y, condition = self._renamed(self.operands(), ancestors)
        return self._copied(graph, parents=[x, y], condition=condition)

    def compute(self, x: Any, y: Any, condition: Any) -> Any:
        """The choice."""
        return np.where(condition, x, y).astype(self.get_data_type())[()]

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """The gradient where it was chosen, else nothing: a choice and not a product."""
        pair = (my_grad, 0.0) if index == 0 else (0.0, my_grad)
        return self.graph.select(self.condition, *pair)


@maker("make_constant")
class MakeConstant(UnaryOperator):
    """The same value, with no gradient: the parent becomes an argument."""

    def get_parents(self) -> list[GraphNode]:
        """None."""
        return []

    def get_arguments(self) -> list[GraphNode]:
        """The node."""
        return list(self.parents)

    def get_data_type(self) -> np.dtype[Any]:
        """The node's."""
        return self.parent.data_type

    def compute(self, x: Any) -> Any:
        """The value."""
        return x

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """Raise NotDifferentiableError: that is what it is for."""
        raise self.no_gradient("it is there to stop gradients")


# ---- any differentiable function ----------------------------------------------------------------


@maker("call")
class Call(NaryOperator):
    """A differentiable function of nodes: an operation of another style, or of NumPy.

    Its gradient is the same operator of another function, so it has every order.
    """

    def __init__(self, graph: OperatorGraph, function: Callable[..., Any], *parents: Any) -> None:
        nodes = [graph.as_node(p) for p in parents]
        self.function = function
        self.spec = _spec_of_result(function, nodes)
        super().__init__(graph, nodes, self.spec.shape)

    def get_data_type(self) -> np.dtype[Any]:
        """What the function returns for operands of these types."""
        return self.spec.dtype

    def get_params(self) -> tuple[Any, ...]:
        """The function."""
        return (self.function,)

    def compute(self, *values: Any) -> Any:
        """The function."""
        return self.function(*values)

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """The function's reverse derivative, as a function called."""
        return self.graph.call(_Pulled(self.function, index), my_grad, *self.parents)


class _Pulled:
    """``(t, *operands) -> contribution to one operand`` of a function."""

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


def _spec_of_result(function: Callable[..., Any], nodes: Sequence[GraphNode]) -> Spec:
    specs = [Spec(n.shape, n.data_type) for n in nodes]
    if isinstance(function, Op):
        return function.infer(specs, {})
    if isinstance(function, _Pulled):
        return specs[1 + function.index]
    with np.errstate(all="ignore"):
        return spec_of(function(*[example_of(s) for s in specs]))


__all__ = [
    "Abs",
    "Add",
    "Broadcast",
    "Call",
    "Cast",
    "Cos",
    "Div",
    "Exp",
    "Log",
    "Log1p",
    "MakeConstant",
    "MatMul",
    "Mul",
    "Neg",
    "Power",
    "Reshape",
    "Select",
    "Sin",
    "Sub",
    "Sum",
    "SumTo",
    "Tanh",
    "Transpose",
]

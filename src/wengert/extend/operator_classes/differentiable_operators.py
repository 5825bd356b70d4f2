"""Operators with a gradient, stated as nodes of the same graph.

    any number of parents    Add Mul
    two parents              Sub Div Power MatMul
    one parent               Neg Exp Log Log1p Tanh Sin Cos Abs

A `get_parent_grad` need not undo broadcasting: `send_grad_message` does it for all.  Conventions
at kinks and poles are those of docs/conventions.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core.symbolic.constraints import broadcast as broadcast_of
from wengert.errors import ShapeError, at, user_line

from .graph import GraphNode, OperatorGraph
from .library import ConstantValue, maker
from .operator import BinaryOperator, NaryOperator, UnaryOperator, broadcast


class _Elementwise(NaryOperator):
    """What operators of elements share: operands as nodes, the common shape."""

    def __init__(self, graph: OperatorGraph, *parents: Any) -> None:
        nodes = [graph.as_node(p) for p in parents]
        super().__init__(graph, nodes, broadcast(self.name, *nodes))

    @property
    def node(self) -> GraphNode:
        """The node that this operator made."""
        return self.graph.node_of(self)


@maker("plus")
class Add(_Elementwise):
    """The sum of all parents."""

    elementary = True

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

    elementary = True

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

    elementary = True

    def compute(self, x: Any, y: Any) -> Any:
        """The difference."""
        return np.subtract(x, y)

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """Plus to x, minus to y."""
        return my_grad if index == 0 else -my_grad


@maker("div")
class Div(_Pair):
    """x / y."""

    elementary = True

    def get_data_type(self) -> np.dtype[Any]:
        """Floating point, also for integers."""
        return np.true_divide(*[np.ones((), p.data_type) for p in self.parents]).dtype

    def compute(self, x: Any, y: Any) -> Any:
        """The quotient."""
        return np.divide(x, y)

    def get_parent_grad(self, my_grad: GraphNode, index: int) -> GraphNode:
        """1 / y, and -x / y**2 as -(x / y) / y."""
        y = self.parents[1]
        return my_grad / y if index == 0 else -(my_grad * (self.graph.node_of(self) / y))


@maker("power")
class Power(_Pair):
    """x ** y; the x derivative is 0 where y is 0, the y derivative where x is 0."""

    elementary = True

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

    elementary = True

    def __init__(self, graph: OperatorGraph, x: Any, y: Any) -> None:
        x, y = graph.as_node(x), graph.as_node(y)
        if len(x.shape) < 2 or len(y.shape) < 2 or x.shape[-1] != y.shape[-2]:
            raise ShapeError(
                f"MatMul of shapes {x.shape} and {y.shape}: both must be matrices, the last "
                "axis of the first equal to the last but one of the second. Transpose or reshape "
                f"one{at(user_line())}."
            )
        batch = broadcast_of(x.shape[:-2], y.shape[:-2])
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
        "elementary": True,
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

__all__ = [
    "Abs",
    "Add",
    "Cos",
    "Div",
    "Exp",
    "Log",
    "Log1p",
    "MatMul",
    "Mul",
    "Neg",
    "Power",
    "Sin",
    "Sub",
    "Tanh",
]

"""Operators with a gradient, which is made of nodes of the same graph.

    any number of parents    Add Mul
    two parents              Sub Div Power MatMul
    one parent               Neg Exp Log Log1p Tanh SechSquared Sin Cos Abs

Values, dtypes and derivatives (if they use arithmetic only) are those of the registered operation.
Gradients need not undo broadcasting; `send_grad_message` does.  Conventions at kinks and poles are
those of docs/conventions.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert._engine.core.symbolic.constraints import broadcast as broadcast_of
from wengert.errors import ShapeError, at, user_line

from .graph import GraphNode, OperatorGraph
from .library import ConstantValue, maker
from .operator import BinaryOperator, NaryOperator, UnaryOperator, broadcast

Rule = Callable[..., GraphNode]


class _Nary(NaryOperator):
    """An elementwise operator of any number of parents, which are broadcast."""

    commutative = True

    def __init__(self, graph: OperatorGraph, *parents: Any) -> None:
        nodes = [graph.as_node(p) for p in parents]
        super().__init__(graph, nodes, broadcast(self.name, *nodes))


class _Binary(BinaryOperator):
    """An elementwise operator of two parents, which are broadcast."""

    def __init__(self, graph: OperatorGraph, x: Any, y: Any) -> None:
        x, y = graph.as_node(x), graph.as_node(y)
        super().__init__(graph, x, y, broadcast(self.name, x, y))


def _operator(
    name: str, base: type, operation: str, doc: str, *rules: Rule, made_by: str = ""
) -> type:
    """A class of elementwise operators, from a registered operation.

    Parameters
    ----------
    rules : callable
        ``(t, out, *parents)`` for each parent, of nodes; by default those of the operation.
    made_by : str, optional
        Name of the graph method that creates the node; by default that of the class in lower case.
    """
    op: Any = lookup(operation)
    function = op.ufunc or op
    gradients = rules or op.rules

    def get_data_type(self: Any) -> np.dtype[Any]:
        if operation in ("add", "subtract", "multiply", "power"):
            return np.result_type(*[p.data_type for p in self.parents])
        return function(*[np.ones((), p.data_type) for p in self.parents]).dtype

    def compute(self: Any, *values: Any) -> Any:
        return reduce(function, values) if base is _Nary else function(*values)

    def get_parent_grad(self: Any, my_grad: GraphNode, index: int) -> GraphNode:
        if base is _Nary:
            return rules[0](my_grad, self, index)
        return gradients[index](my_grad, self.graph.node_of(self), *self.parents)

    body = {"__doc__": doc, "__module__": __name__, "elementary": True}
    methods = {
        "get_data_type": get_data_type,
        "compute": compute,
        "get_parent_grad": get_parent_grad,
    }
    words = made_by or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return maker(words)(type(name, (base,), {**body, **methods}))


def _times_others(t: GraphNode, operator: Any, index: int) -> GraphNode:
    others = [p for i, p in enumerate(operator.parents) if i != index]
    return operator.graph.mul(t, *others)


def _power_by_base(t: GraphNode, out: GraphNode, x: GraphNode, y: GraphNode) -> GraphNode:
    if isinstance(y.operator, ConstantValue) and np.all(y.operator.value != 0):
        return t * (y * x ** (y - 1))
    select, at_zero = t.graph.select, t.graph.equal(y, 0)
    return select(at_zero, 0.0, t * (y * x ** (select(at_zero, 1, y) - 1)))


def _power_by_exponent(t: GraphNode, out: GraphNode, x: GraphNode, y: GraphNode) -> GraphNode:
    select, at_zero = t.graph.select, t.graph.equal(x, 0)
    return select(at_zero, 0.0, t * (out * t.graph.log(select(at_zero, 1.0, x))))


def _abs_by_x(t: GraphNode, out: GraphNode, x: GraphNode) -> GraphNode:
    return t.graph.select(x > 0, t, t.graph.select(x < 0, -t, 0.0))


Add = _operator(
    "Add", _Nary, "add", "The sum of all parents.", lambda t, op, index: t, made_by="plus"
)
Mul = _operator("Mul", _Nary, "multiply", "The product of all parents.", _times_others)
Sub = _operator("Sub", _Binary, "subtract", "x - y.")
Div = _operator("Div", _Binary, "divide", "x / y.")
Power = _operator(
    "Power",
    _Binary,
    "power",
    "x ** y; the derivative with respect to x is 0 where y is 0, to y 0 where x is 0.",
    _power_by_base,
    _power_by_exponent,
)
Neg = _operator("Neg", UnaryOperator, "negative", "-x.")
Exp = _operator("Exp", UnaryOperator, "exp", "e to the x.")
Log = _operator("Log", UnaryOperator, "log", "The natural logarithm.")
Log1p = _operator("Log1p", UnaryOperator, "log1p", "log(1 + x).")
SechSquared = _operator(
    "SechSquared",
    UnaryOperator,
    "sech_squared",
    "1 / cosh(x)**2, accurate where tanh(x) is close to 1.",
    lambda t, out, x: -2.0 * (t * (out * t.graph.tanh(x))),
)
Tanh = _operator(
    "Tanh", UnaryOperator, "tanh", "tanh x.", lambda t, out, x: t * t.graph.sech_squared(x)
)
Sin = _operator("Sin", UnaryOperator, "sin", "sin x.", lambda t, out, x: t * t.graph.cos(x))
Cos = _operator("Cos", UnaryOperator, "cos", "cos x.", lambda t, out, x: -(t * t.graph.sin(x)))
Abs = _operator("Abs", UnaryOperator, "absolute", "|x|; derivative 0 at 0.", _abs_by_x)


@maker("matmul")
class MatMul(BinaryOperator):
    """The product of matrices, or of stacks of matrices."""

    elementary = True

    def __init__(self, graph: OperatorGraph, x: Any, y: Any) -> None:
        x, y = graph.as_node(x), graph.as_node(y)
        if len(x.shape) < 2 or len(y.shape) < 2 or x.shape[-1] != y.shape[-2]:
            raise ShapeError(
                f"MatMul of shapes {x.shape} and {y.shape}: both must be matrices, and the last "
                "axis of the first must match the last but one of the second. Transpose or reshape "
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


__all__ = "Abs Add Cos Div Exp Log Log1p MatMul Mul Neg Power SechSquared Sin Sub Tanh".split()

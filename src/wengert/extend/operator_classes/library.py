"""Operators of the graph style: inputs, constants, logic; operators with a gradient.

    inputs                   Input Shared
    constants                ConstantValue Eye Range Size
    logical                  LogicalNot IsNaN IsInf Less LessEqual Greater GreaterEqual Equal
                             NotEqual LogicalAnd LogicalOr
    any number of parents    Add Mul
    two parents              Sub Div Power MatMul
    one parent               Neg Exp Log Log1p Tanh SechSquared Sin Cos Abs

For each class OperatorGraph has a method that creates a node, with the name of the class in snake
case.  The first three lines have no gradient.

Values, dtypes and derivatives (if they use arithmetic only) are those of the registered operation.
Gradients need not undo broadcasting; `send_grad_message` does.  Conventions at kinks and poles are
those of docs/conventions.md.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Shape, spec_of
from wengert._engine.core.symbolic.constraints import broadcast as broadcast_of
from wengert.errors import OperandError, ShapeError, at, user_line

from .graph import MAKERS, GraphNode, OperatorGraph
from .operator import (
    AbstractOperator,
    BinaryOperator,
    ConstantOperator,
    InputOperator,
    LogicalBinary,
    LogicalUnary,
    NaryOperator,
    UnaryOperator,
    broadcast,
    f64,
    i64,
)

__all__ = """
    ConstantValue Equal Eye Greater GreaterEqual Input IsInf IsNaN Less LessEqual LogicalAnd
    LogicalNot LogicalOr NotEqual Range Shared Size Abs Add Cos Div Exp Log Log1p MatMul Mul Neg
    Power SechSquared Sin Sub Tanh
""".split()


_number = itertools.count().__next__


def maker(name: str) -> Callable[[type], type]:
    """Add a method ``graph.name(*operands)`` that creates a node of a class (a decorator)."""

    def enter(cls: type) -> type:
        def make(graph: OperatorGraph, *operands: Any, **params: Any) -> GraphNode:
            return graph.add(cls(graph, *operands, **params))

        MAKERS[name] = make
        return cls

    return enter


# ---- inputs and constants -----------------------------------------------------------------------


class Input(InputOperator):
    """An argument of the graph."""

    def __init__(
        self, graph: OperatorGraph, shape: Shape = (), data_type: Any = f64, name: str = ""
    ) -> None:
        super().__init__(graph, data_type)
        self.shape = tuple(shape)
        self.label = name
        self.number = _number()

    def compute(self) -> Any:
        """Raise OperandError, because no value was passed."""
        raise OperandError(
            f"The input {self.label or 'without a name'}, {self.data_type}{list(self.shape)}, has "
            f"no value. Pass it in the inputs of graph.function(inputs, outputs)"
            f"{at(self.where)}."
        )

    def get_shape(self) -> Shape:
        """The given shape."""
        return self.shape

    def get_params(self) -> tuple[Any, ...]:
        """A unique number: two inputs are never equal."""
        return (self.number, self.label) if self.label else (self.number,)


class Shared(InputOperator):
    """A variable that keeps its value between runs, such as a parameter."""

    def __init__(self, graph: OperatorGraph, value: Any, name: str = "") -> None:
        super().__init__(graph, np.asarray(value).dtype)
        self.value = np.array(value)
        self.label = name
        self.number = _number()

    def compute(self) -> Any:
        """The current value."""
        return self.value

    def set_value(self, value: Any) -> None:
        """Set the value; the shape must not change."""
        if np.shape(value) != self.value.shape:
            raise ShapeError(
                f"set_value of a shared variable of shape {self.value.shape} was given shape "
                f"{np.shape(value)}. Pass a value of the same shape{at(user_line())}."
            )
        self.value = np.array(value, self.data_type)

    def get_shape(self) -> Shape:
        """The shape of the value."""
        return self.value.shape

    def get_params(self) -> tuple[Any, ...]:
        """A unique number."""
        return (self.number, self.label) if self.label else (self.number,)


@maker("constant")
class ConstantValue(ConstantOperator):
    """A constant number or array."""

    def __init__(self, graph: OperatorGraph, value: Any, grad_level: int = 0) -> None:
        spec = spec_of(value)
        if spec is None or isinstance(spec, tuple) or spec.dtype.kind not in "biufc":
            raise OperandError(
                f"A {type(value).__name__} cannot be a constant of a graph. Pass a number or a "
                f"numeric array{at(user_line())}."
            )
        super().__init__(graph, spec.dtype)
        self.value = np.array(value)[()]
        self.grad_level = grad_level

    def compute(self) -> Any:
        """The value."""
        return self.value

    def get_shape(self) -> Shape:
        """The shape of the value."""
        return np.shape(self.value)

    def get_params(self) -> tuple[Any, ...]:
        """Bytes of the value, and gradient level."""
        return np.shape(self.value), str(self.data_type), self.value.tobytes(), self.grad_level

    def get_grad_level(self) -> int:
        """The given gradient level."""
        return self.grad_level


class _OfSize(ConstantOperator):
    """A constant whose size is an integer or a Size node."""

    def __init__(self, graph: OperatorGraph, n: Any, data_type: Any) -> None:
        super().__init__(graph, data_type)
        self.sizes = [graph.as_node(n)]
        maker_ = self.sizes[0].operator
        if not isinstance(maker_, Size | ConstantValue) or self.sizes[0].shape != ():
            raise ShapeError(
                f"{self.name} of size {self.sizes[0]!r}: the size must be known when the graph is "
                f"built. Pass an integer, or graph.size(node, axis){at(user_line())}."
            )
        self.n = int(maker_.compute() if isinstance(maker_, ConstantValue) else maker_.n)

    def get_arguments(self) -> list[GraphNode]:
        """The size."""
        return list(self.sizes)

    def copy_to(self, graph: OperatorGraph, ancestors: Sequence[GraphNode]) -> Any:
        """The operator with a size in another graph."""
        return self._copied(graph, sizes=self._renamed(self.sizes, ancestors))

    def get_params(self) -> tuple[Any, ...]:
        """Size and data type."""
        return self.n, str(self.data_type)


@maker("eye")
class Eye(_OfSize):
    """The identity matrix."""

    def __init__(self, graph: OperatorGraph, n: Any, data_type: Any = f64) -> None:
        super().__init__(graph, n, data_type)

    def compute(self, n: Any) -> Any:
        """Ones on the diagonal."""
        return np.eye(self.n, dtype=self.data_type)

    def get_shape(self) -> Shape:
        """Square."""
        return (self.n, self.n)


@maker("range")
class Range(_OfSize):
    """The integers below a size."""

    def __init__(self, graph: OperatorGraph, n: Any, data_type: Any = i64) -> None:
        super().__init__(graph, n, data_type)

    def compute(self, n: Any) -> Any:
        """0, 1, 2, ..."""
        return np.arange(self.n, dtype=self.data_type)

    def get_shape(self) -> Shape:
        """One axis."""
        return (self.n,)


@maker("size")
class Size(ConstantOperator):
    """The length of an axis of a node, which has no derivative."""

    def __init__(self, graph: OperatorGraph, node: GraphNode, axis: int = 0) -> None:
        super().__init__(graph, i64)
        self.of = [graph.as_node(node)]
        self.axis = axis
        self.n = self.of[0].shape[axis]

    def compute(self, value: Any) -> Any:
        """The length."""
        return np.int64(np.shape(value)[self.axis])

    def get_shape(self) -> Shape:
        """A scalar."""
        return ()

    def get_arguments(self) -> list[GraphNode]:
        """The node."""
        return list(self.of)

    def copy_to(self, graph: OperatorGraph, ancestors: Sequence[GraphNode]) -> Any:
        """The operator on another node."""
        return self._copied(graph, of=self._renamed(self.of, ancestors))

    def get_params(self) -> tuple[Any, ...]:
        """The axis."""
        return (self.axis,)


def _named_input(cls: Any) -> Callable[..., GraphNode]:
    def make(graph: OperatorGraph, *operands: Any, name: str = "", **params: Any) -> GraphNode:
        node = graph.add(cls(graph, *operands, name=name, **params))
        node.name = name or None
        return node

    return make


MAKERS["input"] = _named_input(Input)
MAKERS["shared"] = _named_input(Shared)

# ---- logical ------------------------------------------------------------------------------------


def _logical(base: type, name: str, function: Callable[..., Any], doc: str) -> type:
    def compute(self: AbstractOperator, *values: Any) -> Any:
        return function(*values)

    compute.__doc__ = doc
    body = {"__doc__": doc, "__module__": __name__, "elementary": True, "compute": compute}
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().replace("is_na_n", "is_nan")
    return maker(words)(type(name, (base,), body))


LogicalNot = _logical(LogicalUnary, "LogicalNot", np.logical_not, "True where the parent is False.")
IsNaN = _logical(LogicalUnary, "IsNaN", np.isnan, "True where the parent is NaN.")
IsInf = _logical(LogicalUnary, "IsInf", np.isinf, "True where the parent is infinite.")
Less = _logical(LogicalBinary, "Less", np.less, "x < y.")
LessEqual = _logical(LogicalBinary, "LessEqual", np.less_equal, "x <= y.")
Greater = _logical(LogicalBinary, "Greater", np.greater, "x > y.")
GreaterEqual = _logical(LogicalBinary, "GreaterEqual", np.greater_equal, "x >= y.")
Equal = _logical(LogicalBinary, "Equal", np.equal, "x == y.")
NotEqual = _logical(LogicalBinary, "NotEqual", np.not_equal, "x != y.")
LogicalAnd = _logical(LogicalBinary, "LogicalAnd", np.logical_and, "Both.")
LogicalOr = _logical(LogicalBinary, "LogicalOr", np.logical_or, "x or y.")


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

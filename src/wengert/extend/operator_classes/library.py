"""Operators without a gradient: inputs, constants, logic.

    inputs       Input Shared
    constants    ConstantValue Eye Range Size
    logical      LogicalNot IsNaN IsInf Less LessEqual Greater GreaterEqual Equal NotEqual
                 LogicalAnd LogicalOr

Those with a gradient are in differentiable_operators.py.  For each class OperatorGraph has a method
that creates a node, with the name of the class in snake case.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.spec import Shape, spec_of
from wengert.errors import OperandError, ShapeError, at, user_line

from .graph import MAKERS, GraphNode, OperatorGraph
from .operator import (
    AbstractOperator,
    ConstantOperator,
    InputOperator,
    LogicalBinary,
    LogicalUnary,
    f64,
    i64,
)

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

__all__ = """
    ConstantValue Equal Eye Greater GreaterEqual Input IsInf IsNaN Less LessEqual LogicalAnd
    LogicalNot LogicalOr NotEqual Range Shared Size
""".split()

"""Operators of the graph style as operations on tensors.

    OperatorNode        an operator, for the shapes of its parents, as an operation
    OperatorOperation   a class of operators, with an OperatorNode for all shapes of operands

The derivative rule is a graph: inputs, a copy of the operator on them, and the nodes that its
`get_parent_grad` builds.  On tensors the graph is recorded, so it can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.handle import describe

from ..style_adapter import UserOperation, is_written_out, name_in_module, params_key
from .graph import LINE_OF, MAKERS, OperatorGraph
from .operator import AbstractOperator, LogicalOperator, OrphanOperator
from .protocol import Operator


def node_of_operator(operator: Operator) -> OperatorNode:
    """The operator as an operation, created once."""
    line = operator.__dict__.get("_line")
    if line is None or line.operator is not operator:  # a copy has the operation of the original
        line = operator.__dict__["_line"] = OperatorNode(operator)
    return line


LINE_OF.append(node_of_operator)


class OperatorNode(UserOperation):
    """An operator, for the shapes of its parents, as an operation on values."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.rule: Callable[..., Any] | None = None
        name = name_in_module(type(operator))
        super().__init__(operator.compute, name, vjp=self.contributions)
        self.discrete = isinstance(operator, LogicalOperator | OrphanOperator)

    def contributions(self, t: Any, out: Any, *values: Any) -> list[Any]:
        """Cotangents of the parents, None for the arguments."""
        if self.rule is None:
            self.rule = gradient_function(self.operator)
        bars = self.rule(t, out, *values)
        return bars + [None] * (len(values) - len(bars))


def gradient_function(operator: Operator) -> Callable[..., Any]:
    """``(t, out, *values) -> gradients of the parents``, computed by a graph."""
    graph = OperatorGraph()
    inputs = {a: MAKERS["input"](graph, a.shape, a.data_type) for a in operator.get_ancestors()}
    mine = graph.add(operator.copy_to(graph, list(inputs.values())))
    t = MAKERS["input"](graph, mine.shape, mine.data_type)
    bars: list[Any] = []
    for i, p in enumerate(mine.parents):
        bar = None
        if p.is_differentiable:
            bar = mine.operator.get_parent_grad(t, i)
            bar = graph.fit(bar, p, f"get_parent_grad of {operator.name}", operator.where)
        bars.append(bar)
    operands = [inputs[a] for a in operator.operands()]
    live = [b for b in bars if b is not None]

    def rule(t_value: Any, out: Any, *values: Any) -> list[Any]:
        feeds = {**dict(zip(operands, values, strict=True)), mine: out, t: t_value}
        found = iter(graph.evaluate(live, feeds))
        return [None if b is None else next(found) for b in bars]

    return rule


class OperatorOperation(UserOperation):
    """A class of operators as an operation: ``op(x, ..., **parameters)``."""

    def __init__(self, cls: type[AbstractOperator]) -> None:
        self.cls = cls
        super().__init__(self._value, name_in_module(cls), vjp=self._contributions)
        self.discrete = issubclass(cls, LogicalOperator | OrphanOperator)
        self.__doc__ = cls.__doc__
        self._lines: dict[Any, OperatorNode] = {}

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Apply the operator to values; predefined operators are traced as NumPy functions."""
        if is_written_out(self.cls, args):
            return self._value(*args, **params)
        return super().__call__(*args, **params)

    def line(self, values: Sequence[Any], params: Mapping[str, Any]) -> OperatorNode:
        """The operation for operands of these shapes and dtypes."""
        specs = [describe(v) for v in values]
        key = (tuple((s.shape, s.dtype) for s in specs), params_key(params))
        line = self._lines.get(key)
        if line is None:
            graph = OperatorGraph()
            nodes = [MAKERS["input"](graph, s.shape, s.dtype) for s in specs]
            node = graph.add(self.cls(graph, *nodes, **params))
            line = self._lines[key] = node_of_operator(node.operator)
        return line

    def _value(self, *values: Any, **params: Any) -> Any:
        values = tuple(v if hasattr(v, "dtype") else np.asarray(v)[()] for v in values)
        return self.line(values, params).operator.compute(*values)

    def _contributions(self, t: Any, out: Any, *values: Any, **params: Any) -> list[Any]:
        return self.line(values, params).contributions(t, out, *values)


__all__ = ["OperatorNode", "OperatorOperation", "node_of_operator"]

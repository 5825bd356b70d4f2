"""Predefined behaviors, registered by name.

    add sub mul div neg      with the operators of T
    exp log tanh sigmoid     the registered operations; Python floats for Python floats
    mse matmul               on arrays

Values and derivatives are those of the registered operations.  Arithmetic behaviors use only the
operators of T, so they support floats, fractions, arrays, tensors and user-defined classes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.op import lookup

from .behavior import Behavior, BehaviorNode, FromFunction, register_behavior

Nodes = Sequence[BehaviorNode[Any]]


class Pointwise(Behavior[Any]):
    """A function of the values of the inputs, with a contribution to each.

    Parameters
    ----------
    label : str
        Name in messages.
    value : callable
        ``value(*operands)``.
    contributions : callable
        ``contributions(t, out, *operands)`` returns a tuple, one entry for each operand.
    """

    def __init__(
        self,
        label: str,
        value: Callable[..., Any],
        contributions: Callable[..., tuple[Any, ...]],
    ) -> None:
        self.label = label
        self.value = value
        self.contributions = contributions

    @property
    def name(self) -> str:
        """The module and the label."""
        return f"{__name__}.{self.label}"

    def forward(self, nodes: Nodes, curr_node_idx: int) -> Any:
        """The value of the function."""
        return self.value(*[nodes[i].output() for i in nodes[curr_node_idx].inputs()])

    def backward(self, nodes: Nodes, curr_node_idx: int) -> None:
        """Write the contributions."""
        node = nodes[curr_node_idx]
        operands = [nodes[i].output() for i in node.inputs()]
        bars = self.contributions(node.grad(), node.output(), *operands)
        for i, bar in zip(node.inputs(), bars, strict=True):
            nodes[i].add_grad(bar)


def _like(x: Any, value: Any) -> Any:
    return float(value) if type(x) is float else value


def _mse(x: Any, y: Any) -> Any:
    return np.mean((x - y) ** 2)


def _mse_back(t: Any, out: Any, x: Any, y: Any) -> tuple[Any, Any]:
    bar = t * (2.0 / np.size(x - y)) * (x - y)
    return bar, -bar


def _registered(operation: str) -> Callable[..., tuple[Any, ...]]:
    """The contributions of a registered operation whose rules use arithmetic only."""
    rules = lookup(operation).rules  # type: ignore[attr-defined]
    return lambda t, out, *operands: tuple([rule(t, out, *operands) for rule in rules])


def _function(operation: str) -> tuple[Callable[..., Any], Callable[..., tuple[Any, ...]]]:
    """Value and contribution of a registered unary operation."""
    op: Any = lookup(operation)
    (rule,) = op.rules

    def contribution(t: Any, out: Any, x: Any) -> tuple[Any]:
        t, out = (np.float64(v) if type(v) is float else v for v in (t, out))
        return (_like(x, rule(t, out, x)),)

    return lambda x: _like(x, op(x)), contribution


LIBRARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (operator.add, _registered("add")),
    "sub": (operator.sub, _registered("subtract")),
    "mul": (operator.mul, lambda t, out, x, y: (t * y, x * t)),  # T need not commute
    "div": (operator.truediv, _registered("divide")),
    "neg": (operator.neg, _registered("negative")),
    **{name: _function(name) for name in ("exp", "log", "tanh", "sigmoid")},
    "mse": (_mse, _mse_back),
}

for _name, (_value, _contributions) in LIBRARY.items():
    register_behavior(_name, Pointwise(_name, _value, _contributions))
register_behavior("matmul", FromFunction(np.matmul))

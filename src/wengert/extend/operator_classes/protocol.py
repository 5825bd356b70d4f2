"""The interface of operators that a graph uses.

    NodeType    what the value of a node depends on
    Operator    the methods that a graph calls; `AbstractOperator` implements them

The graph depends on this protocol only, and operators depend on the graph, so that there is no
import cycle.
"""

# ruff: noqa: D102  (documented in AbstractOperator)

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

from wengert._engine.core.spec import Shape


class NodeType(StrEnum):
    """What the value of a node depends on."""

    CONSTANT = "CONSTANT"
    CONSTANT_DERIVED = "CONSTANT_DERIVED"
    INPUT = "INPUT"
    INPUT_DERIVED = "INPUT_DERIVED"
    INPUT_DERIVED_NON_DIFF = "INPUT_DERIVED_NON_DIFF"

    @property
    def is_differentiable(self) -> bool:
        """Whether the node can have a gradient."""
        return self in (NodeType.INPUT, NodeType.INPUT_DERIVED)

    @property
    def depends_on_input(self) -> bool:
        """Whether the value depends on an input."""
        return self not in (NodeType.CONSTANT, NodeType.CONSTANT_DERIVED)


class Operator(Protocol):
    """The operator of a node."""

    graph: Any
    where: str
    commutative: bool

    @property
    def name(self) -> str: ...

    def compute(self, *values: Any) -> Any: ...

    def copy_to(self, graph: Any, ancestors: Sequence[Any]) -> Operator: ...

    def get_shape(self) -> Shape: ...

    def get_data_type(self) -> np.dtype[Any]: ...

    def get_node_type(self) -> NodeType: ...

    def get_grad_level(self) -> int: ...

    def get_parents(self) -> list[Any]: ...

    def get_arguments(self) -> list[Any]: ...

    def get_ancestors(self) -> list[Any]: ...

    def get_params(self) -> tuple[Any, ...]: ...

    def get_parent_grad(self, my_grad: Any, index: int) -> Any: ...

    def generate_gradients(self, messages: Any) -> None: ...

    def operands(self) -> list[Any]: ...

    def identity(self) -> tuple[Hashable, ...]: ...

    def equals(self, other: Operator) -> bool: ...

"""Operator classes: typed nodes of a symbolic graph.

operator.py                  AbstractOperator and its hierarchy
protocol.py                  Operator: the interface of operators that a graph uses; NodeType
graph.py                     OperatorGraph: gradients are new nodes of the same graph
library.py                   inputs, constants, logic; operators with a gradient
shape_operators.py           shape operators and selection; Call: any differentiable function
as_operation.py              operators of this style as operations on tensors
"""

from . import library, operator, shape_operators
from .library import *  # noqa: F403 - its `__all__`
from .operator import *  # noqa: F403 - its `__all__`
from .shape_operators import *  # noqa: F403 - its `__all__`

__all__ = [
    *library.__all__,
    *operator.__all__,
    *shape_operators.__all__,
]

"""User-defined operations in five styles; docs/extend.md compares them.

behaviors/             Behavior: values and gradients by node index; BehaviorGraph
operator_classes/      AbstractOperator and its hierarchy on a symbolic graph; OperatorGraph
primitives.py          @primitive, @vjp: a function and its rule
backward_decorator.py  @backward: a method and a gradient by name
op_classes/            Op: adjoints (deriv), and transformers that run them
style_adapter.py       common parts of the five styles; operands without a shape or dtype: strings,
                       None, objects
operation_lookup.py    as_operation: an operation of any style, on tensors
traced_primitives.py   primitives while tracing

The functions elementwise, linear, reduction, contraction and opaque define native operations.
Operations of all styles can be combined in one expression, and can be differentiated to any order
if their rules use differentiable operations.
"""

from wengert._engine.core.lazy_import import public_dir
from wengert._engine.kinds.contraction import contraction
from wengert._engine.kinds.elementwise import elementwise
from wengert._engine.kinds.linear_map import linear
from wengert._engine.kinds.opaque import opaque
from wengert._engine.kinds.reduction import reduction

from . import behaviors, op_classes, operator_classes
from .backward_decorator import backward, grad_compute, gradients, in_class
from .behaviors.behavior import (
    Behavior,
    BehaviorNode,
    FromFunction,
    behavior_named,
    register_behavior,
)
from .behaviors.graph import BehaviorGraph, ComputationGraph, Index
from .op_classes.op import Op, constant, deriv, placeholder, variable
from .op_classes.transformers import Transformed, Transformer, make_transformer, transformer_choices
from .operation_lookup import as_operation
from .operator_classes.graph import GraphNode, OperatorGraph
from .operator_classes.operator import (
    AbstractOperator,
    BinaryOperator,
    ConstantOperator,
    InputOperator,
    LogicalBinary,
    LogicalOperator,
    LogicalUnary,
    NaryOperator,
    NodeType,
    OrphanOperator,
    UnaryOperator,
)
from .primitives import jvp, primitive, vjp

__all__ = [
    "AbstractOperator",
    "Behavior",
    "BehaviorGraph",
    "BehaviorNode",
    "BinaryOperator",
    "ComputationGraph",
    "ConstantOperator",
    "FromFunction",
    "GraphNode",
    "Index",
    "InputOperator",
    "LogicalBinary",
    "LogicalOperator",
    "LogicalUnary",
    "NaryOperator",
    "NodeType",
    "Op",
    "OperatorGraph",
    "OrphanOperator",
    "Transformed",
    "Transformer",
    "UnaryOperator",
    "as_operation",
    "backward",
    "behavior_named",
    "behaviors",
    "constant",
    "contraction",
    "deriv",
    "elementwise",
    "grad_compute",
    "gradients",
    "in_class",
    "jvp",
    "linear",
    "make_transformer",
    "op_classes",
    "opaque",
    "operator_classes",
    "placeholder",
    "primitive",
    "reduction",
    "register_behavior",
    "transformer_choices",
    "variable",
    "vjp",
]

__dir__ = public_dir(__name__)

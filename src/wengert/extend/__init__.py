"""Five ways to write an operation, and the native one: six doors into one room.

    behaviours.py   Behavior: forward and backward over a list of nodes         BehaviorGraph
    operators.py    AbstractOperator and its hierarchy on a symbolic graph      OperatorGraph
    primitives.py   @primitive, @vjp: a function and its rule; traced.py these in graphs,
                    static_operands.py their strings and other operands that are no numbers
    decorated.py    @backward: a method and a gradient by name
    ops.py          Op: adjoints, and transformers that run them                deriv
    native          elementwise, linear, reduction, contraction, opaque         kinds/

adapter.py is what the five have in common, operations.py recognises what was written in any.  The
graphs of the first two and the transformers of the fifth, and what is ready to use in each:

    behaviour_graph.py, behaviour_library.py
    operator_graph.py, operator_lines.py, operator_library.py, operator_arithmetic.py,
    operator_shapes.py
    transformers.py, op_library.py; transformed.py a transformer as a backend

An operation in any style is used in expressions with all others, and differentiates to any order
when its rule is written in differentiable operations.  docs/extend.md compares them.
"""

from wengert._engine.core.lazy_import import public_dir
from wengert._engine.kinds.contraction import contraction
from wengert._engine.kinds.elementwise import elementwise
from wengert._engine.kinds.linear_map import linear
from wengert._engine.kinds.opaque import opaque
from wengert._engine.kinds.reduction import reduction

from . import behaviour_library, op_library, operator_arithmetic, operator_shapes
from .behaviour_graph import BehaviorGraph, ComputationGraph, Index
from .behaviours import Behavior, BehaviorNode, FromFunction, behavior_named, register_behavior
from .decorated import backward, grad_compute, gradients, in_class
from .operations import as_operation
from .operator_graph import GraphNode, OperatorGraph
from .operators import (
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
from .ops import Op, constant, deriv, placeholder, variable
from .primitives import jvp, primitive, vjp
from .transformed import Transformed
from .transformers import Transformer, make_transformer, transformer_choices

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
    "behaviour_library",
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
    "op_library",
    "opaque",
    "operator_arithmetic",
    "operator_shapes",
    "placeholder",
    "primitive",
    "reduction",
    "register_behavior",
    "transformer_choices",
    "variable",
    "vjp",
]

__dir__ = public_dir(
    __name__, "behaviour_library", "op_library", "operator_library", "operators", "transformers"
)

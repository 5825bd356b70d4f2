"""Five ways to write an operation, and the native one: six doors into one room."""

from ..kinds.contraction import contraction
from ..kinds.elementwise import elementwise
from ..kinds.linear import linear
from ..kinds.opaque import opaque
from ..kinds.reduction import reduction
from . import behaviour_library as _behaviour_library  # registers by name  # noqa: F401
from .behaviour_graph import BehaviorGraph, ComputationGraph, Index
from .behaviours import (
    Behavior,
    BehaviorNode,
    behavior_named,
    register_behavior,
)
from .decorated import backward, grad_compute, gradients
from .primitives import jvp, primitive, vjp
from . import operator_arithmetic as _a, operator_lines as _l
from .operators import *
from .operator_graph import *
from .operator_library import *
from .operator_arithmetic import *
from .operator_lines import OperatorOperation

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

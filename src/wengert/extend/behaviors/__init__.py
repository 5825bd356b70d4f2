"""Behaviors: operations as objects that compute values and gradients by node index.

behavior.py  Behavior: forward and backward over a list of nodes
graph.py     BehaviorGraph: a list of nodes, built once and run again when leaves change
library.py   predefined behaviors, registered by name
"""

from . import library
from .behavior import Behavior, BehaviorNode, FromFunction, behavior_named, register_behavior
from .graph import BehaviorGraph, ComputationGraph, Index

__all__ = [
    "Behavior",
    "BehaviorGraph",
    "BehaviorNode",
    "ComputationGraph",
    "FromFunction",
    "Index",
    "behavior_named",
    "library",
    "register_behavior",
]

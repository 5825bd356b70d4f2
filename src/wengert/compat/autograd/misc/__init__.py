"""Helpers of autograd: flattening, optimizers, fixed points.

flatten.py       containers to vectors and back
optimizers.py    sgd, rmsprop, adam
fixed_points.py  fixed_point, differentiated implicitly
tracers.py       const_graph: a function run as the graph of its first call
"""

from .flatten import flatten
from .tracers import const_graph

__all__ = ["const_graph", "flatten"]

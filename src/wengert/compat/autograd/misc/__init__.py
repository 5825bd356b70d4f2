"""Misc: what autograd keeps beside its derivatives.

flatten.py       containers as one vector, and back
optimizers.py    sgd, rmsprop, adam
fixed_points.py  fixed_point, differentiated without its steps
"""

from .flatten import flatten

__all__ = ["flatten"]

"""Helpers of autograd: flattening, optimizers, fixed points.

flatten.py       containers to vectors and back
optimizers.py    sgd, rmsprop, adam
fixed_points.py  fixed_point, differentiated implicitly
"""

from .flatten import flatten

__all__ = ["flatten"]

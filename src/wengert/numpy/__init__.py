"""NumPy's names, for arrays and tensors alike.

Each function takes plain arrays and gives plain arrays, exactly NumPy's; with a tensor among the
arguments it gives a tensor.
"""

import sys

import numpy as np

from ..ops.circular import cos, sin
from ..ops.exponential import exp, log
from ..tensor.protocols import FUNCTIONS, NAMESPACE
from ..ops.reductions import sum as _sum
FUNCTIONS[np.sum] = lambda x, axis=None, **k: _sum(x, axis=axis, **k)
NAMESPACE.append(sys.modules[__name__])
from ..ops.choice import where
FUNCTIONS[np.where]=where

"""Checks anyone can use: derivatives of a function, all laws of an operation.

differences.py   numerical derivatives of the forward function, by extrapolation
grads.py         check_grads: both modes, any order, of any function
laws.py          one function for each law that an operation must keep
ops.py           check_op: all laws of one operation
traced.py        check_traced: a function and its graph
whole_range.py   more of them, for elementwise operations: tails, complex numbers, dtypes
batching_laws.py  one more: many rows at once are what a loop gives
traced_laws.py   more of them, for graphs: values, both modes of derivative, levels
symbolic_laws.py  one more: sizes with names
singular_laws.py  and more: singular points, and what was not chosen
oracles.py       mpmath as an outside witness of elementwise values
"""

from . import batching_laws as _batching_laws  # enters its law  # noqa: F401
from . import singular_laws as _singular_laws  # enters its laws  # noqa: F401
from . import symbolic_laws as _symbolic_laws  # enters its law  # noqa: F401
from . import traced_laws as _traced_laws  # enters its laws  # noqa: F401
from . import whole_range as _whole_range  # enters its laws  # noqa: F401
from .grads import check_grads
from .ops import OpReport, check_op
from .traced import check_traced

__all__ = ["OpReport", "check_grads", "check_op", "check_traced"]

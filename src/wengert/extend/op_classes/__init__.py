"""Op classes: operations with adjoints, and transformers that run them.

op.py            Op, deriv: expressions and their derivatives by adjoints
library.py       predefined ops, and Python's operators on ops
transformers.py  Transformer: runs a graph of ops; Transformed: a transformer as a backend
"""

from . import library
from .library import *  # noqa: F403 - its `__all__`

__all__ = [*library.__all__]

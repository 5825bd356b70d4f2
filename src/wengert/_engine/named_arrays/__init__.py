"""Named axes: arrays whose axes are addressed by name.

axis_names.py   names, and how those of several operands are aligned
named_array.py  Named: an array or a tensor with a name for each axis
functions.py    dot, concatenate, stack, where

A Named holds a plain array or a tensor; values are computed by the same operations, so derivatives,
graphs and tracing are the same.
"""

from wengert._engine.core.lazy_import import public_dir

from .functions import concatenate, dot, stack, where
from .named_array import Named, named

__all__ = ["Named", "concatenate", "dot", "named", "stack", "where"]

__dir__ = public_dir(__name__)

"""Named axes: arrays whose axes are addressed by name.

named_array.py  Named: an array or a tensor with a name for each axis; names, and the alignment of
                several operands
functions.py    dot, concatenate, stack, where

A `Named` contains a plain array or a tensor, and applies operations to it, so derivatives, graphs
and tracing work unchanged.
"""

from wengert._engine.core.lazy_import import public_dir

from .functions import concatenate, dot, stack, where
from .named_array import Named, named

__all__ = ["Named", "concatenate", "dot", "named", "stack", "where"]

__dir__ = public_dir(__name__)

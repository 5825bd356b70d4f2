"""Boxes: the class of the values in a function that is differentiated.

Programs import it for ``isinstance(x, ArrayBox)``.

    ArrayBox    Tensor; autograd has a class for each type of value
"""

from ..tracer import Box

ArrayBox = Box

__all__ = ["ArrayBox"]

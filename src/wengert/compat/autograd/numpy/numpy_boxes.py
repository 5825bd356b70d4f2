"""Boxes: the class of what stands for an array in a function that is differentiated.

Programs import it to ask ``isinstance(x, ArrayBox)``.

    ArrayBox    autograd has one for each type of value; here all are tensors
"""

from ..tracer import Box

ArrayBox = Box

__all__ = ["ArrayBox"]

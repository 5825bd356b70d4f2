"""Box, getval, isbox: the values in a function that is differentiated.

In autograd they are Boxes, with a class for each type of value; here all are Tensors.

    Box, isbox, getval
    primitive, notrace_primitive, register_notrace    primitives.py
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, value_of
from wengert._engine.tensor import Tensor

from .primitives import notrace_primitive, primitive, register_notrace

Box = Tensor

__all__ = ["Box", "getval", "isbox", "notrace_primitive", "primitive", "register_notrace"]


def isbox(x: Any) -> bool:
    """Whether `x` is a value that is differentiated."""
    return isinstance(x, Handle)


def getval(x: Any) -> Any:
    """The plain value, also of tensors in containers, without derivative.

    While a graph is built there are no values, and it returns a detached tensor.
    """
    return pytree.tree_map(value_of, x)

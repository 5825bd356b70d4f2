"""Box, getval, isbox: the arguments of a function that is differentiated.

In autograd that is a Box around a value, of a class for each type; here it is a Tensor, whatever
the type.

    Box, isbox, getval
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, value_of
from wengert._engine.tensor import Tensor

Box = Tensor

__all__ = ["Box", "getval", "isbox"]


def isbox(x: Any) -> bool:
    """Whether `x` stands for a value that is differentiated."""
    return isinstance(x, Handle)


def getval(x: Any) -> Any:
    """The plain value, also of what is inside of containers; no derivative passes.

    While a graph is built there is none, and what comes back is a tensor that no derivative passes.
    """
    return pytree.tree_map(value_of, x)

"""Python's builtins under the names that programs for autograd import.

isinstance, type    for a tensor, those of its value
dict, list, tuple   Python's own: containers of tensors need no special class
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, is_traced

dict = builtins.dict
list = builtins.list
tuple = builtins.tuple

__all__ = ["dict", "isinstance", "list", "tuple", "type"]


def isinstance(x: Any, kinds: Any) -> bool:
    """Python's isinstance, for the value of a tensor."""
    return builtins.isinstance(x, kinds) or issubclass(type(x), kinds)


def type(x: Any) -> Any:
    """Python's type, for the value of a tensor; single numbers are NumPy scalars."""
    if not builtins.isinstance(x, Handle):
        return builtins.type(x)
    if is_traced(x):
        spec = x.node.spec
        return np.ndarray if spec.shape else spec.dtype.type
    return builtins.type(x.node.value)

"""Whether a block can use traced values.

Its free variables are searched, through containers, attributes, closures and bound arguments.

can_reach_traced    whether some of the values are traced
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, is_traced

from ..state import UNBOUND, cell_value

_MAX_OBJECTS = 10_000  # objects to examine; if there are more, the result is True
_ATOMIC: tuple[type, ...] = (
    str, bytes, int, float, complex, np.generic, np.ndarray, type, ModuleType, range, slice,
    BuiltinFunctionType, np.ufunc, np.dtype, type(None), type(Ellipsis),
)  # fmt: skip


def can_reach_traced(block: Callable[..., Any]) -> bool:
    """Whether a block refers to traced values, or to objects that may contain some."""
    stack: list[Any] = [block]
    seen: set[int] = set()
    while stack:
        x = stack.pop()
        if id(x) in seen or x is UNBOUND:
            continue
        seen.add(id(x))
        if len(seen) > _MAX_OBJECTS:
            return True
        if isinstance(x, Handle):
            if is_traced(x):
                return True
        elif isinstance(x, FunctionType):
            stack += [cell_value(c) for c in x.__closure__ or ()]
            stack += x.__defaults__ or ()
        elif isinstance(x, MethodType):
            stack += [x.__func__, x.__self__]
        elif isinstance(x, functools.partial):
            stack += [x.func, *x.args, *x.keywords.values()]
        elif isinstance(x, list | tuple | set | frozenset):
            stack += x
        elif isinstance(x, dict):
            stack += x.values()
        elif not isinstance(x, _ATOMIC):
            attributes = getattr(x, "__dict__", None)
            if attributes is None:
                return True
            stack += attributes.values()
    return False

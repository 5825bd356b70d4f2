"""Reach: whether the values that a block may use include traced ones.

can_reach_traced    whether some are

Objects are searched through their containers, attributes and closures.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, is_traced

from ..state import UNBOUND, cell_value

_OBJECTS_SEARCHED = 10_000  # examined objects; with more the result is True
_PLAIN: tuple[type, ...] = (
    str, bytes, int, float, complex, np.generic, np.ndarray, type, ModuleType, range, slice,
    BuiltinFunctionType, np.ufunc, np.dtype, type(None), type(Ellipsis),
)  # fmt: skip


def can_reach_traced(block: Callable[..., Any]) -> bool:
    """Whether the variables of a block contain traced values, or objects that may."""
    waiting: list[Any] = [block]
    seen: set[int] = set()
    while waiting:
        x = waiting.pop()
        if id(x) in seen or x is UNBOUND:
            continue
        seen.add(id(x))
        if len(seen) > _OBJECTS_SEARCHED:
            return True
        if isinstance(x, Handle):
            if is_traced(x):
                return True
        elif isinstance(x, FunctionType):
            waiting += [cell_value(c) for c in x.__closure__ or ()]
            waiting += x.__defaults__ or ()
        elif isinstance(x, MethodType):
            waiting += [x.__func__, x.__self__]
        elif isinstance(x, functools.partial):
            waiting += [x.func, *x.args, *x.keywords.values()]
        elif isinstance(x, list | tuple | set | frozenset):
            waiting += x
        elif isinstance(x, dict):
            waiting += x.values()
        elif not isinstance(x, _PLAIN):
            fields = getattr(x, "__dict__", None)
            if fields is None:
                return True
            waiting += fields.values()
    return False

"""Copies of functions.

copy_metadata   a function with the attributes of another one
with_overlay         the same code with exchanged globals
"""

from __future__ import annotations

from types import FunctionType

from .overlay import overlay


def copy_metadata(made: FunctionType, fun: FunctionType) -> FunctionType:
    """A function with the attributes of another one."""
    made.__kwdefaults__ = fun.__kwdefaults__
    made.__qualname__, made.__module__, made.__doc__ = fun.__qualname__, fun.__module__, fun.__doc__
    if fun.__dict__:
        made.__dict__.update(fun.__dict__)
    made.__wrapped__ = fun  # type: ignore[attr-defined]
    return made


def with_overlay(fun: FunctionType) -> FunctionType:
    """The same code with exchanged globals."""
    made = FunctionType(
        fun.__code__, overlay(fun.__globals__), fun.__name__, fun.__defaults__, fun.__closure__
    )
    return copy_metadata(made, fun)

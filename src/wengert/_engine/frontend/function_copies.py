"""Copies of functions.

copy_metadata   give a copy the name, docstring and other attributes of the function
with_overlay    the same code, with globals in which modules are replaced
"""

from __future__ import annotations

from types import FunctionType

from .overlay import overlay


def copy_metadata(copy: FunctionType, fun: FunctionType) -> FunctionType:
    """Give `copy` the attributes of `fun`, and return it."""
    copy.__kwdefaults__ = fun.__kwdefaults__
    copy.__qualname__, copy.__module__, copy.__doc__ = (
        fun.__qualname__,
        fun.__module__,
        fun.__doc__,
    )
    if fun.__dict__:
        copy.__dict__.update(fun.__dict__)
    copy.__wrapped__ = fun  # type: ignore[attr-defined]
    return copy


def with_overlay(fun: FunctionType) -> FunctionType:
    """The same code, with globals in which modules are replaced."""
    copy = FunctionType(
        fun.__code__, overlay(fun.__globals__), fun.__name__, fun.__defaults__, fun.__closure__
    )
    return copy_metadata(copy, fun)

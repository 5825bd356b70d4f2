"""Conversion of a function, a method or another callable.

    convert    the callable to run in place of the user's

Functions of libraries are not converted: they run as they are.
"""

from __future__ import annotations

import functools
from types import FunctionType, MethodType
from typing import Any

from wengert._engine.core.library_code import is_library_function

from .overlay import Overlay


def convert(fun: Any) -> Any:
    """The callable to run in place of `fun` inside of a transformation.

    Functions of libraries, and callables of unknown classes, are returned as they are.
    """
    if isinstance(fun, FunctionType):
        return _function(fun)
    if isinstance(fun, MethodType):
        inner = convert(fun.__func__)
        return fun if inner is fun.__func__ else MethodType(inner, fun.__self__)
    if type(fun) is functools.partial:
        inner = convert(fun.func)
        return fun if inner is fun.func else functools.partial(inner, *fun.args, **fun.keywords)
    return fun


def _function(fun: FunctionType) -> FunctionType:
    if type(fun.__globals__) is Overlay or is_library_function(fun):
        return fun
    made = FunctionType(
        fun.__code__, Overlay(fun.__globals__), fun.__name__, fun.__defaults__, fun.__closure__
    )
    made.__kwdefaults__ = fun.__kwdefaults__
    functools.update_wrapper(made, fun)
    return made

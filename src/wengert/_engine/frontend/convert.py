"""How a function, a method or another callable is converted.

    convert    the callable to run instead of the user's

In a trace, a function with loops, branches or calls is rewritten from its source.  Otherwise its
own code runs, with globals in which numpy, scipy and math are replaced; only if it calls functions
that are not looked up in its globals (arguments, attributes, free variables), or assigns elements
of arrays that it computes, are its calls and these assignments rewritten.  Library functions, and
functions that need none of this, are returned unchanged.
"""

from __future__ import annotations

import functools
import inspect
from itertools import islice
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.conversion_hook import (
    is_library_class,
    is_library_function,
    is_library_module,
)
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.recording import current_trace
from wengert._engine.core.trace_notes import note, note_not_converted

from .names import note_outer_assignments
from .namespaces import REPLACED_MODULES, has_replacement, replacement
from .overlay import Overlay, with_overlay, writing_globals_back
from .source import CodeFacts, code_facts
from .state import Speculation

if TYPE_CHECKING:
    from . import rewritten_functions as rewriting
else:  # for functions with loops, branches and calls
    rewriting = LazyModule("wengert._engine.frontend.rewritten_functions")

_ELEMENTS_EXAMINED = 64  # elements of a container that are examined
# Types of objects that contain no functions to be converted (`_may_contain_functions`).
_WITHOUT_FUNCTIONS = frozenset(
    (ModuleType, FunctionType, BuiltinFunctionType, np.ufunc, np.ndarray, type(None))
)
# Built-in functions that have replacements in rewritten code.
_CONTAINERS = (list, tuple, dict)
_REPLACED_BUILTINS = frozenset(
    "all any bool enumerate filter float format int len max min range repr reversed sorted str sum "
    "zip".split()
)


def convert(fun: object) -> Any:
    """The callable to run instead of `fun` inside a transformation.

    Library functions, and callables of unknown classes, are returned unchanged.
    """
    if type(fun) is FunctionType:
        return _function(fun)
    if type(fun) is np.ufunc or type(fun) is BuiltinFunctionType:
        return replacement(fun)
    if type(fun) is MethodType:
        function = convert(fun.__func__)
        return fun if function is fun.__func__ else MethodType(function, fun.__self__)
    if type(fun) is functools.partial:
        function = convert(fun.func)
        return (
            fun if function is fun.func else functools.partial(function, *fun.args, **fun.keywords)
        )
    call_method = None if isinstance(fun, type) else inspect.getattr_static(fun, "__call__", None)
    if type(call_method) is FunctionType and not is_library_class(type(fun)):
        function = convert(call_method)
        return fun if function is call_method else MethodType(function, fun)
    return replacement(fun)


def _function(fun: FunctionType) -> FunctionType:
    tracing = current_trace() is not None
    if type(fun.__globals__) is Overlay:
        if not tracing or rewriting.is_rewritten(fun, True):
            return fun
        return rewriting.rewritten(fun, True) or fun
    if is_library_function(fun):
        return replacement(fun)  # type: ignore[no-any-return]
    facts = code_facts(fun.__code__)
    calls = facts.calls or _uses_callable_globals(fun, facts)
    rewrite_all = tracing and (
        calls
        or facts.branches
        or facts.stores
        or facts.writes_globals
        or facts.handlers
        or facts.containers  # which may be indexed by traced numbers
        or any(type(fun.__globals__.get(name)) in _CONTAINERS for name in facts.names)
        or (facts.elements and _uses_arrays(fun, facts))
        or not _REPLACED_BUILTINS.isdisjoint(facts.names)
        or "sort" in fun.__code__.co_names
    )
    if tracing and Speculation.notes() and not Speculation.is_open():
        note_outer_assignments(fun)
    fills = facts.stores and not tracing and rewriting.fills_computed_arrays(fun.__code__)
    rewrites = (
        rewrite_all
        or fills
        or calls
        or facts.writes_globals
        or facts.handlers
        or _uses_callable_variables(fun, facts)
    )
    if not rewrites and not _uses_replaced_globals(fun, facts):
        return fun
    if rewrites:
        rewritten = rewriting.rewritten(fun, rewrite_all or tracing)
        if rewritten is not None:
            return writing_globals_back(rewritten) if facts.writes_globals else rewritten
        if facts.branches:
            reason = rewriting.why_not(fun)
            note("source", f"{fun.__qualname__} is traced as it is: {reason}")
            if reason is not None:
                note_not_converted(fun.__code__, reason)
    copied = with_overlay(fun)
    return writing_globals_back(copied) if facts.writes_globals else copied


def _uses_replaced_globals(fun: FunctionType, facts: CodeFacts) -> bool:
    """Whether a function uses global objects that are replaced, or functions to be converted."""
    module = fun.__globals__
    for name in facts.names:
        x = module.get(name)
        if has_replacement(x) or (type(x) is FunctionType and not is_library_function(x)):
            return True
    return False


def _uses_callable_globals(fun: FunctionType, facts: CodeFacts) -> bool:
    """Whether a function uses global objects that are callable or may contain functions."""
    module = fun.__globals__
    for name in facts.names:
        x = module.get(name)
        if type(x) not in _WITHOUT_FUNCTIONS and _may_contain_functions(x):
            return True
    for name in facts.members:
        x = module.get(name)
        if x is not None and id(x) not in REPLACED_MODULES and not _is_library_object(x):
            return True
    return False


def _may_contain_functions(x: object, depth: int = 3) -> bool:
    """Whether an object other than a plain function is callable, or contains a callable."""
    if isinstance(x, dict | list | tuple | set | frozenset):
        contents = islice(x.values() if isinstance(x, dict) else x, _ELEMENTS_EXAMINED)
        return depth > 0 and any(
            callable(v) or _may_contain_functions(v, depth - 1) for v in contents
        )
    if isinstance(x, type):
        return not is_library_class(x)
    if type(x) is MethodType or type(x) is functools.partial:
        return True
    cls: type = type(x)
    return callable(x) and cls is not FunctionType and not is_library_class(cls)


def _is_library_object(x: object) -> bool:
    """Whether an object is a library module or class, whose attributes are not user functions."""
    if isinstance(x, ModuleType):
        return is_library_module(x)
    return isinstance(x, type) and is_library_class(x)


def _uses_arrays(fun: FunctionType, facts: CodeFacts) -> bool:
    """Whether a function refers to arrays, which it may index by traced numbers."""
    if any(type(fun.__globals__.get(name)) is np.ndarray for name in facts.names):
        return True
    cells = zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True)
    return any(name in facts.free and type(_cell_value(c)) is np.ndarray for name, c in cells)


def _uses_callable_variables(fun: FunctionType, facts: CodeFacts) -> bool:
    """Whether a function refers to callables by its free variables."""
    if facts.free:
        cells = dict(zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True))
        for name in facts.free:
            x = _cell_value(cells[name])
            if not isinstance(x, type) and (callable(x) or _is_user_object(x)):
                return True
    return False


def _is_user_object(x: object) -> bool:
    """Whether an object has a user-defined class, whose methods may need conversion."""
    cls = type(x)
    return cls.__module__ != "builtins" and not is_library_class(cls)


def _cell_value(cell: CellType) -> object:
    """The value of a variable; None if it is unbound."""
    try:
        return cell.cell_contents
    except ValueError:
        return None

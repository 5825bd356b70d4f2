"""Conversion of a function, a method or another callable.

    convert    the callable to run instead of the user's

In a trace, a function with loops, branches or calls is rewritten.  Otherwise its own code runs,
with globals in which numpy, scipy and math are exchanged; if it calls functions that these do not
reach (arguments, attributes, variables of the enclosing function), its calls are rewritten.
Functions of libraries, and functions that need none of this, are returned as they are.
"""

from __future__ import annotations

import functools
import inspect
from itertools import islice
from types import CellType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.library_code import (
    is_library_class,
    is_library_function,
    is_library_module,
)
from wengert._engine.core.recording import current_trace
from wengert._engine.core.trace_notes import note

from .code_facts import CodeFacts, code_facts
from .function_copies import with_overlay
from .namespaces import has_replacement, replacement
from .outer_assignments import note_outer_assignments
from .overlay import Overlay
from .state import Speculation

if TYPE_CHECKING:
    from . import rewritten_functions as rewriting
else:  # for functions with loops, branches and calls
    rewriting = LazyModule("wengert._engine.frontend.rewritten_functions")

_SEARCHED = 64  # elements of a container that are examined
# Functions of Python that take traced values in rewritten code.
_BUILTINS = frozenset(
    ("bool", "enumerate", "float", "int", "max", "min", "range", "reversed", "zip")
)


def convert(fun: object) -> Any:
    """The callable to run instead of `fun` inside a transformation.

    Functions of libraries, and callables of unknown classes, are returned as they are.
    """
    if type(fun) is FunctionType:
        return _function(fun)
    if type(fun) is MethodType:
        inner = convert(fun.__func__)
        return fun if inner is fun.__func__ else MethodType(inner, fun.__self__)
    if type(fun) is functools.partial:
        inner = convert(fun.func)
        return fun if inner is fun.func else functools.partial(inner, *fun.args, **fun.keywords)
    called = None if isinstance(fun, type) else inspect.getattr_static(fun, "__call__", None)
    if type(called) is FunctionType and not is_library_class(type(fun)):
        inner = convert(called)
        return fun if inner is called else MethodType(inner, fun)
    return replacement(fun)


def _function(fun: FunctionType) -> FunctionType:
    tracing = current_trace() is not None
    if type(fun.__globals__) is Overlay:
        if not tracing or rewriting.is_rewritten(fun, True):
            return fun
        return rewriting.rewritten(fun, True) or fun
    if is_library_function(fun):
        return replacement(fun)  # type: ignore[no-any-return]
    known = code_facts(fun.__code__)
    whole = tracing and (
        known.branches
        or known.calls
        or known.stores
        or known.writes_globals
        or not _BUILTINS.isdisjoint(known.names)
        or _calls_objects(fun, known)
    )
    if tracing and Speculation.notes() and not Speculation.is_open():
        note_outer_assignments(fun)
    if not whole and not _refers(fun, known):
        return fun
    if whole or known.calls or _calls_objects(fun, known) or _calls_variables(fun, known):
        found = rewriting.rewritten(fun, whole or tracing)
        if found is not None:
            return _writing_back(found) if known.writes_globals else found
        if known.branches:
            note("source", f"{fun.__qualname__} is traced as it is: {rewriting.why_not(fun)}")
    made = with_overlay(fun)
    return _writing_back(made) if known.writes_globals else made


def _writing_back(made: FunctionType) -> FunctionType:
    """A converted function whose assignments of globals reach the module when it returns."""

    @functools.wraps(made)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return made(*args, **kwargs)
        finally:
            view = made.__globals__
            assert isinstance(view, Overlay)
            view.write_back(Speculation.note_change)

    return run  # type: ignore[return-value]


def _refers(fun: FunctionType, known: CodeFacts) -> bool:
    """Whether a function refers to something that is exchanged or converted."""
    if known.calls:
        return True
    table = fun.__globals__
    for name in known.names:
        x = table.get(name)
        if has_replacement(x) or (type(x) is FunctionType and not is_library_function(x)):
            return True
    return _calls_objects(fun, known) or _calls_variables(fun, known)


def _calls_objects(fun: FunctionType, known: CodeFacts) -> bool:
    """Whether it uses global objects that are functions or contain functions."""
    table = fun.__globals__
    if any(_holds_functions(table.get(name)) for name in known.names):
        return True
    found = [table.get(name) for name in known.members]
    return any(x is not None and not _is_fixed(x) for x in found)


def _holds_functions(x: object, depth: int = 3) -> bool:
    """Whether an object other than a function may be called, or contains something callable."""
    if isinstance(x, dict | list | tuple | set | frozenset):
        inside = islice(x.values() if isinstance(x, dict) else x, _SEARCHED)
        return depth > 0 and any(callable(v) or _holds_functions(v, depth - 1) for v in inside)
    if isinstance(x, type):
        return not is_library_class(x)
    if type(x) is MethodType or type(x) is functools.partial:
        return True
    cls: type = type(x)
    return callable(x) and cls is not FunctionType and not is_library_class(cls)


def _is_fixed(x: object) -> bool:
    """Whether attributes of an object are not functions of the user."""
    if isinstance(x, ModuleType):
        return is_library_module(x)
    return isinstance(x, type) and is_library_class(x)


def _calls_variables(fun: FunctionType, known: CodeFacts) -> bool:
    """Whether it refers to functions that its globals do not reach."""
    if known.free:
        cells = dict(zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True))
        for name in known.free:
            x = _content(cells[name])
            if not isinstance(x, type) and (callable(x) or _is_users(x)):
                return True
    return False


def _is_users(x: object) -> bool:
    """Whether an object is of a class of the user, whose methods may need conversion."""
    cls = type(x)
    return cls.__module__ != "builtins" and not is_library_class(cls)


def _content(cell: CellType) -> object:
    """The value of a variable; None if it is not bound."""
    try:
        return cell.cell_contents
    except ValueError:
        return None

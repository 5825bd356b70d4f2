"""Calls and assertions of rewritten functions.

callee     the function to call instead of another one
consumed   a call of a function that is given a generator expression
assert_    an assertion
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from types import (
    BuiltinMethodType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

from wengert._engine.core import loop_rows
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, is_traced
from wengert._engine.core.library_code import is_library_class, is_library_function
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import current_trace
from wengert._engine.core.runtime_checks import RuntimeChecks
from wengert._engine.ops.casts import astype
from wengert.errors import at, user_place

from ..code_facts import code_facts
from ..namespaces import new_array, replacement
from ..outer_assignments import note_outer_assignments
from ..source import definition_of
from ..state import Speculation
from . import builtin_loops
from .branches import if_expression
from .iterables import enumerate_, range_, reversed_, zip_
from .object_changes import REPLACEMENTS, TYPE_REPLACEMENTS, check_method, returning_new
from .values import as_bool, weakly_typed

_FUNCTIONS = (FunctionType, MethodType, BuiltinMethodType, functools.partial, type)
# Modules whose functions call the classes that are passed to them.
_CALLING_CLASSES = frozenset(("builtins", "functools", "_functools", "itertools"))
# Functions and classes of Python that call no functions.
_PLAIN = frozenset(
    (
        *(abs, all, any, chr, divmod, getattr, hasattr, hash, id, isinstance, issubclass, len, ord),
        *(pow, print, repr, round, setattr, sum, complex, dict, frozenset, list, set, slice, str),
        *(tuple, type, object, functools.partial),
    )
)
# Methods of plain arrays that get tensors as arguments.
_OF_ARRAYS = frozenset(("clip", "dot", "searchsorted", "take"))


def callee(f: Any) -> Any:
    """The function to call instead of `f`."""
    cls = type(f)
    if cls is FunctionType or cls is MethodType or cls is functools.partial:
        return _REPLACEMENTS[f] if cls is FunctionType and f in _REPLACEMENTS else _of_user(f)
    if isinstance(f, type):
        return _TYPE_REPLACEMENTS.get(f) or _of_class(f)
    if cls is BuiltinMethodType:
        owner = f.__self__
        if isinstance(owner, ModuleType):
            return _REPLACEMENTS.get(f) or _of_module(f)
        if type(owner) is np.ndarray and f.__name__ in _OF_ARRAYS:
            return functools.partial(getattr(replacement(np), f.__name__), owner)
        check_method(f)
        return returning_new(f) if f.__name__ == "__new__" else f
    if isinstance(f, Handle) or cls.__module__.startswith("wengert."):
        return f
    return converted(f)


def _of_module(f: Any) -> Any:
    """A function written in C: of numpy and math exchanged, others with converted arguments."""
    found = replacement(f)
    return found if found is not f or f in _PLAIN else functools.partial(_with_converted, f)


def _of_class(cls: type) -> Any:
    found = replacement(cls)
    if found is not cls or cls in _PLAIN:
        return found
    if is_library_class(cls):
        return functools.partial(_with_converted, cls)
    made = _initializer(cls)
    if type(made) is not FunctionType or cls.__new__ is not object.__new__:
        return cls
    if type(cls).__call__ is not type.__call__ or is_library_function(made):
        return cls
    return functools.partial(_constructed, cls)


def _initializer(cls: type) -> Any:
    return getattr(cls, "__init__")  # noqa: B009  (of the class, not of its instances)


def _constructed(cls: type, *args: object, **kwargs: object) -> object:
    """An object of a user's class."""
    made: Any = object.__new__(cls)
    Speculation.note_new(made)
    converted(_initializer(cls))(made, *args, **kwargs)
    return made


def _with_converted(f: Callable[..., object], *args: object, **kwargs: object) -> object:
    """Call a function of a library, with the functions among its arguments converted.

    Classes are converted for the functions of Python that call them, as ``map(float, xs)``; to
    others they are values, as in ``np.dtype(float)``.
    """
    kinds = _FUNCTIONS if getattr(f, "__module__", None) in _CALLING_CLASSES else _FUNCTIONS[:-1]
    if any(type(a) in kinds for a in args):
        args = tuple([callee(a) if type(a) in kinds else a for a in args])
    for word, a in kwargs.items():
        if type(a) in kinds:
            kwargs[word] = callee(a)
    return f(*args, **kwargs)


def _of_user(f: Any) -> Any:
    if Speculation.notes():
        inner = f
        while isinstance(inner, MethodType | functools.partial):
            inner = inner.__func__ if isinstance(inner, MethodType) else inner.func
        if isinstance(inner, FunctionType) and not is_library_function(inner):
            note_outer_assignments(inner)
            is_own = type(inner.__globals__) is dict  # not defined in a rewritten function
            if is_own and code_facts(inner.__code__).stores and not definition_of(inner.__code__):
                Speculation.refuse(f"it calls {inner.__qualname__}, whose source is not available")
    return converted(f)


def assert_(condition: object, message: Callable[[], Any] | None) -> None:
    """An ``assert`` statement."""
    if is_traced(condition):
        text = [] if message is None else [message()]
        error = AssertionError(*text) if text else AssertionError(f"assertion{at(user_place())}")
        RuntimeChecks.add(lookup("logical_not")(as_bool(condition)), error)
        return
    if not condition:
        raise AssertionError(*([message()] if message is not None else []))


def _number(kind: Any) -> Callable[..., Any]:
    """``int``, ``float`` or ``bool`` of a value that may be traced."""

    def convert(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and is_traced(args[0]) and not kwargs:
            return _cast(args[0], kind)
        return kind(*args, **kwargs)

    return convert


def _cast(x: Any, kind: Any) -> Any:
    if x.node.spec.shape:
        sizes = [n for n in x.node.spec.shape if n != 1]
        if sizes:
            raise TypeError(f"only arrays of one element can be converted{at(user_place())}")
        x = x.reshape(())
    if kind is bool:
        return as_bool(x)
    if x.node.spec.dtype.kind == "c":
        raise TypeError(f"{kind.__name__}() of a complex number{at(user_place())}")
    return weakly_typed(astype(x, np.dtype(np.int64 if kind is int else np.float64)))


def _same(x: object) -> object:
    return x


def _least(name: str) -> Callable[..., Any]:
    """``min`` or ``max`` of numbers that may be traced."""
    python = getattr(builtins, name)

    def extreme(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], GeneratorType):
            args = (list(args[0]),)
        many = len(args) > 1 and not kwargs
        if len(args) == 1 and not kwargs and (values := _values(args[0])) is not None:
            function = builtin_loops.least if name == "min" else builtin_loops.greatest
            return builtin_loops.looped(function)(values)
        if not many or not any(is_traced(a) for a in args):
            return python(*args, **kwargs)
        best = args[0]
        for other in args[1:]:
            better = other < best if name == "min" else other > best
            best = if_expression(
                better, functools.partial(_same, other), functools.partial(_same, best)
            )
        return best

    return extreme


def _values(x: object) -> Any:
    """A traced array, that of a list which a loop has filled, or a list with traced elements."""
    if isinstance(x, Handle):
        return x if is_traced(x) and x.node.spec.shape else None
    if not isinstance(x, list | tuple):
        return None
    found = loop_rows.whole(x)
    if found is None and any(is_traced(v) for v in x):
        return x
    return found


def _looped(python: Any, function: Any, *defaults: object) -> Callable[..., Any]:
    """``sum``, ``any`` or ``all``, of traced arrays too."""

    def call(*args: Any, **kwargs: Any) -> Any:
        values = _values(args[0]) if args else None
        if values is None or kwargs or len(args) > 1 + len(defaults):
            return python(*args, **kwargs)
        return builtin_loops.looped(function)(values, *args[1:], *defaults[len(args) - 1 :])

    return call


def consumed(f: Any, name: str, quick: Callable[[], Any], slow: Callable[[], Any]) -> Any:
    """A call with a generator expression: as a loop, if `f` is the function of this name."""
    own = getattr(builtins, name, None)
    is_known = f is own if own is not None else getattr(f, "__name__", None) == name
    return quick() if is_known and current_trace() is not None else slow()


_REPLACEMENTS: dict[Any, Any] = {
    **REPLACEMENTS,
    builtins.min: _least("min"),
    builtins.max: _least("max"),
    builtins.sum: _looped(builtins.sum, builtin_loops.sum_, 0),
    builtins.any: _looped(builtins.any, builtin_loops.any_),
    builtins.all: _looped(builtins.all, builtin_loops.all_),
}
_TYPE_REPLACEMENTS: dict[type, Any] = {
    **TYPE_REPLACEMENTS,
    builtins.range: range_,
    builtins.zip: zip_,
    builtins.enumerate: enumerate_,
    builtins.reversed: reversed_,
    int: _number(int),
    float: _number(float),
    bool: _number(bool),
    np.ndarray: new_array,
}

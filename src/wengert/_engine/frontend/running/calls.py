"""Calls and assertions of rewritten functions.

    f(x)              callee(f)(x)
    sum(generator)    consumed(sum, "sum", lambda: loop, lambda: sum(generator))
    assert c, message assert_(c, lambda: message)

callee     the function to call instead of another one
consumed   a call with a generator expression (rewriting/simplified.py)
assert_    an assertion

The ``try`` statements of the user's: they catch the exceptions of Python, and no refusals.

    except refused():    # before the user's handlers
        raise

refused    the exceptions that this handler catches: all if the one that is raised is a refusal

Strings made of values: a loop that makes one of a traced value is unrolled.

A loop is traced once, so that such a string would be the same in all iterations.  Messages, as of
``print`` and exceptions, are left.

formatted      a value of an f-string
string_type    the replacement of ``str``, ``repr`` and ``format``
format_method  the replacement of the method ``format`` of a string
"""

from __future__ import annotations

import builtins
import functools
import sys
import warnings
from collections.abc import Callable, KeysView, Set, ValuesView
from types import BuiltinMethodType, CodeType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

import numpy as np

from wengert._engine.core import loop_rows
from wengert._engine.core.conversion_hook import converted, is_library_class, is_library_function
from wengert._engine.core.handle import Handle, is_traced
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import current_trace
from wengert._engine.core.replaced_errors import hidden
from wengert._engine.core.runtime_checks import RuntimeChecks
from wengert._engine.core.symbolic.constraints import LengthsDiffer
from wengert._engine.frontend.source import code_facts
from wengert._engine.ops.casts import astype
from wengert.errors import ConversionError, TraceError, at, user_place

from .. import source
from ..names import note_outer_assignments
from ..namespaces import new_array, replacement
from ..source import definition_of
from ..state import NotTraceable, Speculation
from . import builtin_operations
from .branches import if_expression
from .builtin_operations import extreme_by, sort_list, sorted_
from .iterables import enumerate_, is_unknown_length, items_of, range_, reversed_, zip_
from .object_changes import REPLACEMENTS, TYPE_REPLACEMENTS, check_method, returning_new
from .values import as_bool, weakly_typed


def formatted(x: Any) -> Any:
    """A value that becomes a part of a string."""
    if is_traced(x):
        Speculation.refuse("it makes a string of a value that is not known")
    return x


def string_type(builtin: Any) -> Callable[..., Any]:
    """``str``, ``repr`` or ``format``."""

    def convert(*args: Any, **kwargs: Any) -> Any:
        return builtin(*map(formatted, args), **kwargs)

    return convert


def format_method(text: str) -> Callable[..., str]:
    """The method ``format`` of a string."""

    def convert(*args: Any, **kwargs: Any) -> str:
        for x in (*args, *kwargs.values()):
            formatted(x)
        return text.format(*args, **kwargs)

    return convert


_CALLABLE_TYPES = (FunctionType, MethodType, BuiltinMethodType, functools.partial, type)
# Modules whose functions may call classes that are passed to them, as ``map(float, xs)``.
_CALLING_CLASSES = frozenset(("builtins", "functools", "_functools", "itertools"))
# Built-in functions and classes that do not call their arguments.
_NEVER_CALLING = frozenset(
    (
        *(abs, all, any, chr, divmod, getattr, hasattr, hash, id, isinstance, issubclass, len, ord),
        *(pow, print, repr, round, setattr, sum, complex, dict, frozenset, list, set, slice, str),
        *(tuple, type, object, functools.partial),
        *(warnings.warn, sys._getframe),  # these look at the frame that calls them
    )
)
# Methods of plain arrays whose arguments may be tensors.
_ARRAY_METHODS = frozenset(("clip", "dot", "searchsorted", "take"))


def callee(f: Any) -> Any:
    """The function to call instead of `f`."""
    cls = type(f)
    if cls is np.ufunc:
        return f
    if cls is FunctionType or cls is MethodType or cls is functools.partial:
        return (
            _REPLACEMENTS[f] if cls is FunctionType and f in _REPLACEMENTS else _of_user_function(f)
        )
    if isinstance(f, type):
        return _TYPE_REPLACEMENTS.get(f) or _of_class(f)
    if cls is BuiltinMethodType:
        owner = f.__self__
        if isinstance(owner, ModuleType):
            return _REPLACEMENTS.get(f) or _of_c_function(f)
        if type(owner) is np.ndarray and f.__name__ in _ARRAY_METHODS:
            return functools.partial(getattr(replacement(np), f.__name__), owner)
        if type(owner) is list and f.__name__ == "sort":
            return functools.partial(sort_list, owner)
        if type(owner) is str and f.__name__ == "format":
            return format_method(owner)
        check_method(f)
        return returning_new(f) if f.__name__ == "__new__" else f
    if isinstance(f, Handle) or cls.__module__.startswith("wengert."):
        return f
    return converted(f)


def _of_c_function(f: Any) -> Any:
    """A function written in C: its replacement, or itself with converted arguments."""
    substitute = replacement(f)
    return (
        substitute
        if substitute is not f or f in _NEVER_CALLING
        else functools.partial(_call_with_converted_arguments, f)
    )


def _of_class(cls: type) -> Any:
    substitute = replacement(cls)
    if substitute is not cls or cls in _NEVER_CALLING:
        return substitute
    if is_library_class(cls):
        return functools.partial(_call_with_converted_arguments, cls)
    initializer = _initializer(cls)
    if type(initializer) is not FunctionType or cls.__new__ is not object.__new__:
        return cls
    if type(cls).__call__ is not type.__call__ or is_library_function(initializer):
        return cls
    return functools.partial(_construct, cls)


def _initializer(cls: type) -> Any:
    return getattr(cls, "__init__")  # noqa: B009  (of the class, not of its instances)


def _construct(cls: type, *args: object, **kwargs: object) -> object:
    """An instance of a user-defined class, whose initializer is converted."""
    instance: Any = object.__new__(cls)
    Speculation.note_new(instance)
    converted(_initializer(cls))(instance, *args, **kwargs)
    return instance


def _call_with_converted_arguments(
    f: Callable[..., object], *args: object, **kwargs: object
) -> object:
    """Call a library function, with the functions among its arguments converted.

    Classes among the arguments are converted for built-in functions that call them, as
    ``map(float, xs)``; for others they are values, as in ``np.dtype(float)``.
    """
    converted_types = (
        _CALLABLE_TYPES
        if getattr(f, "__module__", None) in _CALLING_CLASSES
        else _CALLABLE_TYPES[:-1]
    )
    if any(type(a) in converted_types for a in args):
        args = tuple([callee(a) if type(a) in converted_types else a for a in args])
    for keyword, a in kwargs.items():
        if type(a) in converted_types:
            kwargs[keyword] = callee(a)
    return f(*args, **kwargs)


def _of_user_function(f: Any) -> Any:
    if Speculation.notes():
        function = f
        while isinstance(function, MethodType | functools.partial):
            function = function.__func__ if isinstance(function, MethodType) else function.func
        if isinstance(function, FunctionType) and not is_library_function(function):
            note_outer_assignments(function)
            is_original = type(function.__globals__) is dict  # not defined in a rewritten function
            if (
                is_original
                and code_facts(function.__code__).stores
                and not _has_source(function.__code__)
            ):
                Speculation.refuse(
                    f"it calls {function.__qualname__}, whose source is not available"
                )
    return converted(f)


def _has_source(code: CodeType) -> bool:
    """Whether the source of a code object is available, and belongs to it."""
    return source.find(code, True) is not None or definition_of(code) is not None


def assert_(condition: object, message: Callable[[], Any] | None) -> None:
    """An ``assert`` statement."""
    if is_traced(condition):
        messages = [] if message is None else [message()]
        error = (
            AssertionError(*messages)
            if messages
            else AssertionError(f"assertion{at(user_place())}")
        )
        RuntimeChecks.add(lookup("logical_not")(as_bool(condition)), error)
        return
    if not condition:
        raise AssertionError(*([message()] if message is not None else []))


def _length(x: Any) -> Any:
    """``len(x)``, a traced integer where the length is not known."""
    return x.shape[0] if is_unknown_length(x) else len(x)


def _number_type(kind: Any) -> Callable[..., Any]:
    """The replacement of ``int``, ``float`` or ``bool``, for traced values too."""

    def convert(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and is_traced(args[0]) and not kwargs:
            return _to_number(args[0], kind)
        return kind(*args, **kwargs)

    return convert


def _to_number(x: Any, kind: Any) -> Any:
    if x.node.spec.shape:
        sizes = [n for n in x.node.spec.shape if n != 1]
        if sizes:
            raise TypeError(
                f"{kind.__name__}() of an array of shape {x.node.spec.shape}: only arrays of one "
                f"element can be converted to a number{at(user_place())}"
            )
        x = x.reshape(())
    if kind is bool:
        return as_bool(x)
    if x.node.spec.dtype.kind == "c":
        raise TypeError(
            f"{kind.__name__}() of a complex number: use its real part{at(user_place())}"
        )
    return weakly_typed(astype(x, np.dtype(np.int64 if kind is int else np.float64)))


def _identity(x: object) -> object:
    return x


def _extreme(name: str) -> Callable[..., Any]:
    """The replacement of ``min`` or ``max``, for traced numbers and arrays too."""
    builtin = getattr(builtins, name)

    def extreme(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], _ITERATED):
            args = (list(args[0]),)
        if kwargs.keys() == {"key"} and kwargs["key"] is not None:
            return extreme_by(name, args[0] if len(args) == 1 else args, kwargs["key"])
        has_several = len(args) > 1 and not kwargs
        if len(args) == 1 and not kwargs and (values := _traced_sequence(args[0])) is not None:
            loop = builtin_operations.min_ if name == "min" else builtin_operations.max_
            return builtin_operations.looped(loop)(values)
        if not has_several or not any(is_traced(a) for a in args):
            return builtin(*args, **kwargs)
        best = args[0]
        for other in args[1:]:
            better = other < best if name == "min" else other > best
            best = if_expression(
                better, functools.partial(_identity, other), functools.partial(_identity, best)
            )
        return best

    return extreme


# Iterables that have no elements by index.
_ITERATED = (GeneratorType, ValuesView, KeysView, Set, map, filter)


def _filtered(condition: Any, values: Any) -> Any:
    """``filter(condition, values)``, where the condition may be traced."""
    if current_trace() is None:
        return filter(condition, values)
    elements = values if items_of(values) is not None else list(values)
    function = (lambda v: v) if condition is None else callee(condition)
    chosen = builtin_operations.looped(builtin_operations.filter_)(function, elements)
    return iter(chosen) if type(chosen) is list else chosen


def _traced_sequence(x: object) -> Any:
    """A traced array, the rows of a list that a loop has filled, or a list of traced values.

    None for other values.
    """
    if isinstance(x, Handle):
        return x if is_traced(x) and x.node.spec.shape else None
    if is_unknown_length(x):
        return x
    if not isinstance(x, list | tuple):
        return None
    rows = loop_rows.whole(x)
    if rows is None and any(is_traced(v) for v in x):
        return x
    return rows


def _loop_or_builtin(builtin: Any, loop: Any, *defaults: object) -> Callable[..., Any]:
    """The replacement of ``sum``, ``any`` or ``all``, for traced arrays too."""

    def call(*args: Any, **kwargs: Any) -> Any:
        values = _traced_sequence(args[0]) if args else None
        if values is None or kwargs or len(args) > 1 + len(defaults):
            return builtin(*args, **kwargs)
        return builtin_operations.looped(loop)(values, *args[1:], *defaults[len(args) - 1 :])

    return call


def consumed(f: Any, name: str, loop_call: Callable[[], Any], original: Callable[[], Any]) -> Any:
    """A call with a generator expression: `loop_call` if `f` is the function of this name."""
    builtin = getattr(builtins, name, None)
    is_known = f is builtin if builtin is not None else getattr(f, "__name__", None) == name
    return loop_call() if is_known and current_trace() is not None else original()


_REPLACEMENTS: dict[Any, Any] = {
    **REPLACEMENTS,
    builtins.min: _extreme("min"),
    builtins.max: _extreme("max"),
    builtins.sum: _loop_or_builtin(builtins.sum, builtin_operations.sum_, 0),
    builtins.any: _loop_or_builtin(builtins.any, builtin_operations.any_),
    builtins.sorted: sorted_,
    builtins.len: _length,
    builtins.repr: string_type(builtins.repr),
    builtins.format: string_type(builtins.format),
    builtins.all: _loop_or_builtin(builtins.all, builtin_operations.all_),
}
_TYPE_REPLACEMENTS: dict[type, Any] = {
    **TYPE_REPLACEMENTS,
    builtins.range: range_,
    builtins.zip: zip_,
    builtins.enumerate: enumerate_,
    builtins.reversed: reversed_,
    builtins.filter: _filtered,
    str: string_type(str),
    int: _number_type(int),
    float: _number_type(float),
    bool: _number_type(bool),
    np.ndarray: new_array,
}

_REFUSALS = (TraceError, ConversionError, NotTraceable)


def refused() -> tuple[type[BaseException], ...]:
    """`BaseException` if the exception that is being handled is a refusal; otherwise nothing."""
    error = sys.exc_info()[1]
    is_refusal = isinstance(error, _REFUSALS) or isinstance(
        getattr(error, "__cause__", None), LengthsDiffer
    )
    if is_refusal or (isinstance(error, Exception) and hidden(error) is not None):
        return (BaseException,)
    return ()

"""Properties of classes that determine how attributes of their objects are read.

slots              the names of members of classes with __slots__
has_own_getattr    whether attributes are computed
has_unnamed_reads  whether methods of libraries may read attributes
has_own_code       whether a class has functions of the user
is_plain           whether an object can be copied with other attributes
is_of_python       whether a class is one of the standard library that is not searched
is_iterator        whether an object is an iterator, which changes when it is used
draws              whether an object generates random numbers
is_network_module  whether a class derives from wengert.nn.Module
holds_functions    whether a value is a function or a container of functions
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from types import FunctionType, SimpleNamespace
from typing import Any

from wengert._engine.core.conversion_hook import is_library_class, is_library_function

# Modules whose classes read no attributes of objects of their subclasses.
_WITHOUT_DATA = frozenset(("abc", "builtins", "enum", "typing"))
_DATA = frozenset(("argparse", "collections", "configparser", "optparse"))


def slots(cls: type) -> Iterator[str]:
    """The names of members of classes with ``__slots__``."""
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots


def has_unnamed_reads(cls: type) -> bool:
    """Whether methods of libraries among its bases may read attributes of an object."""
    return any(
        base is not object and is_library_class(base) and base.__module__ not in _WITHOUT_DATA
        for base in cls.__mro__
    )


def has_own_code(cls: type) -> bool:
    """Whether a class has functions of the user, or objects with attributes."""
    functions = [v for v in vars(cls).values() if isinstance(v, FunctionType)]
    return any(not is_library_function(f) for f in functions) or "__dict__" in vars(cls)


def has_own_getattr(cls: type) -> bool:
    """Whether attributes may be computed, by ``__getattr__`` or ``__getattribute__``."""
    return any(
        "__getattr__" in vars(base) or "__getattribute__" in vars(base)
        for base in cls.__mro__
        if base is not object
    )


def is_plain(cls: type) -> bool:
    """Whether an object can be copied with other attributes: no base has its own layout."""
    if cls is SimpleNamespace:
        return True
    return all(base is object or not _has_layout(base) for base in cls.__mro__)


def _has_layout(cls: type) -> bool:
    return bool(cls.__dict__.get("__slots__")) or cls.__module__ == "builtins"


def is_of_python(cls: type) -> bool:
    """Whether a class is in the standard library, except for classes with data of the user."""
    package = cls.__module__.partition(".")[0]
    return package in sys.stdlib_module_names and package not in _DATA


def is_iterator(x: object) -> bool:
    """Whether an object is an iterator of Python, which gives other items at each use."""
    return type(x).__module__ in ("builtins", "itertools") and isinstance(x, Iterator)


def draws(cls: type) -> bool:
    """Whether objects of a class generate random numbers, an error while a function is traced."""
    return cls.__module__ == "random" or cls.__module__.startswith("numpy.random")


def is_network_module(cls: type) -> bool:
    """Whether a class derives from `wengert.nn.Module`."""
    return any(b.__module__ == "wengert.nn.module" for b in cls.__mro__)


def name_of(fun: Any) -> str:
    """The name of a function in messages."""
    return getattr(fun, "__name__", None) or type(fun).__name__


def weakly(x: Any) -> Any:
    """A weak reference to an object; the object itself if it does not support weak references."""
    try:
        return weakref.ref(x)
    except TypeError:
        return x


def holds_functions(value: Any) -> bool:
    """Whether a value is a function or a container of functions."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, list | tuple):
        return any(map(is_searched, value))
    return is_searched(value)


def is_searched(value: Any) -> bool:
    """Whether a value in the closure of a library's function may lead to code of the user."""
    return callable(value) and not isinstance(value, type)

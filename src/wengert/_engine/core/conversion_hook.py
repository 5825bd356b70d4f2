"""Conversion of user functions: transformations run what the front end makes of a function.

`frontend` (a higher layer) converts functions so that NumPy programs run unchanged inside of
transformations: creation functions of NumPy give tensors, and loops and branches become nodes.
Every transformation runs ``converted(fun)`` in place of ``fun``.

    converted            the function to run
    written_parameters   the parameters whose elements it assigns
    object_changes       a block that notes assignments to parts of objects
    is_noted             whether it has noted one of an object
    is_converting        whether functions are converted
    conversion           a block in which functions are converted, or are not
    CONVERTER            the module that converts, imported at first use
    NAMESPACES           the modules that are replaced in converted functions
    NUMPY_NAMESPACES     those with NumPy's functions that create arrays

Library code, which is not searched for captured values, and immutable values.

The globals of the standard library, of installed packages and of this package are assumed to be
constant.

    is_library_file      by file name
    is_library_module, is_library_class, is_library_function
    is_immutable         a value that never changes
    same_value           whether two immutable values are the same, type included
"""

from __future__ import annotations

import datetime
import enum
import functools
import os
import pathlib
import re
import site
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from types import BuiltinFunctionType, BuiltinMethodType, CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np

from wengert.errors import FOLDER

from . import recording
from .implicit_conversions import is_differentiating
from .thread_state import Blocks, ScopedValue

F = TypeVar("F", bound=Callable[..., Any])

CONVERTER: list[str] = []  # the full name of a module with `convert`, set by wengert/__init__.py
# Modules that are replaced in converted functions, with their replacements; set by
# wengert/__init__.py.
NAMESPACES: dict[str, str] = {}
NUMPY_NAMESPACES = {"numpy", "wengert.numpy"}
_enabled: Blocks[bool] = Blocks("wengert_conversion", True)


@functools.cache
def _converter() -> Any:
    return import_module(CONVERTER[0])


def converted(fun: F) -> F:
    """The function to run in place of `fun`, which is `fun` itself outside of transformations."""
    if not CONVERTER or not (is_differentiating() or recording.current_trace() is not None):
        return fun
    if not _enabled.get():
        return fun
    return _converter().convert(fun)  # type: ignore[no-any-return]


def written_parameters(fun: Callable[..., object]) -> frozenset[str]:
    """The parameters whose elements a user function assigns."""
    if not is_converting():
        return frozenset()
    return _converter().written_parameters(fun)  # type: ignore[no-any-return]


def object_changes(inner: bool = False) -> AbstractContextManager[Any]:
    """A block that notes which parts of objects are assigned (assigned_parts.py).

    None inside of another such block, unless it is an inner one, which refuses assignments.
    """
    if not is_converting():
        return nullcontext()
    changes: AbstractContextManager[Any] = _converter().object_changes(inner)
    return changes


def is_noted(x: object) -> bool:
    """Whether a change of an object is noted (`object_changes`)."""
    return is_converting() and _converter().is_noted(x)


def is_converting() -> bool:
    """Whether functions are converted in this context."""
    return bool(CONVERTER) and _enabled.get()


@contextmanager
def conversion(enabled: bool) -> Iterator[None]:
    """A block in which functions are converted, or run as they are."""
    block = ScopedValue(enabled)
    try:
        _enabled.open(block)
        yield
    finally:
        block.end(True)
        _enabled.forget()


_PACKAGE = os.path.abspath(FOLDER) + os.sep
_SCALARS = frozenset(
    (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented))
)
_IMMUTABLE: tuple[Any, ...] = (
    *_SCALARS,
    np.generic,
    np.dtype,
    np.ufunc,
    range,
    slice,
    enum.Enum,
    CodeType,
    BuiltinFunctionType,
    BuiltinMethodType,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    datetime.tzinfo,
    re.Pattern,
    pathlib.PurePath,
)
# Classes of modules that most programs do not import.
_LATE = {"fractions": "Fraction", "decimal": "Decimal", "uuid": "UUID"}


@functools.cache
def _folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = {paths.get(k) for k in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= set(site.getsitepackages()) if hasattr(site, "getsitepackages") else set()
    folders.add(os.path.dirname(os.__file__))
    folders.add(site.getusersitepackages() if hasattr(site, "getusersitepackages") else None)
    return (_PACKAGE, *sorted(os.path.abspath(p) + os.sep for p in folders if p))


@functools.lru_cache(maxsize=4096)
def is_library_file(name: str) -> bool:
    """Whether a file belongs to an installed package, to Python, or to this package."""
    if name.startswith("<"):
        return name.startswith("<frozen")
    path = os.path.abspath(name)
    return path.startswith(_folders())


def is_library_function(fun: FunctionType) -> bool:
    """Whether a function is defined in a library."""
    return is_library_file(fun.__code__.co_filename)


def is_library_module(module: ModuleType) -> bool:
    """Whether a module is part of a library."""
    if module.__name__ == "__main__":
        return False
    name = getattr(module, "__file__", None)
    if name is not None:
        return is_library_file(name)
    folders = list(getattr(module, "__path__", None) or ())
    if folders:  # a package without __init__.py
        return all(is_library_file(os.path.join(f, "__init__.py")) for f in folders)
    # A module without a file is built in, if it has a spec; otherwise user code created it.
    return getattr(module, "__spec__", None) is not None


def is_library_class(cls: type) -> bool:
    """Whether a class is defined in a library."""
    if cls.__module__ == "builtins":
        return True
    module = sys.modules.get(cls.__module__)
    if module is not None:
        return is_library_module(module)
    functions = [f for f in vars(cls).values() if isinstance(f, FunctionType)]
    return bool(functions) and all(map(is_library_function, functions))


def is_immutable(x: Any) -> bool:
    """Whether a value and everything in it are immutable."""
    cls = type(x)
    if cls in _SCALARS or cls is object:
        return True
    if cls is tuple or cls is frozenset:
        return all(map(is_immutable, x))
    return isinstance(x, _IMMUTABLE) or _is_late(x)


def _is_late(x: object) -> bool:
    """Whether a value is an instance of one of the classes in `_LATE`."""
    for module, name in _LATE.items():
        if module in sys.modules and isinstance(x, getattr(sys.modules[module], name)):
            return True
    return False


def same_value(a: Any, b: Any) -> bool:
    """Whether two immutable values are the same: 1, 1.0 and True are not, nor 0.0 and -0.0."""
    if a is b:
        return True
    cls = type(a)
    if cls is not type(b):
        return False
    if cls is float or cls is complex:
        return repr(a) == repr(b)
    if isinstance(a, np.generic):
        return bool(a.dtype == b.dtype) and a.tobytes() == b.tobytes()
    if cls is tuple:
        return len(a) == len(b) and all(map(same_value, a, b))
    return bool(a == b)

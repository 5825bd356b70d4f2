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
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from typing import Any, TypeVar

from . import recording
from .concretization import is_differentiating
from .dynamic_scope import Blocks, ScopedValue

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

"""The built-in functions of converted code.

They are Python's, except that ``import`` gives the replacements of numpy, scipy and math,
``isinstance`` treats a tensor as an array or number, ``globals()`` is the dictionary of the user's
module, and ``eval`` and ``exec`` run in it.

    builtins_of    the ``__builtins__`` for a view of a module's globals
"""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .namespaces import isinstance_, replacement


class _BuiltinsOverlay(dict[str, Any]):
    """The built-in names of a module, some of them overridden."""

    __slots__ = ("builtin_names",)

    def __init__(self, builtin_names: dict[str, Any], overrides: dict[str, Any]) -> None:
        super().__init__(overrides)
        self.builtin_names = builtin_names

    def __missing__(self, name: str) -> Any:
        return self.builtin_names[name]


def builtins_of(module: dict[str, Any]) -> dict[str, Any]:
    """The ``__builtins__`` for a view of a module's globals."""
    python_builtins = module.get("__builtins__", builtins)
    builtin_names = (
        vars(python_builtins) if isinstance(python_builtins, ModuleType) else python_builtins
    )
    overrides = {
        "__import__": functools.partial(_import, builtin_names["__import__"], module),
        "isinstance": isinstance_,
        "globals": functools.partial(_globals, module),
        "eval": functools.partial(_evaluate, builtin_names["eval"], module),
        "exec": functools.partial(_evaluate, builtin_names["exec"], module),
    }
    return _BuiltinsOverlay(builtin_names, overrides)


def _import(
    import_function: Callable[..., Any],
    module: dict[str, Any],
    name: str,
    *args: object,
    **kwargs: object,
) -> object:
    """``__import__``; relative imports are relative to the user's module."""
    return replacement(import_function(name, *((module, *args[1:]) if args else ()), **kwargs))


def _globals(module: dict[str, Any]) -> dict[str, Any]:
    return module


def _evaluate(
    function: Callable[..., Any],
    module: dict[str, Any],
    source: Any,
    *namespaces: Any,
    **keywords: Any,
) -> Any:
    """``eval`` and ``exec``; without namespaces, they use those of the caller."""
    if not namespaces and not keywords:
        namespaces = module, sys._getframe(1).f_locals
    return function(source, *namespaces, **keywords)

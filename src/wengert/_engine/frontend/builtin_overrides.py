"""Builtins: the built-in functions that converted code finds.

Some of them differ from Python's: ``import`` gives the namespaces of tensors, ``isinstance`` takes
a tensor for the array that it stands for, ``globals()`` is the dictionary of the module, and
``eval`` and ``exec`` run in it.

    builtins_of    the built-in names for the globals of a module
"""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .namespaces import isinstance_, replacement


class _Builtins(dict[str, Any]):
    """Names that are looked up here first, then in the module."""

    __slots__ = ("real",)

    def __init__(self, real: dict[str, Any], own: dict[str, Any]) -> None:
        super().__init__(own)
        self.real = real

    def __missing__(self, name: str) -> Any:
        return self.real[name]


def builtins_of(module: dict[str, Any]) -> dict[str, Any]:
    """The built-in names for the globals of a module."""
    found = module.get("__builtins__", builtins)
    real = vars(found) if isinstance(found, ModuleType) else found
    own = {
        "__import__": functools.partial(_imported, real["__import__"], module),
        "isinstance": isinstance_,
        "globals": functools.partial(_same, module),
        "eval": functools.partial(_evaluated, real["eval"], module),
        "exec": functools.partial(_evaluated, real["exec"], module),
    }
    return _Builtins(real, own)


def _imported(
    python: Callable[..., Any], module: dict[str, Any], name: str, *args: object, **kwargs: object
) -> object:
    """The objects that ``import`` binds: relative imports are relative to the module."""
    return replacement(python(name, *((module, *args[1:]) if args else ()), **kwargs))


def _same(module: dict[str, Any]) -> dict[str, Any]:
    return module


def _evaluated(
    python: Callable[..., Any], module: dict[str, Any], source: Any, *names: Any, **more: Any
) -> Any:
    """What ``eval`` and ``exec`` do without namespaces: they use those of the caller."""
    if not names and not more:
        names = module, sys._getframe(1).f_locals
    return python(source, *names, **more)

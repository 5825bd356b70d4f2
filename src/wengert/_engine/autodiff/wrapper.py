"""The callables that transformations return.

`grad(f)` and the like have the name and signature of f and can be methods.  Unlike a function
defined inside a function, they can be pickled if f can, which process pools need.  A call takes no
longer than that of a `functools.partial`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import MethodType
from typing import Any

from wengert._engine.core.validation import function


class Derived(functools.partial[Any]):
    """``run(*first, ...)``, with the name of the function `fun` that it transforms."""

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        return name_in_module(self) or super().__reduce__()

    def __repr__(self) -> str:
        name = getattr(self, "__qualname__", None) or repr(self.__dict__.get("__wrapped__"))
        return f"<{self.__dict__.get('_transformation') or _name_of_run(self.func)} of {name}>"


def derived(
    fun: Callable[..., Any], run: Callable[..., Any], *first: Any, name: str | None = None
) -> Callable[..., Any]:
    """`run` with its first arguments bound, as a transformation of `fun`.

    Messages call the transformation `name`, by default the name of `run`.
    """
    function(fun, name or _name_of_run(run))
    transformed = functools.update_wrapper(Derived(run, *first), fun, updated=())
    if name is not None:
        transformed._transformation = name  # type: ignore[attr-defined]
    return transformed


def _name_of_run(run: Callable[..., Any]) -> str:
    return run.__name__.strip("_")


def name_in_module(wrapper: Any) -> str | None:
    """The qualified name by which the module of a wrapper (a decorated function) has it, or None.

    It is then pickled by that name, as functions are: the name does not refer to the function that
    it wraps.
    """
    name: str | None = getattr(wrapper, "__qualname__", None)
    if name is None:
        return None
    value: Any = sys.modules.get(wrapper.__module__)
    for part in name.split("."):
        value = getattr(value, part, None)
    return name if value is wrapper else None

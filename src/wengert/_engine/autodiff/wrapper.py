"""Derived: the callables that the transformations return.

What `grad(f)` and its sisters return is called like a function, bears the name and signature of f,
and can be a method.  It can be pickled if f can, as process pools need it, which a function made
inside a function cannot.  Being a `functools.partial` it costs no more to call than one.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import MethodType
from typing import Any

from wengert._engine.core.validation import function


class Derived(functools.partial[Any]):
    """``run(*first, ...)``, under the name of a function `fun` that it was made of."""

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        return standing(self) or super().__reduce__()

    def __repr__(self) -> str:
        name = getattr(self, "__qualname__", None) or repr(self.__dict__.get("__wrapped__"))
        return f"<{self.func.__name__.strip('_')} of {name}>"


def derived(fun: Callable[..., Any], run: Callable[..., Any], *first: Any) -> Callable[..., Any]:
    """`run` with its first arguments given, as a function made of `fun`."""
    function(fun, run.__name__.strip("_"))
    return functools.update_wrapper(Derived(run, *first), fun, updated=())


def standing(made: Any) -> str | None:
    """The name under which it stands in its module, as a decorated function does; else None.

    It is pickled by that name, as functions are: the plain function is not to be found there.
    """
    name: str | None = getattr(made, "__qualname__", None)
    if name is None:
        return None
    found: Any = sys.modules.get(made.__module__)
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is made else None
